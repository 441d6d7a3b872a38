// SPDX-License-Identifier: GPL-2.0

//! Callbacks of generic netlink operations: calls from C to the handlers of a [`Family`].
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{policy::Table, shared::Shared, Dump, Family, Operation, Request};
use crate::{bindings, errno::EOPNOTSUPP};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{error::from_result, ffi::c_int, prelude::*, sync::Arc};

/// Callbacks of the operations of a family.
pub(super) struct Callbacks<F: Family>(PhantomData<F>);

/// State of a dump between its parts, in `netlink_callback.ctx`.
#[repr(C)]
struct State {
    /// Owned reference, from [`Arc::into_raw`].
    shared: *const Shared,
    cursor: u64,
}

const _: () = {
    assert!(size_of::<State>() <= bindings::NETLINK_CTX_SIZE as usize);
    assert!(align_of::<State>() <= align_of::<bindings::netlink_callback__bindgen_ty_1>());
};

impl<F: Family> Callbacks<F> {
    /// Returns the entries of an operation for C: do, then dump.
    pub(super) fn entries(
        operation: &Operation<F>,
        table: Table,
    ) -> [Option<bindings::genl_split_ops>; 2] {
        let privilege = if operation.admin {
            bindings::GENL_ADMIN_PERM
        } else {
            0
        };
        let entry = |capability: u32, callbacks| bindings::genl_split_ops {
            __bindgen_anon_1: callbacks,
            policy: table.policy,
            maxattr: table.max.into(),
            cmd: operation.command,
            flags: (capability | privilege) as u8,
            ..pin_init::zeroed()
        };
        let doit = bindings::genl_split_ops__bindgen_ty_1 {
            __bindgen_anon_1: bindings::genl_split_ops__bindgen_ty_1__bindgen_ty_1 {
                doit: Some(Self::doit),
                ..pin_init::zeroed()
            },
        };
        let dumpit = bindings::genl_split_ops__bindgen_ty_1 {
            __bindgen_anon_2: bindings::genl_split_ops__bindgen_ty_1__bindgen_ty_2 {
                start: Some(Self::start),
                dumpit: Some(Self::dumpit),
                done: Some(Self::done),
            },
        };
        [
            operation
                .doit
                .map(|_| entry(bindings::GENL_CMD_CAP_DO, doit)),
            operation
                .dumpit
                .map(|_| entry(bindings::GENL_CMD_CAP_DUMP, dumpit)),
        ]
    }

    /// Returns a handler of the request's command. A command has one or two operations, and
    /// `handler` returns the handler of the wanted kind from one.
    fn find<H>(info: &bindings::genl_info, handler: fn(&Operation<F>) -> Option<H>) -> Result<H> {
        // SAFETY: C has checked that the message has a generic netlink header.
        let command = unsafe { (*info.genlhdr).cmd };
        F::OPERATIONS
            .iter()
            .filter(|operation| operation.command == command)
            .find_map(handler)
            .ok_or(EOPNOTSUPP)
    }

    /// `doit` of all operations.
    ///
    /// # Safety
    ///
    /// C calls it for a `genl_split_ops` of a registered [`Shared`] of this family, with a
    /// validated request and the message that holds it, in the context of the sender.
    /// `genl_unregister_family()` waits for it to return.
    unsafe extern "C" fn doit(
        skb: *mut bindings::sk_buff,
        info: *mut bindings::genl_info,
    ) -> c_int {
        from_result(|| {
            // SAFETY: By the safety requirements of this function, `info` is valid.
            let (admin, handler) = Self::find(unsafe { &*info }, |operation| {
                Some((operation.admin, operation.doit?))
            })?;
            // C has checked `CAP_NET_ADMIN` due to `GENL_ADMIN_PERM`, and has no flag for
            // `CAP_SYS_ADMIN`.
            //
            // SAFETY: C passes the message with the socket of its sender, and calls this in the
            // context of the sender.
            let may = |cap: u32| unsafe { bindings::netlink_capable(skb, cap as c_int) };
            if admin && !may(bindings::CAP_SYS_ADMIN) {
                return Err(EPERM);
            }
            // SAFETY: By the safety requirements of this function, the family is part of a
            // `Shared`, and is registered until this returns.
            let shared = unsafe { Shared::of((*info).family) };
            // SAFETY: By the invariants of `Shared`, the context is an `F::Context` that is valid
            // while the family is registered.
            let context = unsafe { &*shared.context.cast::<F::Context>() };
            // SAFETY: C passed `info` to `doit`.
            handler(context, &mut unsafe { Request::from_raw(info) })?;
            Ok(0)
        })
    }

    /// `start` of a dump.
    ///
    /// # Safety
    ///
    /// C calls it under the conditions of [`doit`](Self::doit), before the first part of a dump.
    /// The `ctx` of `cb` is zeroed and its data is a `genl_dumpit_info`. If this returns 0, the
    /// data stays valid until [`done`](Self::done), which C calls once.
    ///
    /// Fails with `EBUSY` while the module is being loaded: if its init function failed later, the
    /// module would be freed in spite of the dump.
    unsafe extern "C" fn start(cb: *mut bindings::netlink_callback) -> c_int {
        // SAFETY: By the safety requirements of this function, `cb` is valid and its data is a
        // `genl_dumpit_info`.
        let info = unsafe { &mut (*(*cb).data.cast::<bindings::genl_dumpit_info>()).info };
        // SAFETY: By the safety requirements of this function, the family is part of a `Shared`,
        // and is registered until this returns.
        let shared = unsafe { Shared::of(info.family) };
        // SAFETY: The module exists, because this is a function of it.
        if unsafe { bindings::module_is_loading((*info.family).module) } {
            return EBUSY.to_errno();
        }
        // SAFETY: The family owns `ctx`, which is large enough and aligned for a `State`, as
        // asserted above.
        unsafe {
            (*cb)
                .__bindgen_anon_1
                .ctx
                .as_mut_ptr()
                .cast::<State>()
                .write(State {
                    shared: Arc::into_raw(shared.into()),
                    cursor: 0,
                });
        }
        // From here on the family may be unregistered, and `done` may free it. C still uses the
        // pointer to decide whether to lock around the dump, also after `done`. So point it to a
        // static family with the same locking.
        info.family = &raw const bindings::rrdma_detached_family;
        0
    }

    /// `dumpit`: fills one part of a dump.
    ///
    /// # Safety
    ///
    /// C calls it between [`start`](Self::start) and [`done`](Self::done), once at a time for a
    /// `cb`, with a valid `skb`.
    unsafe extern "C" fn dumpit(
        skb: *mut bindings::sk_buff,
        cb: *mut bindings::netlink_callback,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function, `cb` is valid, and `start` wrote its
        // state.
        let state = unsafe { &mut *(*cb).__bindgen_anon_1.ctx.as_mut_ptr().cast::<State>() };
        // SAFETY: By the safety requirements of `start`, the data of `cb` is a `genl_dumpit_info`.
        let info = unsafe { &raw const (*(*cb).data.cast::<bindings::genl_dumpit_info>()).info };
        // SAFETY: The state owns a reference until `done`.
        let shared = unsafe { &*state.shared };
        from_result(|| {
            // SAFETY: `info` is part of the data of `cb`, which is valid until `done`.
            let handler = Self::find(unsafe { &*info }, |operation| operation.dumpit)?;
            let open = shared.open.lock();
            if !*open {
                return Err(ENODEV);
            }
            // SAFETY: By the invariants of `Shared`, the context is an `F::Context` that is valid
            // while `open` is locked and true.
            let context = unsafe { &*shared.context.cast::<F::Context>() };
            let skb = NonNull::new(skb).ok_or(EINVAL)?;
            let family = shared.family.get();
            // SAFETY: C passed `skb` and `cb` to `dumpit`. Only the family uses the state in `cb`.
            // The `genl_family` is part of `shared`.
            let mut dump = unsafe { Dump::from_raw(skb, cb, info, family, &mut state.cursor) };
            handler(context, &mut dump)?;
            Ok(dump.outcome())
        })
    }

    /// `done` of a dump.
    ///
    /// # Safety
    ///
    /// C calls it once after [`start`](Self::start), and makes no other call for `cb` afterwards.
    unsafe extern "C" fn done(cb: *mut bindings::netlink_callback) -> c_int {
        // SAFETY: By the safety requirements of this function, `cb` is valid, and `start` wrote its
        // state.
        let state = unsafe { &*(*cb).__bindgen_anon_1.ctx.as_ptr().cast::<State>() };
        // SAFETY: `start` got the pointer from `Arc::into_raw`, and C calls `done` once.
        drop(unsafe { Arc::from_raw(state.shared) });
        0
    }
}
