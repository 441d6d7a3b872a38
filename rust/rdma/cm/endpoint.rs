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

/// The context of a queue pair that the connection manager connects.
pub trait Endpoint: QpContext<QpType: qp::Connected> {
    /// Called when the connection has ended, because of the peer, the network or the device. May be
    /// called more than once, and before the step that connects has returned.
    ///
    /// Process context, may sleep; locks of the connection manager are held. Must not drop the
    /// connection or the step that `queue` belongs to.
    fn lost(queue: &QueuePair<Self>, cause: Lost);
}

/// Reason why an established connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// The peer disconnected, or acknowledged our disconnect (`RDMA_CM_EVENT_DISCONNECTED`).
    Disconnected,
    /// An iWARP connection was closed (`IW_CM_EVENT_CLOSE`): by the peer, by our disconnect, or because the
    /// peer no longer answers. So it does not tell whether the peer has ended the connection.
    Closed,
    /// The link address of the local interface changed, as when a bond fails over
    /// (`RDMA_CM_EVENT_ADDR_CHANGE`).
    AddressChanged,
    /// The peer no longer answers, or its IP address has got another link address
    /// (`RDMA_CM_EVENT_UNREACHABLE`), or it has not acknowledged our disconnect.
    Unreachable,
    /// The device is being removed (`RDMA_CM_EVENT_DEVICE_REMOVAL`).
    DeviceRemoved,
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disconnected => "the peer disconnected",
            Self::Closed => "closed by the peer or the network",
            Self::AddressChanged => "the local link address changed",
            Self::Unreachable => "the peer no longer answers",
            Self::DeviceRemoved => "the RDMA device is going away",
        })
    }
}

kernel_display!(Lost);
