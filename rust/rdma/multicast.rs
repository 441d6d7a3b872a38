// SPDX-License-Identifier: GPL-2.0

//! Multicast groups, whose members all get a datagram that is sent to the group.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `rdma_join_multicast`
//!
//! A [`Membership`] lets datagrams to the group reach the port. To receive them, a
//! queue pair for datagrams is [attached](Membership::attach); to send some, an
//! [address handle](Membership::address_handle) is made of it. The connection
//! manager does not know the queue pair, which is made by hand, see
//! [`qp::create`](super::qp::create), with the group's Q_Key.
//!
//! ```ignore
//! // samples/multicast.rs
//! let group = membership
//!     .address_handle(endpoint.domain())
//!     .step("address handle")?;
//! // ...
//! membership.attach(endpoint.queue().clone()).step("attach")?;
//! ```

use super::{
    ah::AddressHandle,
    cm::{
        resolve_for_datagrams,
        Address,
        Cause,
        CmId,
        Destination,
        Error,
        Stage,
        WaitLimits, //
    },
    device::{
        Device,
        Gid,
        Port, //
    },
    pd::ProtectionDomain,
    qp::{
        ud::Qkey,
        Group,
        QpContext,
        Qpn,
        QueuePair,
        Ud, //
    },
};
use crate::{
    bindings,
    net::Namespace,
    sync::TimedCompletion, //
};
use core::ptr;
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};

/// What a member does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Receives, and may send.
    Full,
    /// Sends only: nothing of the group is sent here.
    SendOnly,
}

impl Role {
    /// As a bit of the membership record's join state.
    fn as_raw(self) -> u8 {
        let bit = match self {
            Self::Full => bindings::ib_sa_mc_join_states_FULLMEMBER_JOIN,
            Self::SendOnly => bindings::ib_sa_mc_join_states_SENDONLY_FULLMEMBER_JOIN,
        };
        // There are four.
        1 << (bit & 3)
    }
}

/// A queue pair that receives what is sent to a group, whatever its context is.
trait Receiver: Send + Sync {
    fn detach(&self, group: Group);
}

impl<E: QpContext<QpType = Ud>> Receiver for QueuePair<E> {
    fn detach(&self, group: Group) {
        self.detach(group);
    }
}

/// Being a member of a group; dropping it detaches the queue pairs and leaves.
///
/// # Invariants
///
/// - The id's device is set, and cannot go before the id does.
/// - The queue pairs of `receivers` are attached to the group.
pub struct Membership {
    // Dropped before the id: it names the device, which the id holds.
    destination: Destination,
    role: Role,
    receivers: KVec<Arc<dyn Receiver>>,
    id: CmId,
}

impl Membership {
    /// Joins the group at the multicast address `group` through the device that the
    /// way there, or `from` if given, leads to (`rdma_join_multicast`). The port of
    /// the address does not count. `wake` is completed whenever there is something to
    /// look at, the [end](Self::ended) of the membership too; `owner` is what
    /// `rdma res show cm_id` names. Sleeps.
    ///
    /// # Errors
    ///
    /// Of [`Stage::Address`]: `EINVAL` for an address that is none of a group,
    /// [`Cause::Lacks`] for a device without datagrams, and those of resolving it. Of
    /// [`Stage::Join`]: [`Cause::Unsupported`] for IPv6 with RoCE v2, which the kernel's
    /// connection manager does not have; what the network answers.
    pub fn join(
        namespace: &Namespace,
        from: Option<&Address>,
        group: &Address,
        role: Role,
        wake: Arc<TimedCompletion>,
        owner: &'static CStr,
        limits: WaitLimits<'_>,
    ) -> Result<Self, Error> {
        if !group.is_multicast() {
            return Err(Stage::Address.failed(EINVAL));
        }
        let id = CmId::new::<Ud>(namespace, wake, owner)
            .map_err(|error| Stage::Address.failed(error))?;
        resolve_for_datagrams(&id, from, group, limits)?;
        id.step(Stage::Join, limits, |_| {
            // SAFETY: The id is ours, resolved, and without a queue pair; the address
            // is only read.
            unsafe {
                bindings::rdma_join_multicast(
                    id.as_ptr(),
                    group.as_raw(),
                    role.as_raw(),
                    ptr::null_mut(),
                )
            }
        })
        .map_err(explain)?;
        let mut destination = id.destination().ok_or(Stage::Join.failed(EINVAL))?;
        // The connection manager leaves that to who makes the address handle.
        destination.set_ethernet(ethernet(&destination.gid()));
        // INVARIANT: Resolved, so it has a device.
        Ok(Self {
            destination,
            role,
            receivers: KVec::new(),
            id,
        })
    }

    /// Why nothing of the group may come here any more, if so: the network has put the
    /// member out, the link address of its interface has changed, or the device is going
    /// away, which waits until the membership is dropped. May sleep.
    pub fn ended(&self) -> Option<Cause> {
        self.id.ended()
    }

    /// The local device.
    pub fn device(&self) -> &Device {
        // SAFETY: By the type invariant.
        unsafe { self.id.device() }
    }

    /// The port of the device; `None` if it is none of this kernel's.
    pub fn port(&self) -> Option<Port<'_>> {
        // SAFETY: By the type invariant.
        unsafe { self.id.port() }
    }

    /// The GID of the group.
    pub fn gid(&self) -> Gid {
        self.destination.gid()
    }

    /// The number of the queue pair that datagrams are to be sent to, which stands
    /// for all of the group.
    pub fn number(&self) -> Qpn {
        self.destination.number()
    }

    /// What they must bear: also the key that a receiving queue pair is to have.
    pub fn qkey(&self) -> Qkey {
        self.destination.key()
    }

    /// A handle for the way to the group. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`AddressHandle::new`].
    pub fn address_handle(&self, pd: Arc<ProtectionDomain>) -> Result<AddressHandle> {
        self.destination
            .address_handle(pd, self.port().ok_or(EINVAL)?)
    }

    /// Lets `queue` receive what is sent to the group (`ib_attach_mcast`); it is kept
    /// until the membership ends. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for a queue pair of another device, or if the member only sends;
    /// `EEXIST` if the queue pair is attached to the group, be it by another
    /// membership; `ENOMEM`, which is the device's too if it has no room for more.
    pub fn attach<E: QpContext<QpType = Ud>>(&mut self, queue: Arc<QueuePair<E>>) -> Result {
        if self.role == Role::SendOnly || **queue.device() != *self.device() {
            return Err(EINVAL);
        }
        self.receivers.reserve(1, GFP_KERNEL)?;
        queue.attach(self.group())?;
        // INVARIANT: Attached. There is room for it.
        self.receivers.push(queue, GFP_KERNEL)?;
        Ok(())
    }

    fn group(&self) -> Group {
        Group {
            gid: self.gid(),
            lid: self.destination.lid(),
        }
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        for receiver in &self.receivers {
            receiver.detach(self.group());
        }
    }
}

/// Says what the connection manager means by its error.
fn explain(error: Error) -> Error {
    let cause = match error.cause {
        Cause::Code(code) if code.to_errno() == -(bindings::ENOTSUPP as i32) => {
            Cause::Unsupported("no multicast to IPv6 groups with RoCE v2")
        }
        cause => cause,
    };
    Error { cause, ..error }
}

/// The Ethernet address of a group (RFC 1112, RFC 2464).
fn ethernet(gid: &Gid) -> [u8; 6] {
    let [.., a, b, c, d] = gid.bytes();
    match gid.to_ipv4() {
        Some(_) => [0x01, 0x00, 0x5e, b & 0x7f, c, d],
        None => [0x33, 0x33, a, b, c, d],
    }
}
