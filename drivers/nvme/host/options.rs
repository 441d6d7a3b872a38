// SPDX-License-Identifier: GPL-2.0

//! What a user asks of a connection.

use core::num::NonZeroU16;
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

/// The options of one controller, checked.
pub(crate) struct Options {
    /// The network namespace that the connections are made in.
    pub(crate) namespace: Namespace,
    /// The target's address as the user gave it, and what it means.
    pub(crate) target: TransportAddr,
    /// The address to connect from.
    pub(crate) source: Option<TransportAddr>,
    pub(crate) subsystem: CString,
    pub(crate) host: CString,
    pub(crate) host_id: Uuid,
    pub(crate) io_queues: Option<NonZeroU16>,
    /// Queues for writes only, beside those.
    pub(crate) write_queues: Option<NonZeroU16>,
    /// Queues that are polled, beside those.
    pub(crate) poll_queues: Option<NonZeroU16>,
    /// Entries of an I/O queue.
    pub(crate) queue_size: u16,
    /// Seconds; 0 for no keep-alive.
    pub(crate) keep_alive: u32,
    pub(crate) tos: Option<u8>,
    /// The target need not tell how far it is in its queues.
    pub(crate) disable_sq_flow: bool,
}

/// What of a host's identity is another than that of a controller that is there, while the rest is
/// the same.
#[derive(Clone, Copy)]
pub(crate) enum HostIdConflict {
    HostId,
    HostName,
}

/// What of a controller can be changed while it is there: what to do when the connection is lost.
/// Numbers are seconds.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// How long an attempt to connect may take in all, the first one too.
    pub(crate) connect_timeout: Msecs,
    /// The longest pause between attempts to connect again.
    pub(crate) reconnect_delay: u32,
    /// How long attempts go on: 0 for not at all.
    pub(crate) give_up: Limit,
    /// How long I/O is held back.
    pub(crate) fail_io: Limit,
}

/// A time after a loss, in seconds.
#[derive(Clone, Copy)]
pub(crate) enum Limit {
    After(u32),
    Never,
}

impl Settings {
    /// The same in milliseconds, to decide with.
    pub(crate) fn limits(&self) -> ReconnectLimits {
        ReconnectLimits {
            max_reconnect_delay_ms: self.reconnect_delay.saturating_mul(1000),
            ctrl_loss_tmo_ms: self.give_up.ms(),
            fast_io_fail_tmo_ms: self.fail_io.ms(),
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

/// An address in words and in bytes.
pub(crate) struct TransportAddr {
    pub(crate) text: CString,
    pub(crate) port: u16,
    pub(crate) address: Address,
}

impl Options {
    /// Whether both would connect the same host to the same subsystem by the
    /// same way.
    pub(crate) fn same_connection(&self, other: &Self) -> bool {
        self.namespace == other.namespace
            && self.target.same(&other.target)
            && match (&self.source, &other.source) {
                (Some(a), Some(b)) => a.same(b),
                (None, None) => true,
                _ => false,
            }
            && *self.subsystem == *other.subsystem
            && *self.host == *other.host
            && self.host_id == other.host_id
    }

    /// How a target that sees both would take two hosts for one, or one for two: the host is its
    /// name and its identifier. Another network namespace is another host, as its addresses are.
    pub(crate) fn clash(&self, other: &Self) -> Option<HostIdConflict> {
        let (name, id) = (*self.host == *other.host, self.host_id == other.host_id);
        match (self.namespace == other.namespace, name, id) {
            (true, true, false) => Some(HostIdConflict::HostId),
            (true, false, true) => Some(HostIdConflict::HostName),
            _ => None,
        }
    }

    pub(crate) fn subsystem(&self) -> &str {
        self.subsystem.to_str().unwrap_or_default()
    }

    pub(crate) fn host(&self) -> &str {
        self.host.to_str().unwrap_or_default()
    }

    /// The keep-alive timeout in milliseconds, as Connect has it.
    pub(crate) fn keep_alive_ms(&self) -> u32 {
        self.keep_alive.saturating_mul(1000)
    }
}

impl TransportAddr {
    /// Parses a numeric address. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` for what is no address, `ENOMEM`.
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

    fn same(&self, other: &Self) -> bool {
        self.address == other.address
    }
}
