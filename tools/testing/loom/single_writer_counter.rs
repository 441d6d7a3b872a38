// SPDX-License-Identifier: GPL-2.0

//! Model checking of `SingleWriterCounter`, with `loom`.
//!
//! A volatile access of a word is a relaxed access of an atomic, as in the kernel's memory model.
//! For the bounds, see `rrdma_loom.rs`.

// In the source, this name has to lead here.
extern crate self as core;

#[path = "../../../rust/sync/single_writer_counter.rs"]
#[expect(unused_unsafe, reason = "the stand-ins for unsafe functions are safe")]
mod single_writer_counter;

use loom::{
    sync::{Arc, Mutex},
    thread,
};
use single_writer_counter::SingleWriterCounter;

mod cell {
    use loom::sync::atomic::{AtomicU64, Ordering};
    use std::{marker::PhantomData, sync::OnceLock};

    /// A word with value 0. It exists for the model from its first access on, which must happen
    /// before those of other threads.
    #[derive(Default)]
    pub(crate) struct UnsafeCell<T>(OnceLock<AtomicU64>, PhantomData<T>);

    impl<T> UnsafeCell<T> {
        pub(crate) const fn new(_zero: T) -> Self
        where
            T: Copy,
        {
            Self(OnceLock::new(), PhantomData)
        }

        pub(crate) fn get(&self) -> Word<'_> {
            Word(self.0.get_or_init(|| AtomicU64::new(0)))
        }
    }

    /// Pointer to the word.
    pub(crate) struct Word<'a>(&'a AtomicU64);

    impl Word<'_> {
        pub(crate) fn read_volatile(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }

        pub(crate) fn write_volatile(&self, value: u64) {
            self.0.store(value, Ordering::Relaxed);
        }
    }
}

/// Creates a counter that the model knows.
fn new() -> Arc<SingleWriterCounter> {
    let counter = Arc::new(SingleWriterCounter::new());
    assert_eq!(counter.get(), 0);
    counter
}

/// The writer sees the exact value. Readers see values that existed, and none that is older than
/// one they saw before.
#[test]
fn one_writer() {
    loom::model(|| {
        let counter = new();
        let readers = [(); 2].map(|()| {
            let counter = Arc::clone(&counter);
            thread::spawn(move || {
                let (first, second) = (counter.get(), counter.get());
                assert!([0, 1, 3].contains(&first) && [0, 1, 3].contains(&second));
                assert!(first <= second, "went back");
            })
        });
        counter.add(1);
        assert_eq!(counter.get(), 1);
        counter.add(2);
        assert_eq!(counter.get(), 3);
        for reader in readers {
            reader.join().unwrap();
        }
        assert_eq!(counter.get(), 3);
    });
}

/// Runs two writers, each in `section`, and a reader.
fn two_writers(section: fn(&Mutex<()>, &SingleWriterCounter)) {
    let (counter, lock) = (new(), Arc::new(Mutex::new(())));
    let (other_counter, other_lock) = (Arc::clone(&counter), Arc::clone(&lock));
    let writer = thread::spawn(move || section(&other_lock, &other_counter));
    let other_counter = Arc::clone(&counter);
    let reader = thread::spawn(move || assert!(other_counter.get() <= other_counter.get()));
    section(&lock, &counter);
    writer.join().unwrap();
    reader.join().unwrap();
    assert_eq!(counter.get(), 2, "an addition was lost");
}

/// Nothing is lost if the owner serialises the additions.
#[test]
fn writers_in_turn() {
    loom::model(|| {
        two_writers(|lock, counter| {
            let _guard = lock.lock().unwrap();
            counter.add(1);
        });
    });
}

#[test]
#[should_panic(expected = "an addition was lost")]
fn writers_at_once() {
    loom::model(|| two_writers(|_, counter| counter.add(1)));
}
