// SPDX-License-Identifier: GPL-2.0

//! An optional object that readers access under RCU.
//!
//! C header: [`include/linux/rcupdate.h`](srctree/include/linux/rcupdate.h)

use super::{
    may_sleep,
    RcuSection, //
};
use crate::bindings;
use core::{
    marker::PhantomData,
    mem::ManuallyDrop,
    sync::atomic::{
        AtomicUsize,
        Ordering, //
    },
};
use kernel::{
    prelude::*,
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
        let old = self.replace(object.into_foreign() as usize);
        old.map(Retracted::wait)
    }

    /// Removes the object, and returns it after all its readers are done. Sleeps if there was one. In a
    /// read-side critical section of its own, the caller waits for ever.
    pub fn take(&self) -> Option<Arc<T>> {
        self.retract().map(Retracted::wait)
    }

    /// Removes the object: no reader finds it any more. Those that have found it are waited for by the result. Any
    /// context.
    ///
    /// One grace period serves all slots from which the objects are retracted before the first wait.
    pub fn retract(&self) -> Option<Retracted<T>> {
        self.replace(0)
    }

    /// Empties `slots`, and drops their objects after all their readers are done. Waits for one grace period for
    /// every 32 objects. Sleeps if there is one.
    pub fn clear_all<'a>(slots: impl Iterator<Item = &'a Self>) {
        let mut objects = slots.filter_map(Self::retract).fuse();
        loop {
            let mut retracted = [const { None }; 32];
            for (place, object) in retracted.iter_mut().zip(objects.by_ref()) {
                *place = Some(object);
            }
            if retracted.iter().all(Option::is_none) {
                return;
            }
        }
    }

    fn replace(&self, pointer: usize) -> Option<Retracted<T>> {
        let old = self.pointer.swap(pointer, Ordering::SeqCst);
        if old == 0 {
            return None;
        }
        // INVARIANT: By the type invariants of the slot, `old` is from an `Arc<T>`, which the slot owned. It was
        // removed above, before the state of RCU is read.
        Some(Retracted {
            pointer: old,
            // SAFETY: The function has no requirement.
            since: unsafe { bindings::get_state_synchronize_rcu() },
            _owner: PhantomData,
        })
    }
}

/// An object that was removed from an [`RcuSlot`], and may still have readers. Dropping it waits for them, as
/// [`wait`](Self::wait) does. In atomic context, the object leaks instead, with a log message.
///
/// # Invariants
///
/// `pointer` is the foreign pointer of an `Arc<T>` that this owns. It was removed from its slot before RCU was in
/// the state `since`.
#[must_use = "the object is dropped at once, after a grace period"]
pub struct Retracted<T: 'static> {
    pointer: usize,
    since: usize,
    _owner: PhantomData<Arc<T>>,
}

impl<T: 'static> Retracted<T> {
    /// Returns the object after all its readers are done. Sleeps, unless a grace period has passed since the object
    /// was retracted. In a read-side critical section of its own, the caller waits for ever.
    pub fn wait(self) -> Arc<T> {
        let this = ManuallyDrop::new(self);
        // SAFETY: `this` is not dropped.
        unsafe { this.end() }
    }

    /// Waits for a grace period, and returns the object.
    ///
    /// # Safety
    ///
    /// Called once.
    unsafe fn end(&self) -> Arc<T> {
        might_sleep();
        // SAFETY: `since` is a state of RCU by the type invariants. In a read-side critical section of its own, the
        // caller would wait for ever: RCU is preemptible, see `CONFIG_PREEMPT_RCU` in `rrdma.rs`. Without
        // that, the section would end here.
        unsafe { bindings::cond_synchronize_rcu_expedited(self.since) };
        // SAFETY: By the type invariants, `pointer` is from an `Arc<T>` that this owns. It was removed from the slot
        // before `since`, and a grace period has passed. By the safety requirements, it is released once.
        unsafe { Arc::from_foreign(self.pointer as *mut _) }
    }
}

impl<T: 'static> Drop for Retracted<T> {
    fn drop(&mut self) {
        if !may_sleep() {
            pr_err!("an object that RCU protects leaks: it was dropped in atomic context\n");
            return;
        }
        // SAFETY: `self` is not used afterwards, and `wait` does not drop it.
        drop(unsafe { self.end() });
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
