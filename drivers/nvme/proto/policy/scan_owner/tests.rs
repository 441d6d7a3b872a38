// SPDX-License-Identifier: GPL-2.0

use super::*;

/// Existing guards, queued work and results that were not taken, counted independently of the
/// owner.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Model {
    guards: u32,
    queued: u32,
    results: u32,
}

type TestScanOwner = ScanOwner<(), ()>;

fn steps(owner: &TestScanOwner, model: Model) -> Vec<(TestScanOwner, Model)> {
    let mut next = vec![];
    let mut step = |change: &dyn Fn(&mut TestScanOwner, &mut Model)| {
        let (mut owner, mut model) = (owner.clone(), model);
        change(&mut owner, &mut model);
        next.push((owner, model));
    };
    step(&|owner, model| model.guards += u32::from(owner.try_lock().is_ok()));
    step(&|owner, model| {
        if owner.begin_work().is_some() {
            (model.queued, model.guards) = (model.queued - 1, model.guards + 1);
        }
    });
    step(&|owner, model| model.results -= u32::from(owner.take_result().is_some()));
    if model.guards > 0 {
        let without = Model {
            guards: model.guards - 1,
            ..model
        };
        step(&|owner, model| {
            owner.unlock();
            *model = without;
        });
        step(&|owner, model| {
            owner.hand_over(());
            *model = Model {
                queued: model.queued + 1,
                ..without
            };
        });
        step(&|owner, model| {
            owner.finish(());
            *model = Model {
                results: model.results + 1,
                ..without
            };
        });
    }
    next
}

/// Walks all sequences of calls. There is at most one owner, and no work or result is lost.
#[test]
fn one_owner_at_a_time() {
    let mut seen: Vec<(TestScanOwner, Model)> = vec![];
    let mut todo = vec![(TestScanOwner::default(), Model::default())];
    while let Some(state) = todo.pop() {
        if seen.contains(&state) {
            continue;
        }
        let (owner, model) = &state;
        let expected = match owner {
            TestScanOwner::Nobody => (0, 0, 0),
            TestScanOwner::Guard => (1, 0, 0),
            TestScanOwner::Work(()) => (0, 1, 0),
            TestScanOwner::Done(()) => (0, 0, 1),
        };
        assert_eq!((model.guards, model.queued, model.results), expected);
        assert_eq!(owner.is_held(), model.guards + model.queued > 0);
        assert_eq!(owner.is_done(), model.results > 0);
        todo.extend(steps(owner, *model));
        seen.push(state);
    }
    assert_eq!(seen.len(), 4);
}

#[test]
fn work_and_results_go_through() {
    let mut owner = ScanOwner::<&str, u32>::default();
    assert_eq!(owner.try_lock(), Ok(()));
    assert_eq!(owner.try_lock(), Err(Busy));
    owner.hand_over("scan");
    assert_eq!(owner.take_result(), None);
    assert_eq!(owner.begin_work(), Some("scan"));
    assert_eq!(owner.begin_work(), None);
    owner.finish(7);
    // A new guard would lose a result that was not taken.
    assert_eq!(owner.try_lock(), Err(Busy));
    assert_eq!(owner.take_result(), Some(7));
    assert_eq!(owner, ScanOwner::Nobody);
}
