// SPDX-License-Identifier: GPL-2.0

//! What becomes of a disk when its namespace is looked at again.

use crate::format::identify::Wwid;
use crate::policy::limits::block::BlockLimits;
use core::fmt;

/// A namespace, as its disk was made for it or as the target has it now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NsAttributes<'a> {
    /// Which it is.
    pub wwid: &'a Wwid,
    /// What its disk can do.
    pub limits: &'a BlockLimits,
}

/// What becomes of a disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Revalidation {
    /// It stays as it is, but for its [limits](updated_limits).
    Unchanged,
    /// It goes on, with another size or another protection against writes.
    Update,
    /// It must get no more I/O, which is not meant for what is there now.
    Remove(RemoveReason),
}

/// Why a disk cannot go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RemoveReason {
    /// The target has no such namespace any more, or none that can be a disk.
    Gone,
    /// The target has another namespace under its number.
    IdsChanged,
    /// Its blocks have another size, or a command moves less data than before: what is under way
    /// was made for the other.
    FormatChanged,
}

impl Revalidation {
    /// Of the disk of a namespace that was `before` and is `now`, if it is there at all.
    #[must_use]
    pub fn of(before: NsAttributes<'_>, now: Option<NsAttributes<'_>>) -> Self {
        let Some(now) = now else {
            return Self::Remove(RemoveReason::Gone);
        };
        if !before.wwid.is_same_namespace(now.wwid) {
            return Self::Remove(RemoveReason::IdsChanged);
        }
        let (before, now) = (before.limits, now.limits);
        if now.block_shift != before.block_shift || now.max_sectors < before.max_sectors {
            return Self::Remove(RemoveReason::FormatChanged);
        }
        if now.capacity_sectors == before.capacity_sectors && now.read_only == before.read_only {
            Self::Unchanged
        } else {
            Self::Update
        }
    }
}

/// What else a disk can do now whose namespace could do `before` what it is made for, if that is
/// something else: to take it over, its I/O has to end. It moves no more data with a command than
/// it was made for.
#[must_use]
pub fn updated_limits(before: &BlockLimits, now: &BlockLimits) -> Option<BlockLimits> {
    let now = BlockLimits {
        capacity_sectors: before.capacity_sectors,
        read_only: before.read_only,
        max_sectors: before.max_sectors,
        ..*now
    };
    (now != *before).then_some(now)
}

impl fmt::Display for RemoveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "is gone",
            Self::IdsChanged => "is another one now",
            Self::FormatChanged => "has another format now",
        })
    }
}

#[cfg(test)]
mod tests;
