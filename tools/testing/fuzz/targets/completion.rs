// SPDX-License-Identifier: GPL-2.0

//! A completion queue entry, and the decisions that depend on it.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nvme_proto::format::async_event::{AsyncEvent, AsyncEventConfig};
use nvme_proto::format::cid::CommandId;
use nvme_proto::format::connect::{ConnectError, ConnectResponse};
use nvme_proto::format::cqe::Completion;
use nvme_proto::format::status::Status;
use nvme_proto::policy::block_status::BlockStatus;
use nvme_proto::policy::limits::queue::granted;
use nvme_proto::policy::retry::{Disposition, FailedCommand, PathErrorTime, RetryPolicy};
use std::num::NonZeroU16;

fn decide(status: Status) {
    let success = status.is_success();
    assert_eq!(BlockStatus::of(status) == BlockStatus::Ok, success);
    let policy = RetryPolicy {
        max_retries: 5,
        delays: [1, 20, u16::MAX],
    };
    for retries in [0, 5] {
        let decided = policy.decide(FailedCommand {
            status,
            retries,
            no_retry: false,
            path: PathErrorTime::default(),
        });
        let retried = matches!(decided, Disposition::Retry { .. });
        assert!(!retried || !success && retries < 5 && !status.do_not_retry());
    }
    assert!(!status.to_string().is_empty());
}

fuzz_target!(|data: &[u8]| {
    let Some(completion) = Completion::parse(data) else {
        assert!(data.len() < Completion::SIZE);
        return;
    };
    decide(completion.status());
    let cid = completion.command_id();
    assert_eq!(CommandId::new(cid.tag(), cid.generation()), cid);
    assert_ne!(CommandId::new(cid.tag(), cid.generation().next()), cid);
    let result = completion.result32();
    let failed = ConnectError::from_completion(completion.status(), result);
    assert_eq!(failed.is_none(), completion.status().is_success());
    if let Some(error) = failed {
        assert!(!error.to_string().is_empty());
    }
    let _ = ConnectResponse::from_result(result);
    assert!(!AsyncEvent::from_result(result).to_string().is_empty());
    for events in [
        AsyncEventConfig::for_io(result),
        AsyncEventConfig::for_discovery(result),
    ] {
        assert_eq!(events.map_or(0, AsyncEventConfig::bits) & !result, 0);
    }
    // A target cannot make the host create more queues than the host requested.
    for asked in [NonZeroU16::MIN, NonZeroU16::MAX] {
        assert!(granted(asked, result) <= asked);
    }
});
