// SPDX-License-Identifier: GPL-2.0

//! The consumer's side of a connection.

use crate::{
    rdma::qp::{
        self,
        QpContext,
        QueuePair, //
    },
    text::kernel_display,
};
use core::fmt;

/// The consumer's side of a queue pair that the connection manager connects.
pub trait Endpoint: QpContext<QpType: qp::Connected> {
    /// The connection is gone, by the peer, the network or the device. Process
    /// context, may sleep, but may not drop the queue pair's connection. May be
    /// called more than once, and before the step that connects has returned.
    fn lost(queue: &QueuePair<Self>, cause: Lost);
}

/// Why an established connection is gone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer disconnected, or answered our disconnection.
    Disconnected,
    /// The local address or the path to the peer changed.
    AddressChanged,
    /// The peer no longer answers.
    Unreachable,
    /// The device is going away.
    DeviceRemoved,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnected => "the peer disconnected",
            Self::AddressChanged => "the address of the path changed",
            Self::Unreachable => "the peer no longer answers",
            Self::DeviceRemoved => "the RDMA device is going away",
        })
    }
}

kernel_display!(Lost);
