// SPDX-License-Identifier: GPL-2.0

//! States of a controller, and which may follow which.

use core::fmt;

/// State of a controller. Numbers and names are those of the netlink
/// interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum CtrlState {
    /// Made; nothing has been sent to the target yet.
    New = 0,
    /// Its queues are being connected and set up.
    Connecting = 1,
    /// Ready for I/O.
    Live = 2,
    /// An error or a reset stopped it; its queues are being torn down.
    Resetting = 3,
    /// Being removed. Nothing follows.
    Deleting = 4,
    /// Failed for good; it can only be removed.
    Dead = 5,
}

impl CtrlState {
    /// All states, in order of their numbers.
    pub const ALL: [Self; 6] = [
        Self::New,
        Self::Connecting,
        Self::Live,
        Self::Resetting,
        Self::Deleting,
        Self::Dead,
    ];

    /// Takes a state's number back from where it was kept.
    #[must_use]
    pub const fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::New),
            1 => Some(Self::Connecting),
            2 => Some(Self::Live),
            3 => Some(Self::Resetting),
            4 => Some(Self::Deleting),
            5 => Some(Self::Dead),
            _ => None,
        }
    }

    /// The state's number.
    #[must_use]
    pub const fn to_u8(self) -> u8 {
        self as u8
    }

    /// The state's name.
    #[must_use]
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

    /// Whether `next` may follow. Whoever makes the change owns what it
    /// stands for: there is one setup, one teardown, one removal.
    ///
    /// An error while connecting is not `Resetting`: the setup that it fails
    /// tears down what it made. Removal may begin in any state.
    #[must_use]
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

impl fmt::Display for CtrlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_transition() {
        // Row: from; column: to. Both in order of the numbers.
        let allowed = [
            [0, 1, 0, 0, 1, 0], // new
            [0, 0, 1, 0, 1, 1], // connecting
            [0, 0, 0, 1, 1, 0], // live
            [0, 1, 0, 0, 1, 1], // resetting
            [0, 0, 0, 0, 0, 0], // deleting
            [0, 0, 0, 0, 1, 0], // dead
        ];
        for (from, row) in CtrlState::ALL.into_iter().zip(allowed) {
            for (to, allowed) in CtrlState::ALL.into_iter().zip(row) {
                assert_eq!(from.may_become(to), allowed == 1, "{from} to {to}");
            }
        }
    }

    #[test]
    fn numbers_and_names() {
        for number in 0..=u8::MAX {
            match CtrlState::from_u8(number) {
                Some(state) => assert_eq!(state.to_u8(), number),
                None => assert!(usize::from(number) >= CtrlState::ALL.len()),
            }
        }
        assert_eq!(
            CtrlState::ALL.map(|state| state.to_string()),
            ["new", "connecting", "live", "resetting", "deleting", "dead"]
        );
    }
}
