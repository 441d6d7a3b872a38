// SPDX-License-Identifier: GPL-2.0

use super::*;

const LIMITS: ReconnectLimits = ReconnectLimits {
    max_reconnect_delay_ms: 2000,
    ctrl_loss_tmo_ms: Some(20_000),
    fast_io_fail_tmo_ms: Some(5000),
};

/// An event of an outage.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Happens {
    Io(IoState),
    Attempt,
    GiveUp,
}

/// A controller without a target: each attempt fails after `attempt_ms`.
struct UnreachableCtrl {
    progress: ReconnectProgress,
    now_ms: u32,
    log: Vec<(u32, Happens)>,
}

impl UnreachableCtrl {
    fn new(history: FlapHistory) -> Self {
        Self {
            progress: ReconnectProgress::new(history),
            now_ms: 0,
            log: vec![],
        }
    }

    /// Continues until the policy gives up, or for `most` attempts.
    fn run(&mut self, limits: &ReconnectLimits, attempt_ms: u32, most: usize) {
        let mut attempts = 0;
        while attempts < most && self.pause(limits) {
            attempts += 1;
            self.progress.begin_attempt();
            self.log.push((self.now_ms, Happens::Attempt));
            self.now_ms += attempt_ms;
        }
    }

    /// Passes a pause; returns whether an attempt follows.
    fn pause(&mut self, limits: &ReconnectLimits) -> bool {
        let began_ms = self.now_ms;
        loop {
            let step = self.progress.step(
                limits,
                PauseState {
                    since_loss_ms: self.now_ms,
                    since_attempt_ms: self.now_ms - began_ms,
                    random: 0,
                },
            );
            if let Some(io) = step.io {
                self.log.push((self.now_ms, Happens::Io(io)));
            }
            match step.action {
                ReconnectAction::GiveUp => {
                    self.log.push((self.now_ms, Happens::GiveUp));
                    return false;
                }
                ReconnectAction::Attempt { within_ms } => {
                    // The attempt ends before a limit is reached.
                    assert!(within_ms.is_none_or(|ms| ms > 0));
                    return true;
                }
                ReconnectAction::Wait { ms, attempt_ms } => {
                    assert!(ms > 0 && ms <= attempt_ms);
                    self.now_ms += ms;
                }
            }
        }
    }
}

#[test]
fn an_outage_to_its_end() {
    let mut outage = UnreachableCtrl::new(FlapHistory::default());
    outage.run(&LIMITS, 100, usize::MAX);
    let expected = [
        (250, Happens::Attempt),
        (850, Happens::Attempt),
        (1950, Happens::Attempt),
        (4050, Happens::Attempt),
        // I/O fails at its limit, between two attempts.
        (5000, Happens::Io(IoState::Failing)),
        (6150, Happens::Attempt),
        (8250, Happens::Attempt),
        (10_350, Happens::Attempt),
        (12_450, Happens::Attempt),
        (14_550, Happens::Attempt),
        (16_650, Happens::Attempt),
        (18_750, Happens::Attempt),
        (20_000, Happens::GiveUp),
    ];
    assert_eq!(outage.log, expected);
    assert_eq!(outage.progress.attempts(), 11);
}

#[test]
fn without_limits_it_goes_on() {
    let for_ever = ReconnectLimits {
        ctrl_loss_tmo_ms: None,
        fast_io_fail_tmo_ms: None,
        ..LIMITS
    };
    let mut outage = UnreachableCtrl::new(FlapHistory::default());
    outage.run(&for_ever, 1000, 100);
    assert!(outage.log.iter().all(|(_, what)| *what == Happens::Attempt));
    assert_eq!(outage.progress.attempts(), 100);
}

#[test]
fn limits_change_meanwhile() {
    let mut outage = UnreachableCtrl::new(FlapHistory::default());
    outage.run(&LIMITS, 3000, 2);
    // The third pause begins at 6750 ms, after I/O began to fail.
    let step = |progress: &mut ReconnectProgress, limits: &ReconnectLimits| {
        let pause = PauseState {
            since_loss_ms: 6750,
            since_attempt_ms: 0,
            random: 0,
        };
        progress.step(limits, pause)
    };
    let mut progress = outage.progress;
    assert_eq!(step(&mut progress, &LIMITS).io, Some(IoState::Failing));
    assert_eq!(step(&mut progress, &LIMITS).io, None);
    let longer = ReconnectLimits {
        fast_io_fail_tmo_ms: None,
        ..LIMITS
    };
    assert_eq!(step(&mut progress, &longer).io, Some(IoState::Held));
    let over = ReconnectLimits {
        ctrl_loss_tmo_ms: Some(1000),
        ..LIMITS
    };
    let given_up = step(&mut progress, &over);
    assert_eq!(given_up.action, ReconnectAction::GiveUp);
}

#[test]
fn a_connection_that_is_lost_soon_goes_on_where_it_was() {
    let mut outage = UnreachableCtrl::new(FlapHistory::default());
    outage.run(&LIMITS, 100, 3);
    let history = outage.progress.connected(outage.now_ms).record_loss(500);
    let mut second = UnreachableCtrl::new(history);
    second.run(&LIMITS, 100, 1);
    // The delay continues to grow; the limits begin anew once.
    assert_eq!(second.log, [(2000, Happens::Attempt)]);
    assert_eq!(second.progress.attempts(), 4);
    let history = second.progress.connected(2100).record_loss(500);
    let mut third = UnreachableCtrl::new(history);
    assert_eq!(third.progress.outage_ms(0), 2100);
    third.run(&LIMITS, 100, usize::MAX);
    assert_eq!(third.log.last(), Some(&(17_900, Happens::GiveUp)));
    // A stable connection clears the history.
    let held = third.progress.connected(1).record_loss(10_000);
    assert_eq!(
        ReconnectProgress::new(held),
        ReconnectProgress::new(FlapHistory::default())
    );
}

#[test]
fn numbers_do_not_overflow() {
    let mut progress = ReconnectProgress::new(FlapHistory::default());
    progress.attempts = u32::MAX;
    progress.begin_attempt();
    assert_eq!(progress.attempts(), u32::MAX);
    let history = progress.connected(u32::MAX);
    assert_eq!(history.record_loss(0).attempts, u32::MAX);
    assert_eq!(
        ReconnectProgress::new(history).outage_ms(u32::MAX),
        u32::MAX
    );
}
