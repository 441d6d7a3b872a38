// SPDX-License-Identifier: GPL-2.0

use super::{
    capsule::{Capsule, CommandKind},
    params::QueueConfig,
    send_batch::{Doorbell, SendBatch},
    slot::{Slot, SlotLookup},
    slot_state::Unsent,
};
use crate::{
    planted::model,
    prelude::Error,
    rdma::{
        qp::QueuePair,
        wr::{Operation, Unposted},
    },
    stats::{DataMode, PostPosition},
    sync::{rcu, Arc},
};
use loom::thread;
use std::{marker::PhantomData, sync::Mutex};

/// The kind of the commands of the tests. The data of a command is its tag.
struct Kind;

impl CommandKind for Kind {
    type Queue = Queue;
    type Payload = u16;
}

impl SlotLookup for Kind {
    fn slot(queue: &Queue, _: u16) -> Option<&dyn Slot<Self>> {
        Some(queue)
    }

    fn finish(_: &Queue, _: Unsent<u16>) {}
}

struct Queue {
    batch: SendBatch<Kind>,
    /// Tags of the capsules that were returned to their slots.
    returned: Mutex<Vec<u16>>,
}

impl Slot<Kind> for Queue {
    fn set_aside(&self, capsule: Operation<Capsule<Kind>>) {
        self.returned.lock().unwrap().push(capsule.tag);
    }

    fn undo(&self, _: &QueuePair<Queue>, unposted: Unposted<Capsule<Kind>>) -> Unsent<u16> {
        self.set_aside(unposted.operation);
        Unsent {
            error: unposted.error,
            payload: None,
        }
    }
}

fn new(requests: u16, error: Option<Error>) -> Arc<QueuePair<Queue>> {
    let config = QueueConfig { requests };
    let batch = SendBatch::new(&config).unwrap();
    let queue = Arc::new(QueuePair {
        context: Queue {
            batch,
            returned: Mutex::default(),
        },
        error,
        posted: Mutex::default(),
    });
    // The first accesses to the atomics.
    queue.context.batch.send(&queue, &rcu::unobserved());
    assert!(!queue.context.batch.is_waiting());
    queue
}

impl QueuePair<Queue> {
    /// Submits a command, as `Queue::submit` does.
    fn submit(&self, tag: u16, doorbell: Doorbell) {
        let (batch, guard) = (&self.context.batch, rcu::unobserved());
        let post_alone = |capsule: Operation<Capsule<Kind>>| {
            match self.error {
                Some(_) => self.context.set_aside(capsule),
                None => self.posted.lock().unwrap().push(Box::new(capsule.0)),
            }
            Ok(())
        };
        let capsule = capsule(tag);
        let sent = if doorbell == Doorbell::Defer || batch.is_waiting() {
            batch.add(self, &guard, capsule, doorbell, |_, _| Ok(()), post_alone)
        } else {
            post_alone(capsule)
        };
        assert!(sent.is_ok());
    }

    /// Submits commands together, as `Queue::submit_all` does, and the block layer then the others.
    fn submit_list(&self, tags: &[u16]) {
        let guard = rcu::unobserved();
        let Some(mut open) = self.context.batch.open(self, &guard) else {
            for tag in tags {
                self.submit(*tag, Doorbell::Ring);
            }
            return;
        };
        for tag in tags {
            assert!(open.push(capsule(*tag), DataMode::Nothing).is_ok());
        }
    }

    fn posted(&self) -> Vec<u16> {
        let posted = self.posted.lock().unwrap();
        let capsules = posted
            .iter()
            .map(|one| one.downcast_ref::<Capsule<Kind>>().unwrap());
        sorted(capsules.map(|capsule| capsule.tag).collect())
    }

    fn returned(&self) -> Vec<u16> {
        sorted(self.context.returned.lock().unwrap().clone())
    }
}

fn capsule(tag: u16) -> Operation<Capsule<Kind>> {
    Operation(Capsule {
        tag,
        position: PostPosition::First,
        kind: PhantomData,
    })
}

fn sorted(mut tags: Vec<u16>) -> Vec<u16> {
    tags.sort_unstable();
    tags
}

/// Submits two commands each in two threads.
fn submit_all(queue: &Arc<QueuePair<Queue>>) {
    let other = Arc::clone(queue);
    let other = thread::spawn(move || {
        other.submit(0, Doorbell::Defer);
        other.submit(1, Doorbell::Ring);
    });
    queue.submit(2, Doorbell::Defer);
    queue.submit(3, Doorbell::Ring);
    other.join().unwrap();
    assert!(!queue.context.batch.is_waiting());
}

/// Each command is posted once, although a submitter that rings looks at the flag only.
fn posts_each_once() {
    let queue = new(2, None);
    submit_all(&queue);
    assert_eq!(queue.posted(), [0, 1, 2, 3]);
    assert_eq!(queue.returned(), []);
}

/// Each command is returned once if none can be posted.
fn returns_each_once() {
    let queue = new(4, Some("broken"));
    submit_all(&queue);
    assert_eq!(queue.posted(), []);
    assert_eq!(queue.returned(), [0, 1, 2, 3]);
}

/// `send` posts what waits, and hides no command of another submitter.
fn sends() {
    let queue = new(4, None);
    let other = Arc::clone(&queue);
    let other = thread::spawn(move || {
        other.submit(0, Doorbell::Defer);
        other.context.batch.send(&other, &rcu::unobserved());
    });
    queue.submit(1, Doorbell::Defer);
    queue.submit(2, Doorbell::Ring);
    other.join().unwrap();
    assert!(!queue.context.batch.is_waiting());
    assert_eq!(queue.posted(), [0, 1, 2]);
}

/// A command is posted when its submitter has rung, although another submitter used the batch and has not rung.
fn rings_while_in_use(ring: fn(&QueuePair<Queue>)) {
    let queue = new(4, None);
    let other = Arc::clone(&queue);
    let other = thread::spawn(move || {
        other.submit(0, Doorbell::Defer);
        ring(&other);
    });
    queue.submit(1, Doorbell::Defer);
    other.join().unwrap();
    assert!(
        queue.posted().contains(&0),
        "a command waits for another submitter"
    );
    queue.context.batch.send(&queue, &rcu::unobserved());
    assert!(queue.posted().starts_with(&[0, 1]));
}

fn sends_while_in_use() {
    rings_while_in_use(|queue| queue.context.batch.send(queue, &rcu::unobserved()));
}

fn submits_while_in_use() {
    rings_while_in_use(|queue| queue.submit(2, Doorbell::Ring));
}

/// Each command of a list is posted once, and with it those that wait.
fn lists() {
    let queue = new(2, None);
    let other = Arc::clone(&queue);
    let other = thread::spawn(move || {
        other.submit_list(&[0, 1, 2]);
    });
    queue.submit(3, Doorbell::Defer);
    queue.submit(4, Doorbell::Ring);
    other.join().unwrap();
    assert!(!queue.context.batch.is_waiting());
    assert_eq!(queue.posted(), [0, 1, 2, 3, 4]);
}

/// `abandon` returns what waits, after the submitters have left. One may have found the batch in use.
fn abandons() {
    let queue = new(4, None);
    let others = [0, 1].map(|tag| {
        let queue = Arc::clone(&queue);
        thread::spawn(move || queue.submit(tag, Doorbell::Defer))
    });
    for other in others {
        other.join().unwrap();
    }
    queue.context.batch.abandon(&queue.context);
    assert!(!queue.returned().is_empty());
    assert_eq!(sorted([queue.posted(), queue.returned()].concat()), [0, 1]);
}

#[test]
fn posts() {
    model(posts_each_once);
}

#[test]
fn returns() {
    model(returns_each_once);
}

#[test]
fn list() {
    model(lists);
}

#[test]
fn send() {
    model(sends);
}

#[test]
fn send_while_in_use() {
    model(sends_while_in_use);
}

#[test]
fn submit_while_in_use() {
    model(submits_while_in_use);
}

#[test]
fn abandon() {
    model(abandons);
}
