// SPDX-License-Identifier: GPL-2.0

//! The namespaces of a controller that get no disk, and why.

use crate::{
    controller::Controller,
    uapi::{
        NO_DISK_MAX,
        REASON_MAX_LEN, //
    },
};
use core::fmt;
use kernel::prelude::*;
use rrdma::text::Message;

/// A namespace that gets no disk.
pub(crate) struct NsRejection {
    pub(crate) nsid: u32,
    pub(crate) reason: Message<REASON_MAX_LEN>,
}

/// All of them, as they were found last; of very many a target can have not each is kept.
pub(crate) struct NsRejections {
    kept: KVec<NsRejection>,
    count: u32,
    /// There are namespaces besides that were not looked at.
    cut: bool,
    /// Some may be disks when they are looked at again.
    pass: bool,
}

impl NsRejections {
    /// None.
    pub(crate) const fn new() -> Self {
        Self {
            kept: KVec::new(),
            count: 0,
            cut: false,
            pass: false,
        }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Those that are kept.
    pub(crate) fn kept(&self) -> &[NsRejection] {
        &self.kept
    }

    /// One more.
    pub(crate) fn add(&mut self, nsid: u32, reason: fmt::Arguments<'_>) {
        self.count = self.count.saturating_add(1);
        if self.count > NO_DISK_MAX {
            return;
        }
        let reason = Message::new(reason);
        // Without memory it is one that is not kept.
        let _ = self.kept.push(NsRejection { nsid, reason }, GFP_KERNEL);
    }

    /// What keeps one of them from being a disk may pass by itself.
    pub(crate) fn pass(&mut self) {
        self.pass = true;
    }

    /// Whether there is such a one.
    pub(crate) fn may_pass(&self) -> bool {
        self.pass
    }

    /// There are more namespaces than are looked at.
    pub(crate) fn cut(&mut self) {
        self.cut = true;
    }

    /// Logs what was not so `before`.
    pub(crate) fn log_news(&self, before: &Self, controller: &Controller, most: usize) {
        for NsRejection { nsid, reason } in &self.kept {
            if !before.has(*nsid, reason) {
                controller.warn(format_args!("namespace {nsid} has no disk: {reason}"));
            }
        }
        let more = self.more();
        if more > 0 && more != before.more() {
            controller.warn(format_args!("{more} more namespaces have no disk"));
        }
        if self.cut && !before.cut {
            controller.warn(format_args!(
                "more than {most} namespaces: the others get no disk"
            ));
        }
    }

    fn has(&self, nsid: u32, reason: &Message<REASON_MAX_LEN>) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|refusal| refusal.nsid == nsid && refusal.reason.as_str() == reason.as_str())
    }

    /// How many are not kept.
    fn more(&self) -> u32 {
        let kept = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        self.count.saturating_sub(kept)
    }
}
