// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

fn block(fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut data = vec![0; 4096];
    for (at, value) in fields {
        data[*at..*at + value.len()].copy_from_slice(value);
    }
    data
}

#[test]
fn layout() {
    let data = block(&[
        (0, &[1, 2, 3, 4, 5, 6, 7, 8]),
        (8, &[2, 0, 0, 0, 0, 0, 0, 1]),
        (16, &[3, 0, 0, 0, 0, 0, 0, 1]),
        (24, &[0x32, 63, 0x32]),
        (29, &[0x0b]),
        (33, &[0x09]),
        (36, &[7, 0]),
        (42, &[8, 1]),
        (44, &[9, 1]),
        (46, &[0, 1]),
        (64, &[15, 0, 14, 0, 16, 0, 17, 0, 18, 0]),
        (99, &[1]),
        (104, &[0xa5; 16]),
        (120, &[0x5a; 8]),
        (128 + 4 * 18, &[8, 0, 12, 1]),
    ]);
    let namespace = Namespace::parse(&data).unwrap();
    assert_eq!(namespace.size, 0x0807_0605_0403_0201);
    assert_eq!(namespace.capacity, 0x0100_0000_0000_0002);
    assert_eq!(namespace.used, 0x0100_0000_0000_0003);
    assert!(namespace.has_own_atomicity());
    assert_eq!(
        namespace.format,
        LbaFormat {
            metadata_size: 8,
            data_shift: 12
        }
    );
    assert_eq!((namespace.format_index, namespace.protection_type), (18, 3));
    assert!(namespace.write_protected);
    assert!(namespace.deallocated_reads_zero());
    assert_eq!(namespace.atomic_write_zero_based, 7);
    assert_eq!(namespace.atomic_boundary_offset, 0x108);
    assert_eq!(namespace.atomic_boundary_zero_based, 0x109);
    assert_eq!(namespace.io_boundary, 256);
    assert_eq!(namespace.write_granularity_zero_based, 15);
    assert_eq!(namespace.deallocate_granularity_zero_based, 16);
    assert_eq!(namespace.deallocate_alignment_zero_based, 17);
    assert_eq!(namespace.optimal_write_zero_based, 18);
    assert_eq!(namespace.nguid, [0xa5; 16]);
    assert_eq!(namespace.eui64, [0x5a; 8]);
}

#[test]
fn every_format() {
    let mut data = vec![0; 4096];
    for index in 0..64 {
        data[128 + 4 * index + 2] = u8::try_from(index).unwrap() + 9;
    }
    for formatted in 0..=u8::MAX {
        data[26] = formatted;
        let namespace = Namespace::parse(&data).unwrap();
        let index = formatted % 16 + formatted / 32 % 4 * 16;
        assert_eq!(namespace.format.data_shift, index + 9);
    }
}

#[test]
fn hints() {
    let old = Version::new(2, 0, 0);
    let new = Version::new(2, 1, 0);
    for (features, version, base, extended) in [
        (0xcf, new, false, false),
        (0x10, old, true, false),
        (0x20, old, false, false),
        (0x20, new, false, true),
        (0x30, new, true, true),
        (0x30, old, true, false),
    ] {
        let namespace = Namespace::parse(&block(&[(24, &[features])])).unwrap();
        let performance = namespace.performance(version);
        assert_eq!(
            performance,
            PerformanceHints { base, extended },
            "{features:#x}"
        );
        assert_eq!(performance.any(), base || extended);
    }
}

#[test]
fn deallocation() {
    for features in 0..=u8::MAX {
        let namespace = Namespace::parse(&block(&[(33, &[features])])).unwrap();
        assert_eq!(namespace.deallocated_reads_zero(), features & 0x0f == 0x09);
    }
}

#[test]
fn any_bytes() {
    let mut random = Random::new(5);
    let mut data = [0; 4096];
    for _ in 0..200 {
        random.fill(&mut data);
        assert!(Namespace::parse(&data).is_ok());
        let len = random.below(data.len());
        assert_eq!(Namespace::parse(&data[..len]), Err(ShortData(len)));
    }
}
