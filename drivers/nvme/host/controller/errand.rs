// SPDX-License-Identifier: GPL-2.0

//! Making and deleting disks, beside the controller's thread.
//!
//! Both wait for I/O: a new disk is searched for partitions, an old one writes
//! back what the page cache holds. That I/O ends only because the controller's
//! thread keeps the connection alive, or tears it down; so it is not the one to
//! wait. The work item is part of the controller, as removal must not need memory.

use super::Controller;
use crate::{
    failure::Failure,
    namespace::Found, //
};
use kernel::{
    prelude::*,
    sync::Arc,
    workqueue::WorkItem, //
};

/// What is to be done, and what came of it.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one a controller, and no memory to be had for it when it ends"
)]
pub(super) enum Errand {
    None,
    MakeDisks(Found),
    DeleteDisks,
    Running,
    Done(Result<(), Failure>),
}

impl WorkItem for Controller {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        let errand = core::mem::replace(&mut *this.errand.lock(), Errand::Running);
        let result = match errand {
            Errand::MakeDisks(found) => found.make_disks(&this),
            Errand::DeleteDisks => {
                this.remove_namespaces();
                Ok(())
            }
            // The work is queued with one of the two above, and only then.
            Errand::None | Errand::Running | Errand::Done(_) => Ok(()),
        };
        *this.errand.lock() = Errand::Done(result);
        this.wake.complete();
    }
}

impl Controller {
    /// Starts an errand; there is one at a time. Sleeps.
    pub(super) fn start_errand(self: &Arc<Self>, errand: Errand) {
        *self.errand.lock() = errand;
        self.host.run_errand(self.clone());
    }

    /// Whether an errand is not done yet; one that is, is forgotten.
    pub(super) fn has_errand(&self) -> bool {
        let mut errand = self.errand.lock();
        if let Errand::Done(_) = *errand {
            *errand = Errand::None;
        }
        !matches!(*errand, Errand::None)
    }

    /// What came of the errand, once it is done.
    pub(super) fn take_errand(&self) -> Option<Result<(), Failure>> {
        let mut errand = self.errand.lock();
        match core::mem::replace(&mut *errand, Errand::None) {
            Errand::Done(result) => Some(result),
            other => {
                *errand = other;
                None
            }
        }
    }
}
