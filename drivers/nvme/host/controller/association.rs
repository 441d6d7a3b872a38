// SPDX-License-Identifier: GPL-2.0

//! The association of a connected controller: its queues and their parameters.

use super::{
    held_writes::{
        HeldFate,
        HeldWrites, //
    },
    serve::KeepAliveQueues,
    Controller, //
};
use crate::{admin::Admin, namespace::ScanContext, options::QuiesceTime};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{
    format::property::{
        Capabilities,
        Configuration, //
    },
    policy::{
        keep_alive::KeepAlive,
        limits::queue_counts::{
            HctxType,
            IoQueueCounts, //
        },
        reconnect_policy::FlapHistory, //
    },
};
use nvme_rdma_transport::stats::QueueStats;
use rnvmf_disk::{
    Io,
    Queue, //
};
use rrdma::{
    block::{
        QueueCounts,
        Request,
        Status,
        TagSet, //
    },
    rdma::cm::Connected,
    sync::{
        Deadline,
        Msecs,
        RcuSlot, //
    },
};

/// Longest wait for the target to acknowledge the disconnects. A few round trips; a target that is
/// gone does not.
const ACKNOWLEDGE: Msecs = Msecs::new(250);

/// The admin queue and I/O queues of one connect.
///
/// The queue pairs hold the protection domain, the completion queues and the device;
/// [`Association::tear_down`] releases them all. The disks and their tag set outlive the
/// association. After the teardown their [`HctxQueue`](rnvmf_disk::HctxQueue)s are empty.
pub(super) struct Association {
    pub(super) admin: Connected<Queue>,
    pub(super) io: KVec<Connected<Queue>>,
    /// The I/O queues, by purpose.
    pub(super) split: IoQueueCounts,
    pub(super) tag_set: Arc<TagSet<Io>>,
    /// The context of scans on this connection.
    pub(super) scan_context: Arc<ScanContext>,
    /// An AER was submitted.
    pub(super) events: bool,
    pub(super) capabilities: Capabilities,
    pub(super) configuration: Configuration,
    /// After a lost connection: the history of losses until then, and the time of the reconnect.
    pub(super) flap: Option<(FlapHistory, Instant<Monotonic>)>,
}

impl Association {
    /// Returns the history of losses if the connection is lost now. It includes this loss.
    pub(super) fn history_after_loss(&self) -> FlapHistory {
        let (history, since) = match self.flap {
            Some(flap) => flap,
            None => return FlapHistory::default(),
        };
        history.record_loss(Msecs::from(since.elapsed()).get())
    }

    /// Returns what happens to requests in flight if the connection is lost now: the loss counts as a
    /// retry if it is another one of an unstable connection.
    pub(super) fn inflight_policy(&self) -> InflightPolicy {
        match &self.flap {
            Some((_, since)) if !FlapHistory::is_stable(Msecs::from(since.elapsed()).get()) => {
                InflightPolicy::CountedRetry
            }
            _ => InflightPolicy::Retry,
        }
    }

    /// Returns the queues, to keep the connection alive.
    #[inline(never)]
    pub(super) fn keep_alive_queues(&self) -> KeepAliveQueues<'_> {
        KeepAliveQueues {
            admin: &self.admin,
            io: &self.io,
            keep_alive_mode: self.scan_context.identity.keep_alive_mode(),
        }
    }

    /// Returns the admin queue for commands within `limit` from now.
    fn command<'a>(&'a self, controller: &'a Controller, limit: Msecs) -> Admin<'a> {
        controller.admin(&self.admin, Deadline::after(limit))
    }

    /// Publishes the queues: disks, user space and scan work find them from now on. Sleeps.
    pub(super) fn publish(&self, controller: &Controller) {
        let admin = self.admin.queue_pair();
        for channel in controller.admin_channels() {
            channel.open(admin.clone());
        }
        self.map_hctxs();
    }

    /// Assigns a queue to every [`HctxQueue`](rnvmf_disk::HctxQueue). Sleeps.
    ///
    /// This runs before and after the disks' hardware queues change to [`queues`](Self::queues), so
    /// that no hardware queue is without a queue meanwhile. Until then several hardware queues may
    /// share a queue. A polled queue is assigned only to a hardware queue that is polled both
    /// before and after the change.
    pub(super) fn map_hctxs(&self) {
        let (now, then) = (self.tag_set.queues(), self.queues());
        for (index, hctx) in self.tag_set.data().iter().enumerate() {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            let kind = if now.is_polled(index.into()) && then.is_polled(index.into()) {
                HctxType::Poll
            } else {
                HctxType::Default
            };
            let connection = self.io.get(usize::from(self.split.map_hctx(index, kind)));
            if let Some(connection) = connection {
                hctx.put(connection.queue_pair());
            }
        }
    }

    /// Returns the hardware queues that the disks should have.
    pub(super) fn queues(&self) -> QueueCounts {
        rnvmf_disk::hctx_counts(self.split)
    }

    /// Tears down all queues. Requests in flight end as `inflight` says, and so do later ones.
    /// Sleeps.
    ///
    /// The order is that of [`nvme_rdma_transport::queue`]: retract the queues, drain the queue
    /// pairs, end the requests, free everything.
    pub(super) fn tear_down(self: KBox<Self>, controller: &Controller, inflight: InflightPolicy) {
        controller.holds_io.set(inflight != InflightPolicy::Fail);
        self.end_io(controller, inflight);
        match inflight {
            InflightPolicy::Fail => controller.held_writes.fail(),
            _ => self.settle_held_writes(controller),
        }
        end_admin(&self.admin);
    }

    /// Tears down queues that were not published, so that no request is in flight on them. Requests
    /// that are held stay so. Sleeps.
    pub(super) fn discard(self: KBox<Self>, controller: &Controller) {
        self.end_io(controller, InflightPolicy::Fail);
        end_admin(&self.admin);
    }

    /// Tears down the I/O queues, disables the controller (`CC.EN`), then tears down the admin
    /// queue. Best effort: errors of the disable are only logged. Sleeps.
    pub(super) fn disable(self: KBox<Self>, controller: &Controller) {
        controller.holds_io.set(true);
        self.end_io(controller, InflightPolicy::Retry);
        let limit = Msecs::new(self.capabilities.disable_timeout_ms());
        let admin = self.command(controller, limit.min(controller.settings().connect_timeout));
        if let Err(failure) = admin.disable(self.configuration) {
            controller.log(format_args!("reset: {}", failure.message()));
        }
        self.settle_held_writes(controller);
        end_admin(&self.admin);
    }

    /// Tears down the I/O queues, shuts the controller down (`CC.SHN`), then tears down the admin
    /// queue. Best effort: errors of the shutdown are only logged. Sleeps.
    ///
    /// A target may disconnect the I/O queues during a shutdown, which would count as a loss.
    pub(super) fn shut_down(self: KBox<Self>, controller: &Controller) {
        controller.holds_io.set(false);
        self.end_io(controller, InflightPolicy::Fail);
        controller.held_writes.fail();
        let limit = self.scan_context.identity.shutdown_timeout_ms();
        let admin = self.command(controller, Msecs::new(limit));
        if let Err(failure) = admin.shut_down(self.configuration) {
            controller.log(format_args!("shutdown: {}", failure.message()));
        }
        end_admin(&self.admin);
    }

    fn end_io(&self, controller: &Controller, inflight: InflightPolicy) {
        RcuSlot::clear_all(self.tag_set.data().iter().map(|hctx| &hctx.queue));
        for channel in controller.admin_channels() {
            channel.pause();
        }
        let settings = controller.settings();
        let holds = inflight != InflightPolicy::Fail && settings.holds_writes();
        let held = holds.then_some(&controller.held_writes);
        for connection in &self.io {
            let stats = connection.queue_pair().context().stats();
            let keeps = Queue::end(connection, |payload| {
                end_inflight(payload.into_request(), inflight, stats, held);
            });
            if keeps {
                // Any hardware queue may have sent it: several share a queue while their number changes.
                let hctxs = self.tag_set.data().iter();
                hctxs.for_each(|hctx| hctx.set_device_keeps());
            }
        }
        // Requests that wait for a retry delay are dispatched now, like the others.
        self.tag_set.kick_requeued();
    }

    /// Decides when the writes that were in flight are released, after the I/O queues have ended.
    /// Waits for the target to acknowledge the disconnects. Sleeps.
    ///
    /// An acknowledgement says that the target has ended a connection, not that it has ended the
    /// commands: the Linux target waits for its disks afterwards. So a known Command Quiesce Time
    /// is waited for, after a reset as well.
    fn settle_held_writes(&self, controller: &Controller) {
        let count = controller.held_writes.count_new();
        if count == 0 {
            return;
        }
        let limit = match self.is_acknowledged(controller) {
            true => self.quiesce_time(controller).unwrap_or(Msecs::new(0)),
            false => self.end_time(controller),
        };
        controller.held_writes.set_due(Deadline::after(limit));
        if limit == Msecs::new(0) {
            return controller.held_writes.release_if_due();
        }
        controller.services.deadlines.rearm();
        controller.warn(format_args!(
            "holding in-flight writes for {} ms: {count}; the target may still execute them",
            limit.get()
        ));
    }

    /// Returns whether the target has ended the connections of all I/O queues.
    fn is_acknowledged(&self, controller: &Controller) -> bool {
        let deadline = Deadline::after(ACKNOWLEDGE);
        loop {
            let mut queues = self.io.iter();
            if queues.all(|queue| queue.queue_pair().context().is_disconnected()) {
                return true;
            }
            if deadline.left() == Msecs::new(0) {
                return false;
            }
            controller.wait(deadline.left());
        }
    }

    /// Returns the Command Quiesce Time that the administrator set, or else the target reports; `None`
    /// if neither is known.
    fn quiesce_time(&self, controller: &Controller) -> Option<Msecs> {
        match controller.settings().quiesce {
            QuiesceTime::After(seconds) => Some(Msecs::from_secs(seconds.get())),
            QuiesceTime::Reported | QuiesceTime::NoHold => {
                // The target reports 0 if it does not say.
                let reported_ms = self.scan_context.identity.command_quiesce_time;
                (reported_ms != 0).then(|| Msecs::new(reported_ms.into()))
            }
        }
    }

    /// Returns the time after which the target has ended the association by itself.
    fn end_time(&self, controller: &Controller) -> Msecs {
        /// The keep-alive time-out to assume without keep-alive, and the largest Command Quiesce
        /// Time to assume for a target that reports none.
        const DEFAULT_MS: u32 = 10_000;
        let identity = &self.scan_context.identity;
        let timeout_ms = match controller.options.keep_alive_ms() {
            0 => DEFAULT_MS,
            timeout_ms => timeout_ms,
        };
        let quiesce_ms = self
            .quiesce_time(controller)
            .map_or(timeout_ms.min(DEFAULT_MS), Msecs::get);
        let expiry_ms = identity.keep_alive_expiry_ms(timeout_ms);
        let keep_alive = KeepAlive::new(expiry_ms, identity.keep_alive_mode());
        let end_ms = keep_alive.map_or(0, |policy| policy.association_end_ms(quiesce_ms));
        Msecs::new(end_ms)
    }
}

/// Tears down an admin queue. Sleeps.
pub(super) fn end_admin(admin: &Connected<Queue>) {
    // An admin queue has no block requests, so the device keeps none.
    let stats = admin.queue_pair().context().stats();
    let _ = Queue::end(admin, |payload| {
        end_inflight(payload.into_request(), InflightPolicy::Fail, stats, None);
    });
}

/// The end of a request in flight when its connection ends.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InflightPolicy {
    /// The request ends with an error.
    Fail,
    /// The request is requeued, unless its submitter forbids retries or it timed out too often. The
    /// target may have executed the command already, but block commands can be repeated without
    /// harm.
    Retry,
    /// As [`Retry`](Self::Retry), but it counts as one of the request's retries. A command at which
    /// the target disconnects would otherwise end each connection.
    CountedRetry,
}

/// Ends a request that was in flight when its connection ended. A write is
/// [held](super::held_writes) before, unless the administrator gave that up.
fn end_inflight(
    request: Request<Io>,
    policy: InflightPolicy,
    stats: &QueueStats,
    held: Option<&HeldWrites>,
) {
    let counts = policy == InflightPolicy::CountedRetry;
    let retries = policy != InflightPolicy::Fail && !request.no_retry();
    let fate = match retries && request.data().may_retry_on_reconnect(counts) {
        true => HeldFate::Retry,
        false => HeldFate::Fail,
    };
    if fate == HeldFate::Retry {
        stats.retried();
    }
    match (held, fate) {
        (Some(held), fate) if request.is_write() => held.hold(request, fate),
        (_, HeldFate::Retry) => request.requeue(None),
        (_, HeldFate::Fail) => rnvmf_disk::end(request, Status::Transport),
    }
}
