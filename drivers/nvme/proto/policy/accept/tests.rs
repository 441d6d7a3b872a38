// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::format::private_data::CmQueue;
use crate::format::sqe::Connect;

const REQUEST: CmRequest = CmRequest {
    queue: CmQueue::new(1, 1),
    receive_queue_size: 128,
    send_queue_size: 127,
};

fn decide(request: CmRequest) -> Result<AcceptedQueue, CmStatus> {
    AcceptedQueue::decide(Offer {
        private_data: &request.encode(),
        reads_accepted: Some(16),
        max_queue_size: 128,
    })
}

#[test]
fn accepts_what_linux_sends() {
    let accepted = AcceptedQueue {
        queue_id: 1,
        commands: 128,
        responses: 128,
    };
    assert_eq!(decide(REQUEST), Ok(accepted));
    let admin = CmRequest {
        queue: CmQueue::Admin,
        receive_queue_size: 32,
        send_queue_size: 31,
    };
    let accepted = AcceptedQueue {
        queue_id: 0,
        commands: 32,
        responses: 32,
    };
    assert_eq!(decide(admin), Ok(accepted));
}

#[test]
fn memory_of_a_queue() {
    let queue = decide(REQUEST).unwrap();
    assert_eq!(queue.memory(Receives::Own, 4096), (64 + 128 * 10) << 10);
    assert_eq!(queue.memory(Receives::Own, 0), (64 + 128 * 6) << 10);
    assert!(queue.memory(Receives::Own, u32::MAX) > 128 << 32);
}

#[test]
fn memory_of_a_queue_with_shared_receives() {
    let mut queue = decide(REQUEST).unwrap();
    let shared = queue.memory(Receives::Shared(4095), 4096);
    assert_eq!(shared, queue.memory(Receives::Own, 0));
    // Each queue has its own if the device cannot share them.
    let unsupported = queue.memory(Receives::Unsupported, 4096);
    assert_eq!(unsupported, queue.memory(Receives::Own, 4096));
    // An admin queue has no data in capsules.
    queue.queue_id = 0;
    assert_eq!(queue.memory(Receives::Unsupported, 4096), shared);
}

#[test]
fn receives_are_shared_on_devices_that_support_it() {
    let decide = |shared, is_rnic, has_shared| {
        let device = ReceiveSupport {
            is_rnic,
            has_shared,
        };
        Receives::decide(shared, device)
    };
    assert_eq!(decide(Some(1024), false, true), Receives::Shared(1024));
    assert_eq!(decide(Some(1024), false, false), Receives::Unsupported);
    assert_eq!(decide(Some(1024), true, true), Receives::Own);
    assert_eq!(decide(Some(1024), true, false), Receives::Own);
    assert_eq!(decide(None, false, true), Receives::Own);
}

#[test]
fn short_or_unknown() {
    let data = REQUEST.encode();
    let offer = |private_data| Offer {
        private_data,
        reads_accepted: None,
        max_queue_size: 128,
    };
    for len in 0..32 {
        let decided = AcceptedQueue::decide(offer(&data[..len]));
        assert_eq!(decided, Err(CmStatus::InvalidLength));
    }
    let mut other = data;
    other[0] = 1;
    assert_eq!(
        AcceptedQueue::decide(offer(&other)),
        Err(CmStatus::InvalidFormat)
    );
    assert!(AcceptedQueue::decide(offer(&data)).is_ok());
}

#[test]
fn sizes() {
    for (queue_id, size, accepted) in [
        (1, 0, None),
        (1, 1, Some(2)),
        (1, 127, Some(128)),
        // Larger ones get as many receives as the target allows.
        (1, 128, Some(128)),
        (1, u16::MAX, Some(128)),
        (0, 0, None),
        (0, 31, Some(32)),
        (0, 32, None),
        (0, u16::MAX, None),
    ] {
        let decided = decide(CmRequest {
            queue: CmQueue::new(queue_id, 1),
            send_queue_size: size,
            ..REQUEST
        });
        let accepted = accepted.ok_or(CmStatus::InvalidSendQueueSize);
        assert_eq!(
            decided.map(|queue| queue.commands),
            accepted,
            "{queue_id} {size}"
        );
    }
    let none = CmRequest {
        receive_queue_size: 0,
        ..REQUEST
    };
    assert_eq!(decide(none), Err(CmStatus::InvalidReceiveQueueSize));
    for receive_queue_size in [129, 1025, u16::MAX] {
        let many = CmRequest {
            receive_queue_size,
            ..REQUEST
        };
        assert_eq!(decide(many).unwrap().responses, 128);
    }
    let few = CmRequest {
        receive_queue_size: 3,
        ..REQUEST
    };
    assert_eq!(decide(few).unwrap().responses, 3);
}

#[test]
fn connect_is_for_this_queue() {
    let queue = decide(REQUEST).unwrap();
    let connect = |queue_id, sq_size| {
        queue.check_connect(&Command::connect(Connect {
            queue_id,
            sq_size,
            keep_alive_ms: 0,
            disable_sq_flow: false,
        }))
    };
    assert_eq!(connect(1, 127), Ok(()));
    for (queue_id, sq_size) in [
        (0, 127),
        (2, 127),
        (u16::MAX, 1),
        (1, 0),
        (1, 128),
        (1, u16::MAX),
    ] {
        assert_eq!(
            connect(queue_id, sq_size),
            Err(Code::CONNECT_INVALID_PARAMETER)
        );
    }
    // Property Get, and a read.
    for (opcode, kind) in [(0x7f, 0x04), (0x02, 0x01)] {
        let mut bytes = [0; Command::SIZE];
        (bytes[0], bytes[4], bytes[42]) = (opcode, kind, 9);
        assert_eq!(queue.check_connect(&Command::from_bytes(bytes)), Ok(()));
    }
}

#[test]
fn unknown_queue_and_no_reads() {
    for (queue_id, fits) in [(128, true), (129, false), (u16::MAX, false)] {
        let decided = decide(CmRequest {
            queue: CmQueue::new(queue_id, 1),
            ..REQUEST
        });
        assert_eq!(decided == Err(CmStatus::InvalidQueueId), !fits);
    }
    let offer = Offer {
        private_data: &REQUEST.encode(),
        reads_accepted: Some(0),
        max_queue_size: 128,
    };
    assert_eq!(
        AcceptedQueue::decide(offer),
        Err(CmStatus::InvalidReadsAccepted)
    );
}
