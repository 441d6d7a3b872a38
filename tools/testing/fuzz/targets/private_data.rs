// SPDX-License-Identifier: GPL-2.0

//! The private data of the connection manager's messages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::private_data::{RejectReason, Reply, Request};

fuzz_target!(|data: &[u8]| {
    match Request::parse(data) {
        Ok(request) => assert_eq!(Request::parse(&request.encode()), Ok(request)),
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
    if Reply::parse(data).is_some() {
        assert!(data.len() >= Reply::SIZE && data[..2] == [0, 0]);
    }
    if let Some(reason) = RejectReason::parse(data) {
        assert_eq!(reason.to_wire().to_le_bytes(), data[2..4]);
        assert!(!reason.to_string().is_empty());
    }
});
