// SPDX-License-Identifier: GPL-2.0

//! A spinlock that keeps interrupts off while it is held.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::bindings;
use kernel::{
    ffi::{c_char, c_ulong},
    sync::lock::{Backend, Guard, Lock},
};

/// A spinlock for data that interrupt or softirq context uses too.
///
/// Local interrupts are off while it is held, and afterwards as they were before
/// (`spin_lock_irqsave`), so it may be taken in any context but NMI, whatever the
/// state of interrupts. Nothing may sleep while it is held. Of two guards of one
/// thread the later one has to be dropped first, or interrupts come back on while
/// the other lock is still held.
///
/// Made by [`new_irq_lock!`](crate::new_irq_lock).
pub type IrqLock<T> = Lock<T, IrqLockBackend>;

/// Access to the data of an [`IrqLock`], which is released when dropped.
pub type IrqLockGuard<'a, T> = Guard<'a, T, IrqLockBackend>;

/// Makes the initialiser of an [`IrqLock`] with a lockdep
/// class of its own, named by the second argument or else by its place in the
/// source.
#[macro_export]
macro_rules! new_irq_lock {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::IrqLock::new(
            $inner,
            ::kernel::optional_name!($($name)?),
            ::kernel::static_lock_class!(),
        )
    };
}

/// `spinlock_t`, taken with interrupts saved.
pub struct IrqLockBackend;

// SAFETY: A spinlock excludes all other threads and CPUs. `relock` is the default
// one, which takes it the same way.
unsafe impl Backend for IrqLockBackend {
    type State = bindings::spinlock_t;
    type GuardState = c_ulong;

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: The caller says that `ptr` is valid for writes, and `name` and
        // `key` for reads for ever.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: The caller says that the lock is initialised.
        unsafe { bindings::spin_lock_irqsave(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: The caller says that the lock is initialised; `flags` is a
        // local to write to.
        let taken = unsafe { bindings::spin_trylock_irqsave(ptr, &mut flags) };
        taken.then_some(flags)
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: The caller says that it owns the lock, which it got together
        // with these flags.
        unsafe { bindings::spin_unlock_irqrestore(ptr, *guard_state) }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // Else C says nothing, and it would be a call.
        #[cfg(CONFIG_LOCKDEP)]
        // SAFETY: The caller says that the lock is initialised.
        unsafe {
            bindings::spin_assert_is_held(ptr)
        }
        #[cfg(not(CONFIG_LOCKDEP))]
        let _ = ptr;
    }
}
