// SPDX-License-Identifier: GPL-2.0

//! Options of a connection.

use core::num::{
    NonZeroU16,
    NonZeroU32, //
};
use kernel::{
    prelude::*,
    str::CString, //
};
use nvme_proto::{format::uuid::Uuid, policy::reconnect_policy::ReconnectLimits};
use rrdma::{
    net::Namespace,
    rdma::cm::Address,
    sync::Msecs, //
};

/// The validated options of a controller.
pub(crate) struct Options {
    /// The network namespace that the connections are made in.
    pub(crate) namespace: Namespace,
    /// The address of the target.
    pub(crate) target: TransportAddr,
    /// The address to connect from.
    pub(crate) source: Option<TransportAddr>,
    pub(crate) subsystem: CString,
    pub(crate) host: CString,
    pub(crate) host_id: Uuid,
    pub(crate) io_queues: Option<NonZeroU16>,
    /// Additional queues, for writes; `io_queues` then carry reads only.
    pub(crate) write_queues: Option<NonZeroU16>,
    /// Additional queues, for polled I/O.
    pub(crate) poll_queues: Option<NonZeroU16>,
    /// Entries of an I/O queue.
    pub(crate) queue_size: u16,
    /// Keep-alive time-out, in seconds; 0 disables keep-alive.
    pub(crate) keep_alive: u32,
    /// Type of service of the connections (`rdma_set_service_type()`).
    pub(crate) tos: Option<u8>,
    /// Disable SQ flow control.
    pub(crate) disable_sq_flow: bool,
}

/// Exactly one of host NQN and host ID matches another controller.
#[derive(Clone, Copy)]
pub(crate) enum HostIdConflict {
    /// The host ID differs.
    HostId,
    /// The host NQN differs.
    HostName,
}

/// Options that can change while the controller exists. Numbers are seconds.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// Time-out of each attempt to connect, including the first one.
    pub(crate) connect_timeout: Msecs,
    /// Longest delay between reconnect attempts.
    pub(crate) reconnect_delay: u32,
    /// When to give up reconnecting: 0 for no attempt.
    pub(crate) ctrl_loss_tmo: Limit,
    /// When to fail I/O instead of holding it.
    pub(crate) fast_io_fail_tmo: Limit,
    /// How long writes that were in flight at a loss are held.
    pub(crate) quiesce: QuiesceTime,
}

/// The Command Quiesce Time of the target, for which writes that were in flight at a loss are held
/// after the target has acknowledged the disconnect, or its keep-alive timer has expired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuiesceTime {
    /// As the target reports it (CQT). If it reports none, 0 after an acknowledgement, and otherwise
    /// the keep-alive time-out, but at most 10 s.
    Reported,
    /// In seconds.
    After(NonZeroU32),
    /// Writes are not held.
    NoHold,
}

/// A time after a lost connection, in seconds.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    After(u32),
    Never,
}

impl Settings {
    /// Whether writes that were in flight at a loss are held. To fail I/O at once gives that up, as
    /// the upper layer may send the write again on another path.
    pub(crate) fn holds_writes(&self) -> bool {
        self.quiesce != QuiesceTime::NoHold && !matches!(self.fast_io_fail_tmo, Limit::After(0))
    }

    /// Converts to the limits of the reconnect policy, in milliseconds.
    pub(crate) fn limits(&self) -> ReconnectLimits {
        ReconnectLimits {
            max_reconnect_delay_ms: self.reconnect_delay.saturating_mul(1000),
            ctrl_loss_tmo_ms: self.ctrl_loss_tmo.ms(),
            fast_io_fail_tmo_ms: self.fast_io_fail_tmo.ms(),
        }
    }
}

impl Limit {
    fn ms(self) -> Option<u32> {
        match self {
            Self::After(seconds) => Some(seconds.saturating_mul(1000)),
            Self::Never => None,
        }
    }
}

/// An address, as text and parsed.
pub(crate) struct TransportAddr {
    pub(crate) text: CString,
    pub(crate) port: u16,
    pub(crate) address: Address,
}

impl Options {
    /// Whether both connect the same host to the same subsystem over the same path.
    pub(crate) fn same_connection(&self, other: &Self) -> bool {
        self.namespace == other.namespace
            && self.target.address == other.target.address
            && self.source_address() == other.source_address()
            && *self.subsystem == *other.subsystem
            && *self.host == *other.host
            && self.host_id == other.host_id
    }

    /// Returns whether the host identities conflict. A target identifies a host by NQN and ID, so
    /// these must match or differ together. Each network namespace is a host of its own, because it
    /// has its own addresses.
    pub(crate) fn host_id_conflict(&self, other: &Self) -> Option<HostIdConflict> {
        let (name, id) = (*self.host == *other.host, self.host_id == other.host_id);
        match (self.namespace == other.namespace, name, id) {
            (true, true, false) => Some(HostIdConflict::HostId),
            (true, false, true) => Some(HostIdConflict::HostName),
            _ => None,
        }
    }

    /// Returns the address to connect from.
    pub(crate) fn source_address(&self) -> Option<&Address> {
        self.source.as_ref().map(|source| &source.address)
    }

    pub(crate) fn subsystem(&self) -> &str {
        self.subsystem.to_str().unwrap_or_default()
    }

    pub(crate) fn host(&self) -> &str {
        self.host.to_str().unwrap_or_default()
    }

    /// Returns the keep-alive time-out in milliseconds, as the Connect command takes it.
    pub(crate) fn keep_alive_ms(&self) -> u32 {
        self.keep_alive.saturating_mul(1000)
    }
}

impl TransportAddr {
    /// Parses a numeric address. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if `text` is no numeric address; `ENOMEM`.
    pub(crate) fn parse(namespace: &Namespace, text: &str, port: u16) -> Result<Self> {
        Ok(Self {
            text: CString::try_from_fmt(fmt!("{text}"))?,
            port,
            address: Address::parse(namespace, text, port)?,
        })
    }

    pub(crate) fn text(&self) -> &str {
        self.text.to_str().unwrap_or_default()
    }
}
