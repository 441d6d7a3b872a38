// SPDX-License-Identifier: GPL-2.0

//! The namespaces of a controller that get no disk, with the reason.

use crate::uapi::{
    NO_DISK_MAX,
    REASON_MAX_LEN, //
};
use core::fmt;
use kernel::prelude::*;
use rrdma::text::Message;

/// A namespace that gets no disk.
pub(crate) struct NsRejection {
    pub(crate) nsid: u32,
    pub(crate) reason: Message<REASON_MAX_LEN>,
}

/// The rejections of the last scan. Only the first [`NO_DISK_MAX`] are kept, because a target can
/// have very many.
pub(crate) struct NsRejections {
    kept: KVec<NsRejection>,
    count: u32,
    /// The limit on namespaces, if the scan left out namespaces beyond it.
    truncated: Option<usize>,
    /// Whether any rejection is transient.
    transient: bool,
}

impl NsRejections {
    /// No rejections.
    pub(crate) const fn new() -> Self {
        Self {
            kept: KVec::new(),
            count: 0,
            truncated: None,
            transient: false,
        }
    }

    /// Returns the number of rejections.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns the rejections that are kept.
    pub(crate) fn kept(&self) -> &[NsRejection] {
        &self.kept
    }

    /// Adds a rejection. If the allocation fails, it is only counted.
    pub(super) fn add(&mut self, nsid: u32, reason: fmt::Arguments<'_>) {
        self.count = self.count.saturating_add(1);
        if self.count > NO_DISK_MAX {
            return;
        }
        let reason = Message::new(reason);
        let _ = self.kept.push(NsRejection { nsid, reason }, GFP_KERNEL);
    }

    /// Records that a rescan may add a disk although nothing changes on the target.
    pub(super) fn set_transient(&mut self) {
        self.transient = true;
    }

    /// Whether any rejection is transient.
    pub(crate) fn is_transient(&self) -> bool {
        self.transient
    }

    /// Records that the scan left out namespaces beyond `limit`.
    pub(super) fn set_truncated(&mut self, limit: usize) {
        self.truncated = Some(limit);
    }

    /// Calls `warn` with a line for each rejection that is not in `before`.
    pub(crate) fn log_new(&self, before: &Self, mut warn: impl FnMut(fmt::Arguments<'_>)) {
        for NsRejection { nsid, reason } in &self.kept {
            if !before.has(*nsid, reason) {
                warn(format_args!("namespace {nsid}: no disk: {reason}"));
            }
        }
        let more = self.not_kept();
        if more > 0 && more != before.not_kept() {
            warn(format_args!("{more} more namespaces have no disk"));
        }
        if let (Some(limit), None) = (self.truncated, before.truncated) {
            warn(format_args!(
                "more than {limit} namespaces: no disks for the others"
            ));
        }
    }

    fn has(&self, nsid: u32, reason: &Message<REASON_MAX_LEN>) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|one| one.nsid == nsid && one.reason.as_str() == reason.as_str())
    }

    /// Returns the number of rejections that are not kept.
    fn not_kept(&self) -> u32 {
        let kept = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        self.count.saturating_sub(kept)
    }
}
