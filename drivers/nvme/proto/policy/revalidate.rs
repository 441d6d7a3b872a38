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
    /// It stays as it is, its [abilities] aside.
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
mod tests {
    use super::*;
    use crate::format::identify::{NamespaceIds, Text};

    fn wwid(nguid: u8) -> Wwid {
        Wwid {
            nsid: 1,
            ids: NamespaceIds {
                nguid: Some([nguid; 16]),
                ..NamespaceIds::default()
            },
            vendor_id: 1,
            serial: Text::new([b's'; 20]),
            model: Text::new([b'm'; 40]),
        }
    }

    const LIMITS: BlockLimits = BlockLimits {
        block_shift: 9,
        capacity_sectors: 1000,
        physical_block_size: 4096,
        io_min: 4096,
        io_opt: 0,
        max_sectors: 2048,
        chunk_sectors: 0,
        discard: None,
        max_write_zeroes_sectors: 0,
        write_zeroes_may_deallocate: false,
        write_cache: true,
        rotational: false,
        read_only: false,
    };

    fn revalidate(id: u8, limits: BlockLimits) -> Revalidation {
        let before = NsAttributes {
            wwid: &wwid(1),
            limits: &LIMITS,
        };
        let now = NsAttributes {
            wwid: &wwid(id),
            limits: &limits,
        };
        Revalidation::of(before, Some(now))
    }

    #[test]
    fn size_and_protection_change_under_a_disk() {
        assert_eq!(revalidate(1, LIMITS), Revalidation::Unchanged);
        for limits in [
            BlockLimits {
                capacity_sectors: 0,
                ..LIMITS
            },
            BlockLimits {
                capacity_sectors: u64::MAX,
                ..LIMITS
            },
            BlockLimits {
                read_only: true,
                ..LIMITS
            },
        ] {
            assert_eq!(revalidate(1, limits), Revalidation::Update, "{limits:?}");
        }
    }

    #[test]
    fn what_is_under_way_must_fit() {
        for limits in [
            BlockLimits {
                block_shift: 12,
                ..LIMITS
            },
            BlockLimits {
                max_sectors: 1024,
                ..LIMITS
            },
        ] {
            assert_eq!(
                revalidate(1, limits),
                Revalidation::Remove(RemoveReason::FormatChanged),
                "{limits:?}"
            );
        }
    }

    #[test]
    fn abilities_change_under_a_disk() {
        for limits in [
            BlockLimits {
                write_cache: false,
                ..LIMITS
            },
            BlockLimits {
                physical_block_size: 512,
                io_min: 512,
                ..LIMITS
            },
            BlockLimits {
                max_write_zeroes_sectors: 8,
                rotational: true,
                ..LIMITS
            },
        ] {
            assert_eq!(revalidate(1, limits), Revalidation::Unchanged, "{limits:?}");
            assert_eq!(updated_limits(&LIMITS, &limits), Some(limits));
        }
        let grown = BlockLimits {
            capacity_sectors: 2000,
            read_only: true,
            ..LIMITS
        };
        assert_eq!(updated_limits(&LIMITS, &grown), None);
    }

    #[test]
    fn more_than_a_disk_was_made_for_changes_nothing() {
        let larger = BlockLimits {
            max_sectors: 4096,
            ..LIMITS
        };
        assert_eq!(revalidate(1, larger), Revalidation::Unchanged);
        assert_eq!(updated_limits(&LIMITS, &larger), None);
    }

    #[test]
    fn another_identity_is_lost_whatever_else_is_the_same() {
        assert_eq!(
            revalidate(2, LIMITS),
            Revalidation::Remove(RemoveReason::IdsChanged)
        );
        let grown = BlockLimits {
            capacity_sectors: 2000,
            ..LIMITS
        };
        assert_eq!(
            revalidate(2, grown),
            Revalidation::Remove(RemoveReason::IdsChanged)
        );
    }

    #[test]
    fn what_is_not_there_is_lost() {
        let before = NsAttributes {
            wwid: &wwid(1),
            limits: &LIMITS,
        };
        assert_eq!(
            Revalidation::of(before, None),
            Revalidation::Remove(RemoveReason::Gone)
        );
        assert_eq!(RemoveReason::Gone.to_string(), "is gone");
    }
}
