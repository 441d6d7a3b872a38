// SPDX-License-Identifier: GPL-2.0

//! Private data of connection manager messages.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::private_data::{CmReply, CmRequest, CmStatus};

fuzz_target!(|data: &[u8]| {
    match CmRequest::parse(data) {
        Ok(request) => assert_eq!(CmRequest::parse(&request.encode()), Ok(request)),
        Err(reason) => assert!(!reason.to_string().is_empty()),
    }
    if CmReply::parse(data).is_some() {
        assert!(data.len() >= CmReply::SIZE && data[..2] == [0, 0]);
    }
    if let Some(reason) = CmStatus::parse(data) {
        assert_eq!(reason.to_wire().to_le_bytes(), data[2..4]);
        assert!(!reason.to_string().is_empty());
    }
});
