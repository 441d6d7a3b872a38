// SPDX-License-Identifier: GPL-2.0

//! What the program asks the kernel module for: connect, discovery and set options.

use crate::address::Endpoint;
use crate::uapi::LOSS_TMO_NEVER;
use clap::ValueEnum;

/// The subsystem of a target, and how it is reached; an option that is absent is left to the
/// kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    /// Numeric address of the target.
    pub(crate) traddr: String,
    /// Port of the target.
    pub(crate) trsvcid: u16,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subsysnqn: String,
    /// NVMe Qualified Name of the host.
    pub(crate) hostnqn: String,
    /// Identifier of the host.
    pub(crate) hostid: [u8; 16],
    /// Numeric address to connect from.
    pub(crate) host_traddr: Option<String>,
    /// Milliseconds that connecting may take.
    pub(crate) connect_timeout: u32,
    /// Type of service.
    pub(crate) tos: Option<u8>,
}

impl Target {
    /// Returns its address and port.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.traddr, self.trsvcid)
    }
}

/// What a connect asks for; an option that is absent is left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectArgs {
    /// The subsystem.
    pub(crate) target: Target,
    /// Number of I/O queues.
    pub(crate) nr_io_queues: Option<u32>,
    /// Number of I/O queues for writes only.
    pub(crate) nr_write_queues: Option<u32>,
    /// Number of I/O queues for polled requests.
    pub(crate) nr_poll_queues: Option<u32>,
    /// Entries of each I/O queue.
    pub(crate) queue_size: Option<u32>,
    /// Keep-alive timeout in seconds.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Disable SQ flow control.
    pub(crate) disable_sqflow: bool,
    /// What to do when the connection is lost.
    pub(crate) reconnect: ReconnectOptions,
    /// Connect even where the same controller exists.
    pub(crate) duplicate_connect: bool,
}

/// What a controller does when its connection is lost; an option that is absent is as it was, or
/// left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReconnectOptions {
    /// Longest pause between attempts to connect again, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
    /// Seconds after a loss that attempts go on for.
    pub(crate) ctrl_loss_tmo: Option<u32>,
    /// Seconds after a loss that I/O waits.
    pub(crate) fast_io_fail_tmo: Option<u32>,
}

impl ReconnectOptions {
    /// What of it has no effect, where `now` is what is left as it is: when no more attempts are
    /// made I/O fails in any case.
    pub(crate) fn ineffective(&self, now: &Self) -> Option<String> {
        self.ctrl_loss_tmo.or(self.fast_io_fail_tmo)?;
        let attempts = self.ctrl_loss_tmo.or(now.ctrl_loss_tmo)?;
        let wait = self.fast_io_fail_tmo.or(now.fast_io_fail_tmo)?;
        // No end is the highest number.
        (attempts < wait && wait != LOSS_TMO_NEVER).then(|| {
            format!(
                "a --fast_io_fail_tmo of {wait} s has no effect, as --ctrl-loss-tmo is {attempts} s"
            )
        })
    }
}

/// What can be changed of a controller; what is absent stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What to do when the connection is lost.
    pub(crate) reconnect: ReconnectOptions,
    /// Milliseconds that an attempt to connect may take.
    pub(crate) connect_timeout: Option<u32>,
}

/// Options of a persistent discovery; an option that is absent is left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PersistentArgs {
    /// Keep-alive timeout in seconds.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Longest pause between attempts to connect, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
}

/// A controller that a connect made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewController {
    /// Its number.
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: String,
}

/// Whether something is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Measure from now on.
    On,
    /// Measure no more.
    Off,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn io_does_not_wait_longer_than_attempts_go_on() {
        let reconnect = |ctrl_loss_tmo, fast_io_fail_tmo| ReconnectOptions {
            reconnect_delay: Some(1),
            ctrl_loss_tmo,
            fast_io_fail_tmo,
        };
        let now = reconnect(Some(600), Some(LOSS_TMO_NEVER));
        for (asked, now, text) in [
            (
                reconnect(None, Some(601)),
                now,
                "of 601 s has no effect, as --ctrl-loss-tmo is 600 s",
            ),
            (
                reconnect(Some(1), Some(2)),
                now,
                "of 2 s has no effect, as --ctrl-loss-tmo is 1 s",
            ),
            (
                reconnect(Some(1), None),
                reconnect(Some(9), Some(9)),
                "of 9 s has no effect, as --ctrl-loss-tmo is 1 s",
            ),
        ] {
            let wanted = format!("a --fast_io_fail_tmo {text}");
            assert_eq!(asked.ineffective(&now), Some(wanted));
        }
        for (asked, now) in [
            (reconnect(None, Some(600)), now),
            (reconnect(Some(5), None), now),
            (reconnect(Some(5), Some(LOSS_TMO_NEVER)), now),
            (reconnect(Some(LOSS_TMO_NEVER), Some(601)), now),
            // It was so before.
            (reconnect(None, None), reconnect(Some(1), Some(2))),
        ] {
            assert_eq!(asked.ineffective(&now), None, "{asked:?}");
        }
    }
}
