// SPDX-License-Identifier: GPL-2.0

//! Arguments of requests. Where an option is `None`, the kernel uses its default or keeps the value.

use crate::address::Endpoint;
use crate::uapi::{
    KEEP_ALIVE_TMO_MAX, LOSS_TMO_MAX, LOSS_TMO_NEVER, NR_IO_QUEUES_MAX, QUEUE_SIZE_MAX,
    QUEUE_SIZE_MIN, RECONNECT_DELAY_MAX,
};
use clap::builder::{RangedI64ValueParser, TypedValueParser};
use clap::{value_parser, Args, ValueEnum};
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
    /// Options of the controller.
    #[serde(flatten)]
    pub(crate) ctrl: CtrlArgs,
    /// Whether to connect even if a controller of the same target and host exists.
    pub(crate) duplicate_connect: bool,
}

/// Options of a controller, of the command line and of a connect.
#[derive(Clone, Debug, PartialEq, Eq, Args, Serialize)]
pub(crate) struct CtrlArgs {
    /// Number of I/O queues, 1 to 65535 [default: one for each online CPU]
    #[arg(short = 'i', long, value_name = "N", value_parser = range(1, NR_IO_QUEUES_MAX))]
    pub(crate) nr_io_queues: Option<u32>,

    /// Number of additional queues for writes, 1 to 65535; reads use those of -i [default: none]
    #[arg(short = 'W', long, value_name = "N", value_parser = range(1, NR_IO_QUEUES_MAX))]
    pub(crate) nr_write_queues: Option<u32>,

    /// Number of additional queues for polled I/O (such as that of io_uring), 1 to 65535 [default: none]
    #[arg(short = 'P', long, value_name = "N", value_parser = range(1, NR_IO_QUEUES_MAX))]
    pub(crate) nr_poll_queues: Option<u32>,

    /// Number of entries of each I/O queue. The host uses 256 at most. 16 to 1024 [default: 128]
    #[arg(short = 'Q', long, value_name = "N",
          value_parser = range(QUEUE_SIZE_MIN, QUEUE_SIZE_MAX))]
    pub(crate) queue_size: Option<u32>,

    /// Disable SQ flow control
    #[arg(long)]
    pub(crate) disable_sqflow: bool,

    /// Keep-alive timeout in seconds, 0 to 4294967; 0 disables keep-alive [default: 5]
    #[arg(short = 'k', long, value_name = "SECONDS", value_parser = range(0, KEEP_ALIVE_TMO_MAX))]
    pub(crate) keep_alive_tmo: Option<u32>,

    /// Behaviour after a connection loss.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) reconnect: ReconnectOptions,
}

/// Options of a controller for the time after a connection loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Args, Serialize)]
pub(crate) struct ReconnectOptions {
    /// Longest delay between reconnect attempts in seconds, 1 to 3600 [default: 10]
    #[arg(short = 'c', long, value_name = "SECONDS", value_parser = range(1, RECONNECT_DELAY_MAX))]
    pub(crate) reconnect_delay: Option<u32>,

    /// Seconds after a connection loss until reconnecting ends, 0 to 4294967; -1 for no limit
    /// [default: 600]
    #[arg(short = 'l', long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = loss_tmo())]
    pub(crate) ctrl_loss_tmo: Option<u32>,

    /// Seconds after a connection loss until I/O fails, 0 to 4294967; -1: when reconnecting ends. With
    /// 0, in-flight writes fail while the target may still execute them [default: -1]
    #[arg(short = 'F', long, visible_alias = "fast_io_fail_tmo", value_name = "SECONDS",
          allow_negative_numbers = true, value_parser = loss_tmo())]
    pub(crate) fast_io_fail_tmo: Option<u32>,

    /// Seconds that the target may need to end commands of a lost connection, 0 to 4294967, after it
    /// acknowledged the disconnect, or after its keep-alive timer has expired. Writes in flight at the
    /// loss are held until then. 0: do not hold them; -1: as the target reports; if it reports none, 0
    /// after an acknowledgement, else the keep-alive timeout, at most 10 [default: -1]
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = loss_tmo())]
    pub(crate) cqt: Option<u32>,
}

/// Returns a parser for numbers within limits, which are inclusive.
pub(crate) fn range(min: u32, max: u32) -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(i64::from(min)..=i64::from(max))
}

/// Returns a parser for seconds after a connection loss, or -1 for no limit.
fn loss_tmo() -> impl TypedValueParser<Value = u32> {
    let seconds = value_parser!(i64).range(-1..=i64::from(LOSS_TMO_MAX));
    seconds.map(|seconds| u32::try_from(seconds).unwrap_or(LOSS_TMO_NEVER))
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
            cqt: None,
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
