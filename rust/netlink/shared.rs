// SPDX-License-Identifier: GPL-2.0

//! What C knows of a registration.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{
    family::check,
    policy::{
        Policies,
        Table, //
    },
    Family,
    Operation, //
};
use crate::bindings;
use kernel::{
    container_of,
    ffi::{c_char, c_void},
    new_mutex,
    prelude::*,
    sync::{Arc, ArcBorrow, Mutex},
    types::Opaque,
};

/// A family as C knows it.
///
/// C looks at the family until it is unregistered; only a dump that has begun goes
/// on, in later calls of its reader, which C keeps from outliving the module but not
/// the registration. So each dump owns a reference.
///
/// # Invariants
///
/// - What `family` points to is owned by the other fields.
/// - `context` points to a valid `F::Context` of the family `F` whose callbacks the
///   operations hold, while the family is registered and while `open` is locked and
///   true.
#[pin_data]
pub(super) struct Shared {
    #[pin]
    pub(super) family: Opaque<bindings::genl_family>,
    _operations: KVec<bindings::genl_split_ops>,
    _groups: KVec<bindings::genl_multicast_group>,
    _policies: Policies,
    pub(super) context: *const c_void,
    /// Whether dumps may still be handled; locked while one is.
    #[pin]
    pub(super) open: Mutex<bool>,
}

// SAFETY: Everything but `open` is constant once registered, or C's; `context` is of
// a type that is `Sync`, and not used to drop it.
unsafe impl Send for Shared {}

// SAFETY: As above.
unsafe impl Sync for Shared {}

/// The entries of an operation, to do and to dump it, in the order C wants.
pub(super) type Entries<F> = fn(&Operation<F>, Table) -> [Option<bindings::genl_split_ops>; 2];

impl Shared {
    /// The family `F` with the callbacks of `entries`, which are those of `F`.
    pub(super) fn new<F: Family>(
        context: *const c_void,
        module: &ThisModule,
        entries: Entries<F>,
    ) -> Result<Arc<Self>> {
        const { check::<F>() };
        let mut policies = Policies::new();
        let mut operations = KVec::new();
        for operation in F::OPERATIONS {
            let table = policies.add(operation.attributes)?;
            for entry in entries(operation, table).into_iter().flatten() {
                operations.push(entry, GFP_KERNEL)?;
            }
        }
        let mut groups = KVec::with_capacity(F::GROUPS.len(), GFP_KERNEL)?;
        for name in F::GROUPS {
            let mut group = bindings::genl_multicast_group::default();
            copy_name(&mut group.name, name);
            groups.push(group, GFP_KERNEL)?;
        }
        let mut family = bindings::genl_family {
            version: F::VERSION.into(),
            // The lengths fit, which `check` has seen to.
            n_split_ops: operations.len() as u8,
            split_ops: operations.as_ptr(),
            n_mcgrps: groups.len() as u8,
            mcgrps: groups.as_ptr(),
            module: module.as_ptr(),
            ..Default::default()
        };
        copy_name(&mut family.name, F::NAME);
        // SAFETY: `family` is a local.
        unsafe { bindings::genl_family_set_flags(&mut family) };
        // INVARIANT: The vectors are moved, but not what they own, where `family`
        // points to.
        Arc::pin_init(
            try_pin_init!(Self {
                family: Opaque::new(family),
                _operations: operations,
                _groups: groups,
                _policies: policies,
                context,
                open <- new_mutex!(true, "netlink::Shared::open"),
            }),
            GFP_KERNEL,
        )
    }

    /// The family, for C; valid as long as `this` is kept.
    pub(super) fn family(this: &Arc<Self>) -> *mut bindings::genl_family {
        // Not through a reference to the field: `of` goes back to the whole.
        // SAFETY: The pointer is that of a valid `Shared`.
        Opaque::cast_into(unsafe { &raw const (*Arc::as_ptr(this)).family })
    }

    /// Ends the handling of dumps, and waits for one that is being handled.
    pub(super) fn close(&self) {
        *self.open.lock() = false;
    }

    /// The one that a family is part of.
    ///
    /// # Safety
    ///
    /// `family` must be from [`Shared::family`], of one that is kept for `'a`.
    pub(super) unsafe fn of<'a>(family: *const bindings::genl_family) -> ArcBorrow<'a, Self> {
        let family = Opaque::cast_from(family);
        // SAFETY: The caller says that the family is part of a `Shared` in an `Arc`
        // that is kept, and has got it by a pointer to the whole.
        unsafe { ArcBorrow::from_raw(container_of!(family, Self, family)) }
    }
}

/// Copies a name that `check` has found to fit, with room for a NUL.
fn copy_name(to: &mut [c_char], name: &CStr) {
    for (to, from) in to.iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
}
