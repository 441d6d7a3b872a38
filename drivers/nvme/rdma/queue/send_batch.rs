// SPDX-License-Identifier: GPL-2.0

//! Commands that are posted together.
//!
//! One call posts several commands, so the device is notified once. There are two ways:
//!
//! - The block layer passes a list of requests (`queue_rqs`). The submitter has the batch until it
//!   has posted the list ([`SendBatch::open`]).
//! - The block layer says with each request whether another one follows (`queue_rq`, for example
//!   from an I/O scheduler). A command that is followed by another waits ([`SendBatch::add`]), and
//!   one call posts all that wait. The submitter of a last request also posts waiting commands of
//!   other submitters.
//!
//! A request that is alone only reads one flag here.
//!
//! There is no lock. A submitter that finds the batch in use posts its command alone. If it was to post
//! earlier commands that wait, it calls the submitter that uses the batch, which posts them before it leaves
//! the batch. The kernel does not preempt that submitter meanwhile. A softirq may interrupt it, and then
//! submits its commands alone.

use super::{
    capsule::Capsule,
    slot::SlotLookup, //
};
use crate::{
    params::QueueConfig,
    stats::{
        DataMode,
        PostPosition, //
    }, //
};
use kernel::prelude::*;
use rrdma::{
    rdma::{
        qp::QueuePair,
        wr::{
            Batch,
            BatchCapacity,
            Chain,
            Operation,
            Unposted, //
        },
    },
    sync::{
        Claim,
        ClaimGuard,
        NoPreempt,
        RcuSection,
        RelaxedBool, //
    },
};

/// Largest number of commands that one call posts: as many as the block layer plugs for a disk.
const COMMANDS: u16 = 32;

/// When to notify the device of a command.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Doorbell {
    /// With a later command, or by [`Queue::ring`](super::Queue::ring).
    Defer,
    /// Now.
    Ring,
}

impl Doorbell {
    /// Converts `bd->last` of the block layer: the last request of a batch rings.
    ///
    /// The variants are in the order of `bool`, so the conversion takes no instruction.
    #[inline(always)]
    pub fn from_last(last: bool) -> Self {
        if last {
            Self::Ring
        } else {
            Self::Defer
        }
    }
}

/// Commands of a queue that wait to be posted.
pub(super) struct SendBatch<K: SlotLookup> {
    /// Claimed by the submitter that adds or posts, in a section without preemption. Not full while unclaimed.
    waiting: Claim<Batch<K::Queue, Capsule<K>>>,
    /// Whether commands may wait. The context that adds a command posts it later, unless another context has
    /// posted it by then.
    any: RelaxedBool,
}

impl<K: SlotLookup> SendBatch<K> {
    /// Allocates an empty batch. May sleep.
    pub(super) fn new(config: &QueueConfig) -> Result<Self> {
        let commands = usize::from(config.requests.min(COMMANDS));
        let room = BatchCapacity {
            // A send each. The registration and the memory pieces are in the capsule.
            requests: commands,
            pieces: 0,
        };
        Ok(Self {
            waiting: Claim::new(Batch::new(room)?),
            any: RelaxedBool::new(false),
        })
    }

    /// Returns whether commands may wait. Any context.
    #[inline]
    pub(super) fn is_waiting(&self) -> bool {
        self.any.get()
    }

    /// Adds a command with the work requests that `build` creates, and posts all that wait if `doorbell`
    /// rings. Rejects commands that cannot be posted. Posts the command with `post_alone` if another
    /// submitter uses the batch. Any context.
    ///
    /// # Errors
    ///
    /// Returns a capsule that cannot be added, or the result of `post_alone`.
    #[inline(always)]
    pub(super) fn add(
        &self,
        queue: &QueuePair<K::Queue>,
        section: &RcuSection,
        mut capsule: Operation<Capsule<K>>,
        doorbell: Doorbell,
        build: impl for<'a> FnOnce(&'a mut Capsule<K>, &mut Chain<'a, '_, K::Queue>) -> Result + Send,
        post_alone: impl FnOnce(Operation<Capsule<K>>) -> Result<(), Unposted<Capsule<K>>>,
    ) -> Result<(), Unposted<Capsule<K>>> {
        let no_preempt = NoPreempt::begin();
        let claimed = self.waiting.try_claim();
        let Some(mut waiting) = claimed.or_else(|| self.call(doorbell)) else {
            drop(no_preempt);
            return post_alone(capsule);
        };
        capsule.position = if waiting.is_empty() {
            PostPosition::First
        } else {
            PostPosition::Follows
        };
        let added = waiting.push(queue, capsule, build);
        // A submitter whose command was not added may not ring later.
        if doorbell == Doorbell::Ring || waiting.is_full() || added.is_err() {
            self.post_and_free(queue, section, waiting);
        } else {
            self.any.set(true);
            if let Err(waiting) = waiting.free_unless_called() {
                self.post_and_free(queue, section, waiting);
            }
        }
        added
    }

    /// If a submitter that has commands in the batch rings, calls the submitter that uses the batch, or claims
    /// it.
    #[cold]
    fn call(&self, doorbell: Doorbell) -> Option<ClaimGuard<'_, Batch<K::Queue, Capsule<K>>>> {
        match doorbell {
            Doorbell::Ring => self.waiting.claim_or_call(),
            Doorbell::Defer => None,
        }
    }

    /// Posts all commands that wait, and rejects those that cannot be posted. If another submitter uses the
    /// batch, that one does it. Any context.
    pub(super) fn send(&self, queue: &QueuePair<K::Queue>, section: &RcuSection) {
        let _no_preempt = NoPreempt::begin();
        if let Some(waiting) = self.waiting.claim_or_call() {
            self.post_and_free(queue, section, waiting);
        }
    }

    /// Posts all commands of the batch, and frees it. A call meanwhile is for commands that are posted here.
    #[inline(always)]
    fn post_and_free(
        &self,
        queue: &QueuePair<K::Queue>,
        section: &RcuSection,
        mut waiting: ClaimGuard<'_, Batch<K::Queue, Capsule<K>>>,
    ) {
        post(queue, section, &mut waiting);
        self.any.set(false);
    }

    /// Claims the batch for several commands of one submitter; `None` if another submitter uses it. Any context.
    #[inline(always)]
    pub(super) fn open<'a>(
        &'a self,
        queue: &'a QueuePair<K::Queue>,
        section: &'a RcuSection,
    ) -> Option<OpenBatch<'a, K>> {
        let no_preempt = NoPreempt::begin();
        Some(OpenBatch {
            batch: self,
            waiting: self.waiting.try_claim()?,
            _no_preempt: no_preempt,
            queue,
            section,
        })
    }

    /// Gives the capsules that wait back to their slots, which the caller reclaims next. No submitter may
    /// use the batch any more.
    pub(super) fn abandon(&self, queue: &K::Queue) {
        // No submitter is left that could have the claim.
        let Some(mut waiting) = self.waiting.try_claim() else {
            return;
        };
        while let Some(capsule) = waiting.take_back() {
            if let Some(slot) = K::slot(queue, capsule.tag) {
                slot.set_aside(capsule);
            }
        }
    }
}

/// The batch of a queue, while one submitter adds its commands. Dropping it posts them.
pub(super) struct OpenBatch<'a, K: SlotLookup> {
    batch: &'a SendBatch<K>,
    waiting: ClaimGuard<'a, Batch<K::Queue, Capsule<K>>>,
    // Dropped after the section above.
    _no_preempt: NoPreempt,
    queue: &'a QueuePair<K::Queue>,
    section: &'a RcuSection,
}

impl<K: SlotLookup> OpenBatch<'_, K> {
    /// Adds a command. Posts the batch when it is full, and rejects commands that cannot be posted. Any context.
    ///
    /// # Errors
    ///
    /// Returns a capsule that cannot be added.
    #[inline(always)]
    pub(super) fn push(
        &mut self,
        capsule: Operation<Capsule<K>>,
        data_mode: DataMode,
    ) -> Result<(), Unposted<Capsule<K>>> {
        use DataMode::*;

        match data_mode {
            Nothing => self.push_built(capsule, |c, chain| c.chain(Nothing, chain)),
            InCapsule => self.push_built(capsule, |c, chain| c.chain(InCapsule, chain)),
            ByKey => self.push_built(capsule, |c, chain| c.chain(ByKey, chain)),
        }
    }

    #[inline(always)]
    fn push_built(
        &mut self,
        mut capsule: Operation<Capsule<K>>,
        build: impl for<'a> FnOnce(&'a mut Capsule<K>, &mut Chain<'a, '_, K::Queue>) -> Result + Send,
    ) -> Result<(), Unposted<Capsule<K>>> {
        if !self.waiting.is_empty() {
            capsule.position = PostPosition::Follows;
        }
        self.waiting.push(self.queue, capsule, build)?;
        if self.waiting.is_full() {
            post(self.queue, self.section, &mut self.waiting);
        }
        Ok(())
    }
}

impl<K: SlotLookup> Drop for OpenBatch<'_, K> {
    #[inline(always)]
    fn drop(&mut self) {
        post(self.queue, self.section, &mut self.waiting);
        self.batch.any.set(false);
    }
}

/// Posts all commands of a batch, and empties it: rejects those that cannot be posted.
#[inline(never)]
fn post<K: SlotLookup>(
    queue: &QueuePair<K::Queue>,
    section: &RcuSection,
    waiting: &mut Batch<K::Queue, Capsule<K>>,
) {
    if let Err(error) = waiting.post_within(section, queue) {
        reject_all(queue, waiting, error);
    }
}

/// Rejects the commands of a batch that could not be posted with `error`.
#[cold]
#[inline(never)]
fn reject_all<K: SlotLookup>(
    queue: &QueuePair<K::Queue>,
    waiting: &mut Batch<K::Queue, Capsule<K>>,
    error: Error,
) {
    while let Some(operation) = waiting.take_back() {
        let Some(slot) = K::slot(queue.context(), operation.tag) else {
            continue;
        };
        K::finish(
            queue.context(),
            slot.undo(queue, Unposted { error, operation }),
        );
    }
}
