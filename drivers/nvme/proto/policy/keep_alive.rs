// SPDX-License-Identifier: GPL-2.0

//! When to send a Keep Alive command.
//!
//! Source: NVMe Base 2.3, section 3.9 (Keep Alive).

use crate::format::identify::KeepAliveMode;

/// Keep alive of a connected controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    timeout_ms: u32,
    mode: KeepAliveMode,
}

impl KeepAlive {
    /// Returns the keep alive for a timeout (KATO) of `timeout_ms` milliseconds; `None` for 0,
    /// which disables keep alive.
    pub const fn new(timeout_ms: u32, mode: KeepAliveMode) -> Option<Self> {
        if timeout_ms == 0 {
            return None;
        }
        Some(Self { timeout_ms, mode })
    }

    /// Returns the period in milliseconds after which to call [`Self::is_due`].
    ///
    /// It is half of the timeout, which leaves time for the response. With
    /// [`KeepAliveMode::TrafficBased`] it is a quarter, because the last command may have ended at
    /// the very beginning of the previous period.
    pub fn period_ms(self) -> u32 {
        let period = match self.mode {
            KeepAliveMode::TrafficBased => self.timeout_ms / 4,
            KeepAliveMode::CommandBased => self.timeout_ms / 2,
        };
        period.max(1)
    }

    /// Returns the time after a connection loss until the controller has ended all commands of the
    /// old association, in milliseconds. `quiesce_ms` is its Command Quiesce Time.
    ///
    /// Its keep-alive timer expires one timeout after the last command that it received. With
    /// [`KeepAliveMode::TrafficBased`] it may take a second one, because the controller only looks
    /// whether there was a command in each period.
    pub const fn association_end_ms(self, quiesce_ms: u32) -> u32 {
        let expiry = match self.mode {
            KeepAliveMode::TrafficBased => self.timeout_ms.saturating_mul(2),
            KeepAliveMode::CommandBased => self.timeout_ms,
        };
        expiry.saturating_add(quiesce_ms)
    }

    /// Returns whether to send a Keep Alive at the end of a period. `traffic` says whether a
    /// command was sent and ended in that period.
    pub const fn is_due(self, traffic: bool) -> bool {
        match self.mode {
            KeepAliveMode::TrafficBased => !traffic,
            KeepAliveMode::CommandBased => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::KeepAliveMode::{CommandBased, TrafficBased};
    use super::*;

    #[test]
    fn periods() {
        let cases = [
            (5_000, CommandBased, 2_500),
            (5_000, TrafficBased, 1_250),
            (1, CommandBased, 1),
            (3, TrafficBased, 1),
            (u32::MAX, CommandBased, u32::MAX / 2),
            (u32::MAX, TrafficBased, u32::MAX / 4),
        ];
        for (timeout, mode, period) in cases {
            let keep_alive = KeepAlive::new(timeout, mode).unwrap();
            assert_eq!(keep_alive.period_ms(), period);
        }
        assert_eq!(KeepAlive::new(0, CommandBased), None);
        assert_eq!(KeepAlive::new(0, TrafficBased), None);
    }

    #[test]
    fn end_of_the_association() {
        for (mode, expected) in [(CommandBased, 7_000), (TrafficBased, 12_000)] {
            let keep_alive = KeepAlive::new(5_000, mode).unwrap();
            assert_eq!(keep_alive.association_end_ms(2_000), expected);
            assert_eq!(keep_alive.association_end_ms(u32::MAX), u32::MAX);
        }
    }

    #[test]
    fn only_counted_traffic_replaces_one() {
        for (mode, traffic, due) in [
            (CommandBased, false, true),
            (CommandBased, true, true),
            (TrafficBased, false, true),
            (TrafficBased, true, false),
        ] {
            assert_eq!(KeepAlive::new(1, mode).unwrap().is_due(traffic), due);
        }
    }
}
