// SPDX-License-Identifier: GPL-2.0

use super::*;

const INPUTS: SizeInputs = SizeInputs {
    requested: 128,
    device: 1000,
    max_entries_zero_based: 1023,
    max_commands: 0,
};

#[test]
fn sizes() {
    let cases = [
        (INPUTS, 128),
        (
            SizeInputs {
                requested: 1024,
                ..INPUTS
            },
            256,
        ),
        (
            SizeInputs {
                device: 100,
                ..INPUTS
            },
            100,
        ),
        (
            SizeInputs {
                max_entries_zero_based: 63,
                ..INPUTS
            },
            64,
        ),
        (
            SizeInputs {
                max_entries_zero_based: u16::MAX,
                ..INPUTS
            },
            128,
        ),
        (
            SizeInputs {
                max_commands: 32,
                ..INPUTS
            },
            32,
        ),
        (
            SizeInputs {
                max_commands: 3,
                ..INPUTS
            },
            3,
        ),
    ];
    for (inputs, entries) in cases {
        let size = QueueSize::negotiate(&inputs).unwrap();
        assert_eq!((size.entries(), size.zero_based()), (entries, entries - 1));
    }
}

#[test]
fn too_small_sizes() {
    let cases = [
        (
            SizeInputs {
                requested: 0,
                ..INPUTS
            },
            0,
            SizeLimit::Requested,
        ),
        (
            SizeInputs {
                device: 2,
                ..INPUTS
            },
            2,
            SizeLimit::Device,
        ),
        (
            SizeInputs {
                max_entries_zero_based: 1,
                ..INPUTS
            },
            2,
            SizeLimit::Controller,
        ),
        (
            SizeInputs {
                max_entries_zero_based: 0,
                ..INPUTS
            },
            1,
            SizeLimit::Controller,
        ),
        (
            SizeInputs {
                max_commands: 1,
                ..INPUTS
            },
            1,
            SizeLimit::Commands,
        ),
    ];
    for (inputs, entries, limit) in cases {
        let refused = QueueTooSmall { entries, limit };
        assert_eq!(QueueSize::negotiate(&inputs), Err(refused));
        assert!(refused.to_string().contains(&format!(" {entries} ")));
    }
}

#[test]
fn device_room() {
    for (sends, completions, entries) in [
        (0, 0, 0),
        (1, 1, 0),
        (385, 513, 128),
        (384, 513, 127),
        (385, 512, 127),
        (u32::MAX, u32::MAX, u16::MAX),
    ] {
        assert_eq!(device_entries(sends, completions), entries);
        if entries < u16::MAX {
            let entries = u32::from(entries);
            assert!(3 * entries < sends.max(1) && 4 * entries < completions.max(1));
        }
    }
}

#[test]
fn granted_queues() {
    for (requested, result, expected) in [
        (4, 0x0003_0003, 4),
        (4, 0x0001_0003, 2),
        (4, 0x0003_0000, 1),
        (4, 0xffff_ffff, 4),
        (65535, 0xffff_ffff, 65535),
        (65535, 0xfffe_fffd, 65534),
    ] {
        let requested = NonZeroU16::new(requested).unwrap();
        assert_eq!(granted(requested, result).get(), expected, "{result:#x}");
    }
}
