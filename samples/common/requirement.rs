// SPDX-License-Identifier: GPL-2.0

//! Device capabilities that a sample needs and not every device has.

use super::step_error::StepError;
use core::fmt;
use kernel::prelude::*;
use rrdma::rdma::device::{
    port::Protocol,
    AtomicScope,
    Device, //
};

/// A device capability.
#[derive(Clone, Copy)]
pub(crate) enum DeviceRequirement {
    /// Compare-and-swap and fetch-and-add.
    Atomics,
    /// Queue pairs that are connected without the connection manager.
    ConnectionsByHand,
    /// Queue pairs for datagrams (UD).
    Datagrams,
    /// Immediate data in sends and writes.
    ImmediateData,
    /// Queue pairs for unreliable connections (UC).
    UnreliableConnections,
}

impl DeviceRequirement {
    /// Fails unless `device` has the capability.
    pub(crate) fn check(self, device: &Device) -> Result<(), StepError> {
        let has = match self {
            Self::Atomics => device.attributes().atomics != AtomicScope::None,
            // These belong to the InfiniBand transport, which RoCE shares; iWARP has another one.
            _ => device
                .ports()
                .all(|port| port.protocol() != Protocol::Iwarp),
        };
        match has {
            true => Ok(()),
            false => Err(StepError::new(
                "device",
                format_args!("{} does not support {self}", device.name()),
            )),
        }
    }
}

impl fmt::Display for DeviceRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Atomics => "atomic operations",
            Self::ConnectionsByHand => "connections without the connection manager",
            Self::Datagrams => "datagrams",
            Self::ImmediateData => "immediate data",
            Self::UnreliableConnections => "unreliable connections",
        })
    }
}
