// SPDX-License-Identifier: GPL-2.0

//! Multicast groups: each member receives the datagrams that are sent to the group.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h), `rdma_join_multicast`
//!
//! A [`Membership`] makes the network deliver the group's datagrams to the port. A queue pair
//! receives them once it is [attached](Membership::attach). To send to the group, use its
//! [address handle](Membership::address_handle).
//!
//! The connection manager does not know the queue pair. It is created with
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
        BoundId,
        Cause,
        Destination,
        Error,
        Stage,
        WaitLimits, //
    },
    device::{
        Device,
        DeviceRef,
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
    sleeping_drop::{
        OfDevice,
        SleepingDrop, //
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

/// Rights of a member.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Receives and sends.
    Full,
    /// Sends only. The group's datagrams are not delivered to the port.
    SendOnly,
}

impl Role {
    /// Returns the bit of the membership record's join state.
    fn as_raw(self) -> u8 {
        let bit = match self {
            Self::Full => bindings::ib_sa_mc_join_states_FULLMEMBER_JOIN,
            Self::SendOnly => bindings::ib_sa_mc_join_states_SENDONLY_FULLMEMBER_JOIN,
        };
        // There are four join states, so the mask has no effect.
        1 << (bit & 3)
    }
}

/// A queue pair that is attached to a group, whatever the type of its context.
trait Receiver: Send + Sync {
    fn device(&self) -> &DeviceRef;

    fn detach(&self, group: Group);
}

impl<E: QpContext<QpType = Ud>> Receiver for QueuePair<E> {
    fn device(&self) -> &DeviceRef {
        self.device()
    }

    fn detach(&self, group: Group) {
        self.detach(group);
    }
}

/// A queue pair that is attached to a group. Dropping it detaches the queue pair, which sleeps.
struct Attached {
    group: Group,
    receiver: Arc<dyn Receiver>,
}

impl OfDevice for Attached {
    fn device(&self) -> &DeviceRef {
        self.receiver.device()
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.receiver.detach(self.group);
    }
}

/// The membership in a multicast group. Dropping it detaches the queue pairs and leaves the group. That sleeps, and is
/// left to work items in atomic context.
pub struct Membership {
    // Dropped before `id`, which keeps its device registered.
    destination: Destination,
    role: Role,
    receivers: KVec<SleepingDrop<Attached>>,
    id: BoundId,
}

impl Membership {
    /// Joins the multicast group at `group` (`rdma_join_multicast`). Sleeps.
    ///
    /// The device is the one that the route to `group` leads through or, if given, the one with the
    /// address `from`. The port of `group` is ignored. `wake` is completed on each event, including
    /// the [end](Self::ended) of the membership. `owner` is the name that `rdma res show cm_id`
    /// prints.
    ///
    /// # Errors
    ///
    /// - [`Stage::Address`]: `EINVAL` if `group` is not a multicast address; [`Cause::Lacks`] for a
    ///   device without datagrams; or the error of address resolution.
    /// - [`Stage::Join`]: [`Cause::Unsupported`] for IPv6 with RoCE v2, which the kernel's
    ///   connection manager does not support; or the error of the network.
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
        let id = resolve_for_datagrams(namespace, from, group, wake, owner, limits)?;
        id.step(Stage::Join, limits, |_| {
            // SAFETY: By the invariants of `CmId`, the CM ID is valid. Its address is resolved, and
            // it has no queue pair. `group` is valid and only read.
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
        // The connection manager leaves it to its caller to set the Ethernet address of a group.
        destination.set_ethernet(ethernet(&destination.gid()));
        Ok(Self {
            destination,
            role,
            receivers: KVec::new(),
            id,
        })
    }

    /// Returns why the membership has ended, if it has: the network removed the member, the link
    /// address of the local interface changed, or the device is being removed. The removal waits
    /// until the membership is dropped. May sleep.
    pub fn ended(&self) -> Option<Cause> {
        self.id.ended()
    }

    /// Returns the local device.
    pub fn device(&self) -> &Device {
        self.id.device()
    }

    /// Returns the port of the device; `None` if the device has no port of that number.
    pub fn port(&self) -> Option<Port<'_>> {
        self.id.port()
    }

    /// Returns the GID of the group.
    pub fn gid(&self) -> Gid {
        self.destination.gid()
    }

    /// Returns the queue pair number to send datagrams to, which stands for the whole group.
    pub fn number(&self) -> Qpn {
        self.destination.number()
    }

    /// Returns the Q_Key that datagrams must carry, and that a receiving queue pair must have.
    pub fn qkey(&self) -> Qkey {
        self.destination.key()
    }

    /// Creates an address handle for the group. Sleeps.
    ///
    /// # Errors
    ///
    /// As [`AddressHandle::new`].
    pub fn address_handle(&self, pd: Arc<ProtectionDomain>) -> Result<AddressHandle> {
        self.destination
            .address_handle(pd, self.port().ok_or(EINVAL)?)
    }

    /// Attaches `queue` to the group, so that it receives the group's datagrams
    /// (`ib_attach_mcast`). The membership keeps a reference to the queue pair. Sleeps.
    ///
    /// # Errors
    ///
    /// - `EINVAL` for a queue pair of another device, or if the role is [`Role::SendOnly`];
    /// - `EEXIST` if the queue pair is attached to the group already, even by another membership;
    /// - `ENOMEM`, also if the device cannot attach more queue pairs.
    pub fn attach<E: QpContext<QpType = Ud>>(&mut self, queue: Arc<QueuePair<E>>) -> Result {
        if self.role == Role::SendOnly || **queue.device() != *self.device() {
            return Err(EINVAL);
        }
        self.receivers.reserve(1, GFP_KERNEL)?;
        let group = self.group();
        queue.attach(group)?;
        let attached = Attached {
            group,
            receiver: queue,
        };
        // Room was reserved, so the push succeeds.
        self.receivers
            .push(SleepingDrop::new(attached), GFP_KERNEL)?;
        Ok(())
    }

    fn group(&self) -> Group {
        Group {
            gid: self.gid(),
            lid: self.destination.lid(),
        }
    }
}

/// Replaces the connection manager's error for IPv6 with RoCE v2 by its meaning.
fn explain(error: Error) -> Error {
    let cause = match error.cause {
        Cause::Code(code) if code.to_errno() == -(bindings::ENOTSUPP as i32) => {
            Cause::Unsupported("IPv6 multicast is not supported with RoCE v2")
        }
        cause => cause,
    };
    Error { cause, ..error }
}

/// Returns the Ethernet address of a multicast group (RFC 1112, RFC 2464).
fn ethernet(gid: &Gid) -> [u8; 6] {
    let [.., a, b, c, d] = gid.bytes();
    match gid.to_ipv4() {
        Some(_) => [0x01, 0x00, 0x5e, b & 0x7f, c, d],
        None => [0x33, 0x33, a, b, c, d],
    }
}
