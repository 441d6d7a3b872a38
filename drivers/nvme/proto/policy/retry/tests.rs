// SPDX-License-Identifier: GPL-2.0

use super::*;

const POLICY: RetryPolicy = RetryPolicy {
    max_retries: 5,
    delays: [1, 20, u16::MAX],
};
const RETRY_AT_ONCE: Disposition = Disposition::Retry { delay_ms: 0 };
const RETRY_PATH: Disposition = Disposition::RetryPath { delay_ms: 100 };
const FIRST: PathErrorTime = PathErrorTime {
    since_ms: 0,
    limit_ms: 10_000,
};

fn status(field: u16) -> Status {
    Status::from_wire(field << 1)
}

#[test]
fn cases() {
    let cases = [
        ("success", 0x0000, 0, true, Disposition::Complete),
        ("error", 0x0006, 0, true, RETRY_AT_ONCE),
        ("last retry", 0x0006, 4, true, RETRY_AT_ONCE),
        ("no retry left", 0x0006, 5, true, Disposition::Complete),
        ("far too many", 0x0006, 255, true, Disposition::Complete),
        ("unwanted", 0x0006, 0, false, Disposition::Complete),
        ("do not retry", 0x4006, 0, true, Disposition::Complete),
        ("authentication", 0x0191, 0, true, Disposition::Complete),
        ("path error", 0x0370, 5, true, RETRY_PATH),
        ("ANA transition", 0x0303, 255, true, RETRY_PATH),
        ("ANA inaccessible", 0x0302, 0, true, RETRY_PATH),
        ("ANA change", 0x0303, 0, false, Disposition::Complete),
        (
            "ANA persistent loss",
            0x0301,
            0,
            true,
            Disposition::Complete,
        ),
        (
            "first delay",
            0x0821,
            0,
            true,
            Disposition::Retry { delay_ms: 100 },
        ),
        (
            "second delay",
            0x1021,
            0,
            true,
            Disposition::Retry { delay_ms: 2_000 },
        ),
        (
            "third delay",
            0x1821,
            0,
            true,
            Disposition::Retry { delay_ms: 10_000 },
        ),
    ];
    for (name, field, retries, may_retry, expected) in cases {
        let ended = FailedCommand {
            status: status(field),
            retries,
            no_retry: !may_retry,
            path: FIRST,
        };
        assert_eq!(POLICY.decide(ended), expected, "{name}");
    }
}

#[test]
fn no_status_is_retried_for_ever() {
    for field in 0..=0x7fff {
        let ended = FailedCommand {
            status: status(field),
            retries: POLICY.max_retries,
            no_retry: false,
            path: PathErrorTime {
                since_ms: 10_000,
                limit_ms: 10_000,
            },
        };
        assert_eq!(POLICY.decide(ended), Disposition::Complete);
    }
}

#[test]
fn path_delays_double_up_to_a_second_and_end_at_the_limit() {
    let (mut since_ms, mut delays) = (0, [0; 8]);
    for delay in &mut delays {
        let ended = FailedCommand {
            status: status(0x0303),
            retries: 0,
            no_retry: false,
            path: PathErrorTime {
                since_ms,
                limit_ms: 4_000,
            },
        };
        if let Disposition::RetryPath { delay_ms } = POLICY.decide(ended) {
            *delay = delay_ms;
            since_ms += delay_ms;
        }
    }
    assert_eq!(delays, [100, 100, 200, 400, 800, 1000, 1000, 400]);
    assert_eq!(since_ms, 4_000);
}

#[test]
fn time_for_path_errors() {
    assert_eq!(path_retry_ms(None), 10_000);
    assert_eq!(path_retry_ms(Some(0)), 1_000);
    assert_eq!(path_retry_ms(Some(30)), 30_000);
    assert_eq!(path_retry_ms(Some(u8::MAX)), 255_000);
}
