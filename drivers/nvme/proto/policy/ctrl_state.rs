// SPDX-License-Identifier: GPL-2.0

//! States of a controller, and the transitions between them.

use core::fmt;

/// State of a controller. Numbers and names are those of the netlink
/// interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CtrlState {
    /// Created; nothing was sent to the target yet.
    New = 0,
    /// Queues are being connected and set up.
    Connecting = 1,
    /// Ready for I/O.
    Live = 2,
    /// Stopped by an error or a reset; queues are being torn down.
    Resetting = 3,
    /// Being removed; the last state.
    Deleting = 4,
    /// Failed permanently; it can only be removed.
    Dead = 5,
}

impl CtrlState {
    /// Returns the state's number.
    pub const fn to_u8(self) -> u8 {
        self as u8
    }

    /// Returns the state's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Connecting => "connecting",
            Self::Live => "live",
            Self::Resetting => "resetting",
            Self::Deleting => "deleting",
            Self::Dead => "dead",
        }
    }

    /// Returns whether `next` may follow this state.
    ///
    /// The context that makes a transition owns the work that the new state stands for, so there is
    /// one set-up, one teardown and one removal.
    ///
    /// An error while connecting does not lead to [`Resetting`](Self::Resetting): the set-up that
    /// fails undoes its steps. Removal may begin in any other state.
    pub const fn may_become(self, next: Self) -> bool {
        matches!(
            (self, next),
            (Self::New | Self::Resetting, Self::Connecting)
                | (Self::Connecting, Self::Live)
                | (Self::Live, Self::Resetting)
                | (Self::Connecting | Self::Resetting, Self::Dead)
                | (
                    Self::New | Self::Connecting | Self::Live | Self::Resetting | Self::Dead,
                    Self::Deleting
                )
        )
    }
}

/// Action of a driver that attempts a transition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transition {
    /// Enter the state, and keep the error if there is one.
    Enter,
    /// Stay in the state, and keep the error.
    KeepError,
    /// Do nothing: another transition came first, or there is neither a new state nor an error.
    Refuse,
}

/// Progress of a reset, for a thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResetWait {
    /// The controller is live.
    Done,
    /// The reset failed, or the controller is dead or being removed.
    Failed,
    /// The reset is in progress.
    Wait,
}

impl CtrlState {
    /// Returns what to do to enter `next`. `has_error` says whether an error comes with it.
    #[must_use]
    pub fn transition(self, next: Self, has_error: bool) -> Transition {
        if self.may_become(next) {
            Transition::Enter
        } else if has_error && self == next {
            Transition::KeepError
        } else {
            Transition::Refuse
        }
    }

    /// Returns the progress of a reset.
    ///
    /// The request for a reset clears the error. A failed attempt keeps one (`has_error`), which
    /// ends the wait even if other attempts follow.
    pub const fn reset_wait(self, has_error: bool) -> ResetWait {
        match (self, has_error) {
            (Self::Live, _) => ResetWait::Done,
            (Self::Dead | Self::Deleting, _) | (_, true) => ResetWait::Failed,
            (Self::New | Self::Connecting | Self::Resetting, false) => ResetWait::Wait,
        }
    }
}

impl fmt::Display for CtrlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All states, in the order of their numbers.
    const ALL: [CtrlState; 6] = [
        CtrlState::New,
        CtrlState::Connecting,
        CtrlState::Live,
        CtrlState::Resetting,
        CtrlState::Deleting,
        CtrlState::Dead,
    ];

    #[test]
    fn every_transition() {
        // Row: from; column: to. Both are in the order of the numbers.
        let allowed = [
            [0, 1, 0, 0, 1, 0], // new
            [0, 0, 1, 0, 1, 1], // connecting
            [0, 0, 0, 1, 1, 0], // live
            [0, 1, 0, 0, 1, 1], // resetting
            [0, 0, 0, 0, 0, 0], // deleting
            [0, 0, 0, 0, 1, 0], // dead
        ];
        for (from, row) in ALL.into_iter().zip(allowed) {
            for (to, allowed) in ALL.into_iter().zip(row) {
                assert_eq!(from.may_become(to), allowed == 1, "{from} to {to}");
            }
        }
    }

    #[test]
    fn a_state_is_entered_once() {
        for from in ALL {
            for to in ALL {
                let (silent, failed) = if from.may_become(to) {
                    (Transition::Enter, Transition::Enter)
                } else if from == to {
                    (Transition::Refuse, Transition::KeepError)
                } else {
                    (Transition::Refuse, Transition::Refuse)
                };
                assert_eq!(from.transition(to, false), silent);
                assert_eq!(from.transition(to, true), failed);
            }
        }
    }

    #[test]
    fn waits_for_a_reset() {
        for (state, wait) in [
            (CtrlState::New, ResetWait::Wait),
            (CtrlState::Connecting, ResetWait::Wait),
            (CtrlState::Live, ResetWait::Done),
            (CtrlState::Resetting, ResetWait::Wait),
            (CtrlState::Deleting, ResetWait::Failed),
            (CtrlState::Dead, ResetWait::Failed),
        ] {
            assert_eq!(state.reset_wait(false), wait);
            let failed = match state {
                CtrlState::Live => ResetWait::Done,
                _ => ResetWait::Failed,
            };
            assert_eq!(state.reset_wait(true), failed);
        }
    }

    #[test]
    fn numbers_and_names() {
        for (state, number) in ALL.into_iter().zip(0..) {
            assert_eq!(state.to_u8(), number);
        }
        assert_eq!(
            ALL.map(|state| state.to_string()),
            ["new", "connecting", "live", "resetting", "deleting", "dead"]
        );
    }
}
