// SPDX-License-Identifier: GPL-2.0

use super::*;

const LIMITS: ReconnectLimits = ReconnectLimits {
    max_reconnect_delay_ms: 1000,
    ctrl_loss_tmo_ms: Some(60_000),
    fast_io_fail_tmo_ms: Some(5000),
};

fn at(since_loss_ms: u32, since_attempt_ms: u32) -> PauseState {
    PauseState {
        since_loss_ms,
        since_attempt_ms,
        random: 0,
    }
}

#[test]
fn a_reset_ends_at_the_first_limit() {
    let within = |fast_io_fail_tmo_ms, ctrl_loss_tmo_ms, since_reset_ms| {
        let limits = ReconnectLimits {
            ctrl_loss_tmo_ms,
            fast_io_fail_tmo_ms,
            ..LIMITS
        };
        limits.reset_within_ms(since_reset_ms, 1000)
    };
    assert_eq!(within(Some(5000), Some(60_000), 0), Some(5000));
    assert_eq!(within(Some(60_000), Some(5000), 100), Some(4900));
    assert_eq!(within(None, Some(5000), 0), Some(5000));
    assert_eq!(within(None, None, 0), None);
    // Not before the time-out of a connect.
    assert_eq!(within(Some(0), Some(60_000), 0), Some(1000));
    assert_eq!(within(Some(5000), None, u32::MAX), Some(1000));
    // No attempt after a loss.
    assert_eq!(within(None, Some(0), 0), None);
    assert_eq!(within(Some(5000), Some(0), 0), Some(5000));
}

#[test]
fn a_pause_ends_with_an_attempt() {
    let wait = |ms, attempt_ms| ReconnectAction::Wait { ms, attempt_ms };
    assert_eq!(LIMITS.action(4, at(100, 0)), wait(1000, 1000));
    assert_eq!(LIMITS.action(4, at(100, 999)), wait(1, 1));
    // I/O fails before the next attempt.
    assert_eq!(LIMITS.action(4, at(4900, 100)), wait(100, 900));
    assert_eq!(LIMITS.action(4, at(5000, 200)), wait(800, 800));
    assert_eq!(
        LIMITS.action(4, at(5000, 1000)),
        ReconnectAction::Attempt {
            within_ms: Some(55_000)
        }
    );
    assert_eq!(
        LIMITS.action(4, at(4000, u32::MAX)),
        ReconnectAction::Attempt {
            within_ms: Some(1000)
        }
    );
}

#[test]
fn attempts_end() {
    assert_eq!(LIMITS.action(4, at(60_000, 1000)), ReconnectAction::GiveUp);
    assert_eq!(LIMITS.action(4, at(u32::MAX, 0)), ReconnectAction::GiveUp);
    let none = ReconnectLimits {
        ctrl_loss_tmo_ms: Some(0),
        ..LIMITS
    };
    assert_eq!(none.action(4, at(0, 0)), ReconnectAction::GiveUp);
}

#[test]
fn or_go_on_for_ever() {
    let for_ever = ReconnectLimits {
        ctrl_loss_tmo_ms: None,
        fast_io_fail_tmo_ms: None,
        ..LIMITS
    };
    assert_eq!(
        for_ever.action(4, at(u32::MAX, 1000)),
        ReconnectAction::Attempt { within_ms: None }
    );
    assert!(for_ever.hold_io(u32::MAX));
}

#[test]
fn io_is_held_until_its_time_is_over() {
    assert!(LIMITS.hold_io(4999));
    assert!(!LIMITS.hold_io(5000));
    let at_once = ReconnectLimits {
        fast_io_fail_tmo_ms: Some(0),
        ..LIMITS
    };
    assert!(!at_once.hold_io(0));
}

#[test]
fn a_connection_that_holds_begins_anew() {
    let first = FlapHistory::default().record_reconnect(7, 50_000);
    assert_eq!(first.record_loss(10_000), FlapHistory::default());
    let again = first.record_loss(0).record_reconnect(9, 30_000);
    assert_eq!(again.record_loss(10_000), FlapHistory::default());
    assert_eq!(again.record_loss(u32::MAX), FlapHistory::default());
}

#[test]
fn one_that_does_not_hold_goes_on() {
    let first = FlapHistory::default().record_reconnect(7, 59_999);
    let second = first.record_loss(9999);
    // Delays continue to grow; the time begins anew.
    assert_eq!((second.attempts, second.outage_ms), (7, 0));
    let third = second.record_reconnect(8, 20_000).record_loss(0);
    assert_eq!((third.attempts, third.outage_ms), (8, 20_000));
    let fourth = third.record_reconnect(9, 31_000).record_loss(0);
    assert_eq!((fourth.attempts, fourth.outage_ms), (9, 31_000));
}

/// A target that drops each connection immediately is given up at the limits.
#[test]
fn connections_that_never_hold_are_given_up() {
    let (mut history, mut given_up) = (FlapHistory::default(), None);
    for attempts in 0..100 {
        let now = PauseState {
            since_loss_ms: history.outage_ms,
            since_attempt_ms: u32::MAX,
            random: 0,
        };
        if LIMITS.action(history.attempts, now) == ReconnectAction::GiveUp {
            given_up = Some(attempts);
            break;
        }
        let pause = Backoff::new(LIMITS.max_reconnect_delay_ms).pause_ms(history.attempts, 0);
        history = history
            .record_reconnect(history.attempts + 1, history.outage_ms + pause)
            .record_loss(100);
    }
    assert_eq!(given_up, Some(62));
}

#[test]
fn what_is_set_meanwhile_counts_from_the_loss() {
    let longer = ReconnectLimits {
        max_reconnect_delay_ms: 10_000,
        fast_io_fail_tmo_ms: None,
        ..LIMITS
    };
    // The current pause becomes longer, and I/O is held again.
    assert_eq!(
        longer.action(4, at(6000, 900)),
        ReconnectAction::Wait {
            ms: 3100,
            attempt_ms: 3100
        }
    );
    assert!(longer.hold_io(6000));
    let over = ReconnectLimits {
        ctrl_loss_tmo_ms: Some(6000),
        ..LIMITS
    };
    assert_eq!(over.action(4, at(6000, 900)), ReconnectAction::GiveUp);
}
