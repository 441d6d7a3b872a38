// SPDX-License-Identifier: GPL-2.0

//! Hardware queues of the block layer, the queue pair of each, and their tag set.

use crate::{
    Io,
    Queue, //
};
use kernel::{prelude::*, sync::Arc};
use nvme_proto::policy::limits::queue_counts::IoQueueCounts;
use rrdma::{
    block::{
        poll_timed_out,
        QueueCounts,
        QueueKinds,
        RequestRef,
        TagSet,
        TagSetConfig, //
    },
    rdma::qp::QueuePair,
    sync::{
        rcu_read,
        Msecs,
        RcuSlot,
        RelaxedBool, //
    },
};

/// Time-out of a block request, as in the C host (`nvme_io_timeout`).
const REQUEST: Msecs = Msecs::from_secs(30);

/// The queue pair of a hardware queue, while there is one.
#[derive(Default)]
pub struct HctxQueue {
    /// The queue pair, while the controller is connected.
    pub queue: RcuSlot<QueuePair<Queue>>,
    /// A device keeps a request of an earlier queue pair, whose end did not return it. The request may be
    /// one of another hardware queue.
    device_keeps: RelaxedBool,
}

impl HctxQueue {
    /// Assigns a queue pair to the hardware queue. Sleeps if it replaces another one.
    pub fn put(&self, queue: &Arc<QueuePair<Queue>>) {
        let is_current = rcu_read(|section| {
            let current = self.queue.read(section);
            current.is_some_and(|current| core::ptr::eq(&*current, &**queue))
        });
        if is_current {
            return;
        }
        if let Some(old) = self.queue.publish(queue.clone()) {
            // Commands may wait on the old queue pair for commit_rqs(), which now rings the new
            // one.
            rcu_read(|section| Queue::ring(&old, section));
        }
    }

    /// Records that a device keeps a request of a queue pair that has ended. Any context.
    pub fn set_device_keeps(&self) {
        self.device_keeps.set(true);
    }

    /// Returns whether a device keeps the request since an earlier queue pair than `queue`, the present one.
    /// Such a request does not end before the device returns it. Any context.
    pub(super) fn is_kept(&self, queue: &Queue, request: &RequestRef<Io>) -> bool {
        // The tag of a kept request is not used again before. Requests in flight are on `queue`: it is replaced
        // only when the number of hardware queues changes, and blk-mq waits for the kept request before.
        self.device_keeps.get() && !queue.has_request(request.tag())
    }

    /// Polls the queue, if it is polled, for a request that timed out. Returns whether the request has ended.
    /// Sleeps.
    pub(super) fn poll_timed_out(&self, request: &RequestRef<Io>) -> bool {
        let is_polled = rcu_read(|section| {
            let queue = self.queue.read(section);
            queue.is_some_and(|queue| queue.context().is_polled())
        });
        if !is_polled {
            return false;
        }
        poll_timed_out(
            || {
                rcu_read(|section| {
                    if let Some(queue) = self.queue.read(section) {
                        queue.context().poll();
                    }
                });
            },
            || !request.is_under_way(),
        )
    }
}

/// Returns the hardware queues for these I/O queues, in the order of the queues.
pub fn hctx_counts(queues: IoQueueCounts) -> QueueCounts {
    let (default, read) = match queues.write() {
        0 => (queues.io(), 0),
        write => (write, queues.io()),
    };
    QueueCounts {
        default: default.into(),
        read: read.into(),
        poll: queues.poll().into(),
    }
}

/// Returns the number of requests that the target has not answered for `span` or longer. Any context but NMI.
pub fn count_unanswered(tag_set: &TagSet<Io>, span: Msecs) -> u32 {
    tag_set.count_in_flight(span, |request| !request.data().is_held())
}

/// Creates the tag set of all disks, with an [`HctxQueue`] for each requested I/O queue and `depth` tags for
/// each hardware queue. `split` has the I/O queues that the target granted. May sleep.
///
/// # Errors
///
/// `EINVAL` if a number is out of range; `ENOMEM`.
pub fn tag_set(
    requested_queues: IoQueueCounts,
    split: IoQueueCounts,
    depth: u16,
) -> Result<Arc<TagSet<Io>>> {
    let most = requested_queues.total().get();
    let mut hctxs = KVec::with_capacity(most.into(), GFP_KERNEL)?;
    for _ in 0..most {
        hctxs.push(Arc::new(HctxQueue::default(), GFP_KERNEL)?, GFP_KERNEL)?;
    }
    let config = TagSetConfig {
        queues: hctx_counts(split),
        kinds: match (requested_queues.write(), requested_queues.poll()) {
            (0, 0) => QueueKinds::Default,
            (_, 0) => QueueKinds::Read,
            _ => QueueKinds::Poll,
        },
        depth: depth.into(),
        reserved_tags: 0,
        numa_node: TagSetConfig::NO_NODE,
        timeout: REQUEST,
    };
    TagSet::new(config, hctxs)
}
