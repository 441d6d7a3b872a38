// SPDX-License-Identifier: GPL-2.0

//! Probes of a queue without keep-alive: RDMA WRITEs without data.
//!
//! The responder does not check the key of an RDMA WRITE without data. Source: InfiniBand Architecture, C9-88.

use crate::rdma::Rdma;
use kernel::prelude::*;
use nvme_proto::policy::probe::{
    Probe,
    ProbeClock,
    ProbeStep, //
};
use nvmet::TransportTypes;
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::Completion,
        mr::RemoteKey,
        qp::QueuePair,
        wr::{
            Complete,
            Inline,
            Operation, //
        },
    },
    sync::IrqLock,
};

/// The context of the queue pair.
type Endpoint = <Rdma as TransportTypes>::Endpoint;

/// Work requests of the send queue that probes need.
pub(crate) const PROBES: u32 = 1;

/// What a probe writes to: nothing.
const NOWHERE: RemoteKey = RemoteKey {
    address: 0,
    length: 0,
    rkey: 0,
};

/// The operation of a probe.
struct EmptyWrite;

/// The probes of a queue, one at a time.
#[pin_data]
pub(super) struct Probes {
    #[pin]
    state: IrqLock<State>,
}

struct State {
    clock: ProbeClock,
    /// `None` while it is posted.
    ready: Option<Operation<EmptyWrite>>,
}

impl Probes {
    /// Creates the probes of a queue. May sleep.
    pub(super) fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            state <- new_irq_lock!(State {
                clock: ProbeClock::new(),
                ready: Some(Operation::new(EmptyWrite)?),
            }, "nvmet_rdma_rust::Probes"),
        }? Error)
    }

    /// Decides at `now_ms` what to do with the queue. `period_ms` is that of [`ProbeClock::step`]. Any context.
    pub(super) fn step(&self, now_ms: u64, period_ms: u64) -> ProbeStep {
        let mut state = self.state.lock();
        let probe = match state.ready {
            Some(_) => Probe::Ready,
            None => Probe::Outstanding,
        };
        state.clock.step(probe, now_ms, period_ms)
    }

    /// Starts the clock again. Any context.
    pub(super) fn reset(&self) {
        self.state.lock().clock.reset();
    }

    /// Sends a probe. An error means that the queue pair ends. Any context.
    pub(super) fn send(&self, queue: &QueuePair<Endpoint>) {
        let Some(operation) = self.state.lock().ready.take() else {
            return;
        };
        let posted = queue.post_send(operation, |_, chain| chain.write(Inline(&[]), NOWHERE));
        if let Err(unposted) = posted {
            self.put(unposted.operation);
        }
    }

    fn put(&self, operation: Operation<EmptyWrite>) {
        self.state.lock().ready = Some(operation);
    }
}

impl Complete<Endpoint> for EmptyWrite {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<Endpoint>,
        completion: &Completion<'_>,
    ) {
        let this = queue.context();
        match completion.result() {
            Ok(()) => this.probes.put(operation),
            Err(failure) => this.transfer_failed("probe by RDMA WRITE", failure),
        }
    }
}
