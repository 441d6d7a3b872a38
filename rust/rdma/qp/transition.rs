// SPDX-License-Identifier: GPL-2.0

//! From one state of a queue pair to the next, and why that fails.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `ib_modify_qp`

use super::{
    QpContext,
    QueuePair,
    State, //
};
use crate::{
    bindings,
    errno::EOPNOTSUPP,
    rdma::{
        device::{
            Device,
            Mtu,
            Port, //
        },
        path::Path, //
    }, //
    text::kernel_display,
};
use core::fmt;
use kernel::{
    error::to_result,
    prelude::*, //
};

/// A queue pair did not get from one state to the next.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// Where it was.
    pub from: State,
    /// Where it was to go.
    pub to: State,
    /// Why it did not.
    pub cause: Cause,
}

/// Why a queue pair did not get to a state.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    /// The port, or the path, is one of another device.
    OtherDevice,
    /// The path begins at this port, and the queue pair is on the other.
    OtherPort(u32, u32),
    /// The port has no P_Key at this index.
    NoPkey(u16),
    /// Packets of the path would be larger than the port can have now.
    MtuAbove(Mtu, Mtu),
    /// The port does not tell which packets it can have: it has no link, or this
    /// error.
    NoMtu(Option<kernel::error::Error>),
    /// So many reads and atomic operations under way, and the device can have the
    /// other number.
    TooManyReads(u8, u32),
    /// The device said no.
    Refused(kernel::error::Error),
}

impl Cause {
    /// The nearest error number.
    pub fn errno(&self) -> kernel::error::Error {
        match self {
            Self::Refused(error) | Self::NoMtu(Some(error)) => *error,
            Self::NoMtu(None) => crate::errno::ENETDOWN,
            _ => EINVAL,
        }
    }
}

impl From<Error> for kernel::error::Error {
    fn from(error: Error) -> Self {
        error.cause.errno()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}: ", self.from, self.to)?;
        match self.cause {
            Cause::OtherDevice => f.write_str("the port or the path is of another device"),
            Cause::OtherPort(path, own) => {
                write!(f, "the path begins at port {path}, it is on port {own}")
            }
            Cause::NoPkey(index) => write!(f, "the port has no P_Key at index {index}"),
            Cause::MtuAbove(path, active) => {
                write!(f, "the path's MTU, {path}, is above the port's, {active}")
            }
            Cause::NoMtu(None) => f.write_str("the port has no MTU: is its link up?"),
            Cause::NoMtu(Some(error)) => {
                write!(f, "the port has no MTU: error {}", error.to_errno())
            }
            Cause::TooManyReads(wanted, most) => {
                write!(f, "{wanted} reads at once, the device can have {most}")
            }
            Cause::Refused(error) => {
                write!(
                    f,
                    "the device refuses, error {}{}",
                    error.to_errno(),
                    likely(error)
                )
            }
        }
    }
}

kernel_display!(Error);

/// What is likely behind a refusal.
fn likely(error: kernel::error::Error) -> &'static str {
    match error {
        EINVAL => ": a value that it cannot have, or it is in its error state",
        EOPNOTSUPP => ": its connections are made by the connection manager only",
        ENODEV => ": it is going away",
        _ => "",
    }
}

/// What a queue pair is told by a transition, such as [`rc::Rtr`](super::rc::Rtr).
pub trait Transition: sealed::Attributes {}

impl<T: sealed::Attributes> Transition for T {}

pub(crate) mod sealed {
    use super::*;

    /// What the verbs call it.
    pub trait Attributes {
        /// Which members (`enum ib_qp_attr_mask`), besides the state.
        const MASK: u32;

        /// Sets them, once they are found to be possible for `device`.
        fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause>;
    }
}

/// What all services are told first.
pub(super) fn initialise(
    port: Port<'_>,
    pkey_index: u16,
    device: &Device,
    raw: &mut bindings::ib_qp_attr,
) -> Result<(), Cause> {
    if port.device() != device {
        return Err(Cause::OtherDevice);
    }
    if port.pkey(pkey_index).is_err() {
        return Err(Cause::NoPkey(pkey_index));
    }
    raw.port_num = port.number();
    raw.pkey_index = pkey_index;
    Ok(())
}

/// What the services with a peer are told of the way to it.
pub(super) fn connect(
    path: &Path<'_>,
    mtu: Mtu,
    device: &Device,
    raw: &mut bindings::ib_qp_attr,
) -> Result<(), Cause> {
    if path.device() != device {
        return Err(Cause::OtherDevice);
    }
    let port = path.port().attributes();
    let active = port.map_err(|error| Cause::NoMtu(Some(error)))?.active_mtu;
    let active = active.ok_or(Cause::NoMtu(None))?;
    if mtu > active {
        return Err(Cause::MtuAbove(mtu, active));
    }
    raw.ah_attr = path.as_raw();
    raw.path_mtu = mtu.as_raw();
    Ok(())
}

/// Takes `queue`, on `port` if it is on one already, from state `from` to `to`, and
/// says on which port it is. Sleeps.
pub(super) fn reach<E: QpContext, A: sealed::Attributes>(
    queue: &QueuePair<E>,
    port: Option<u32>,
    (from, to): (State, State),
    attributes: &A,
) -> Result<u32, Error> {
    let fail = |cause| Error { from, to, cause };
    let mut raw = bindings::ib_qp_attr {
        qp_state: to.as_raw(),
        ..pin_init::zeroed()
    };
    attributes.fill(queue.device(), &mut raw).map_err(fail)?;
    let port = port.unwrap_or(raw.port_num);
    if A::MASK & bindings::ib_qp_attr_mask_IB_QP_AV != 0 && raw.ah_attr.port_num != port {
        return Err(fail(Cause::OtherPort(raw.ah_attr.port_num, port)));
    }
    let mask = A::MASK | bindings::ib_qp_attr_mask_IB_QP_STATE;
    // SAFETY: The queue pair is alive; what the attributes name is borrowed from
    // `attributes` for the call, and the core takes references of its own.
    to_result(unsafe { bindings::ib_modify_qp(queue.as_raw(), &mut raw, mask as i32) })
        .map_err(|error| fail(Cause::Refused(error)))?;
    Ok(port)
}
