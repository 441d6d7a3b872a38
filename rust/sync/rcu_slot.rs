// SPDX-License-Identifier: GPL-2.0

//! An object that readers use without a lock until it is taken back.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use crate::bindings;
use core::{
    marker::PhantomData,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    },
};
use kernel::{
    sync::{
        rcu,
        Arc,
        ArcBorrow, //
    },
    types::ForeignOwnable,
};

/// A place for an object that is there or not, read under RCU.
///
/// The pointer is an atomic of `core`, as only Rust accesses it: a load is one instruction, and not
/// a call as one of the kernel crate is. Acquire is more than the dependency that
/// `rcu_dereference` relies on.
///
/// # Invariants
///
/// `pointer` is zero, or the foreign pointer of an `Arc<T>` that this place owns,
/// which is released a grace period after it was taken out at the earliest.
pub struct RcuSlot<T: 'static> {
    pointer: AtomicUsize,
    _owner: PhantomData<Arc<T>>,
}

// SAFETY: The place hands out what an `Arc<T>` does.
unsafe impl<T: Send + Sync> Send for RcuSlot<T> {}
// SAFETY: As above.
unsafe impl<T: Send + Sync> Sync for RcuSlot<T> {}

impl<T: 'static> RcuSlot<T> {
    /// An empty place.
    pub const fn new() -> Self {
        Self {
            pointer: AtomicUsize::new(0),
            _owner: PhantomData,
        }
    }

    /// What is there, for as long as the guard lives. Any context.
    #[inline]
    pub fn read<'a>(&'a self, _guard: &'a rcu::Guard) -> Option<ArcBorrow<'a, T>> {
        let pointer = self.pointer.load(Ordering::Acquire);
        if pointer == 0 {
            return None;
        }
        // SAFETY: By the type invariant; the guard delays the grace period that
        // releasing the object waits for.
        Some(unsafe { <Arc<T> as ForeignOwnable>::borrow(pointer as *mut _) })
    }

    /// Puts `object` there, and returns what was there before, when no reader
    /// uses it any more. Sleeps if something was.
    pub fn publish(&self, object: Arc<T>) -> Option<Arc<T>> {
        self.replace(object.into_foreign() as usize)
    }

    /// Takes out what is there, when no reader uses it any more. Sleeps if
    /// something was.
    pub fn take(&self) -> Option<Arc<T>> {
        self.replace(0)
    }

    fn replace(&self, pointer: usize) -> Option<Arc<T>> {
        let old = self.pointer.swap(pointer, Ordering::SeqCst);
        if old == 0 {
            return None;
        }
        // SAFETY: May sleep here.
        unsafe { bindings::synchronize_rcu_expedited() };
        // SAFETY: By the type invariant; it was taken out, and a grace period
        // has passed.
        Some(unsafe { Arc::from_foreign(old as *mut _) })
    }
}

impl<T: 'static> Default for RcuSlot<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: 'static> Drop for RcuSlot<T> {
    fn drop(&mut self) {
        // Nobody reads what is being dropped, so no grace period is needed.
        let pointer = self.pointer.load(Ordering::Relaxed);
        if pointer != 0 {
            // SAFETY: By the type invariant.
            drop(unsafe { Arc::<T>::from_foreign(pointer as *mut _) });
        }
    }
}
