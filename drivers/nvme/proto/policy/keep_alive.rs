// SPDX-License-Identifier: GPL-2.0

//! When to tell a controller that its host lives.

/// The keep alive of a connected controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeepAlive {
    timeout_ms: u32,
    traffic_counts: bool,
}

impl KeepAlive {
    /// Takes the timeout that the controller was connected with, and whether
    /// it takes any command as a sign of life: see
    /// [`crate::format::identify::Controller::traffic_based_keep_alive`].
    /// `None` for a timeout of 0, with which there is no keep alive.
    #[must_use]
    pub const fn new(timeout_ms: u32, traffic_counts: bool) -> Option<Self> {
        if timeout_ms == 0 {
            return None;
        }
        Some(Self {
            timeout_ms,
            traffic_counts,
        })
    }

    /// How long to wait between two looks at whether to send one: half of the
    /// timeout, which leaves time for one to be answered. Where traffic counts
    /// it is half of that again, as a command can have ended just after the
    /// look before last.
    #[must_use]
    pub fn period_ms(self) -> u32 {
        let period = if self.traffic_counts {
            self.timeout_ms / 4
        } else {
            self.timeout_ms / 2
        };
        period.max(1)
    }

    /// How long to wait for the answer.
    #[must_use]
    pub const fn timeout_ms(self) -> u32 {
        self.timeout_ms
    }

    /// Whether to send one now; `traffic` tells whether commands ended since
    /// the last look.
    #[must_use]
    pub const fn is_due(self, traffic: bool) -> bool {
        !(self.traffic_counts && traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods() {
        let cases = [
            (5_000, false, 2_500),
            (5_000, true, 1_250),
            (1, false, 1),
            (3, true, 1),
            (u32::MAX, false, u32::MAX / 2),
            (u32::MAX, true, u32::MAX / 4),
        ];
        for (timeout, traffic_counts, period) in cases {
            let keep_alive = KeepAlive::new(timeout, traffic_counts).unwrap();
            assert_eq!(keep_alive.period_ms(), period);
            assert_eq!(keep_alive.timeout_ms(), timeout);
        }
        assert_eq!(KeepAlive::new(0, false), None);
        assert_eq!(KeepAlive::new(0, true), None);
    }

    #[test]
    fn only_counted_traffic_replaces_one() {
        for (traffic_counts, traffic, due) in [
            (false, false, true),
            (false, true, true),
            (true, false, true),
            (true, true, false),
        ] {
            assert_eq!(
                KeepAlive::new(1, traffic_counts).unwrap().is_due(traffic),
                due
            );
        }
    }
}
