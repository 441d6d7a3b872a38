// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

/// Input of the limits, for tests to change.
struct TestInputs {
    controller: Controller,
    nvm: NvmController,
    version: Version,
    max_sectors: u32,
    max_block_shift: u8,
    namespace: Namespace,
    nvm_namespace: NvmNamespace,
    independent: IndependentNamespace,
    command_set: u8,
}

impl TestInputs {
    /// Returns a namespace of 1 GiB in blocks of 4 KiB. The controller supports all optional
    /// commands, and reports no limits for them.
    fn new() -> Self {
        let mut controller = Controller::parse(&[0; 4096]).unwrap();
        controller.optional_commands = (1 << 2) | (1 << 3);
        let mut namespace = Namespace::parse(&[0; 4096]).unwrap();
        namespace.format.data_shift = 12;
        (namespace.size, namespace.capacity) = (1 << 18, 1 << 18);
        Self {
            controller,
            nvm: NvmController::default(),
            version: Version::new(2, 1, 0),
            max_sectors: 2048,
            max_block_shift: 12,
            namespace,
            nvm_namespace: NvmNamespace::default(),
            independent: IndependentNamespace::default(),
            command_set: 0,
        }
    }

    fn with(change: impl FnOnce(&mut Self)) -> Result<BlockLimits, UnsupportedNamespace> {
        let mut inputs = Self::new();
        change(&mut inputs);
        inputs.limits()
    }

    fn limits(&self) -> Result<BlockLimits, UnsupportedNamespace> {
        let controller = ControllerInputs {
            controller: &self.controller,
            nvm: self.nvm,
            version: self.version,
            min_page_shift: 12,
            max_sectors: self.max_sectors,
            max_block_shift: self.max_block_shift,
        };
        let inputs = NamespaceInputs {
            namespace: &self.namespace,
            nvm: self.nvm_namespace,
            independent: self.independent,
            command_set: self.command_set,
        };
        BlockLimits::from_identify(&controller, &inputs)
    }
}

#[test]
fn plain_namespace() {
    let expected = BlockLimits {
        block_shift: 12,
        protection: Protection::None,
        capacity_sectors: 1 << 21,
        physical_block_size: 4096,
        io_min: 4096,
        io_opt: 0,
        max_sectors: 2048,
        chunk_sectors: 0,
        atomic_writes: AtomicWriteLimits {
            max: 4096,
            boundary: 0,
        },
        discard: Some(DiscardLimits {
            granularity: 4096,
            max_sectors: 0xffff_fff8,
            max_ranges: 256,
        }),
        max_write_zeroes_sectors: 2048,
        write_zeroes_may_deallocate: false,
        write_cache: false,
        rotational: false,
        read_only: false,
    };
    assert_eq!(TestInputs::with(|_| ()), Ok(expected));
}

#[test]
fn unsupported_namespaces() {
    let cases = [
        (
            TestInputs::with(|w| w.command_set = 2),
            UnsupportedNamespace::CommandSet(2),
        ),
        (
            TestInputs::with(|w| w.namespace.capacity = 0),
            UnsupportedNamespace::NotAttached,
        ),
        (
            TestInputs::with(|w| w.namespace.format.data_shift = 0),
            UnsupportedNamespace::BlockShift(0),
        ),
        (
            TestInputs::with(|w| w.namespace.format.data_shift = 8),
            UnsupportedNamespace::BlockShift(8),
        ),
        (
            TestInputs::with(|w| w.namespace.format.data_shift = 13),
            UnsupportedNamespace::BlockShift(13),
        ),
        (
            TestInputs::with(|w| w.namespace.format.data_shift = 255),
            UnsupportedNamespace::BlockShift(255),
        ),
        (
            TestInputs::with(|w| (w.namespace.format.data_shift, w.max_block_shift) = (255, 255)),
            UnsupportedNamespace::BlockShift(255),
        ),
        (
            TestInputs::with(|w| w.namespace.format.metadata_size = 8),
            UnsupportedNamespace::Metadata(8),
        ),
        (
            TestInputs::with(|w| w.namespace.size = u64::MAX),
            UnsupportedNamespace::Size(u64::MAX),
        ),
        (
            TestInputs::with(|w| w.namespace.size = 1 << 51),
            UnsupportedNamespace::Size(1 << 51),
        ),
        (
            TestInputs::with(|w| w.max_sectors = 7),
            UnsupportedNamespace::Transfer(12),
        ),
        (
            TestInputs::with(|w| w.max_sectors = 0),
            UnsupportedNamespace::Transfer(12),
        ),
    ];
    for (refused, reason) in cases {
        assert_eq!(refused, Err(reason));
        assert!(!reason.to_string().is_empty());
    }
}

#[test]
fn block_sizes_and_capacity() {
    for (shift, size, sectors) in [
        (9, 1, 1),
        (9, i64::MAX as u64 >> 9, i64::MAX as u64 >> 9),
        (12, (1 << 51) - 1, ((1 << 51) - 1) << 3),
        (12, 0, 0),
    ] {
        let limits = TestInputs::with(|w| {
            (w.namespace.format.data_shift, w.namespace.size) = (shift, size);
        });
        let limits = limits.unwrap();
        assert_eq!(
            (limits.block_shift, limits.capacity_sectors),
            (shift, sectors)
        );
        assert_eq!(limits.block_size(), 1 << shift);
    }
    let large = TestInputs::with(|w| (w.namespace.format.data_shift, w.max_block_shift) = (16, 16));
    assert_eq!(large.unwrap().max_sectors, 2048);
    let uneven = TestInputs::with(|w| w.max_sectors = 2047);
    assert_eq!(uneven.unwrap().max_sectors, 2040);
}

#[test]
fn write_sizes() {
    // NSFEAT, NPWG, NOWS, NAWUPF, NABO; physical block size, io_min, io_opt.
    let cases = [
        ((0x00, 15, 31, 15, 0), (4096, 4096, 0)),
        ((0x10, 15, 31, 15, 0), (4096, 65536, 131_072)),
        ((0x12, 15, 31, 15, 0), (65536, 65536, 131_072)),
        ((0x12, 15, 0, 3, 0), (16384, 65536, 0)),
        ((0x12, 15, 0, 15, 1), (4096, 65536, 0)),
        ((0x12, 4, 0, 15, 0), (16384, 20480, 0)),
        ((0x02, 15, 0, 15, 0), (4096, 4096, 0)),
        ((0x20, 15, 31, 0, 0), (4096, 65536, 131_072)),
    ];
    for ((features, granularity, optimal, atomic, offset), (physical, least, best)) in cases {
        let limits = TestInputs::with(|w| {
            w.namespace.features = features;
            w.namespace.write_granularity_zero_based = granularity;
            w.namespace.optimal_write_zero_based = optimal;
            w.namespace.atomic_write_zero_based = atomic;
            w.namespace.atomic_boundary_offset = offset;
        });
        let limits = limits.unwrap();
        let actual = (limits.physical_block_size, limits.io_min, limits.io_opt);
        assert_eq!(actual, (physical, least, best), "{features:#x}");
    }
}

#[test]
fn atomic_writes() {
    // NSFEAT, NAWUPF, NABO, NABSPF, NOIOB; limits in blocks.
    let cases = [
        ((0, 15, 0, 31, 0), (1, 0)),
        ((2, 0, 0, 0, 0), (1, 0)),
        ((2, 15, 0, 0, 0), (16, 0)),
        ((2, 6, 0, 0, 0), (7, 0)),
        ((2, 15, 1, 31, 0), (1, 0)),
        ((2, 15, 0, 31, 0), (16, 32)),
        ((2, 15, 0, 15, 0), (16, 16)),
        ((2, 15, 0, 14, 0), (1, 0)),
        ((2, 15, 0, 32, 0), (1, 0)),
        ((2, 15, 0, 31, 8), (8, 32)),
        ((2, 15, 0, 31, 64), (16, 32)),
        ((2, u16::MAX, 0, 0, 0), (1 << 16, 0)),
    ];
    for (fields, (max, boundary)) in cases {
        let limits = TestInputs::with(|w| {
            (
                w.namespace.features,
                w.namespace.atomic_write_zero_based,
                w.namespace.atomic_boundary_offset,
                w.namespace.atomic_boundary_zero_based,
                w.namespace.io_boundary,
            ) = fields;
        });
        let expected = AtomicWriteLimits {
            max: max * 4096,
            boundary: boundary * 4096,
        };
        assert_eq!(limits.unwrap().atomic_writes, expected, "{fields:?}");
    }
    // More bytes than 32 bits can count.
    let huge = TestInputs::with(|w| {
        (w.namespace.format.data_shift, w.max_block_shift) = (16, 16);
        (w.namespace.features, w.namespace.atomic_write_zero_based) = (2, u16::MAX);
    });
    assert_eq!(huge.unwrap().atomic_writes.max, 1 << 16);
}

#[test]
fn protection() {
    // Metadata size, DPS, CTRATT, ELBAF.
    const ELBAS: u32 = 1 << 15;
    let cases = [
        ((0, 0, 0, 0), Ok(Protection::None)),
        ((0, 1, 0, 0), Ok(Protection::None)),
        ((0, 0, ELBAS, 0x100), Ok(Protection::None)),
        ((8, 1, 0, 0), Ok(Protection::ReferenceTag)),
        ((8, 2, 0, 0), Ok(Protection::ReferenceTag)),
        ((8, 3, 0, 0), Ok(Protection::Guard)),
        ((8, 3, 0, 0x100), Ok(Protection::Guard)),
        ((8, 3, ELBAS, 0), Ok(Protection::Guard)),
        ((8, 1, ELBAS, 0x100), Err(UnsupportedNamespace::Metadata(8))),
        ((8, 2, ELBAS, 0x100), Err(UnsupportedNamespace::Metadata(8))),
        ((8, 3, ELBAS, 0x100), Err(UnsupportedNamespace::Metadata(8))),
        ((8, 0, 0, 0), Err(UnsupportedNamespace::Metadata(8))),
        ((8, 4, 0, 0), Err(UnsupportedNamespace::Metadata(8))),
        ((16, 1, 0, 0), Err(UnsupportedNamespace::Metadata(16))),
        ((64, 1, 0, 0), Err(UnsupportedNamespace::Metadata(64))),
        ((7, 1, 0, 0), Err(UnsupportedNamespace::Metadata(7))),
    ];
    for (fields, expected) in cases {
        let limits = TestInputs::with(|w| {
            (
                w.namespace.format.metadata_size,
                w.namespace.protection_type,
                w.controller.attributes,
                w.nvm_namespace.extended_format,
            ) = fields;
        });
        let actual = limits.map(|limits| limits.protection);
        assert_eq!(actual, expected, "{fields:?}");
    }
}

#[test]
fn boundaries() {
    for (boundary, sectors) in [(0, 0), (1, 8), (256, 2048), (255, 0), (0x8000, 0x4_0000)] {
        let limits = TestInputs::with(|w| w.namespace.io_boundary = boundary).unwrap();
        assert_eq!(limits.chunk_sectors, sectors);
    }
}

#[test]
fn discards() {
    let discard = |ranges, range_blocks, blocks| {
        let limits = TestInputs::with(|w| {
            w.nvm.dataset_management_ranges = ranges;
            w.nvm.dataset_management_range_blocks = range_blocks;
            w.nvm.dataset_management_blocks = blocks;
        });
        let discard = limits.unwrap().discard.unwrap();
        (discard.max_ranges, discard.max_sectors)
    };
    assert_eq!(discard(0, 0, 0), (256, 0xffff_fff8));
    assert_eq!(discard(255, 1, 0), (255, 8));
    assert_eq!(discard(1, 100, 10), (1, 80));
    assert_eq!(discard(1, 10, 100), (1, 80));
    assert_eq!(discard(1, u32::MAX, u64::MAX), (1, 0xffff_fff8));
    let none = TestInputs::with(|w| w.controller.optional_commands = !(1 << 2)).unwrap();
    assert_eq!(none.discard, None);
}

#[test]
fn discard_granularities() {
    // NSFEAT; NPDG, NPDA, NPDGL and NPDAL; granularity in blocks.
    let cases = [
        (0x00, (7, 3, 32, 64), 1),
        (0x10, (7, 3, 32, 64), 8),
        (0x10, (3, 7, 32, 64), 8),
        (0x20, (7, 3, 32, 16), 32),
        (0x20, (7, 3, 0, 0), 4),
        (0x20, (7, 3, 0, 64), 64),
        (0x30, (7, 3, 0, 0), 8),
        (0x30, (7, 3, 2, 2), 2),
        (0x30, (7, 3, u32::MAX, 2), 1),
    ];
    for (features, (granularity, alignment, large, large_alignment), blocks) in cases {
        let limits = TestInputs::with(|w| {
            w.namespace.features = features;
            w.namespace.deallocate_granularity_zero_based = granularity;
            w.namespace.deallocate_alignment_zero_based = alignment;
            w.nvm_namespace.deallocate_granularity = large;
            w.nvm_namespace.deallocate_alignment = large_alignment;
        });
        let discard = limits.unwrap().discard.unwrap();
        assert_eq!(discard.granularity, 4096 * blocks, "{features:#x} {large}");
    }
}

#[test]
fn write_zeroes() {
    for (shift, block_shift, sectors) in [
        (0, 12, 2048),
        (1, 12, 16),
        (13, 12, 65536),
        (255, 12, 65536 * 8),
        (255, 9, 65536),
        (20, 9, 65536),
    ] {
        let limits = TestInputs::with(|w| {
            w.nvm.write_zeroes_shift = shift;
            w.namespace.format.data_shift = block_shift;
        });
        assert_eq!(limits.unwrap().max_write_zeroes_sectors, sectors, "{shift}");
    }
    let none = TestInputs::with(|w| {
        w.controller.optional_commands = !(1 << 3);
        w.namespace.deallocation = 0x09;
    });
    let none = none.unwrap();
    assert_eq!(none.max_write_zeroes_sectors, 0);
    assert!(!none.write_zeroes_may_deallocate);
    let deallocate = TestInputs::with(|w| w.namespace.deallocation = 0x09).unwrap();
    assert!(deallocate.write_zeroes_may_deallocate);
}

#[test]
fn features() {
    let cached = TestInputs::with(|w| w.controller.write_cache = 1).unwrap();
    assert!(cached.write_cache);
    let uncached = TestInputs::with(|w| {
        w.controller.write_cache = 1;
        w.independent.no_write_cache = true;
    });
    assert!(!uncached.unwrap().write_cache);
    assert!(
        TestInputs::with(|w| w.namespace.write_protected = true)
            .unwrap()
            .read_only
    );
    assert!(
        TestInputs::with(|w| w.independent.rotational = true)
            .unwrap()
            .rotational
    );
}

/// For any Identify data, the limits are ones that the block layer accepts.
#[test]
fn any_namespace() {
    let mut random = Random::new(8);
    let mut data = [0; 4096];
    let mut disks = 0;
    for _ in 0..3000 {
        let mut inputs = TestInputs::new();
        random.fill(&mut data);
        inputs.namespace = Namespace::parse(&data).unwrap();
        inputs.namespace.format.data_shift = 7 + random.below(12) as u8;
        inputs.namespace.format.metadata_size = 0;
        inputs.namespace.size >>= random.below(64);
        inputs.max_block_shift = 16;
        inputs.nvm = NvmController::parse(&data).unwrap();
        inputs.nvm_namespace = NvmNamespace::parse(&data, 0).unwrap();
        inputs.controller = Controller::parse(&data).unwrap();
        inputs.max_sectors = random.below(32768) as u32;
        if let Ok(limits) = inputs.limits() {
            check(&limits);
            disks += 1;
        }
    }
    assert!(disks > 500, "{disks}");
}

fn check(limits: &BlockLimits) {
    let block = 1u32 << limits.block_shift;
    let sectors = block >> 9;
    assert!((9..=16).contains(&limits.block_shift));
    assert!(limits.physical_block_size.is_power_of_two());
    assert!(limits.physical_block_size >= block && limits.physical_block_size <= limits.io_min);
    assert!(limits.io_min % block == 0 && limits.io_opt % block == 0);
    assert!(limits.max_sectors >= sectors && limits.max_sectors % sectors == 0);
    assert!(limits.max_sectors / sectors <= BlockCount::MAX);
    assert!(limits.chunk_sectors == 0 || limits.chunk_sectors.is_power_of_two());
    assert!(limits.chunk_sectors % sectors == 0);
    assert!(limits.max_write_zeroes_sectors % sectors == 0);
    assert!(limits.max_write_zeroes_sectors / sectors <= BlockCount::MAX);
    assert!(limits
        .capacity_sectors
        .checked_mul(512)
        .is_some_and(|n| i64::try_from(n).is_ok()));
    let atomic = limits.atomic_writes;
    assert!(atomic.max >= block && atomic.max % block == 0);
    assert!(limits.chunk_sectors == 0 || atomic.max >> 9 <= limits.chunk_sectors);
    assert!(atomic.boundary == 0 || atomic.boundary.is_power_of_two());
    assert!(atomic.boundary == 0 || atomic.boundary >= atomic.max);
    if let Some(discard) = limits.discard {
        assert!(discard.max_sectors >= sectors && discard.max_sectors % sectors == 0);
        assert!(discard.granularity >= block && discard.granularity % block == 0);
        assert!((1..=256).contains(&discard.max_ranges));
    }
}
