// SPDX-License-Identifier: GPL-2.0

//! Transitions between the states of a queue pair, and their errors.
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

/// A failed transition of a queue pair.
#[derive(Clone, Copy, Debug)]
pub struct Error {
    /// State before the transition.
    pub from: State,
    /// State that was not reached.
    pub to: State,
    /// Cause of the failure.
    pub cause: Cause,
}

/// Cause of a failed transition.
#[derive(Clone, Copy, Debug)]
pub enum Cause {
    /// The port or the path belongs to another device.
    OtherDevice,
    /// The path starts at the first port, but the queue pair is on the second.
    OtherPort(u32, u32),
    /// The port has no P_Key at this index.
    NoPkey(u16),
    /// The path MTU (first) exceeds the active MTU of the port (second).
    MtuAbove(Mtu, Mtu),
    /// The port has no active MTU: its link is down, or querying the port failed with this error.
    NoMtu(Option<kernel::error::Error>),
    /// More RDMA reads and atomic operations (first) than the device can have outstanding (second).
    TooManyReads(u8, u32),
    /// The device rejected the transition with this error.
    Refused(kernel::error::Error),
}

impl Cause {
    /// Returns the closest error number.
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
                write!(
                    f,
                    "the path starts at port {path}, not at the queue pair's port {own}"
                )
            }
            Cause::NoPkey(index) => write!(f, "the port has no P_Key at index {index}"),
            Cause::MtuAbove(path, active) => {
                write!(f, "path MTU {path} exceeds the port's active MTU {active}")
            }
            Cause::NoMtu(None) => f.write_str("the port has no active MTU: is its link up?"),
            Cause::NoMtu(Some(error)) => {
                write!(f, "cannot query the port's MTU: error {}", error.to_errno())
            }
            Cause::TooManyReads(wanted, most) => {
                write!(
                    f,
                    "{wanted} outstanding reads, the device has at most {most}"
                )
            }
            Cause::Refused(error) => {
                write!(
                    f,
                    "the device rejected the attributes: error {}{}",
                    error.to_errno(),
                    likely(error)
                )
            }
        }
    }
}

kernel_display!(Error);

/// Returns the likely reason why a device rejects a transition with `error`.
fn likely(error: kernel::error::Error) -> &'static str {
    match error {
        EINVAL => " (invalid value, or the queue pair is in its error state)",
        EOPNOTSUPP => " (this device needs the connection manager)",
        ENODEV => " (the device is being removed)",
        _ => "",
    }
}

/// Attributes of a state transition, such as [`rc::Rtr`](super::rc::Rtr).
pub trait Transition: sealed::Attributes {}

impl<T: sealed::Attributes> Transition for T {}

pub(crate) mod sealed {
    use super::*;

    /// Conversion of the attributes to C.
    pub trait Attributes {
        /// The attributes in `fill` (`enum ib_qp_attr_mask`); the state is added.
        const MASK: u32;

        /// Checks that `device` supports the attributes, and writes them to `raw`.
        fn fill(&self, device: &Device, raw: &mut bindings::ib_qp_attr) -> Result<(), Cause>;
    }
}

/// Checks and sets the attributes of the transition to INIT that all services have.
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

/// Checks and sets the attributes of the path to the peer, for connected services.
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

/// Moves `queue` from one state to another and returns its port. `port` is `None` as long as the
/// queue pair is not on a port. May sleep.
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
    // SAFETY: The queue pair is alive. `attributes` is borrowed for the call and keeps alive all
    // that the attributes name; the core takes its own references.
    to_result(unsafe { bindings::ib_modify_qp(queue.as_raw(), &mut raw, mask as i32) })
        .map_err(|error| fail(Cause::Refused(error)))?;
    if mask & bindings::ib_qp_attr_mask_IB_QP_MAX_QP_RD_ATOMIC != 0 {
        queue.set_initiator_depth(raw.max_rd_atomic);
    }
    Ok(port)
}
