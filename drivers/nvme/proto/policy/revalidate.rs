// SPDX-License-Identifier: GPL-2.0

//! What a scan changes about the disk of a namespace.

use crate::format::identify::Wwid;
use crate::policy::limits::block::BlockLimits;
use core::fmt;

/// Attributes of a namespace, with which its disk was created or which a scan found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NsAttributes<'a> {
    /// Identifiers.
    pub wwid: &'a Wwid,
    /// Limits of the disk.
    pub limits: &'a BlockLimits,
}

/// Result of a revalidation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revalidation {
    /// The disk stays as it is, except for its [limits](updated_limits).
    Unchanged,
    /// The disk stays, with another size or write protection.
    Update,
    /// The disk is removed: its I/O is not meant for the namespace that is there now.
    Remove(RemoveReason),
}

/// Reason why a disk is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoveReason {
    /// The target no longer has the namespace, or the namespace can no longer be a disk.
    Gone,
    /// The NSID belongs to another namespace now.
    IdsChanged,
    /// The block size or the protection information changed. Requests in flight were made for the old one.
    FormatChanged,
}

impl Revalidation {
    /// Revalidates the disk of a namespace that was `before`, and is `now` if it still exists.
    pub fn of(before: NsAttributes<'_>, now: Option<NsAttributes<'_>>) -> Self {
        let Some(now) = now else {
            return Self::Remove(RemoveReason::Gone);
        };
        if !before.wwid.is_same_namespace(now.wwid) {
            return Self::Remove(RemoveReason::IdsChanged);
        }
        let (before, now) = (before.limits, now.limits);
        if now.block_shift != before.block_shift || now.protection != before.protection {
            return Self::Remove(RemoveReason::FormatChanged);
        }
        if now.capacity_sectors == before.capacity_sectors && now.read_only == before.read_only {
            Self::Unchanged
        } else {
            Self::Update
        }
    }
}

/// Returns the limits that a disk takes over when its namespace changes from `before` to `now`;
/// `None` if they stay the same. The disk must be frozen for that.
///
/// Size and write protection are not among them. Transfers do not become larger than those that the
/// disk was created with. They may become smaller; the target then fails larger requests that are
/// held. A held write that is larger than atomic writes are now may be torn if the power fails.
pub fn updated_limits(before: &BlockLimits, now: &BlockLimits) -> Option<BlockLimits> {
    let now = BlockLimits {
        capacity_sectors: before.capacity_sectors,
        read_only: before.read_only,
        max_sectors: now.max_sectors.min(before.max_sectors),
        ..*now
    };
    (now != *before).then_some(now)
}

impl fmt::Display for RemoveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "no longer exists",
            Self::IdsChanged => "changed its identifiers",
            Self::FormatChanged => "changed its format",
        })
    }
}

#[cfg(test)]
mod tests;
