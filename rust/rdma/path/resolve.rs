// SPDX-License-Identifier: GPL-2.0

//! Resolution of the next hop from one GID to another, by the IP stack.
//!
//! C header: [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h)
//!
//! The core resolves the paths of user programs only (`ib_resolve_eth_dmac`). A consumer in the
//! kernel must pass resolved paths to the verbs.

use crate::{
    bindings,
    rdma::device::{
        Gid,
        GidEntry,
        GidKind, //
    },
    sync::TimedCompletion,
};
use core::{
    cell::Cell,
    ffi::{
        c_int,
        c_void, //
    },
    ptr, //
};
use kernel::{
    error::to_result,
    prelude::*,
    types::Opaque, //
};

/// Time-out of the address resolution in milliseconds, as in `rdma_addr_find_l2_eth_by_grh`.
const LIMIT: kernel::ffi::c_ulong = 1000;

/// The next hop of packets.
pub(super) struct NextHop {
    /// Ethernet address.
    pub(super) address: [u8; 6],
    /// Maximum number of routers to pass.
    pub(super) hop_limit: u8,
}

/// A running address resolution: its results, and a completion for its end.
#[pin_data]
struct Query {
    #[pin]
    found: Opaque<bindings::rdma_dev_addr>,
    status: Cell<c_int>,
    #[pin]
    done: TimedCompletion,
}

/// Resolves the next hop from `source` to `destination`. Sleeps.
pub(super) fn next_hop(source: &GidEntry<'_>, destination: &Gid) -> Result<NextHop> {
    match on_link(source.kind(), destination) {
        Some(next_hop) => Ok(next_hop),
        None => ask_network(source, destination),
    }
}

/// Returns the next hop if no resolution is needed. RoCE v1 does not use IP, and a link-local GID
/// contains the Ethernet address (`rdma_get_ll_mac`).
fn on_link(kind: GidKind, destination: &Gid) -> Option<NextHop> {
    const LINK_LOCAL: u64 = 0xfe80 << 48;
    if kind != GidKind::RoceV1 || destination.subnet_prefix() != LINK_LOCAL {
        return None;
    }
    let [a, b, c, _, _, d, e, f] = destination.interface_id().to_be_bytes();
    Some(NextHop {
        // In the interface identifier, the universal/local bit is inverted.
        address: [a ^ 2, b, c, d, e, f],
        hop_limit: 1,
    })
}

/// Resolves the next hop by the IP stack. Sleeps.
fn ask_network(source: &GidEntry<'_>, destination: &Gid) -> Result<NextHop> {
    let (mut from, mut to) = (Address::zeroed(), Address::zeroed());
    let (from_gid, to_gid) = (source.gid().as_raw(), destination.as_raw());
    // SAFETY: `rdma_gid2ip` writes a `sockaddr_in` or a `sockaddr_in6`; `Address` has room for
    // either.
    unsafe {
        bindings::rdma_gid2ip(ptr::from_mut(&mut from).cast(), &from_gid);
        bindings::rdma_gid2ip(ptr::from_mut(&mut to).cast(), &to_gid);
    }
    let found = bindings::rdma_dev_addr {
        // rdma_resolve_ip() needs a namespace, but replaces it by that of the source's network
        // device.
        net: &raw mut bindings::init_net,
        sgid_attr: source.as_raw(),
        ..pin_init::zeroed()
    };
    pin_init::stack_pin_init!(let query = pin_init!(Query {
        found: Opaque::new(found),
        status: Cell::new(0),
        done <- TimedCompletion::new(),
    }));
    // SAFETY: The addresses are valid, and copied by the call. `query` is pinned and `source` is
    // borrowed until `done.wait()` returns, which is after the core has called `resolved`.
    to_result(unsafe {
        bindings::rdma_resolve_ip(
            ptr::from_mut(&mut from).cast(),
            ptr::from_ref(&to).cast(),
            query.found.get(),
            LIMIT,
            Some(resolved),
            true,
            ptr::from_ref::<Query>(&query).cast_mut().cast(),
        )
    })?;
    query.done.wait();
    to_result(query.status.get())?;
    // SAFETY: `resolved` was called, after which the core does not access `found`.
    let found = unsafe { &*query.found.get() };
    Ok(NextHop {
        address: *found.dst_dev_addr.first_chunk().ok_or(EINVAL)?,
        hop_limit: u8::try_from(found.hoplimit).unwrap_or(u8::MAX),
    })
}

/// A socket address with room for IPv4 and IPv6.
type Address = bindings::sockaddr_in6;

/// The core's callback at the end of the address resolution.
///
/// # Safety
///
/// Must be called once, with the `Query` that was passed to a successful `rdma_resolve_ip`.
unsafe extern "C" fn resolved(
    status: c_int,
    _source: *mut bindings::sockaddr,
    _found: *mut bindings::rdma_dev_addr,
    query: *mut c_void,
) {
    // SAFETY: By the safety requirements, the query is valid: its owner waits for `done`. Until
    // then, the owner does not access the other fields.
    let query = unsafe { &*query.cast::<Query>() };
    query.status.set(status);
    query.done.complete();
}
