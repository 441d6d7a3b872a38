// SPDX-License-Identifier: GPL-2.0

use super::Data;
use crate::{
    planted::{model, with, Bug},
    sync::{rcu, Arc, RcuSlot},
};
use loom::thread;

/// Content of an object that is valid. It is `RELEASED` after its last use.
const VALID: u32 = 1;
const RELEASED: u32 = 2;

/// Creates an empty slot that the model knows.
fn empty() -> Arc<RcuSlot<Data>> {
    let slot = Arc::new(RcuSlot::new());
    assert!(slot.read(&rcu::read_lock()).is_none());
    slot
}

fn full() -> Arc<RcuSlot<Data>> {
    let slot = empty();
    assert!(slot.publish(Arc::new(Data::new(VALID))).is_none());
    slot
}

/// Starts a thread that reads the slot, and uses the object.
fn reader(slot: &Arc<RcuSlot<Data>>) -> thread::JoinHandle<()> {
    let slot = Arc::clone(slot);
    thread::spawn(move || {
        let guard = rcu::read_lock();
        let Some(object) = slot.read(&guard) else {
            return;
        };
        assert_eq!(object.get(), VALID, "not yet, or no longer valid");
        assert_eq!(object.get(), VALID, "released under the guard");
    })
}

fn release(object: Option<Arc<Data>>) -> bool {
    object.inspect(|object| object.set(RELEASED)).is_some()
}

/// Who sees the object sees its content.
fn publishes_content() {
    let slot = empty();
    let readers = [(); 2].map(|()| reader(&slot));
    assert!(slot.publish(Arc::new(Data::new(VALID))).is_none());
    for reader in readers {
        reader.join().unwrap();
    }
}

/// The object that was taken is no longer used.
fn takes_unused() {
    let slot = full();
    let reader = reader(&slot);
    assert!(release(slot.take()));
    assert!(slot.read(&rcu::read_lock()).is_none());
    reader.join().unwrap();
}

/// The object that was replaced is no longer used, and the new one is valid.
fn replaces_unused() {
    let slot = full();
    let reader = reader(&slot);
    assert!(release(slot.publish(Arc::new(Data::new(VALID)))));
    reader.join().unwrap();
}

/// Of two that take, one gets the object.
fn taken_once() {
    let slot = full();
    let other = Arc::clone(&slot);
    let other = thread::spawn(move || release(other.take()));
    let mine = release(slot.take());
    assert_ne!(mine, other.join().unwrap());
}

/// The objects of slots that were cleared are no longer used.
fn clears_unused() {
    let slots = [full(), empty(), full()];
    let reader = reader(&slots[2]);
    RcuSlot::clear_all(slots.iter().map(|slot| &**slot));
    assert!(slots[2].read(&rcu::read_lock()).is_none());
    reader.join().unwrap();
}

#[test]
fn content() {
    model(publishes_content);
}

#[test]
fn take() {
    model(takes_unused);
}

#[test]
fn replace() {
    model(replaces_unused);
}

#[test]
fn clear() {
    model(clears_unused);
}

#[test]
fn take_once() {
    model(taken_once);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn content_needs_acquire() {
    with(Bug::NoAcquire, publishes_content);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn content_needs_release() {
    with(Bug::NoRelease, publishes_content);
}

#[test]
#[should_panic(expected = "used after its release")]
fn take_needs_a_grace_period() {
    with(Bug::NoGracePeriod, takes_unused);
}

#[test]
#[should_panic(expected = "used after its release")]
fn replace_needs_a_grace_period() {
    with(Bug::NoGracePeriod, replaces_unused);
}

#[test]
#[should_panic(expected = "used after its release")]
fn clear_needs_a_grace_period() {
    with(Bug::NoGracePeriod, clears_unused);
}

#[test]
#[should_panic(expected = "Causality violation")]
fn replace_needs_release() {
    with(Bug::NoRelease, replaces_unused);
}

#[test]
#[should_panic(expected = "released twice")]
fn take_once_needs_one_exchange() {
    with(Bug::SplitExchange, taken_once);
}
