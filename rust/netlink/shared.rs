// SPDX-License-Identifier: GPL-2.0

//! The part of a registration that C refers to.
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
use crate::{
    bindings,
    sync::new_mutex, //
};
use kernel::{
    container_of,
    ffi::{c_char, c_void},
    prelude::*,
    sync::{Arc, ArcBorrow, Mutex},
    types::Opaque,
};

/// A `genl_family` with everything that it points to.
///
/// C uses the family until it is unregistered. Only a dump that has begun continues after that, in
/// later reads of its socket. C keeps the module loaded for it, but not the registration, so each
/// dump owns a reference to this.
///
/// # Invariants
///
/// - The other fields own what `family` points to.
/// - The operations hold the callbacks of a family `F`. `context` points to a valid `F::Context`
///   while the family is registered, and while `open` is locked and true.
#[pin_data]
pub(super) struct Shared {
    #[pin]
    pub(super) family: Opaque<bindings::genl_family>,
    _operations: KVec<bindings::genl_split_ops>,
    _groups: KVec<bindings::genl_multicast_group>,
    _policies: Policies,
    pub(super) context: *const c_void,
    /// Whether dumps may continue; locked while a part of one is filled.
    #[pin]
    pub(super) open: Mutex<bool>,
}

// SAFETY: Only C and `open`, a mutex, change data after the registration. The context is `Sync`,
// and is not dropped through this pointer.
unsafe impl Send for Shared {}

// SAFETY: Only C and `open`, a mutex, change data after the registration. The context is `Sync`.
unsafe impl Sync for Shared {}

impl Shared {
    /// Creates the data of family `F`. `entries` returns the entries of an operation for C: do,
    /// then dump, with the callbacks of `F`.
    pub(super) fn new<F: Family>(
        context: *const c_void,
        module: &ThisModule,
        entries: fn(&Operation<F>, Table) -> [Option<bindings::genl_split_ops>; 2],
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
            let mut group = pin_init::zeroed::<bindings::genl_multicast_group>();
            copy_name(&mut group.name, name);
            groups.push(group, GFP_KERNEL)?;
        }
        let mut family = bindings::genl_family {
            version: F::VERSION.into(),
            // The counts fit: `check` limits them.
            n_split_ops: operations.len() as u8,
            split_ops: operations.as_ptr(),
            n_mcgrps: groups.len() as u8,
            mcgrps: groups.as_ptr(),
            module: module.as_ptr(),
            ..pin_init::zeroed()
        };
        copy_name(&mut family.name, F::NAME);
        // SAFETY: `family` is a local variable.
        unsafe { bindings::genl_family_set_flags(&mut family) };
        // INVARIANT: `family` points to the contents of the vectors, which do not move with them.
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

    /// Returns the family for C. It is valid while a reference to `this` is held.
    pub(super) fn family(this: &Arc<Self>) -> *mut bindings::genl_family {
        // Derived from the pointer to the whole structure, because `of` converts back to it.
        //
        // SAFETY: The `Arc` points to a valid `Shared`.
        Opaque::cast_into(unsafe { &raw const (*Arc::as_ptr(this)).family })
    }

    /// Refuses further parts of dumps, and waits for one that is being filled.
    pub(super) fn close(&self) {
        *self.open.lock() = false;
    }

    /// Returns the `Shared` that contains a family.
    ///
    /// # Safety
    ///
    /// `family` is from [`Shared::family`], of a `Shared` to which a reference is held for `'a`.
    pub(super) unsafe fn of<'a>(family: *const bindings::genl_family) -> ArcBorrow<'a, Self> {
        let family = Opaque::cast_from(family);
        // SAFETY: By the safety requirements of this function, the family is part of a `Shared` in
        // an `Arc` that is held, and the pointer is derived from one to the whole.
        unsafe { ArcBorrow::from_raw(container_of!(family, Self, family)) }
    }
}

/// Copies a name. `check` has ensured that it fits with a NUL; `to` is zeroed.
fn copy_name(to: &mut [c_char], name: &CStr) {
    for (to, from) in to.iter_mut().zip(name.to_bytes()) {
        *to = *from as c_char;
    }
}
