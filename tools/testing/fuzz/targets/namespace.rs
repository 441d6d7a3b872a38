// SPDX-License-Identifier: GPL-2.0

//! Identify data of a namespace, and the limits of its disk.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::identify::{
    Controller, IndependentNamespace, Namespace, NamespaceIds, NvmController, NvmNamespace, Wwid,
};
use nvme_proto::format::property::Version;
use nvme_proto::policy::limits::block::{BlockLimits, ControllerInputs, NamespaceInputs};

/// Bytes of the input for the start of each page; the rest of a page is zero.
const TAKEN: usize = 600;

struct Pages<'a>(&'a [u8]);

impl Pages<'_> {
    fn number(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill(&mut bytes);
        u32::from_le_bytes(bytes)
    }

    fn page(&mut self) -> [u8; 4096] {
        let mut page = [0; 4096];
        self.fill(&mut page[..TAKEN]);
        page
    }

    fn fill(&mut self, to: &mut [u8]) {
        let used = self.0.len().min(to.len());
        let (taken, rest) = self.0.split_at(used);
        to[..used].copy_from_slice(taken);
        self.0 = rest;
    }
}

fn is_sound(limits: &BlockLimits, allowed: u32) {
    let block = 1u32 << limits.block_shift;
    assert!((9..=16).contains(&limits.block_shift));
    assert_eq!(limits.capacity_sectors % u64::from(block >> 9), 0);
    assert!(limits.capacity_sectors <= u64::MAX >> 9);
    assert!(limits.max_sectors <= allowed && limits.max_sectors >= block >> 9);
    assert!(limits.physical_block_size.is_power_of_two() && limits.physical_block_size >= block);
    assert!(limits.io_min >= limits.physical_block_size);
    assert!(limits.chunk_sectors == 0 || limits.chunk_sectors.is_power_of_two());
    if let Some(discard) = limits.discard {
        assert!((1..=256).contains(&discard.max_ranges));
        assert!(discard.granularity > 0 && discard.max_sectors > 0);
    }
}

fuzz_target!(|data: &[u8]| {
    let mut pages = Pages(data);
    let (version, choice) = (Version(pages.number()), pages.number());
    let namespace = Namespace::parse(&pages.page()).unwrap();
    let controller = Controller::parse(&pages.page()).unwrap();
    let nvm = NvmController::parse(&pages.page()).unwrap();
    let nvm_namespace = NvmNamespace::parse(&pages.page(), namespace.format_index).unwrap();
    let independent = IndependentNamespace::parse(&pages.page()).unwrap();
    let max_sectors = (choice & 0xffff).max(1);
    let inputs = ControllerInputs {
        controller: &controller,
        nvm,
        version,
        min_page_shift: 12,
        max_sectors,
        max_block_shift: 16,
    };
    let disk = NamespaceInputs {
        namespace: &namespace,
        nvm: nvm_namespace,
        independent,
        command_set: if choice >> 31 == 0 { 0 } else { 2 },
    };
    match BlockLimits::from_identify(&inputs, &disk) {
        Ok(limits) => is_sound(&limits, max_sectors),
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
    let wwid = Wwid {
        nsid: choice,
        ids: NamespaceIds::default().or_from(&namespace, version),
        vendor_id: controller.vendor_id,
        serial: controller.serial,
        model: controller.model,
    };
    assert!(wwid.to_string().bytes().all(|byte| byte.is_ascii_graphic()));
});
