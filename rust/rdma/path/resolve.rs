// SPDX-License-Identifier: GPL-2.0

//! The way from a GID to another, as the IP stack knows it.
//!
//! C header: [`include/rdma/ib_addr.h`](srctree/include/rdma/ib_addr.h)
//!
//! The core does this for user programs only; a consumer in the kernel gives it
//! paths that are resolved.

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

/// How long the neighbour may take to answer, in milliseconds; as long as the core
/// gives it for a user program.
const LIMIT: kernel::ffi::c_ulong = 1000;

/// Where packets go first.
pub(super) struct NextHop {
    /// Its Ethernet address.
    pub(super) address: [u8; 6],
    /// How many routers they may pass.
    pub(super) hop_limit: u8,
}

/// What the core fills in, and when it is done.
#[pin_data]
struct Query {
    #[pin]
    found: Opaque<bindings::rdma_dev_addr>,
    status: Cell<c_int>,
    #[pin]
    done: TimedCompletion,
}

/// Finds the way from `source` to `destination`. Sleeps.
pub(super) fn next_hop(source: &GidEntry<'_>, destination: &Gid) -> Result<NextHop> {
    match on_link(source.kind(), destination) {
        Some(next_hop) => Ok(next_hop),
        None => ask_network(source, destination),
    }
}

/// The way that needs no asking: with RoCE v1, which is not IP, a link-local address
/// has the Ethernet address in it (`rdma_get_ll_mac`).
fn on_link(kind: GidKind, destination: &Gid) -> Option<NextHop> {
    const LINK_LOCAL: u64 = 0xfe80 << 48;
    if kind != GidKind::RoceV1 || destination.subnet_prefix() != LINK_LOCAL {
        return None;
    }
    let [a, b, c, _, _, d, e, f] = destination.interface_id().to_be_bytes();
    Some(NextHop {
        // The bit that tells a universal address from a local one is inverted.
        address: [a ^ 2, b, c, d, e, f],
        hop_limit: 1,
    })
}

/// The way as the IP stack knows it.
fn ask_network(source: &GidEntry<'_>, destination: &Gid) -> Result<NextHop> {
    let (mut from, mut to) = (Address::zeroed(), Address::zeroed());
    let (from_gid, to_gid) = (source.gid().as_raw(), destination.as_raw());
    // SAFETY: An `Address` has room for what is made of either kind of GID.
    unsafe {
        bindings::rdma_gid2ip(ptr::from_mut(&mut from).cast(), &from_gid);
        bindings::rdma_gid2ip(ptr::from_mut(&mut to).cast(), &to_gid);
    }
    let found = bindings::rdma_dev_addr {
        // Needed, but the one of the source's network device takes its place.
        net: &raw mut bindings::init_net,
        sgid_attr: source.as_raw(),
        ..pin_init::zeroed()
    };
    pin_init::stack_pin_init!(let query = pin_init!(Query {
        found: Opaque::new(found),
        status: Cell::new(0),
        done <- TimedCompletion::new(),
    }));
    // SAFETY: The addresses are valid, and copied; the query stays until `resolved`
    // was called with it, which is awaited; the source is held until then.
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
    // SAFETY: The core is done with it, so there is no other access.
    let found = unsafe { &*query.found.get() };
    Ok(NextHop {
        address: *found.dst_dev_addr.first_chunk().ok_or(EINVAL)?,
        hop_limit: u8::try_from(found.hoplimit).unwrap_or(u8::MAX),
    })
}

/// Room for the address of either family.
type Address = bindings::sockaddr_in6;

/// # Safety
///
/// Called by the core once, with the `Query` of a successful `rdma_resolve_ip`.
unsafe extern "C" fn resolved(
    status: c_int,
    _source: *mut bindings::sockaddr,
    _found: *mut bindings::rdma_dev_addr,
    query: *mut c_void,
) {
    // SAFETY: By the contract; whoever asked waits for `done`, and does not look at
    // the rest before.
    let query = unsafe { &*query.cast::<Query>() };
    query.status.set(status);
    query.done.complete();
}
