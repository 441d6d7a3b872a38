// SPDX-License-Identifier: GPL-2.0

//! Sockets that are closed, of which a family may want to know.
//!
//! C header: [`include/linux/netlink.h`](srctree/include/linux/netlink.h)

use super::Family;
use crate::{bindings, net::Namespace};
use core::marker::PhantomPinned;
use kernel::{
    container_of,
    error::to_result,
    ffi::{c_int, c_ulong, c_void},
    prelude::*,
    types::Opaque,
};

/// Tells a family of sockets that are closed, until it is dropped.
///
/// # Invariants
///
/// The block is registered.
pub(super) struct Watch {
    block: Pin<KBox<Block>>,
}

/// What C knows of it.
#[pin_data]
struct Block {
    #[pin]
    notifier: Opaque<bindings::notifier_block>,
    context: *const c_void,
    // C has a pointer to it.
    #[pin]
    _pin: PhantomPinned,
}

// SAFETY: The notifier is C's, which locks it; the context is of a type that is `Sync`,
// and not used to drop it.
unsafe impl Send for Block {}

// SAFETY: As above.
unsafe impl Sync for Block {}

impl Watch {
    /// A watch for the family `F`; `None` if it does not want to know. Sleeps.
    /// C: `netlink_register_notifier`.
    ///
    /// # Safety
    ///
    /// `context` must be valid until what is returned has been dropped.
    pub(super) unsafe fn new<F: Family>(context: *const F::Context) -> Result<Option<Self>> {
        if F::CLOSED.is_none() {
            return Ok(None);
        }
        let block = KBox::pin_init(
            pin_init!(Block {
                notifier: Opaque::new(bindings::notifier_block {
                    notifier_call: Some(called::<F>),
                    ..Default::default()
                }),
                context: context.cast(),
                _pin: PhantomPinned,
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: The block is pinned, and stays until it is unregistered. What it calls
        // needs the context, for which the caller answers.
        to_result(unsafe { bindings::netlink_register_notifier(block.notifier.get()) })?;
        // INVARIANT: It was just registered.
        Ok(Some(Self { block }))
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // SAFETY: By the invariant of the type it is registered, so there is no failure to
        // return. It waits for calls that are under way.
        unsafe { bindings::netlink_unregister_notifier(self.block.notifier.get()) };
    }
}

/// # Safety
///
/// C calls it for a registered [`Block`] of this family, with a `netlink_notify` where the
/// event is `NETLINK_URELEASE`, and waits for it to return before the block is unregistered.
unsafe extern "C" fn called<F: Family>(
    notifier: *mut bindings::notifier_block,
    event: c_ulong,
    data: *mut c_void,
) -> c_int {
    if event != bindings::NETLINK_URELEASE as c_ulong {
        return bindings::NOTIFY_DONE as c_int;
    }
    // SAFETY: C says that it is this, for this event.
    let socket = unsafe { &*data.cast::<bindings::netlink_notify>() };
    if let (Ok(bindings::NETLINK_GENERIC), Some(closed)) =
        (u32::try_from(socket.protocol), F::CLOSED)
    {
        let notifier = Opaque::cast_from(notifier.cast_const());
        // SAFETY: C says that the notifier is that of a block, which is there until this
        // returns.
        let block = unsafe { &*container_of!(notifier, Block, notifier) };
        // SAFETY: Whoever made the block says that the context is valid as long as it is
        // registered, and of this type.
        let context = unsafe { &*block.context.cast::<F::Context>() };
        // SAFETY: A user's socket holds its namespace, also while it is being closed.
        let net = unsafe { Namespace::get(socket.net) };
        closed(context, &net, socket.portid);
    }
    bindings::NOTIFY_DONE as c_int
}
