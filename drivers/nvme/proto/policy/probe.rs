// SPDX-License-Identifier: GPL-2.0

//! When a target probes a queue without keep-alive.
//!
//! A reliable connection has no keep-alive of its own. If its host vanishes without a message, and the target has
//! nothing to send, the queue stays for ever. The keep-alive of NVMe ends it, unless the host has disabled that. So the
//! target sends an RDMA WRITE without data from time to time. The host's device acknowledges it, and its software
//! sees nothing of it. Without an acknowledgement the device fails, or the probe stays outstanding.

/// Where the probe of a queue is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Probe {
    /// Nothing is outstanding: the last one was acknowledged.
    Ready,
    /// Neither acknowledged nor failed.
    Outstanding,
}

/// What a target does with a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProbeStep {
    /// Nothing.
    Wait,
    /// Sends a probe.
    Send,
    /// Ends the queue, because the host does not acknowledge.
    End,
}

/// Time since the last probe of a queue.
#[derive(Clone, Copy, Default, Debug)]
pub struct ProbeClock {
    /// When the last probe was sent, or the first step was made.
    since_ms: Option<u64>,
}

impl ProbeClock {
    /// Returns a clock that its first step starts.
    pub const fn new() -> Self {
        Self { since_ms: None }
    }

    /// Decides at `now_ms`. `period_ms` is the time between two probes, and that until an acknowledgement.
    pub fn step(&mut self, probe: Probe, now_ms: u64, period_ms: u64) -> ProbeStep {
        let since_ms = *self.since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since_ms) < period_ms {
            return ProbeStep::Wait;
        }
        match probe {
            Probe::Outstanding => ProbeStep::End,
            Probe::Ready => {
                self.since_ms = Some(now_ms);
                ProbeStep::Send
            }
        }
    }

    /// Starts again with the next step: the queue has a keep-alive now.
    pub fn reset(&mut self) {
        self.since_ms = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Probe::{Outstanding, Ready};
    use ProbeStep::{End, Send, Wait};

    const PERIOD: u64 = 60_000;

    #[test]
    fn probes_a_host_that_answers_once_a_period() {
        let mut clock = ProbeClock::new();
        let steps = [
            (0, Wait),
            (59_999, Wait),
            (60_000, Send),
            (119_999, Wait),
            (120_000, Send),
        ];
        for (time, step) in steps {
            assert_eq!(clock.step(Ready, time, PERIOD), step, "at {time}");
        }
    }

    #[test]
    fn ends_a_queue_whose_probe_is_outstanding_for_a_period() {
        let mut clock = ProbeClock::new();
        assert_eq!(clock.step(Ready, 1000, PERIOD), Wait);
        assert_eq!(clock.step(Ready, 61_000, PERIOD), Send);
        assert_eq!(clock.step(Outstanding, 120_999, PERIOD), Wait);
        assert_eq!(clock.step(Outstanding, 121_000, PERIOD), End);
    }

    #[test]
    fn an_acknowledgement_counts_until_the_end_of_the_period() {
        let mut clock = ProbeClock::new();
        clock.step(Ready, 0, PERIOD);
        assert_eq!(clock.step(Ready, 60_000, PERIOD), Send);
        assert_eq!(clock.step(Outstanding, 110_000, PERIOD), Wait);
        assert_eq!(clock.step(Ready, 120_000, PERIOD), Send);
    }

    #[test]
    fn a_late_step_sends_one_probe() {
        let mut clock = ProbeClock::new();
        clock.step(Ready, 0, PERIOD);
        assert_eq!(clock.step(Ready, 1_000_000, PERIOD), Send);
        assert_eq!(clock.step(Ready, 1_000_001, PERIOD), Wait);
        // The time does not go back, but a step must survive if it does.
        assert_eq!(clock.step(Outstanding, 0, PERIOD), Wait);
    }

    #[test]
    fn a_queue_that_loses_its_keep_alive_gets_a_whole_period() {
        let mut clock = ProbeClock::new();
        clock.step(Ready, 0, PERIOD);
        clock.reset();
        assert_eq!(clock.step(Ready, 90_000, PERIOD), Wait);
        assert_eq!(clock.step(Ready, 149_999, PERIOD), Wait);
        assert_eq!(clock.step(Ready, 150_000, PERIOD), Send);
    }
}
