// SPDX-License-Identifier: GPL-2.0

//! Writes that were in flight when a connection was lost.
//!
//! The target may still execute them. If the host sent one again and then wrote other data to the
//! same blocks, the old command could overwrite that. So a write is sent again, or fails, only once
//! the target has ended the old association (NVMe Base 2.3, section 9.6, Communication Loss
//! Handling): it has acknowledged the disconnect, or its keep-alive timer and the Command Quiesce
//! Time have expired.

use crate::disk::{
    self,
    Io, //
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::Mutex, //
};
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

/// What happens to a held write in the end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum HeldFate {
    /// It is sent again.
    Retry,
    /// It fails.
    Fail,
}

/// The held writes of a controller. The controller's thread adds and releases them. The lock is a
/// leaf.
#[pin_data]
pub(super) struct HeldWrites {
    #[pin]
    list: Mutex<HeldList>,
}

struct HeldList {
    /// Has room for all requests of the tag set, because a teardown must not allocate.
    writes: KVec<HeldWrite>,
    /// When they are released.
    due: Deadline,
}

struct HeldWrite {
    request: Request<Io>,
    fate: HeldFate,
}

impl HeldWrites {
    /// Returns an empty list without room.
    pub(super) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(HeldList {
                writes: KVec::new(),
                due: Deadline::NEVER,
            }, "rnvmf::HeldWrites::list"),
        })
    }

    /// Makes room for `requests` writes in all. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn reserve(&self, requests: usize) -> Result {
        let mut list = self.list.lock();
        let missing = requests.saturating_sub(list.writes.len());
        Ok(list.writes.reserve(missing, GFP_KERNEL)?)
    }

    /// Holds a write until it is [released](Self::release_if_due). May sleep.
    pub(super) fn hold(&self, request: Request<Io>, fate: HeldFate) {
        request.data().set_held(true);
        let held = HeldWrite { request, fate };
        let pushed = self.list.lock().writes.push_within_capacity(held);
        // There is room for each tag, and a request is held once.
        if let Err(kernel::alloc::kvec::PushError(held)) = pushed {
            held.release();
        }
    }

    /// Returns the number of held writes. May sleep.
    pub(super) fn count(&self) -> usize {
        self.list.lock().writes.len()
    }

    /// Returns when the held writes are released; [`Deadline::NEVER`] if there are none. May sleep.
    pub(super) fn due(&self) -> Deadline {
        let list = self.list.lock();
        match list.writes.is_empty() {
            true => Deadline::NEVER,
            false => list.due,
        }
    }

    /// Sets when the held writes are released. May sleep.
    pub(super) fn set_due(&self, due: Deadline) {
        self.list.lock().due = due;
    }

    /// Releases the held writes if they are due: sends each again, or fails it. May sleep.
    pub(super) fn release_if_due(&self) {
        if self.due().left() > Msecs::new(0) {
            return;
        }
        // Without the lock, because the end of a request runs code of its submitter.
        while let Some(held) = self.pop() {
            held.release();
        }
    }

    /// Fails the held writes. May sleep.
    pub(super) fn fail(&self) {
        while let Some(mut held) = self.pop() {
            held.fate = HeldFate::Fail;
            held.release();
        }
    }

    fn pop(&self) -> Option<HeldWrite> {
        self.list.lock().writes.pop()
    }
}

impl HeldWrite {
    fn release(self) {
        self.request.data().set_held(false);
        match self.fate {
            HeldFate::Retry => self.request.requeue(None),
            HeldFate::Fail => disk::end(self.request, Status::Transport),
        }
    }
}
