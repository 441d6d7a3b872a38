// SPDX-License-Identifier: GPL-2.0

//! Discovery log: its header and an entry.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::discovery::{Entry, Header};

fuzz_target!(|data: &[u8]| {
    // Padded with zeros, so that short inputs are valid.
    let mut block = [0; Entry::SIZE];
    let used = data.len().min(block.len());
    block[..used].copy_from_slice(&data[..used]);
    if let Err(error) = Header::parse(&block) {
        assert!(!error.to_string().is_empty());
    }
    assert_eq!(
        Header::parse(data).is_ok(),
        data.len() >= Header::SIZE && data[16..18] == [0, 0]
    );
    assert_eq!(Entry::parse(data).is_some(), data.len() >= Entry::SIZE);
    let entry = Entry::parse(&block).expect("any block is an entry");
    assert_eq!(entry.tsas.is_some(), entry.trtype == Entry::RDMA);
    for text in [entry.trsvcid, entry.traddr] {
        match text {
            Ok(text) => assert!(
                text.bytes().all(|byte| matches!(byte, b' '..=b'~')) && !text.ends_with(' '),
                "{text}"
            ),
            Err(error) => assert!(!error.why.to_string().is_empty()),
        }
    }
    match entry.subnqn {
        Ok(name) => assert!(!name.as_str().contains(char::is_control), "{name}"),
        Err(error) => assert!(!error.why.to_string().is_empty()),
    }
});
