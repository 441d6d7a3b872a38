// SPDX-License-Identifier: GPL-2.0

//! Namespace Identification Descriptor list.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::identify::NamespaceIds;

fuzz_target!(|data: &[u8]| {
    // Padded with zeros, so that short inputs are valid.
    let mut page = [0; 4096];
    let used = data.len().min(page.len());
    page[..used].copy_from_slice(&data[..used]);
    match NamespaceIds::parse(&page) {
        Ok(ids) => {
            assert_ne!(ids.eui64, Some([0; 8]));
            assert_ne!(ids.nguid, Some([0; 16]));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Err(error) = NamespaceIds::parse(data) {
        assert!(!error.to_string().is_empty());
    }
});
