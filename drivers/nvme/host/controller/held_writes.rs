// SPDX-License-Identifier: GPL-2.0

//! Writes that were in flight when a connection was lost.
//!
//! The target may still execute them. If the host sent one again and then wrote other data to the
//! same blocks, the old command could overwrite that. So a write is sent again, or fails, only once
//! the target has ended the old association and its commands (NVMe Base 2.3, section 9.6,
//! Communication Loss Handling): it has acknowledged the disconnect or its keep-alive timer has
//! expired, and then the Command Quiesce Time has passed.

use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};
use rnvmf_disk::Io;
use rrdma::{
    block::{
        Request,
        Status, //
    },
    sync::{
        Deadline,
        Msecs, //
    },
};

/// End of a held write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldFate {
    /// It is sent again.
    Retry,
    /// It fails.
    Fail,
}

/// The held writes of a controller. The controller's thread adds them. The module's [thread for
/// deadlines](super::deadlines) releases them. The lock is a leaf.
#[pin_data]
pub(super) struct HeldWrites {
    /// Has room for all requests of the tag set, because a teardown must not allocate.
    #[pin]
    list: Mutex<KVec<HeldWrite>>,
}

struct HeldWrite {
    request: Request<Io>,
    fate: HeldFate,
    /// When it is released; [`Deadline::NEVER`] until the teardown of its connection decides.
    due: Deadline,
}

impl HeldWrites {
    /// Returns an empty list without room.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(KVec::new(), "rnvmf::HeldWrites::list"),
        })
    }

    /// Makes room for `requests` writes in all. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn reserve(&self, requests: usize) -> Result {
        let mut list = self.list.lock();
        let missing = requests.saturating_sub(list.len());
        Ok(list.reserve(missing, GFP_KERNEL)?)
    }

    /// Holds a write until it is [released](Self::release_if_due). May sleep.
    pub(super) fn hold(&self, request: Request<Io>, fate: HeldFate) {
        request.data().set_held(true);
        let held = HeldWrite {
            request,
            fate,
            due: Deadline::NEVER,
        };
        let pushed = self.list.lock().push_within_capacity(held);
        // There is room for each tag, and a request is held once.
        if let Err(kernel::alloc::kvec::PushError(held)) = pushed {
            held.release();
        }
    }

    /// Returns the number of held writes. May sleep.
    pub(super) fn count(&self) -> usize {
        self.list.lock().len()
    }

    /// Returns when the next held writes are released; [`Deadline::NEVER`] if there are none. May
    /// sleep.
    pub(super) fn due(&self) -> Deadline {
        let list = self.list.lock();
        let due = list.iter().map(|held| held.due);
        due.min().unwrap_or(Deadline::NEVER)
    }

    /// Returns the number of writes of the connection that is being torn down. May sleep.
    pub(super) fn count_new(&self) -> usize {
        let list = self.list.lock();
        let count = |count: usize, held: &HeldWrite| count.saturating_add(held.is_new().into());
        list.iter().fold(0, count)
    }

    /// Sets when the writes of the connection that is being torn down are released. Those of earlier
    /// connections keep their time. May sleep.
    pub(super) fn set_due(&self, due: Deadline) {
        let mut list = self.list.lock();
        for held in list.iter_mut().filter(|held| held.is_new()) {
            held.due = due;
        }
    }

    /// Releases the held writes that are due: sends each again, or fails it. May sleep.
    pub(super) fn release_if_due(&self) {
        // Without the lock, because the end of a request runs code of its submitter.
        while let Some(held) = self.take(|held| held.due.left() == Msecs::new(0)) {
            held.release();
        }
    }

    /// Fails the held writes. May sleep.
    pub(super) fn fail(&self) {
        while let Some(mut held) = self.take(|_| true) {
            held.fate = HeldFate::Fail;
            held.release();
        }
    }

    #[inline(never)]
    fn take(&self, which: fn(&HeldWrite) -> bool) -> Option<HeldWrite> {
        let mut list = self.list.lock();
        let at = list.iter().position(which)?;
        list.remove(at).ok()
    }
}

impl HeldWrite {
    fn is_new(&self) -> bool {
        self.due == Deadline::NEVER
    }

    fn release(self) {
        self.request.data().set_held(false);
        match self.fate {
            HeldFate::Retry => self.request.requeue(None),
            HeldFate::Fail => rnvmf_disk::end(self.request, Status::Transport),
        }
    }
}
