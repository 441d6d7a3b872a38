// SPDX-License-Identifier: GPL-2.0

//! Spinlock that disables interrupts.
//!
//! C header: [`include/linux/spinlock.h`](srctree/include/linux/spinlock.h)

use crate::bindings;
use kernel::{
    ffi::{c_char, c_ulong},
    sync::lock::{Backend, Guard, Lock},
};

/// A spinlock for data that is also used in interrupt or softirq context.
///
/// Local interrupts are disabled while it is held and restored afterwards (`spin_lock_irqsave()`).
/// It may be taken in any context but NMI. The holder must not sleep. A thread that holds two locks
/// must drop the later guard first, or interrupts are enabled while it still holds one.
///
/// Created by [`new_irq_lock!`](crate::new_irq_lock).
pub type IrqLock<T> = Lock<T, IrqLockBackend>;

/// Guard of an [`IrqLock`]; releases it when dropped.
pub type IrqLockGuard<'a, T> = Guard<'a, T, IrqLockBackend>;

/// Creates the initialiser of an [`IrqLock`] with its own lockdep class, named by the second
/// argument or by its source location.
#[macro_export]
macro_rules! new_irq_lock {
    ($inner:expr $(, $name:literal)? $(,)?) => {
        $crate::sync::IrqLock::new(
            $inner,
            $crate::lock_name!($($name)?),
            ::kernel::static_lock_class!(),
        )
    };
}

/// The functions of C that the macros of `<linux/spinlock.h>` call. A helper would add a function call to
/// each of them.
#[cfg(all(
    CONFIG_SMP,
    not(CONFIG_PREEMPT_RT),
    not(CONFIG_INLINE_SPIN_LOCK_IRQSAVE),
    not(CONFIG_INLINE_SPIN_UNLOCK_IRQRESTORE)
))]
mod functions {
    use crate::bindings;
    use kernel::ffi::c_ulong;

    /// # Safety
    ///
    /// `lock` must be initialised.
    #[inline]
    pub(super) unsafe fn lock(lock: *mut bindings::spinlock_t) -> c_ulong {
        // SAFETY: By the safety requirements. The raw lock is the first member.
        unsafe { bindings::_raw_spin_lock_irqsave(lock.cast()) }
    }

    /// # Safety
    ///
    /// The caller must hold `lock`, with `flags` of [`lock`].
    #[inline]
    pub(super) unsafe fn unlock(lock: *mut bindings::spinlock_t, flags: c_ulong) {
        // SAFETY: By the safety requirements. The raw lock is the first member.
        unsafe { bindings::_raw_spin_unlock_irqrestore(lock.cast(), flags) }
    }
}

/// The same by helpers, for configurations that have no such functions.
#[cfg(not(all(
    CONFIG_SMP,
    not(CONFIG_PREEMPT_RT),
    not(CONFIG_INLINE_SPIN_LOCK_IRQSAVE),
    not(CONFIG_INLINE_SPIN_UNLOCK_IRQRESTORE)
)))]
mod functions {
    pub(super) use crate::bindings::{
        spin_lock_irqsave as lock,
        spin_unlock_irqrestore as unlock, //
    };
}

/// Backend for `spinlock_t`, with `spin_lock_irqsave()`.
pub struct IrqLockBackend;

// SAFETY: A spinlock excludes all other threads and CPUs. The default `relock` calls `lock`.
unsafe impl Backend for IrqLockBackend {
    type State = bindings::spinlock_t;
    type GuardState = c_ulong;

    #[inline]
    unsafe fn init(ptr: *mut Self::State, name: *const c_char, key: *mut bindings::lock_class_key) {
        // SAFETY: By the safety requirements of this function, `ptr` is valid for writes, and
        // `name` and `key` are valid for reads forever.
        unsafe { bindings::__spin_lock_init(ptr, name, key) }
    }

    #[inline]
    unsafe fn lock(ptr: *mut Self::State) -> Self::GuardState {
        // SAFETY: By the safety requirements of this function, the lock is initialised.
        unsafe { functions::lock(ptr) }
    }

    #[inline]
    unsafe fn try_lock(ptr: *mut Self::State) -> Option<Self::GuardState> {
        let mut flags = 0;
        // SAFETY: By the safety requirements of this function, the lock is initialised. `flags` is
        // writable.
        let taken = unsafe { bindings::spin_trylock_irqsave(ptr, &mut flags) };
        taken.then_some(flags)
    }

    #[inline]
    unsafe fn unlock(ptr: *mut Self::State, guard_state: &Self::GuardState) {
        // SAFETY: By the safety requirements of this function, the caller holds the lock, and
        // `guard_state` is from the call that took it.
        unsafe { functions::unlock(ptr, *guard_state) }
    }

    #[inline]
    unsafe fn assert_is_held(ptr: *mut Self::State) {
        // Without lockdep, C does not check anything, and the call would be wasted.
        #[cfg(CONFIG_LOCKDEP)]
        // SAFETY: By the safety requirements of this function, the lock is initialised.
        unsafe {
            bindings::spin_assert_is_held(ptr)
        }
        #[cfg(not(CONFIG_LOCKDEP))]
        let _ = ptr;
    }
}
