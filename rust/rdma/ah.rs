// SPDX-License-Identifier: GPL-2.0

//! Address handles: the destinations of datagrams.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_ah`
//!
//! A queue pair for datagrams has no fixed peer. Each datagram names an [`AddressHandle`], the
//! number of the destination's queue pair, and its [`Qkey`](super::qp::ud::Qkey). A handle is
//! created for a [`Path`] or, to reply to a datagram, for its [`Sender`].
//!
//! A send must keep its handle until it completes, so the handle is part of the
//! [`Operation`](super::wr::Operation). Several operations share a handle in an `Arc`.
//!
//! ```ignore
//! // samples/ud_pingpong.rs
//! let address = AddressHandle::new(pd.clone(), &peer.path)?;
//! // ...
//! chain.send_datagram(&self.address, self.number, QKEY, [message])
//! ```
//!
//! A receive buffer begins with [`GRH_BYTES`] bytes for a header, which names the sender.

use super::{
    cq::Received,
    device::{
        DeviceRef,
        Mtu,
        Port, //
    },
    path::Path,
    pd::ProtectionDomain,
    qp::{
        QpContext,
        Qpn,
        QueuePair,
        Ud, //
    },
    sleeping_drop::{
        OfDevice,
        SleepingDrop, //
    },
};
use crate::{
    bindings,
    errno::ENETDOWN, //
};
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc,
    task::might_sleep, //
};

/// Bytes of the global route header (GRH) at the start of each received datagram. A receive buffer
/// needs room for the header and the data. [`Sender::of`] reads the header.
pub const GRH_BYTES: usize = 40;

/// Returns the data of a datagram that was received into `buffer`, without the header. `None` if
/// the completion reports more bytes than the buffer has, which no device does.
#[inline]
pub fn payload<'b>(buffer: &'b [u8], received: &Received<'_>) -> Option<&'b [u8]> {
    buffer.get(GRH_BYTES..received.byte_len())
}

/// An address handle: the path to the destination of datagrams (`struct ib_ah`).
///
/// Holds a reference to the GID table entry of its source.
///
/// May be dropped in any context; a drop in atomic context takes effect later.
pub struct AddressHandle(SleepingDrop<OwnedAh>);

/// An address handle of the device (`struct ib_ah`). Dropping it sleeps.
///
/// # Invariants
///
/// `raw` is a valid address handle of `pd` that this object owns.
struct OwnedAh {
    raw: NonNull<bindings::ib_ah>,
    mtu: Mtu,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: An address handle may be used and destroyed by any thread.
unsafe impl Send for OwnedAh {}
// SAFETY: An address handle may be used and destroyed by any thread.
unsafe impl Sync for OwnedAh {}

impl AddressHandle {
    /// Creates a handle for `path` (`rdma_create_ah`). Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the path and the domain belong to different devices;
    /// - `ENETDOWN` if the port has no active MTU, because it has no link;
    /// - `EOPNOTSUPP` if the device has no datagrams, as with iWARP;
    /// - `ENOMEM`, or the error of the device.
    pub fn new(pd: Arc<ProtectionDomain>, path: &Path<'_>) -> Result<Self> {
        if *path.device() != **pd.device() {
            return Err(EINVAL);
        }
        // SAFETY: The port belongs to the domain's device. `path` is borrowed during the call, so
        // what the attributes refer to is valid.
        unsafe { Self::of_attributes(pd, path.port(), path.as_raw()) }
    }

    /// Creates a handle for the path that `attributes` describes and that begins at `port`. Sleeps.
    ///
    /// # Safety
    ///
    /// The port must belong to the domain's device, and `attributes` must be valid.
    pub(super) unsafe fn of_attributes(
        pd: Arc<ProtectionDomain>,
        port: Port<'_>,
        mut attributes: bindings::rdma_ah_attr,
    ) -> Result<Self> {
        let mtu = active_mtu(port)?;
        // SAFETY: `pd` keeps the domain alive. The attributes are valid by the safety requirements.
        let raw = from_err_ptr(unsafe {
            bindings::rdma_create_ah(
                pd.as_raw(),
                &mut attributes,
                bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE,
            )
        })?;
        Self::from_raw(raw, mtu, pd)
    }

    /// Creates a handle for the path back to `sender` (`ib_create_ah_from_wc`). With RoCE, this
    /// resolves the sender's address, which may take a second. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if another device than the domain's has received the datagram;
    /// - `EPROTOTYPE` if the datagram has no GRH, but the port needs one;
    /// - `ENOENT` if the port's GID table does not have the address that the datagram was sent to:
    ///   it was removed, or is that of a multicast group;
    /// - `ETIMEDOUT`, `ENETUNREACH` or a similar error if there is no route to the sender;
    /// - as [`AddressHandle::new`].
    pub fn reply(pd: Arc<ProtectionDomain>, sender: &Sender) -> Result<Self> {
        if pd.device().as_raw() != sender.device {
            return Err(EINVAL);
        }
        let mtu = active_mtu(pd.device().port(sender.port).ok_or(EINVAL)?)?;
        // SAFETY: The domain is alive, and its device has the port. The completion and the header
        // are copies of what the device wrote.
        let raw = from_err_ptr(unsafe {
            bindings::ib_create_ah_from_wc(
                pd.as_raw(),
                &sender.wc,
                (&raw const sender.header).cast(),
                sender.port,
            )
        })?;
        Self::from_raw(raw, mtu, pd)
    }

    fn from_raw(raw: *mut bindings::ib_ah, mtu: Mtu, pd: Arc<ProtectionDomain>) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: The callers have created `raw` on `pd` for this object.
        Ok(Self(SleepingDrop::new(OwnedAh { raw, mtu, pd })))
    }

    /// Returns the port's MTU at the creation of the handle: the maximum size of a datagram.
    #[inline]
    pub fn mtu(&self) -> Mtu {
        self.0.mtu
    }

    /// Returns the protection domain. Only queue pairs of this domain may use the handle.
    #[inline]
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.0.pd
    }

    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::ib_ah {
        self.0.raw.as_ptr()
    }
}

impl OfDevice for OwnedAh {
    fn device(&self) -> &DeviceRef {
        self.pd.device()
    }
}

impl Drop for OwnedAh {
    fn drop(&mut self) {
        might_sleep();
        // SAFETY: By the type invariant, this object owns the handle. A send keeps its handle until
        // it completes, so no posted send uses this one.
        unsafe { bindings::rdma_destroy_ah(self.raw.as_ptr()) };
    }
}

/// Returns the current MTU of the port.
fn active_mtu(port: Port<'_>) -> Result<Mtu> {
    port.attributes()?.active_mtu.ok_or(ENETDOWN)
}

/// The header of a datagram, with the alignment of `struct ib_grh`.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Header([u8; GRH_BYTES]);

/// The sender of a datagram, as copied from the completion and the header.
#[derive(Clone, Copy)]
pub struct Sender {
    /// Only compared, as the device may be gone.
    device: *mut bindings::ib_device,
    port: u32,
    /// A completion with the fields that `ib_create_ah_from_wc` reads.
    wc: bindings::ib_wc,
    header: Header,
}

// SAFETY: The pointers to the device and in the completion are never dereferenced.
unsafe impl Send for Sender {}
// SAFETY: The pointers to the device and in the completion are never dereferenced.
unsafe impl Sync for Sender {}

impl Sender {
    /// Returns the sender of the datagram that `queue` has received into `buffer`, which begins
    /// with the header. `None` if the buffer is shorter than the header. Any context.
    pub fn of<E: QpContext<QpType = Ud>>(
        queue: &QueuePair<E>,
        received: &Received<'_>,
        buffer: &[u8],
    ) -> Option<Self> {
        let header = Header(*buffer.first_chunk()?);
        let wc = received.wc();
        Some(Self {
            device: queue.device().as_raw(),
            port: queue.port(),
            wc: bindings::ib_wc {
                src_qp: wc.src_qp,
                wc_flags: wc.wc_flags,
                network_hdr_type: wc.network_hdr_type,
                slid: wc.slid,
                sl: wc.sl,
                dlid_path_bits: wc.dlid_path_bits,
                vlan_id: wc.vlan_id,
                ..pin_init::zeroed()
            },
            header,
        })
    }

    /// Returns the number of the sender's queue pair.
    #[inline]
    pub fn number(&self) -> Qpn {
        Qpn::from_raw(self.wc.src_qp)
    }
}
