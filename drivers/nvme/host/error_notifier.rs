// SPDX-License-Identifier: GPL-2.0

//! How a controller's thread learns that something is wrong.
//!
//! Completions, connection events, timeouts and device removal run in other
//! contexts and may do nothing but raise the alarm. The first trouble that is a cause is kept:
//! what follows it is its consequence.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::policy::request_state::ProtocolError;
use rrdma::{
    new_irq_lock,
    rdma::{
        cm,
        cq,
        qp, //
    },
    sync::{
        IrqLock,
        TimedCompletion, //
    },
};

/// What went wrong, and on which queue.
#[derive(Clone, Copy)]
pub(crate) enum ConnError {
    /// A work request failed.
    WorkRequest {
        qid: u16,
        what: &'static str,
        failure: cq::Failure,
    },
    /// A work request could not be posted.
    Post {
        qid: u16,
        what: &'static str,
        error: Error,
    },
    /// The target sent a response that is too short to be one.
    ShortResponse { qid: u16, length: usize },
    /// The target answered a command that is not in flight.
    UnknownCommand { qid: u16, command_id: u16 },
    /// The target answered a command in a way that cannot be.
    Protocol {
        qid: u16,
        command_id: u16,
        error: ProtocolError,
    },
    /// A command was not answered in time.
    Timeout { qid: u16, tag: u32 },
    /// The device has stopped a queue pair. That has a cause, which it may tell, too, or not.
    Stopped { qid: u16 },
    /// A queue pair is at fault, without a work request that is.
    Fault { qid: u16, fault: qp::Fault },
    /// The connection of a queue is gone.
    Lost { qid: u16, cause: cm::Lost },
    /// The RDMA device is being removed.
    DeviceRemoved,
}

/// A controller's alarm.
#[pin_data]
pub(crate) struct ErrorNotifier {
    #[pin]
    trouble: IrqLock<Option<ConnError>>,
    wake: Arc<TimedCompletion>,
}

impl ErrorNotifier {
    /// An alarm that wakes who waits for `wake`. May sleep.
    pub(crate) fn new(wake: Arc<TimedCompletion>) -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                trouble <- new_irq_lock!(None, "rnvmf::ErrorNotifier"),
                wake,
            }),
            GFP_KERNEL,
        )
    }

    /// Tells the controller's thread, if nobody did before, or not why. Any context.
    pub(crate) fn report(&self, trouble: ConnError) {
        {
            let mut first = self.trouble.lock();
            if matches!(*first, None | Some(ConnError::Stopped { .. })) {
                *first = Some(trouble);
            }
        }
        self.wake.complete();
    }

    /// The first trouble. Any context.
    pub(crate) fn error(&self) -> Option<ConnError> {
        *self.trouble.lock()
    }

    /// Forgets the trouble: the connection that it is of is gone, with all that could raise it.
    pub(crate) fn reset(&self) {
        *self.trouble.lock() = None;
    }

    /// Makes the controller's thread look around. Any context.
    pub(crate) fn wake(&self) {
        self.wake.complete();
    }
}
