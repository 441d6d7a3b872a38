// SPDX-License-Identifier: GPL-2.0

use super::Data;
use crate::{
    planted::{model, with, Bug},
    sync::{Arc, Claim},
};
use loom::thread;

/// Creates a claim that the model knows.
fn new() -> Arc<Claim<Data>> {
    let claim = Arc::new(Claim::new(Data::new(0)));
    drop(claim.try_claim());
    claim
}

/// The number of additions is that of the claims that succeeded.
fn is_exclusive() {
    let claim = new();
    let user =
        |claim: Arc<Claim<Data>>| move || claim.try_claim().map(|data| data.bump()).is_some();
    let others = [(); 2].map(|()| thread::spawn(user(Arc::clone(&claim))));
    let mine = user(Arc::clone(&claim))();
    let succeeded = others.map(|other| other.join().unwrap());
    let succeeded = succeeded
        .into_iter()
        .chain([mine])
        .filter(|&one| one)
        .count();
    assert!(succeeded > 0, "the first claim failed");
    let data = claim.try_claim().expect("no guard is left");
    assert_eq!(data.get() as usize, succeeded);
}

/// Two completions resume the claim that the submitter kept. The second one frees it. A claim
/// succeeds only then, and sees what both wrote.
fn is_handed_over() {
    let claim = new();
    claim.try_claim().expect("it is free").keep();
    let completion = |claim: Arc<Claim<Data>>| {
        move || {
            let Some(data) = claim.try_resume() else {
                return false;
            };
            data.bump();
            if data.get() == 2 {
                data.free();
            }
            true
        }
    };
    let others = [(); 2].map(|()| thread::spawn(completion(Arc::clone(&claim))));
    if let Some(data) = claim.try_claim() {
        assert_eq!(data.get(), 2, "claimed while kept");
    }
    let resumed = others.map(|other| other.join().unwrap());
    let resumed = resumed.into_iter().filter(|&one| one).count();
    assert!(resumed > 0, "the first one failed");
    if resumed == 2 {
        assert!(claim.try_resume().is_none(), "resumed after it was freed");
        assert_eq!(claim.try_claim().expect("it was freed").get(), 2);
    } else {
        assert!(claim.try_claim().is_none(), "claimed while kept");
        assert_eq!(claim.try_resume().expect("it is kept").get(), 1);
    }
}

/// The submitter keeps the claim while a completion tries to resume it.
fn is_kept_with_its_data() {
    let claim = new();
    let other = Arc::clone(&claim);
    let other = thread::spawn(move || other.try_resume().map(|data| data.get()));
    let data = claim.try_claim().expect("it is free");
    data.set(7);
    data.keep();
    assert!(matches!(other.join().unwrap(), None | Some(7)));
}

/// A context leaves a job to the owner of the claim, which does it before it is gone.
fn leaves_no_job() {
    let claim = new();
    let other = Arc::clone(&claim);
    let other = thread::spawn(move || {
        match other.try_claim() {
            Some(jobs) => jobs.bump(),
            None => return,
        }
        if let Some(jobs) = other.claim_or_call() {
            jobs.set(0);
        }
    });
    if let Some(jobs) = claim.try_claim() {
        if let Err(jobs) = jobs.free_unless_called() {
            jobs.set(0);
        }
    }
    other.join().unwrap();
    let jobs = claim.try_claim();
    assert!(jobs.is_some_and(|jobs| jobs.get() == 0), "a job is left");
}

#[test]
fn exclusive() {
    model(is_exclusive);
}

#[test]
fn handed_over() {
    model(is_handed_over);
}

#[test]
fn kept_with_its_data() {
    model(is_kept_with_its_data);
}

#[test]
fn no_job_left() {
    model(leaves_no_job);
}

#[test]
#[should_panic(expected = "left == right")]
fn exclusive_needs_acquire() {
    with(Bug::NoAcquire, is_exclusive);
}

#[test]
#[should_panic(expected = "left == right")]
fn exclusive_needs_release() {
    with(Bug::NoRelease, is_exclusive);
}

#[test]
#[should_panic(expected = "left == right")]
fn exclusive_needs_one_exchange() {
    with(Bug::SplitExchange, is_exclusive);
}

#[test]
#[should_panic(expected = "resumed after it was freed")]
fn handed_over_needs_acquire() {
    with(Bug::NoAcquire, is_handed_over);
}

#[test]
#[should_panic(expected = "resumed after it was freed")]
fn handed_over_needs_release() {
    with(Bug::NoRelease, is_handed_over);
}

#[test]
#[should_panic(expected = "resumed after it was freed")]
fn handed_over_needs_one_exchange() {
    with(Bug::SplitExchange, is_handed_over);
}

#[test]
#[should_panic(expected = "assertion failed: matches!")]
fn kept_with_its_data_needs_acquire() {
    with(Bug::NoAcquire, is_kept_with_its_data);
}

#[test]
#[should_panic(expected = "assertion failed: matches!")]
fn kept_with_its_data_needs_release() {
    with(Bug::NoRelease, is_kept_with_its_data);
}

#[test]
#[should_panic(expected = "a job is left")]
fn no_job_left_needs_one_exchange() {
    with(Bug::SplitExchange, leaves_no_job);
}
