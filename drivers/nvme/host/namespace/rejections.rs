// SPDX-License-Identifier: GPL-2.0

//! The namespaces of a controller that get no disk, and why.

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

/// The rejections of the last scan. Keeps the first ones only, as a target can have very many.
pub(crate) struct NsRejections {
    kept: KVec<NsRejection>,
    count: u32,
    /// The limit, if the scan left out namespaces above it.
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

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Those that are kept.
    pub(crate) fn kept(&self) -> &[NsRejection] {
        &self.kept
    }

    /// Adds one. Without memory it is counted only.
    pub(super) fn add(&mut self, nsid: u32, reason: fmt::Arguments<'_>) {
        self.count = self.count.saturating_add(1);
        if self.count > NO_DISK_MAX {
            return;
        }
        let reason = Message::new(reason);
        let _ = self.kept.push(NsRejection { nsid, reason }, GFP_KERNEL);
    }

    /// The next scan may find a disk though nothing changes on the target.
    pub(super) fn set_transient(&mut self) {
        self.transient = true;
    }

    /// Whether any rejection is transient.
    pub(crate) fn is_transient(&self) -> bool {
        self.transient
    }

    /// The scan leaves out namespaces above its `limit`.
    pub(super) fn set_truncated(&mut self, limit: usize) {
        self.truncated = Some(limit);
    }

    /// Calls `warn` with a line for each that is new since `before`.
    pub(crate) fn log_new(&self, before: &Self, mut warn: impl FnMut(fmt::Arguments<'_>)) {
        for NsRejection { nsid, reason } in &self.kept {
            if !before.has(*nsid, reason) {
                warn(format_args!("namespace {nsid} has no disk: {reason}"));
            }
        }
        let more = self.not_kept();
        if more > 0 && more != before.not_kept() {
            warn(format_args!("{more} more namespaces have no disk"));
        }
        if let (Some(limit), None) = (self.truncated, before.truncated) {
            warn(format_args!(
                "more than {limit} namespaces: the others get no disk"
            ));
        }
    }

    fn has(&self, nsid: u32, reason: &Message<REASON_MAX_LEN>) -> bool {
        let mut kept = self.kept.iter();
        kept.any(|one| one.nsid == nsid && one.reason.as_str() == reason.as_str())
    }

    /// How many are not kept.
    fn not_kept(&self) -> u32 {
        let kept = u32::try_from(self.kept.len()).unwrap_or(u32::MAX);
        self.count.saturating_sub(kept)
    }
}
