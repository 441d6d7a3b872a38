// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::format::identify::{NamespaceIds, Text};
use crate::format::sqe::Protection;
use crate::policy::limits::block::AtomicWriteLimits;

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
    protection: Protection::None,
    capacity_sectors: 1000,
    physical_block_size: 4096,
    io_min: 4096,
    io_opt: 0,
    max_sectors: 2048,
    chunk_sectors: 0,
    atomic_writes: AtomicWriteLimits {
        max: 512,
        boundary: 0,
    },
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
    let other_blocks = BlockLimits {
        block_shift: 12,
        ..LIMITS
    };
    let other_protection = BlockLimits {
        protection: Protection::Guard,
        ..LIMITS
    };
    for limits in [other_blocks, other_protection] {
        assert_eq!(
            revalidate(1, limits),
            Revalidation::Remove(RemoveReason::FormatChanged)
        );
    }
}

#[test]
fn smaller_transfers_are_taken_over() {
    let smaller = BlockLimits {
        max_sectors: 1024,
        ..LIMITS
    };
    assert_eq!(revalidate(1, smaller), Revalidation::Unchanged);
    assert_eq!(updated_limits(&LIMITS, &smaller), Some(smaller));
    assert_eq!(updated_limits(&smaller, &LIMITS), None);
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
    assert_eq!(RemoveReason::Gone.to_string(), "no longer exists");
}
