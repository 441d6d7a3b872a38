// SPDX-License-Identifier: GPL-2.0

//! Identify Controller data, and the limits that depend on it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::identify::{Controller, NvmController};
use nvme_proto::format::sgl::Sgl;
use nvme_proto::policy::limits::controller::check;
use nvme_proto::policy::limits::queue::{QueueSize, SizeInputs};
use nvme_proto::policy::limits::transfer::{max_sectors, max_segments, region_pages, InlineLimit};

fuzz_target!(|data: &[u8]| {
    if let Ok(nvm) = NvmController::parse(data) {
        let _ = format!("{nvm:?}");
    }
    let Ok(controller) = Controller::parse(data) else {
        assert!(data.len() < 4096);
        return;
    };
    if let Err(reason) = check(&controller, controller.controller_id) {
        assert!(!reason.to_string().is_empty());
    }
    for text in [controller.serial.as_str(), controller.model.as_str()] {
        assert!(
            text.bytes().all(|byte| matches!(byte, b' '..=b'~')),
            "{text}"
        );
    }
    for (list_len, min_page_shift) in [(2, 12), (257, 12), (u32::MAX, 27)] {
        let pages = region_pages(list_len).unwrap();
        let sectors = max_sectors(&controller, min_page_shift, pages);
        assert!(sectors <= Sgl::MAX_KEYED_LEN >> 9 && sectors <= pages * 8);
        assert!(u32::from(max_segments(sectors, pages)) <= pages);
    }
    for entries in [0, 1, 2, u32::MAX] {
        let inline = InlineLimit::negotiate(&controller, entries);
        assert!(
            inline.segments() < entries.max(1),
            "no room for the command"
        );
    }
    let inputs = SizeInputs {
        requested: 128,
        device: 1024,
        max_entries_zero_based: u16::MAX,
        max_commands: controller.max_commands,
    };
    match QueueSize::negotiate(&inputs) {
        Ok(size) => assert!((3..=128).contains(&size.entries())),
        Err(small) => assert!(!small.to_string().is_empty()),
    }
    let _ = controller.shutdown_timeout_ms();
});
