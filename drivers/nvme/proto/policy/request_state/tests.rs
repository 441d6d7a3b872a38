// SPDX-License-Identifier: GPL-2.0

use super::*;
use std::collections::BTreeSet;

/// All states, in the order of their numbers.
const ALL: [RequestState; 9] = [
    RequestState::Idle,
    RequestState::Posted,
    RequestState::PostedRegion,
    RequestState::Sent,
    RequestState::SentRegion,
    RequestState::Answered,
    RequestState::AnsweredRegion,
    RequestState::Invalidating,
    RequestState::Broken,
];

const EVENTS: [RequestEvent; 10] = [
    RequestEvent::Post { region: false },
    RequestEvent::Post { region: true },
    RequestEvent::PostFailed,
    RequestEvent::SendDone,
    RequestEvent::Response(RemoteInvalidation::None),
    RequestEvent::Response(RemoteInvalidation::Own),
    RequestEvent::Response(RemoteInvalidation::Foreign),
    RequestEvent::LocalInvalidateDone,
    RequestEvent::NotReleased,
    RequestEvent::Drained,
];

/// The table of transitions, written independently of the code. For each state, in the order of the
/// events above: the next state and a letter for the action. Letters are `.` wait, `I` invalidate,
/// `C` complete, and the errors `n` not posted, `p` already posted, `s` already sent, `a` already
/// answered, `i` not invalidating, `u` unexpected invalidation, `w` wrong invalidation, `r` unproven
/// invalidation.
const TABLE: [&str; 9] = [
    // post, with region, failed, sent, response, own, foreign, local, not released, drained
    "1. 2. 0n 0n 0n 0n 0n 0n 8r 0.", // idle
    "8p 8p 0. 3. 5. 8u 8u 8i 8r 0C", // posted
    "8p 8p 0. 4. 6. 5. 8w 8i 8r 0C", // posted, region
    "8p 8p 8s 8s 0C 8u 8u 8i 8r 0C", // sent
    "8p 8p 8s 8s 7I 0C 8w 8i 8r 0C", // sent, region
    "8p 8p 8s 0C 8a 8a 8a 8i 8r 0C", // answered
    "8p 8p 8s 7I 8a 8a 8a 8i 8r 0C", // answered, region
    "8p 8p 8s 8s 8a 8a 8a 0C 8r 0C", // invalidating
    "8p 8p 8. 8. 8. 8. 8. 8. 8. 0C", // broken
];

fn letter(outcome: RequestAction) -> char {
    match outcome {
        RequestAction::Wait => '.',
        RequestAction::PostLocalInvalidate => 'I',
        RequestAction::Complete => 'C',
        RequestAction::ProtocolError(error) => match error {
            ProtocolError::NotPosted => 'n',
            ProtocolError::AlreadyPosted => 'p',
            ProtocolError::AlreadySent => 's',
            ProtocolError::AlreadyAnswered => 'a',
            ProtocolError::NotInvalidating => 'i',
            ProtocolError::UnexpectedInvalidation => 'u',
            ProtocolError::WrongInvalidation => 'w',
            ProtocolError::UnprovenInvalidation => 'r',
        },
    }
}

#[test]
fn every_state_and_event() {
    for (state, row) in ALL.into_iter().zip(TABLE) {
        let cells: Vec<&str> = row.split(' ').collect();
        assert_eq!(cells.len(), EVENTS.len());
        for (event, cell) in EVENTS.into_iter().zip(cells) {
            let (after, outcome) = state.after(event);
            let actual = format!("{}{}", after as u8, letter(outcome));
            assert_eq!(actual, cell, "{state:?} {event:?}");
        }
    }
}

#[test]
fn the_common_cases_are_those_of_any_order() {
    for state in ALL {
        let (after, outcome) = state.after(RequestEvent::SendDone);
        let is_first = !matches!(state, RequestState::Broken) && outcome == RequestAction::Wait;
        assert_eq!(state.sent_first(), is_first.then_some(after), "{state:?}");
        for invalidation in [
            RemoteInvalidation::None,
            RemoteInvalidation::Own,
            RemoteInvalidation::Foreign,
        ] {
            let (after, outcome) = state.after(RequestEvent::Response(invalidation));
            let is_last = outcome == RequestAction::Complete;
            let completed = state.completed_by(invalidation);
            assert_eq!(
                completed,
                is_last.then_some(after),
                "{state:?} {invalidation:?}"
            );
            let is_early = after == RequestState::Answered && outcome == RequestAction::Wait;
            assert_eq!(
                state.answered_first(invalidation),
                is_early.then_some(after),
                "{state:?} {invalidation:?}"
            );
        }
    }
}

/// True state of a request, tracked without the state machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
struct Model {
    posted: bool,
    send_pending: bool,
    answer_pending: bool,
    region_valid: bool,
    broken: bool,
}

impl Model {
    fn apply(mut self, event: RequestEvent, outcome: RequestAction) -> Self {
        match event {
            RequestEvent::Post { region } if !self.posted => {
                return Self {
                    posted: true,
                    send_pending: true,
                    answer_pending: true,
                    region_valid: region,
                    broken: false,
                };
            }
            RequestEvent::PostFailed | RequestEvent::Drained => return Self::default(),
            RequestEvent::SendDone => self.send_pending = false,
            RequestEvent::Response(invalidation) => {
                self.answer_pending = false;
                if invalidation == RemoteInvalidation::Own {
                    self.region_valid = false;
                }
            }
            RequestEvent::LocalInvalidateDone => self.region_valid = false,
            RequestEvent::NotReleased => {
                self.posted = true;
                self.region_valid = true;
            }
            RequestEvent::Post { .. } => {}
        }
        self.broken |= matches!(outcome, RequestAction::ProtocolError(_));
        self
    }
}

/// Walks all sequences of events, and checks when a request completes.
#[test]
fn completes_only_when_all_is_over() {
    let mut seen = BTreeSet::new();
    let mut todo = vec![(RequestState::Idle, Model::default())];
    while let Some((state, model)) = todo.pop() {
        if !seen.insert((state as u8, model)) {
            continue;
        }
        for event in EVENTS {
            let (after, outcome) = state.after(event);
            let mut real = model;
            let is_posted = state != RequestState::Idle || event == RequestEvent::NotReleased;
            if is_posted || outcome == RequestAction::Wait {
                real = model.apply(event, outcome);
            }
            if outcome == RequestAction::Complete {
                let over = !real.send_pending && !real.answer_pending && !real.region_valid;
                assert!(over && !real.broken, "{state:?} {event:?} {real:?}");
                assert_eq!(after, RequestState::Idle);
                real = Model::default();
            }
            todo.push((after, real));
        }
    }
    let reached: BTreeSet<u8> = seen.iter().map(|(state, _)| *state).collect();
    assert_eq!(reached.len(), ALL.len());
}

#[test]
fn a_request_that_is_not_released_ends_at_the_drain() {
    let answer = RequestEvent::Response(RemoteInvalidation::Own);
    let (mut state, outcome) = RequestState::SentRegion.after(answer);
    assert_eq!(outcome, RequestAction::Complete);
    let error = RequestAction::ProtocolError(ProtocolError::UnprovenInvalidation);
    for (event, outcome) in [
        (RequestEvent::NotReleased, error),
        (answer, RequestAction::Wait),
        (RequestEvent::NotReleased, RequestAction::Wait),
        (RequestEvent::Drained, RequestAction::Complete),
    ] {
        let (after, actual) = state.after(event);
        assert_eq!(actual, outcome, "{event:?}");
        state = after;
    }
    assert_eq!(state, RequestState::Idle);
}

#[test]
fn each_error_has_a_message() {
    let errors = ALL
        .iter()
        .flat_map(|state| EVENTS.map(|event| state.after(event).1));
    let errors = errors.filter_map(|outcome| match outcome {
        RequestAction::ProtocolError(error) => Some((letter(outcome), error.to_string())),
        _ => None,
    });
    let errors: BTreeSet<(char, String)> = errors.collect();
    let messages: BTreeSet<&str> = errors.iter().map(|(_, message)| &**message).collect();
    assert_eq!((errors.len(), messages.len()), (8, 8));
}

#[test]
fn numbers() {
    for (state, number) in ALL.into_iter().zip(0..) {
        assert_eq!(state as u8, number);
    }
}
