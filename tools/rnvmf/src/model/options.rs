// SPDX-License-Identifier: GPL-2.0

//! Arguments of requests. Where an option is `None`, the kernel uses its default or keeps the value.

use crate::address::Endpoint;
use crate::uapi::LOSS_TMO_NEVER;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A subsystem, and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Target {
    /// Numeric address of the target.
    pub(crate) traddr: String,
    /// Port of the target.
    pub(crate) trsvcid: u16,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subsysnqn: String,
    /// NVMe Qualified Name of the host.
    pub(crate) hostnqn: String,
    /// Host identifier.
    pub(crate) hostid: Uuid,
    /// Numeric source address.
    pub(crate) host_traddr: Option<String>,
    /// Time limit of a connect attempt, in milliseconds.
    pub(crate) connect_timeout: u32,
    /// Type of service.
    pub(crate) tos: Option<u8>,
}

impl Target {
    /// Returns the address and the port.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.traddr, self.trsvcid)
    }
}

/// Arguments of a connect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ConnectArgs {
    /// The subsystem.
    #[serde(flatten)]
    pub(crate) target: Target,
    /// Number of I/O queues for all commands, or for reads if there are queues for writes.
    pub(crate) nr_io_queues: Option<u32>,
    /// Number of I/O queues for writes only.
    pub(crate) nr_write_queues: Option<u32>,
    /// Number of I/O queues for polled requests only.
    pub(crate) nr_poll_queues: Option<u32>,
    /// Entries of each I/O queue.
    pub(crate) queue_size: Option<u32>,
    /// Keep-alive timeout in seconds; 0 disables keep-alive.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Whether to disable SQ flow control.
    pub(crate) disable_sqflow: bool,
    /// What to do when the connection is lost.
    #[serde(flatten)]
    pub(crate) reconnect: ReconnectOptions,
    /// Whether to connect even if a controller of the same target and host exists.
    pub(crate) duplicate_connect: bool,
}

/// What a controller does when its connection is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ReconnectOptions {
    /// Longest pause between reconnect attempts, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
    /// Seconds after which reconnecting is given up.
    pub(crate) ctrl_loss_tmo: Option<u32>,
    /// Seconds after which I/O fails.
    pub(crate) fast_io_fail_tmo: Option<u32>,
}

impl ReconnectOptions {
    /// Returns a warning if a limit has no effect beside the `current` options: I/O fails when
    /// reconnecting is given up, so it cannot wait longer.
    pub(crate) fn ineffective(&self, current: &Self) -> Option<String> {
        self.ctrl_loss_tmo.or(self.fast_io_fail_tmo)?;
        let reconnect = self.ctrl_loss_tmo.or(current.ctrl_loss_tmo)?;
        let wait = self.fast_io_fail_tmo.or(current.fast_io_fail_tmo)?;
        // LOSS_TMO_NEVER is the largest number.
        (reconnect < wait && wait != LOSS_TMO_NEVER).then(|| {
            format!(
                "a --fast_io_fail_tmo of {wait} s has no effect, as --ctrl-loss-tmo is {reconnect} s"
            )
        })
    }
}

/// Settings of a controller to change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Settings {
    /// What to do when the connection is lost.
    #[serde(flatten)]
    pub(crate) reconnect: ReconnectOptions,
    /// Time limit of a connect attempt, in milliseconds.
    pub(crate) connect_timeout: Option<u32>,
}

/// Options of a persistent discovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PersistentArgs {
    /// Keep-alive timeout in seconds; 0 disables keep-alive.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Longest pause between reconnect attempts, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
}

/// A controller that a connect created.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct NewController {
    /// Its number.
    #[serde(rename = "ctrl_id")]
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: String,
}

/// Whether to measure command latency.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Switch {
    /// Start measuring.
    On,
    /// Stop measuring.
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
