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
/// The namespace stays alive, with its sockets and devices, for as long as one
/// is held; whoever holds one for long keeps the namespace from going away when
/// its last process does, and can still be reached in it. May be cloned and
/// dropped in any context.
///
/// Two are equal if they refer to the same namespace.
///
/// # Invariants
///
/// `ptr` points to a valid `struct net` on which this owns one reference.
#[derive(PartialEq, Eq)]
pub struct Namespace {
    ptr: NonNull<bindings::net>,
}

// SAFETY: References on a namespace are counted atomically, and may be given up
// by another thread than the one that took them.
unsafe impl Send for Namespace {}

// SAFETY: A shared `Namespace` allows to take references, which is atomic, and to
// read what never changes.
unsafe impl Sync for Namespace {}

impl Namespace {
    /// Takes a reference to the initial network namespace.
    #[inline]
    pub fn init() -> Self {
        // SAFETY: `init_net` is a static that is always valid and never counted out.
        unsafe { Self::get(&raw mut bindings::init_net) }
    }

    /// Takes a reference to the network namespace of the thread that calls. Process
    /// context; in a module's `init` it is that of who loads it. `None` if the thread is
    /// about to end, as who closes the last files of a process is: it has left its own.
    #[inline]
    pub fn current() -> Option<Self> {
        // SAFETY: Process context.
        let net = NonNull::new(unsafe { bindings::current_net() })?;
        // SAFETY: The namespace of the current thread, which only that can change, is
        // valid and counted by it.
        Some(unsafe { Self::get(net.as_ptr()) })
    }

    /// Takes a reference to a namespace.
    ///
    /// # Safety
    ///
    /// `net` must point to a valid `struct net` whose count is not zero.
    #[inline]
    pub(crate) unsafe fn get(net: *mut bindings::net) -> Self {
        // SAFETY: The caller says that `net` is valid and its count not zero.
        let net = unsafe { bindings::get_net(net) };
        // INVARIANT: The reference was just taken.
        // SAFETY: `get_net` returns its argument, which the caller says is valid.
        let ptr = unsafe { NonNull::new_unchecked(net) };
        Self { ptr }
    }

    /// Returns the C object, valid for as long as `self` lives.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut bindings::net {
        self.ptr.as_ptr()
    }

    /// Returns the inode number of the namespace, as `/proc/PID/ns/net` shows it.
    ///
    /// Meant for people to read: compare namespaces with `==`.
    #[inline]
    pub fn inum(&self) -> u32 {
        // SAFETY: By the invariant of the type the pointer is valid.
        unsafe { bindings::net_inum(self.as_ptr()) }
    }
}

impl Clone for Namespace {
    #[inline]
    fn clone(&self) -> Self {
        // SAFETY: By the invariant of the type the pointer is valid, and `self`'s
        // own reference keeps the count above zero.
        unsafe { Self::get(self.as_ptr()) }
    }
}

impl Drop for Namespace {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: By the invariant of the type `self` owns a reference, which is
        // not used any more.
        unsafe { bindings::put_net(self.as_ptr()) };
    }
}
