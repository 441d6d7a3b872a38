// SPDX-License-Identifier: GPL-2.0

use super::*;

fn controller(change: impl FnOnce(&mut Controller)) -> Controller {
    let mut controller = Controller::parse(&[0; 4096]).unwrap();
    controller.sgl_support = (1 << 20) | (1 << 2);
    controller.io_command_capsule_size = 4;
    change(&mut controller);
    controller
}

#[test]
fn pages_of_a_region() {
    for (list, pages) in [(0, None), (1, None), (2, Some(1)), (256, Some(255))] {
        assert_eq!(region_pages(list), pages);
    }
    // rxe has 512 pages.
    for list in [257, 512, u32::MAX] {
        assert_eq!(region_pages(list), Some(256));
    }
}

#[test]
fn largest_transfers() {
    let cases = [
        (0, 12, 256, 2048),
        (0, 12, 1, 8),
        (5, 12, 256, 256),
        (1, 12, 256, 16),
        (8, 12, 256, 2048),
        (9, 12, 256, 2048),
        (1, 27, 256, 2048),
        (255, 12, 256, 2048),
        (255, 255, u32::MAX, 32767),
        (0, 12, u32::MAX, 32767),
    ];
    for (shift, min_page_shift, pages, sectors) in cases {
        let controller = controller(|c| c.max_transfer_shift = shift);
        let actual = max_sectors(&controller, min_page_shift, pages);
        assert_eq!(actual, sectors, "{shift} {min_page_shift} {pages}");
        assert!(u64::from(actual) << 9 <= u64::from(Sgl::MAX_KEYED_LEN));
    }
}

#[test]
fn pieces() {
    for (sectors, pages, segments) in [
        (2048, 256, 256),
        (2048, 512, 257),
        (256, 256, 33),
        (7, 256, 1),
        (8, 1, 1),
    ] {
        assert_eq!(max_segments(sectors, pages), segments);
    }
    assert_eq!(max_segments(u32::MAX, u32::MAX), u16::MAX);
}

#[test]
fn inline_limits() {
    let room = |units| controller(|c| c.io_command_capsule_size = units);
    let cases = [
        (room(4), 8, 0, 0),
        (room(3), 8, 0, 0),
        (room(0), 8, 0, 0),
        (room(5), 8, 16, 4),
        (room(4 + 256), 8, 4096, 4),
        (room(4 + 256), 3, 4096, 2),
        (room(4 + 256), 1, 0, 0),
        (room(4 + 256), 0, 0, 0),
        (room(u32::MAX), 32, u32::MAX, 4),
    ];
    for (controller, entries, bytes, segments) in cases {
        let limit = InlineLimit::negotiate(&controller, entries);
        assert_eq!((limit.bytes(), limit.segments()), (bytes, segments));
    }
    let unable = [
        controller(|c| (c.io_command_capsule_size, c.sgl_support) = (260, 1 << 2)),
        controller(|c| (c.io_command_capsule_size, c.in_capsule_data_offset) = (260, 1)),
    ];
    for controller in unable {
        assert_eq!(
            InlineLimit::negotiate(&controller, 8),
            InlineLimit::default()
        );
    }
}

#[test]
fn inline_data() {
    let capsules = controller(|c| c.io_command_capsule_size = 260);
    let limit = InlineLimit::negotiate(&capsules, 8);
    assert!(limit.allows(4096, 4));
    assert!(!limit.allows(4097, 1));
    assert!(!limit.allows(512, 5));
    assert!(!InlineLimit::default().allows(1, 1));
}
