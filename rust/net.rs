// SPDX-License-Identifier: GPL-2.0

//! Network namespaces, and TCP in them.
//!
//! C header: [`include/net/net_namespace.h`](srctree/include/net/net_namespace.h)

mod address;
pub mod tcp;

pub use address::Address;

use crate::bindings;
use core::ptr::NonNull;

/// An owned reference to a network namespace.
///
/// The namespace stays alive with its sockets and devices while a reference is held, also after its
/// last process has exited. May be cloned and dropped in any context. Values are equal if they
/// refer to the same namespace. C: `struct net`, `get_net()`.
///
/// # Invariants
///
/// `ptr` points to a valid `struct net`, and this owns one reference to it.
#[derive(PartialEq, Eq)]
pub struct Namespace {
    ptr: NonNull<bindings::net>,
}

// SAFETY: The reference count is atomic, and any thread may drop a reference.
unsafe impl Send for Namespace {}

// SAFETY: A shared `Namespace` allows only to take references, which is atomic, and to read
// constant data.
unsafe impl Sync for Namespace {}

impl Namespace {
    /// Returns a reference to the initial network namespace.
    #[inline]
    pub fn init() -> Self {
        // SAFETY: `init_net` is a static whose reference count never drops to zero.
        unsafe { Self::get(&raw mut bindings::init_net) }
    }

    /// Returns a reference to the network namespace of the current thread. In a module's `init`,
    /// that is the thread which loads the module. Returns `None` if the thread is exiting and has
    /// left its namespace, for example while it closes its last files. Process context.
    #[inline]
    pub fn current() -> Option<Self> {
        // SAFETY: `current_net()` reads only the `nsproxy` of the current thread, which only that
        // thread replaces.
        let net = NonNull::new(unsafe { bindings::current_net() })?;
        // SAFETY: The `nsproxy` of the current thread holds a reference to the namespace. It is not
        // replaced meanwhile, because the current thread is in this function.
        Some(unsafe { Self::get(net.as_ptr()) })
    }

    /// Takes a reference to a namespace.
    ///
    /// # Safety
    ///
    /// `net` points to a valid `struct net` whose reference count is not zero.
    #[inline]
    pub(crate) unsafe fn get(net: *mut bindings::net) -> Self {
        // SAFETY: By the safety requirements of this function, `net` is valid and its count is not
        // zero.
        let net = unsafe { bindings::get_net(net) };
        // INVARIANT: `get_net()` has just taken the reference.
        //
        // SAFETY: `get_net()` returns its argument, which is not null.
        let ptr = unsafe { NonNull::new_unchecked(net) };
        Self { ptr }
    }

    /// Returns the C object, which is valid while `self` exists.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.ptr.as_ptr()
    }
}

impl Clone for Namespace {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: By the type invariants, the pointer is valid, and the reference of `self` keeps
        // the count above zero.
        unsafe { Self::get(self.as_ptr()) }
    }
}

impl Drop for Namespace {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the type invariants, `self` owns a reference, which is not used afterwards.
        unsafe { bindings::put_net(self.as_ptr()) };
    }
}
