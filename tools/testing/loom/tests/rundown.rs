// SPDX-License-Identifier: GPL-2.0

use super::Data;
use crate::{
    planted::{model, with, Bug},
    prelude::made,
    sync::{Arc, Rundown},
};
use loom::thread;

/// A rundown, and the object whose users it counts.
struct Guarded {
    rundown: Rundown,
    object: Data,
}

const VALID: u32 = 1;
const RELEASED: u32 = 2;

fn new() -> Arc<Guarded> {
    Arc::new(Guarded {
        rundown: made(Rundown::new()),
        object: Data::new(VALID),
    })
}

impl Guarded {
    fn check(&self) {
        assert_eq!(self.object.get(), VALID, "used after the wait");
    }

    /// Closes the rundown, and releases the object when it has no users.
    fn end(&self) -> bool {
        let closed_it = self.rundown.close();
        assert!(self.rundown.is_closed());
        self.rundown.wait(|_| ());
        assert!(self.rundown.enter().is_none(), "a user after the wait");
        closed_it
    }
}

/// Starts a thread that uses the object if the rundown is open.
fn user(guarded: &Arc<Guarded>) -> thread::JoinHandle<()> {
    let guarded = Arc::clone(guarded);
    thread::spawn(move || {
        if let Some(_user) = guarded.rundown.enter() {
            guarded.check();
            guarded.check();
        }
    })
}

/// The wait ends, and no user is left then.
fn waits_for_users() {
    let guarded = new();
    let users = [(); 2].map(|()| user(&guarded));
    assert!(guarded.end());
    guarded.object.set(RELEASED);
    for user in users {
        user.join().unwrap();
    }
}

/// A user next to a present one is waited for, too, although the rundown was closed between.
fn waits_for_next() {
    let guarded = new();
    let first = Arc::clone(&guarded);
    let first = thread::spawn(move || {
        if !first.rundown.add() {
            return;
        }
        first.rundown.add_next();
        let second = Arc::clone(&first);
        let second = thread::spawn(move || {
            second.check();
            second.rundown.remove();
        });
        first.check();
        first.rundown.remove();
        second.join().unwrap();
    });
    assert!(guarded.end());
    guarded.object.set(RELEASED);
    first.join().unwrap();
}

/// One of two closes the rundown. The waits of both end.
fn closed_once() {
    let guarded = new();
    let user = user(&guarded);
    let other = Arc::clone(&guarded);
    let other = thread::spawn(move || other.end());
    let mine = guarded.end();
    assert_ne!(mine, other.join().unwrap());
    guarded.object.set(RELEASED);
    user.join().unwrap();
}

#[test]
fn users() {
    model(waits_for_users);
}

#[test]
fn next() {
    model(waits_for_next);
}

#[test]
fn two_waits() {
    model(closed_once);
}

#[test]
#[should_panic(expected = "used after the wait")]
fn users_need_the_wait() {
    with(Bug::NoWait, waits_for_users);
}

#[test]
#[should_panic(expected = "used after the wait")]
fn next_needs_the_wait() {
    with(Bug::NoWait, waits_for_next);
}

#[test]
#[should_panic(expected = "deadlock")]
fn users_need_a_completion_that_lasts() {
    with(Bug::ForgetfulCompletion, waits_for_users);
}

#[test]
#[should_panic(expected = "deadlock")]
fn two_waits_need_a_completion_that_lasts() {
    with(Bug::ForgetfulCompletion, closed_once);
}
