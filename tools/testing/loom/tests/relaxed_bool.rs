// SPDX-License-Identifier: GPL-2.0

use super::Data;
use crate::{
    planted::model,
    sync::{Arc, RelaxedBool},
};
use loom::thread;

/// Creates a flag that the model knows.
fn new() -> Arc<RelaxedBool> {
    let flag = Arc::new(RelaxedBool::new(false));
    assert!(!flag.get());
    flag
}

/// A reader never sees a flag clear that it saw set, unless someone clears it.
#[test]
fn stays_set() {
    model(|| {
        let flag = new();
        let readers = [(); 2].map(|()| {
            let flag = Arc::clone(&flag);
            thread::spawn(move || assert!(!flag.get() || flag.get()))
        });
        flag.set(true);
        assert!(flag.get(), "the setter sees its own store");
        for reader in readers {
            reader.join().unwrap();
        }
    });
}

/// The flag orders no other accesses, as its documentation says.
#[test]
#[should_panic(expected = "the flag does not order this")]
fn orders_nothing() {
    model(|| {
        let (flag, data) = (new(), Arc::new(Data::new(0)));
        let (other_flag, other_data) = (Arc::clone(&flag), Arc::clone(&data));
        let reader = thread::spawn(move || {
            if other_flag.get() {
                assert_eq!(other_data.get(), 1, "the flag does not order this");
            }
        });
        data.set(1);
        flag.set(true);
        reader.join().unwrap();
    });
}
