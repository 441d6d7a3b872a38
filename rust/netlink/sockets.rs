// SPDX-License-Identifier: GPL-2.0

//! Notifications of closed sockets.
//!
//! C header: [`include/linux/netlink.h`](srctree/include/linux/netlink.h)

use super::Family;
use crate::{bindings, net::Namespace};
use kernel::{
    container_of,
    error::to_result,
    ffi::{c_int, c_ulong, c_void},
    prelude::*,
    types::Opaque,
};

/// Calls [`Family::CLOSED`] for closed sockets until it is dropped.
///
/// # Invariants
///
/// `block` is registered.
pub(super) struct SocketNotifier {
    block: Pin<KBox<Block>>,
}

/// The notifier block, and the context of its callback.
#[pin_data]
struct Block {
    #[pin]
    notifier: Opaque<bindings::notifier_block>,
    context: *const c_void,
}

// SAFETY: C does the locking of the notifier block. The context is `Sync`, and is not dropped
// through this pointer.
unsafe impl Send for Block {}

// SAFETY: C does the locking of the notifier block. The context is `Sync`.
unsafe impl Sync for Block {}

impl SocketNotifier {
    /// Registers a notifier for family `F`; returns `None` if `F` has no
    /// [`CLOSED`](Family::CLOSED). May sleep. C: `netlink_register_notifier()`.
    ///
    /// # Safety
    ///
    /// `context` is valid until the result is dropped.
    pub(super) unsafe fn new<F: Family>(context: *const F::Context) -> Result<Option<Self>> {
        if F::CLOSED.is_none() {
            return Ok(None);
        }
        let block = KBox::pin_init(
            pin_init!(Block {
                notifier: Opaque::new(bindings::notifier_block {
                    notifier_call: Some(called::<F>),
                    ..pin_init::zeroed()
                }),
                context: context.cast(),
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The block is pinned, and stays allocated until it is unregistered. By the safety
        // requirements of this function, so does the context.
        to_result(unsafe { bindings::netlink_register_notifier(block.notifier.get()) })?;
        // INVARIANT: The block was just registered.
        Ok(Some(Self { block }))
    }
}

impl Drop for SocketNotifier {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the block is registered, so this cannot fail. It waits
        // for running calls.
        unsafe { bindings::netlink_unregister_notifier(self.block.notifier.get()) };
    }
}

/// Callback of the notifier.
///
/// # Safety
///
/// C calls it for a registered [`Block`] of this family. For the event `NETLINK_URELEASE`, `data`
/// is a `netlink_notify`. `netlink_unregister_notifier()` waits for it to return.
unsafe extern "C" fn called<F: Family>(
    notifier: *mut bindings::notifier_block,
    event: c_ulong,
    data: *mut c_void,
) -> c_int {
    if event != bindings::NETLINK_URELEASE as c_ulong {
        return bindings::NOTIFY_DONE as c_int;
    }
    // SAFETY: By the safety requirements of this function, `data` is a `netlink_notify`.
    let socket = unsafe { &*data.cast::<bindings::netlink_notify>() };
    if let (Ok(bindings::NETLINK_GENERIC), Some(closed)) =
        (u32::try_from(socket.protocol), F::CLOSED)
    {
        let notifier = Opaque::cast_from(notifier.cast_const());
        // SAFETY: By the safety requirements of this function, the notifier is part of a `Block`
        // that is registered until this returns.
        let block = unsafe { &*container_of!(notifier, Block, notifier) };
        // SAFETY: By the safety requirements of `SocketNotifier::new`, the context is an
        // `F::Context` that is valid while the block is registered.
        let context = unsafe { &*block.context.cast::<F::Context>() };
        // SAFETY: A socket of user space holds its namespace, also while it is being closed.
        let net = unsafe { Namespace::get(socket.net) };
        closed(context, &net, socket.portid);
    }
    bindings::NOTIFY_DONE as c_int
}
