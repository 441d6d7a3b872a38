// SPDX-License-Identifier: GPL-2.0

//! One queue of a controller.

use crate::{
    association::Association,
    ulp::CoreRequests, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_core::{
    AssociationNumber,
    Request, //
};
use nvme_proto::format::sqe::Command;
use nvme_rdma_transport::queue;
use rrdma::{
    rdma::{
        cm::Connected,
        qp::QueuePair, //
    },
    sync::{
        rcu_read,
        Deadline,
        Msecs,
        RcuSlot,
        RelaxedBool,
        Retracted, //
    },
};

/// A queue of the transport crate that carries requests of nvme-core.
pub(crate) type Queue = queue::Queue<CoreRequests>;

/// A connection of a queue.
struct Current {
    /// The queue pair, from when it is retracted until no submitter uses it any more.
    retracted: Option<Retracted<QueuePair<Queue>>>,
    connection: Connected<Queue>,
    association: AssociationNumber,
    /// Time from which the target no longer executes requests that were sent; [`Deadline::NEVER`] until the
    /// queue is stopped.
    quiesced: Deadline,
}

/// One queue of a controller, over many connections.
#[pin_data]
pub(crate) struct RdmaQueue {
    pub(crate) qid: u16,
    pub(crate) association: Arc<Association>,
    /// The queue pair, for submitters.
    pub(crate) queue_pair: RcuSlot<QueuePair<Queue>>,
    #[pin]
    current: Mutex<Option<Current>>,
    /// The device keeps a request of an earlier connection, whose end did not return it.
    device_keeps: RelaxedBool,
}

impl RdmaQueue {
    /// Creates a queue without a connection. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn new(qid: u16, association: Arc<Association>) -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                qid,
                association,
                queue_pair: RcuSlot::new(),
                current <- new_mutex!(None, "nvme_rdma_rust::RdmaQueue"),
                device_keeps: RelaxedBool::new(false),
            }),
            GFP_KERNEL,
        )
    }

    /// Publishes a connection: submitters find its queue pair from now on. Sleeps.
    pub(crate) fn publish(&self, connection: Connected<Queue>, association: AssociationNumber) {
        let mut current = self.current.lock();
        self.association.queue_connected();
        drop(self.queue_pair.publish(connection.queue_pair().clone()));
        *current = Some(Current {
            retracted: None,
            connection,
            association,
            quiesced: Deadline::NEVER,
        });
    }

    /// Retracts the queue pair of a connection of `association`: no submitter finds it any more. Sleeps.
    pub(crate) fn retract(&self, association: AssociationNumber) {
        self.with_current(association, |current| self.retract_current(current));
    }

    /// Retracts the queue pair of a connection of `association`, and waits until no submitter uses it any more, so
    /// no further request is sent. Sleeps.
    pub(crate) fn stop(&self, association: AssociationNumber) {
        self.with_current(association, |current| self.stop_current(current));
    }

    fn with_current(&self, association: AssociationNumber, act: impl FnOnce(&mut Current)) {
        if let Some(current) = &mut *self.current.lock() {
            if current.association == association {
                act(current);
            }
        }
    }

    fn retract_current(&self, current: &mut Current) {
        // The slot is empty if there is one already.
        if let Some(retracted) = self.queue_pair.retract() {
            current.retracted = Some(retracted);
        }
    }

    fn stop_current(&self, current: &mut Current) {
        self.retract_current(current);
        drop(current.retracted.take());
        if current.quiesced == Deadline::NEVER {
            current.quiesced = Deadline::after(self.association.quiesce_time);
        }
    }

    /// Ends the connection if it is of `association`, and cancels the requests in flight. Sleeps.
    pub(crate) fn disconnect(&self, association: AssociationNumber) {
        let mut locked = self.current.lock();
        let current = locked.take_if(|current| current.association == association);
        let was_connected = current.is_some();
        if let Some(mut current) = current {
            self.stop_current(&mut current);
            let keeps = Queue::end(&current.connection, |request| {
                self.quiesce(&current, &request);
                request.cancel();
            });
            if keeps {
                self.device_keeps.set(true);
            }
        }
        self.association
            .queue_disconnected(association, was_connected);
    }

    /// Returns whether the device keeps the request of a tag since an earlier connection. Such a request
    /// does not end before the device returns it. Any context.
    pub(crate) fn is_kept(&self, tag: u32) -> bool {
        if !self.device_keeps.get() {
            return false;
        }
        // The tag of a kept request is not used again before. Without a queue pair, the disconnect that is under
        // way ends all other requests.
        rcu_read(|section| {
            let queue_pair = self.queue_pair.read(section);
            queue_pair.is_none_or(|queue_pair| !queue_pair.context().has_request(tag))
        })
    }

    /// Holds a write until the target has disconnected or acknowledged the disconnect, or `quiesce_time` is
    /// over. nvme-core sends a request again as soon as it is cancelled.
    /// Does nothing for other requests. Sleeps.
    fn quiesce(&self, current: &Current, request: &Request) {
        // Reads and Fabrics commands change no data, so they are not held.
        if !request.is_write() || request.command()[0] == Command::FABRICS {
            return;
        }
        let left = current.quiesced.left();
        if left > Msecs::new(0) {
            let queue = current.connection.queue_pair().context();
            // Acknowledged or not, the hold is over afterwards.
            let _acknowledged = queue.wait_disconnected(left);
        }
    }

    /// Sends an Asynchronous Event Request. Sleeps.
    pub(crate) fn submit_async_event(&self) {
        let current = self.current.lock();
        // Without a connection, nvme-core asks again after the next connect.
        if let Some(current) = current.as_ref() {
            // A request that is not sent is reported as a loss, unless another one is in flight.
            let _ = Queue::submit_aer(current.connection.queue_pair());
        }
    }
}
