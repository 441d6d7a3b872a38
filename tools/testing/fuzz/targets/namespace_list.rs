// SPDX-License-Identifier: GPL-2.0

//! Lists of active and of changed namespaces. A list of active ones must end.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::changed_namespaces::ChangedNamespaces;
use nvme_proto::format::identify::ActiveNamespaces;
use nvme_proto::format::sqe::ALL_NAMESPACES;

fuzz_target!(|data: &[u8]| {
    let Some((after, list)) = data.split_first_chunk() else {
        return;
    };
    let after = u32::from_le_bytes(*after);
    // Repeat a short list to fill the page, which few inputs do.
    let mut page = [0; 4096];
    let mut number = 0;
    for (place, byte) in page.iter_mut().zip(list.iter().cycle()) {
        *place = *byte;
        number += 1;
    }
    assert!(number == 0 || number == page.len());
    for data in [&page[..], list] {
        let changed = ChangedNamespaces::new(data);
        assert!(changed.iter().count() <= data.len() / 4);
        assert!(changed
            .iter()
            .all(|nsid| nsid != 0 && nsid != ALL_NAMESPACES));
        match ActiveNamespaces::parse(data, after) {
            Ok(list) => {
                let mut last = after;
                for nsid in list.iter() {
                    assert!(nsid > last);
                    last = nsid;
                }
                assert!(list
                    .next_page()
                    .is_none_or(|next| next > after && next == last));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
