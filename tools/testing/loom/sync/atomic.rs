// SPDX-License-Identifier: GPL-2.0

//! Atomics of `loom`, with the constant constructors of `core`.

use crate::planted::{has, weaken, Bug};
use loom::sync::atomic;
pub(crate) use std::sync::atomic::Ordering;
use std::sync::OnceLock;

macro_rules! atomics {
    ($($name:ident: $value:ty;)*) => {$(
        /// An atomic that exists for the model from its first access on. That access must happen
        /// before those of other threads; `loom` reports a causality violation otherwise.
        #[derive(Default)]
        pub(crate) struct $name {
            initial: $value,
            atomic: OnceLock<atomic::$name>,
        }

        #[expect(dead_code, reason = "no type needs all methods")]
        impl $name {
            pub(crate) const fn new(initial: $value) -> Self {
                Self {
                    initial,
                    atomic: OnceLock::new(),
                }
            }

            fn atomic(&self) -> &atomic::$name {
                self.atomic.get_or_init(|| atomic::$name::new(self.initial))
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.atomic().load(weaken(order))
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.atomic().store(value, weaken(order));
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                if has(Bug::SplitExchange) {
                    let old = self.load(Ordering::Acquire);
                    self.store(value, Ordering::Release);
                    return old;
                }
                self.atomic().swap(value, weaken(order))
            }

            pub(crate) fn compare_exchange(
                &self,
                from: $value,
                to: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if has(Bug::SplitExchange) {
                    let old = self.load(success);
                    if old != from {
                        return Err(old);
                    }
                    self.store(to, Ordering::Relaxed);
                    return Ok(old);
                }
                self.atomic().compare_exchange(from, to, weaken(success), weaken(failure))
            }
        }
    )*};
}

atomics! {
    AtomicBool: bool;
    AtomicU32: u32;
    AtomicU64: u64;
    AtomicUsize: usize;
}
