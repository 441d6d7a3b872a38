// SPDX-License-Identifier: GPL-2.0

//! Address handles: where datagrams go.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_ah`
//!
//! A queue pair for datagrams has no peer, so each datagram names an
//! [`AddressHandle`], the number of a queue pair there, and its
//! [`Qkey`](super::qp::ud::Qkey). A handle is made of a [`Path`], or of a datagram
//! that was received, whose [`Sender`] it leads to. What is sent must keep it, so it
//! is part of the [`Operation`](super::wr::Operation), in an `Arc` if it serves many.
//!
//! ```ignore
//! // samples/ud_pingpong.rs
//! let address = AddressHandle::new(pd.clone(), &peer.path)?;
//! // ...
//! chain.send_datagram(&self.address, self.number, QKEY, [message])
//! ```
//!
//! Ahead of every datagram that is received there are [`GRH_BYTES`] bytes in the
//! buffer for the header that says where it came from.

use super::{
    cq::Received,
    device::{
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
};
use crate::{
    bindings,
    errno::ENETDOWN, //
};
use core::ptr::NonNull;
use kernel::{
    error::from_err_ptr,
    prelude::*,
    sync::Arc, //
};

/// Bytes of the global route header (GRH) ahead of every datagram. A receive needs
/// room for it beside the data; what is in it is for [`Sender::of`] to read.
pub const GRH_BYTES: usize = 40;

/// The data of a datagram that was received into `buffer`: what is behind the header.
/// `None` if it claims to be longer than the buffer, which no device does.
#[inline]
pub fn payload<'b>(buffer: &'b [u8], received: &Received<'_>) -> Option<&'b [u8]> {
    buffer.get(GRH_BYTES..received.byte_len())
}

/// Where datagrams go (`struct ib_ah`).
///
/// It keeps the entry of the GID table that the way begins at. To be dropped where one
/// may sleep: so a queue whose completions bring the last reference to one is polled in
/// a workqueue, [`Poll::Workqueue`](super::cq::Poll), or by a thread.
///
/// # Invariants
///
/// `raw` is a handle of `pd`, owned by this object.
pub struct AddressHandle {
    raw: NonNull<bindings::ib_ah>,
    mtu: Mtu,
    pd: Arc<ProtectionDomain>,
}

// SAFETY: A handle may be used and destroyed by any thread.
unsafe impl Send for AddressHandle {}
// SAFETY: As above.
unsafe impl Sync for AddressHandle {}

impl AddressHandle {
    /// A handle for the way that `path` describes (`rdma_create_ah`). Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the path is one of another device than the domain;
    /// - `ENETDOWN` if the port does not tell an MTU: it has no link;
    /// - `EOPNOTSUPP` if the device has no datagrams, as with iWARP;
    /// - `ENOMEM`, or what the device answers.
    pub fn new(pd: Arc<ProtectionDomain>, path: &Path<'_>) -> Result<Self> {
        if *path.device() != **pd.device() {
            return Err(EINVAL);
        }
        // SAFETY: What the attributes name stays during the call.
        unsafe { Self::of_attributes(pd, path.port(), path.as_raw()) }
    }

    /// A handle for the way that `attributes` describe, which begins at `port`.
    ///
    /// # Safety
    ///
    /// The port must be one of the domain's device, and the attributes valid.
    pub(super) unsafe fn of_attributes(
        pd: Arc<ProtectionDomain>,
        port: Port<'_>,
        mut attributes: bindings::rdma_ah_attr,
    ) -> Result<Self> {
        let mtu = active_mtu(port)?;
        // SAFETY: The domain is alive; by the contract, the attributes are valid.
        let raw = from_err_ptr(unsafe {
            bindings::rdma_create_ah(
                pd.as_raw(),
                &mut attributes,
                bindings::rdma_create_ah_flags_RDMA_CREATE_AH_SLEEPABLE,
            )
        })?;
        Self::from_raw(raw, mtu, pd)
    }

    /// A handle for the way back to `sender` (`ib_create_ah_from_wc`). With RoCE this
    /// asks the network for it, which may take a second. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if the sender was heard of by another device than the domain's;
    /// - `EPROTOTYPE` if there was no header ahead of the datagram, and the port needs
    ///   one;
    /// - `ENOENT` if the address that it was sent to is not the port's any more, or
    ///   never was: that of a multicast group;
    /// - `ETIMEDOUT`, `ENETUNREACH` and the like if there is no way back;
    /// - as [`AddressHandle::new`].
    pub fn reply(pd: Arc<ProtectionDomain>, sender: &Sender) -> Result<Self> {
        if pd.device().as_raw() != sender.device {
            return Err(EINVAL);
        }
        let mtu = active_mtu(pd.device().port(sender.port).ok_or(EINVAL)?)?;
        // SAFETY: The domain is alive and its device has the port; both the completion
        // and the header are copies of what the device wrote.
        let raw = from_err_ptr(unsafe {
            bindings::ib_create_ah_from_wc(
                pd.as_raw(),
                &sender.completion(),
                (&raw const sender.header).cast(),
                sender.port,
            )
        })?;
        Self::from_raw(raw, mtu, pd)
    }

    fn from_raw(raw: *mut bindings::ib_ah, mtu: Mtu, pd: Arc<ProtectionDomain>) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or(ENOMEM)?;
        // INVARIANT: The callers got `raw` from the device for this object.
        Ok(Self { raw, mtu, pd })
    }

    /// The most that a datagram holds, as of when the handle was made.
    #[inline]
    pub fn mtu(&self) -> Mtu {
        self.mtu
    }

    /// The protection domain, which is that of the queue pairs that may send there.
    #[inline]
    pub fn protection_domain(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    #[inline]
    pub(super) fn as_raw(&self) -> *mut bindings::ib_ah {
        self.raw.as_ptr()
    }
}

impl Drop for AddressHandle {
    fn drop(&mut self) {
        // SAFETY: By the type invariant; what was sent there has completed, since it
        // borrowed the handle till then.
        unsafe { bindings::rdma_destroy_ah(self.raw.as_ptr()) };
    }
}

/// The size of the port's packets now.
fn active_mtu(port: Port<'_>) -> Result<Mtu> {
    port.attributes()?.active_mtu.ok_or(ENETDOWN)
}

/// The header ahead of a datagram, as aligned as C has it.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Header([u8; GRH_BYTES]);

/// Who sent a datagram: what its completion and its header say of that, copied.
#[derive(Clone, Copy)]
pub struct Sender {
    /// Compared only: it may be gone.
    device: *mut bindings::ib_device,
    port: u32,
    number: Qpn,
    flags: i32,
    network: u8,
    lid: u32,
    service_level: u8,
    path_bits: u8,
    vlan: u16,
    header: Header,
}

// SAFETY: The pointer is not followed.
unsafe impl Send for Sender {}
// SAFETY: As above.
unsafe impl Sync for Sender {}

impl Sender {
    /// The sender of what `queue` received into `buffer`, which begins with the
    /// header; `None` if the buffer is shorter than that. Any context.
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
            number: Qpn::from_raw(wc.src_qp),
            flags: wc.wc_flags,
            network: wc.network_hdr_type,
            lid: wc.slid,
            service_level: wc.sl,
            path_bits: wc.dlid_path_bits,
            vlan: wc.vlan_id,
            header,
        })
    }

    /// The number of its queue pair.
    #[inline]
    pub fn number(&self) -> Qpn {
        self.number
    }

    /// The completion, as far as the way back is made of it.
    fn completion(&self) -> bindings::ib_wc {
        bindings::ib_wc {
            src_qp: self.number.get(),
            wc_flags: self.flags,
            network_hdr_type: self.network,
            slid: self.lid,
            sl: self.service_level,
            dlid_path_bits: self.path_bits,
            vlan_id: self.vlan,
            ..pin_init::zeroed()
        }
    }
}
