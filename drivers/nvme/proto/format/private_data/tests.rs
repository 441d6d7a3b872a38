// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

const REQUEST: CmRequest = CmRequest {
    queue: CmQueue::new(0x0102, 0x0708),
    receive_queue_size: 0x0304,
    send_queue_size: 0x0506,
};

#[test]
fn request_layout() {
    // struct nvme_rdma_cm_req: recfmt, qid, hrqsize, hsqsize, cntlid.
    let mut expected = [0; 32];
    expected[..10].copy_from_slice(&[0, 0, 2, 1, 4, 3, 6, 5, 8, 7]);
    assert_eq!(REQUEST.encode(), expected);
    assert_eq!(CmRequest::parse(&expected), Ok(REQUEST));
}

#[test]
fn an_admin_queue_has_no_controller() {
    let admin = CmRequest {
        queue: CmQueue::new(0, 7),
        ..REQUEST
    };
    assert_eq!(admin.queue, CmQueue::Admin);
    let mut data = admin.encode();
    assert_eq!(data[8..10], [0, 0]);
    // A host may name the controller of its last association.
    data[8] = 7;
    assert_eq!(CmRequest::parse(&data), Ok(admin));
}

#[test]
fn bad_requests() {
    let mut data = REQUEST.encode();
    for len in 0..data.len() {
        assert_eq!(CmRequest::parse(&data[..len]), Err(CmStatus::InvalidLength));
    }
    for at in 0..2 {
        data[at] = 1;
        assert_eq!(CmRequest::parse(&data), Err(CmStatus::InvalidFormat));
        data[at] = 0;
    }
    // The connection manager passes buffers that are longer than what the peer sent.
    assert_eq!(CmRequest::parse(&[data, [0xff; 32]].concat()), Ok(REQUEST));
}

#[test]
fn requests_round_trip() {
    let mut random = Random::new(2);
    for _ in 0..1000 {
        let [a, b, c, d, ..] = random.next().to_le_bytes().map(u16::from);
        let request = CmRequest {
            queue: CmQueue::new((a << 8) | b, (d << 8) | a),
            receive_queue_size: (b << 8) | c,
            send_queue_size: (c << 8) | d,
        };
        assert_eq!(CmRequest::parse(&request.encode()), Ok(request));
    }
}

#[test]
fn replies() {
    let mut data = [0; 32];
    data[2..4].copy_from_slice(&[0x80, 0x01]);
    assert_eq!(
        CmReply::parse(&data),
        Some(CmReply {
            receive_queue_size: 0x0180
        })
    );
    assert_eq!(CmReply::parse(&data).unwrap().encode(), data);
    for len in 0..data.len() {
        assert_eq!(CmReply::parse(&data[..len]), None);
    }
    data[1] = 1;
    assert_eq!(CmReply::parse(&data), None);
}

#[test]
fn rejections() {
    for status in 0..=0xff {
        let data = [0, 0, status, 0];
        assert_eq!(CmStatus::parse(&data).unwrap().encode(), data);
    }
    let texts: std::collections::BTreeSet<_> = (0..=0xff)
        .map(|status| CmStatus::parse(&[0, 0, status, 0]).unwrap().to_string())
        .collect();
    assert_eq!(texts.len(), 256);
    assert_eq!(CmStatus::parse(&[0, 0, 6, 0]), Some(CmStatus::NoResources));
    assert_eq!(
        CmStatus::parse(&[0, 0, 9, 0, 7]),
        Some(CmStatus::InvalidControllerId)
    );
    assert_eq!(
        CmStatus::parse(&[0, 0, 10, 1]),
        Some(CmStatus::Unknown(0x10a))
    );
    assert_eq!(CmStatus::parse(&[0, 1, 6, 0]), None);
    assert_eq!(CmStatus::parse(&[0, 0, 6]), None);
    assert_eq!(CmStatus::parse(&[]), None);
}

#[test]
fn reject_reasons_keep_their_numbers() {
    for number in 0..=u16::MAX {
        let reason = CmStatus::from_wire(number);
        assert_eq!(reason.to_wire(), number);
    }
}

#[test]
fn reject_reasons_have_their_names() {
    for (number, reason) in [
        (1, CmStatus::InvalidLength),
        (2, CmStatus::InvalidFormat),
        (3, CmStatus::InvalidQueueId),
        (4, CmStatus::InvalidSendQueueSize),
        (5, CmStatus::InvalidReceiveQueueSize),
        (6, CmStatus::NoResources),
        (7, CmStatus::InvalidReadsAccepted),
        (8, CmStatus::InvalidReadsStarted),
        (9, CmStatus::InvalidControllerId),
        (10, CmStatus::Unknown(10)),
    ] {
        assert_eq!(CmStatus::from_wire(number), reason);
    }
}
