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
use nvme_rdma_transport::queue;
use rrdma::{
    rdma::{
        cm::Connected,
        qp::QueuePair, //
    },
    sync::RcuSlot,
};

/// A queue of the transport crate that carries requests of nvme-core.
pub(crate) type Queue = queue::Queue<CoreRequests>;

/// One queue of a controller, over many connections.
#[pin_data]
pub(crate) struct RdmaQueue {
    pub(crate) qid: u16,
    pub(crate) association: Arc<Association>,
    /// The queue pair, for submitters.
    pub(crate) queue_pair: RcuSlot<QueuePair<Queue>>,
    #[pin]
    connection: Mutex<Option<Connected<Queue>>>,
}

impl RdmaQueue {
    /// Creates a queue without a connection. May sleep.
    pub(crate) fn new(qid: u16, association: Arc<Association>) -> Result<Pin<KBox<Self>>> {
        KBox::pin_init(
            pin_init!(Self {
                qid,
                association,
                queue_pair: RcuSlot::new(),
                connection <- new_mutex!(None, "nvme_rdma_rust::RdmaQueue"),
            }),
            GFP_KERNEL,
        )
    }

    /// Makes a connection available to submitters. Sleeps.
    pub(crate) fn publish(&self, connection: Connected<Queue>) {
        let mut current = self.connection.lock();
        drop(self.queue_pair.publish(connection.queue_pair().clone()));
        *current = Some(connection);
    }

    /// Ends the connection, and cancels the requests in flight. Sleeps.
    pub(crate) fn disconnect(&self) {
        let mut current = self.connection.lock();
        drop(self.queue_pair.take());
        if let Some(connection) = current.take() {
            Queue::end(&connection, |request| request.cancel());
        }
        if self.qid == 0 {
            self.association.release_device();
        }
    }

    /// Sends an Asynchronous Event Request. Sleeps.
    pub(crate) fn submit_async_event(&self) {
        let current = self.connection.lock();
        // Without a connection, nvme-core asks again after the next connect.
        if let Some(connection) = current.as_ref() {
            if Queue::submit_aer(connection.queue_pair()).is_err() {
                pr_warn!(
                    "queue {}: cannot send an Asynchronous Event Request\n",
                    self.qid
                );
            }
        }
    }
}
