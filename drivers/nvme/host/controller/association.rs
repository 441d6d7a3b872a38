// SPDX-License-Identifier: GPL-2.0

//! What a controller has while it is connected.

use super::{
    serve::KeepAliveQueue,
    Controller,
    ScanContext, //
};
use crate::{
    admin::Admin,
    disk::{
        self,
        Io, //
    },
    disk::{AdminChannel, Queue},
};
use kernel::{
    prelude::*,
    sync::Arc,
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{
    format::{
        identify::KeepAliveMode,
        property::Configuration, //
    },
    policy::{
        limits::queue_counts::{
            HctxType,
            IoQueueCounts, //
        },
        reconnect_policy::FlapHistory, //
    },
};
use nvme_rdma_transport::{params::ADMIN_CHANNELS, stats::QueueStats};
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
        Msecs, //
    },
};

/// The connections of a controller.
///
/// Their queue pairs hold the protection domain, completion queues and device:
/// all of it goes with [`Association::tear_down`]. What the disks need stays with
/// the disks, which find in their [`HctxQueue`](crate::disk::HctxQueue)s that there is no queue any
/// more.
pub(super) struct Association {
    pub(super) admin: Connected<Queue>,
    /// The channels that the admin queue was made with.
    pub(super) admin_channels: [Arc<AdminChannel>; ADMIN_CHANNELS],
    pub(super) io: KVec<Connected<Queue>>,
    /// What the I/O queues are for.
    pub(super) split: IoQueueCounts,
    pub(super) tag_set: Arc<TagSet<Io>>,
    /// What disks are made from that are found on it.
    pub(super) scan_context: Arc<ScanContext>,
    /// The target tells of events.
    pub(super) events: bool,
    pub(super) configuration: Configuration,
    pub(super) keep_alive_mode: KeepAliveMode,
    /// How long the controller may take to be disabled.
    pub(super) disable: Msecs,
    /// How long the controller may take to shut down.
    pub(super) shutdown: Msecs,
    /// If it was made after a loss: what that was, and when I/O went on.
    pub(super) after_loss: Option<(FlapHistory, Instant<Monotonic>)>,
}

impl Association {
    /// What counts of earlier losses if the connection is lost now.
    pub(super) fn earlier_losses(&self) -> FlapHistory {
        let (earlier, since) = match self.after_loss {
            Some(after_loss) => after_loss,
            None => return FlapHistory::default(),
        };
        earlier.record_loss(Msecs::from(since.elapsed()).get())
    }

    /// The admin queue, for one command or what `limit` allows.
    fn command<'a>(&'a self, controller: &'a Controller, limit: Msecs) -> Admin<'a> {
        controller.admin(&self.admin, Deadline::after(limit))
    }

    /// Tells the controller to shut down in good order. It is a courtesy: what
    /// goes wrong changes nothing, the connection ends in any case.
    pub(super) fn shut_down(&self, controller: &Controller) {
        let admin = self.command(controller, self.shutdown);
        if let Err(failure) = admin.shut_down(self.configuration) {
            controller.log(format_args!("shutdown: {}", failure.message()));
        }
    }

    /// Lets the disks, users and scan work find the queues.
    pub(super) fn publish(&self) {
        let admin = self.admin.queue_pair();
        for channel in &self.admin_channels {
            channel.open(admin.clone());
        }
        self.map_hctxs();
    }

    /// Gives every place a queue, so that none is without one while the disks' hardware queues
    /// [follow](Self::queues) ours; and again when they have. Until then some share one, and
    /// a place has a queue that is polled only if its requests are, before and after. Sleeps.
    pub(super) fn map_hctxs(&self) {
        let (now, then) = (self.tag_set.queues(), self.queues());
        for (index, map_hctxs) in self.tag_set.data().hctxs.iter().enumerate() {
            let index = u16::try_from(index).unwrap_or(u16::MAX);
            let kind = if now.is_polled(index.into()) && then.is_polled(index.into()) {
                HctxType::Poll
            } else {
                HctxType::Default
            };
            let connection = self.io.get(usize::from(self.split.map_hctx(index, kind)));
            if let Some(connection) = connection {
                map_hctxs.put(connection.queue_pair());
            }
        }
    }

    /// The hardware queues that the disks should have.
    pub(super) fn queues(&self) -> QueueCounts {
        disk::hctx_counts(self.split)
    }

    /// Ends the connections, and what is in flight on them as `fate` says. The
    /// order is that of [`nvme_rdma_transport::queue`]: nothing finds the queues any more, the
    /// queue pairs are drained, the requests end, everything is freed. Sleeps.
    pub(super) fn tear_down(self: KBox<Self>, fate: InflightPolicy) {
        self.end_io(fate);
        end_admin(&self.admin);
    }

    /// Ends the connections of a controller that is asked to forget all that it had of us: it
    /// is disabled when no I/O can reach it any more. What goes wrong changes nothing. Sleeps.
    pub(super) fn disable(self: KBox<Self>, controller: &Controller) {
        self.end_io(InflightPolicy::Retry);
        let limit = self.disable.min(controller.settings().connect_timeout);
        let admin = self.command(controller, limit);
        if let Err(failure) = admin.disable(self.configuration) {
            controller.log(format_args!("reset: {}", failure.message()));
        }
        end_admin(&self.admin);
    }

    fn end_io(&self, fate: InflightPolicy) {
        for map_hctxs in &self.tag_set.data().hctxs {
            drop(map_hctxs.queue.take());
        }
        for channel in &self.admin_channels {
            channel.pause();
        }
        for connection in &self.io {
            let stats = connection.queue_pair().context().stats();
            Queue::end(connection, |payload| {
                fate.apply(payload.into_request(), stats)
            });
        }
        // What waits because the target wanted so fares as the others do.
        self.tag_set.kick_requeued();
    }
}

/// Ends the connection of an admin queue. Sleeps.
pub(super) fn end_admin(admin: &Connected<Queue>) {
    // It has no requests of the block layer.
    let stats = admin.queue_pair().context().stats();
    Queue::end(admin, |payload| {
        InflightPolicy::Fail.apply(payload.into_request(), stats)
    });
}

impl KeepAliveQueue for Association {
    fn take_traffic(&self) -> bool {
        let mut any = false;
        for connection in &self.io {
            any |= connection.queue_pair().context().take_traffic();
        }
        any
    }

    fn keep_alive_mode(&self) -> KeepAliveMode {
        self.keep_alive_mode
    }

    fn poll(&self) -> bool {
        for connection in &self.io {
            connection.queue_pair().context().poll();
        }
        self.split.poll() > 0
    }

    fn admin(&self) -> &Connected<Queue> {
        &self.admin
    }
}

/// What becomes of a request that was in flight when its connection ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum InflightPolicy {
    /// It ends with an error.
    Fail,
    /// It comes again, unless its submitter wants no second attempt, or it was not answered too
    /// often. Whether the target carried it out already is not known; to do it twice is to do it
    /// once.
    Retry,
}

impl InflightPolicy {
    fn apply(self, request: Request<Io>, stats: &QueueStats) {
        match self {
            Self::Retry if !request.no_retry() && request.data().may_retry_on_reconnect() => {
                stats.retried();
                request.requeue(None);
            }
            _ => disk::end(request, Status::Transport),
        }
    }
}
