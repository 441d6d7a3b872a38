// SPDX-License-Identifier: GPL-2.0

//! What C calls: the way from its operations to the handlers of a family.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{policy::Table, shared::Shared, Dump, Family, Operation, Request};
use crate::{bindings, errno::EOPNOTSUPP};
use core::{marker::PhantomData, ptr::NonNull};
use kernel::{error::from_result, ffi::c_int, prelude::*, sync::Arc};

/// The callbacks of a family's operations.
pub(super) struct Callbacks<F: Family>(PhantomData<F>);

/// What a dump keeps from one part to the next, in the space that C gives to it.
#[repr(C)]
struct State {
    /// Owned, from [`Arc::into_raw`].
    shared: *const Shared,
    cursor: u64,
}

const _: () = {
    assert!(size_of::<State>() <= bindings::NETLINK_CTX_SIZE as usize);
    assert!(align_of::<State>() <= align_of::<bindings::netlink_callback__bindgen_ty_1>());
};

impl<F: Family> Callbacks<F> {
    /// The entries of an operation, to do and to dump it, in the order C wants.
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
            ..Default::default()
        };
        [
            operation.doit.map(|_| {
                entry(
                    bindings::GENL_CMD_CAP_DO,
                    Self::do_callbacks(operation.admin),
                )
            }),
            operation
                .dumpit
                .map(|_| entry(bindings::GENL_CMD_CAP_DUMP, Self::dump_callbacks())),
        ]
    }

    fn do_callbacks(admin: bool) -> bindings::genl_split_ops__bindgen_ty_1 {
        bindings::genl_split_ops__bindgen_ty_1 {
            __bindgen_anon_1: bindings::genl_split_ops__bindgen_ty_1__bindgen_ty_1 {
                doit: Some(if admin { Self::administer } else { Self::doit }),
                ..Default::default()
            },
        }
    }

    fn dump_callbacks() -> bindings::genl_split_ops__bindgen_ty_1 {
        bindings::genl_split_ops__bindgen_ty_1 {
            __bindgen_anon_2: bindings::genl_split_ops__bindgen_ty_1__bindgen_ty_2 {
                start: Some(Self::start),
                dumpit: Some(Self::dumpit),
                done: Some(Self::done),
            },
        }
    }

    /// The handler of a command that `handler` picks, of the one or two operations
    /// that the command has.
    fn find<H>(info: &bindings::genl_info, handler: fn(&Operation<F>) -> Option<H>) -> Result<H> {
        // SAFETY: C has checked that the message has this header.
        let command = unsafe { (*info.genlhdr).cmd };
        F::OPERATIONS
            .iter()
            .filter(|operation| operation.command == command)
            .find_map(handler)
            .ok_or(EOPNOTSUPP)
    }

    /// C has looked for `CAP_NET_ADMIN`, as `GENL_ADMIN_PERM` says; there is no flag for more.
    ///
    /// # Safety
    ///
    /// As [`doit`](Self::doit), with the message of the request in `skb`.
    unsafe extern "C" fn administer(
        skb: *mut bindings::sk_buff,
        info: *mut bindings::genl_info,
    ) -> c_int {
        // SAFETY: C passed the message, with its sender's socket, and calls this in his process.
        let may = unsafe { bindings::netlink_capable(skb, bindings::CAP_SYS_ADMIN as c_int) };
        if !may {
            return EPERM.to_errno();
        }
        // SAFETY: By the contract.
        unsafe { Self::doit(skb, info) }
    }

    /// # Safety
    ///
    /// C calls it for a `genl_split_ops` of a registered [`Shared`] of this family,
    /// with a request that it has validated, and waits for it to return before the
    /// family is unregistered.
    unsafe extern "C" fn doit(
        _skb: *mut bindings::sk_buff,
        info: *mut bindings::genl_info,
    ) -> c_int {
        from_result(|| {
            // SAFETY: C says that `info` is valid.
            let handler = Self::find(unsafe { &*info }, |operation| operation.doit)?;
            // SAFETY: C says that the family is registered, which it stays until
            // this returns.
            let shared = unsafe { Shared::of((*info).family) };
            // SAFETY: By the invariant of `Shared` the context is valid until then,
            // and of this type.
            let context = unsafe { &*shared.context.cast::<F::Context>() };
            // SAFETY: `info` is what C passed.
            handler(context, &mut unsafe { Request::from_raw(info) })?;
            Ok(0)
        })
    }

    /// # Safety
    ///
    /// C calls it as [`doit`](Self::doit), before the first part of a dump, with
    /// zeroes in the `ctx` of `cb` and a `genl_dumpit_info` as its data; and calls
    /// [`done`](Self::done) once if it returns 0, until when the data stays valid.
    unsafe extern "C" fn start(cb: *mut bindings::netlink_callback) -> c_int {
        // SAFETY: C says that `cb` is valid, and its data what it says.
        let info = unsafe { &mut (*(*cb).data.cast::<bindings::genl_dumpit_info>()).info };
        // SAFETY: C says that the family is registered, which it stays until this
        // returns.
        let shared = unsafe { Shared::of(info.family) };
        // SAFETY: C leaves `ctx` to us, which has room for the state, properly
        // aligned.
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
        // From here on the family may be unregistered, and freed by `done`. C has the
        // pointer only to lock what it need not lock for this one either, once more
        // after `done`; give it one that stays.
        info.family = &raw const bindings::rrdma_detached_family;
        0
    }

    /// # Safety
    ///
    /// C calls it after [`start`](Self::start) and before [`done`](Self::done), one
    /// call for a `cb` at a time, with a valid `skb`.
    unsafe extern "C" fn dumpit(
        skb: *mut bindings::sk_buff,
        cb: *mut bindings::netlink_callback,
    ) -> c_int {
        // SAFETY: C says that `cb` is valid and that `start` wrote its state.
        let state = unsafe { &mut *(*cb).__bindgen_anon_1.ctx.as_mut_ptr().cast::<State>() };
        // SAFETY: C says that `cb` is valid, and `start` that its data is this.
        let info = unsafe { &raw const (*(*cb).data.cast::<bindings::genl_dumpit_info>()).info };
        // SAFETY: The state owns a reference until `done`.
        let shared = unsafe { &*state.shared };
        from_result(|| {
            // SAFETY: As above.
            let handler = Self::find(unsafe { &*info }, |operation| operation.dumpit)?;
            let open = shared.open.lock();
            if !*open {
                return Err(ENODEV);
            }
            // SAFETY: By the invariant of `Shared` the context is valid while `open`
            // is locked, and of this type.
            let context = unsafe { &*shared.context.cast::<F::Context>() };
            let skb = NonNull::new(skb).ok_or(EINVAL)?;
            let family = shared.family.get();
            // SAFETY: C passed `skb` and `cb`, and only we use the state in it; the
            // family is part of `shared`.
            let mut dump = unsafe { Dump::from_raw(skb, cb, info, family, &mut state.cursor) };
            handler(context, &mut dump)?;
            Ok(dump.outcome())
        })
    }

    /// # Safety
    ///
    /// C calls it once after [`start`](Self::start), and then nothing more for `cb`.
    unsafe extern "C" fn done(cb: *mut bindings::netlink_callback) -> c_int {
        // SAFETY: C says that `cb` is valid and that `start` wrote its state.
        let state = unsafe { &*(*cb).__bindgen_anon_1.ctx.as_ptr().cast::<State>() };
        // SAFETY: `start` has it from `into_raw`; this is the one call for it.
        drop(unsafe { Arc::from_raw(state.shared) });
        0
    }
}
