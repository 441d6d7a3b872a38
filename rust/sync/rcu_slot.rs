// SPDX-License-Identifier: GPL-2.0

//! An optional object that readers access under RCU.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::RcuSection;
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
        Arc,
        ArcBorrow, //
    },
    task::might_sleep,
    types::ForeignOwnable, //
};

/// A slot for an object, read under RCU.
///
/// The pointer is an atomic of `core`, because only Rust accesses it: a load is one instruction,
/// while an atomic of the kernel crate is a function call. `Acquire` is stronger than the address
/// dependency of `rcu_dereference()`.
///
/// # Invariants
///
/// `pointer` is zero, or the foreign pointer of an `Arc<T>` that the slot owns. After it is removed
/// from the slot, the `Arc` is released only after a grace period.
pub struct RcuSlot<T: 'static> {
    pointer: AtomicUsize,
    _owner: PhantomData<Arc<T>>,
}

// SAFETY: The slot gives access to its object like an `Arc<T>`.
unsafe impl<T: Send + Sync> Send for RcuSlot<T> {}
// SAFETY: The slot gives access to its object like an `Arc<T>`.
unsafe impl<T: Send + Sync> Sync for RcuSlot<T> {}

impl<T: 'static> RcuSlot<T> {
    /// Creates an empty slot.
    pub const fn new() -> Self {
        Self {
            pointer: AtomicUsize::new(0),
            _owner: PhantomData,
        }
    }

    /// Returns the object, if any. It is borrowed for the lifetime of the section. Any context.
    #[inline]
    pub fn read<'a>(&'a self, _section: &'a RcuSection) -> Option<ArcBorrow<'a, T>> {
        let pointer = self.pointer.load(Ordering::Acquire);
        if pointer == 0 {
            return None;
        }
        // SAFETY: By the type invariants, `pointer` is from an `Arc<T>`, which is released only
        // after a grace period. The section, which is only lent, prevents the end of that period.
        Some(unsafe { <Arc<T> as ForeignOwnable>::borrow(pointer as *mut _) })
    }

    /// Stores `object`, and returns the previous one after all its readers are done. Sleeps if
    /// there was one. In a read-side critical section of its own, the caller waits for ever.
    pub fn publish(&self, object: Arc<T>) -> Option<Arc<T>> {
        self.replace(object.into_foreign() as usize)
    }

    /// Removes the object, and returns it after all its readers are done. Sleeps if there was one. In a
    /// read-side critical section of its own, the caller waits for ever.
    pub fn take(&self) -> Option<Arc<T>> {
        self.replace(0)
    }

    fn replace(&self, pointer: usize) -> Option<Arc<T>> {
        let old = self.pointer.swap(pointer, Ordering::SeqCst);
        if old == 0 {
            return None;
        }
        might_sleep();
        // SAFETY: Memory safety has no requirement. In a read-side critical section of its own, the
        // caller would wait for ever: RCU is preemptible, see `CONFIG_PREEMPT_RCU` in `rrdma.rs`. Without
        // that, the section would end here.
        unsafe { bindings::synchronize_rcu_expedited() };
        // SAFETY: By the type invariants, `old` is from an `Arc<T>`. It was removed from the slot,
        // and a grace period has passed.
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
        // `&mut self` excludes readers, so no grace period is needed.
        let pointer = self.pointer.load(Ordering::Relaxed);
        if pointer != 0 {
            // SAFETY: By the type invariants, `pointer` is from an `Arc<T>` that the slot owns.
            drop(unsafe { Arc::<T>::from_foreign(pointer as *mut _) });
        }
    }
}
