// SPDX-License-Identifier: GPL-2.0

//! The life of a controller, in its own thread.

use super::{
    errand::Errand,
    session::{
        Fate,
        Line,
        Session, //
    },
    setup,
    turn::Turn,
    watch::Watch,
    Admin,
    Controller,
    Sender,
    IDLE, //
};
use crate::{
    failure::Failure,
    namespace::{
        self,
        Found, //
    },
    netlink::uapi::ErrorStage, //
};
use core::ops::ControlFlow;
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering,
        Arc, //
    },
};
use nvme_proto::{
    format::changed_namespaces::ChangedNamespaces,
    policy::{
        keep_alive::KeepAlive,
        rescan_backoff::{
            Looks,
            Outcome, //
        },
        state::State,
    },
};
use rrdma::{
    memory,
    random,
    sync::{
        Deadline,
        Msecs, //
    }, //
};

/// How often we poll for others.
const POLL: Msecs = Msecs::new(10);

/// The longest that a request waits to be sent again, because the target wants so, while its disk
/// is being deleted.
const RETRY: Msecs = Msecs::from_secs(1);

/// What somebody wants of a controller that is live.
enum Wish<'a> {
    /// For which it is our turn.
    Removal(Turn<'a>),
    Reset,
}

/// When the disks are brought in line again with what there is, as something of it is missing.
struct Again {
    looks: Looks,
    next: Deadline,
}

impl Again {
    fn new() -> Self {
        Self {
            looks: Looks::default(),
            next: Deadline::NEVER,
        }
    }

    /// Takes note of how an errand ended; another attempt at the hardware queues is for the next
    /// connection.
    fn note(&mut self, done: &Result<(), Failure>, controller: &Controller) {
        let outcome = match done {
            Err(failure) if failure.stage == ErrorStage::Queues => return,
            Err(failure) if failure.is_final() => Outcome::Lasting,
            Ok(()) if !controller.may_refusals_pass() => Outcome::Done,
            _ => Outcome::Passing,
        };
        let pause = self.looks.after(outcome, random::number());
        self.next = pause.map_or(Deadline::NEVER, |ms| Deadline::after(Msecs::new(ms)));
    }

    /// Whether a look is due.
    fn is_due(&self) -> bool {
        self.next.left() == Msecs::new(0)
    }
}

impl Controller {
    /// From connecting to when nothing is left of it but references. Sleeps.
    pub(crate) fn run(this: &Arc<Self>) {
        // Users with commands of their own find the first disks made.
        let turn = this.own_turn();
        this.enter(State::Connecting, None);
        match setup::connect(this) {
            // From here on I/O may wait for this thread, also that by which memory is made free.
            Ok(session) => memory::without_io(|| this.connected(session, turn)),
            Err(failure) => this.fail(&failure),
        }
        this.enter(State::Deleting, None);
        let inventory = this.inventory.lock().take();
        drop(inventory);
        this.leave_sysfs();
        this.host.retire(this);
    }

    /// The queues are ready: the disks are next.
    fn connected(self: &Arc<Self>, session: KBox<Session>, turn: Turn<'_>) {
        *self.inventory.lock() = Some(session.inventory.clone());
        match self.make_disks(&session, turn) {
            Ok(()) => self.live(session),
            Err(failure) => {
                session.tear_down(Fate::Fail);
                // Nothing is left on it, and its removal need not wait for disks.
                self.release_device();
                self.end_disks();
                self.fail(&failure);
            }
        }
    }

    /// Shows the controller in sysfs, and has its first disks made.
    fn make_disks(self: &Arc<Self>, session: &Session, turn: Turn<'_>) -> Result<(), Failure> {
        self.enter_sysfs()?;
        let inventory = &*session.inventory;
        let admin = Admin {
            sender: Sender::Thread(&session.admin),
            controller: self,
            deadline: inventory.deadline,
        };
        let found = namespace::find(self, &admin, inventory, ChangedNamespaces::default())?;
        self.start_errand(turn, Errand::Follow(found));
        self.serve_until(session, inventory.deadline, || {
            let stage = ErrorStage::Namespaces;
            if self.is_deleting() {
                return ControlFlow::Break(Err(Failure::cancelled(stage)));
            }
            if inventory.deadline.left() == Msecs::new(0) {
                let limit = inventory.deadline.span().get();
                return ControlFlow::Break(Err(Failure::new(
                    stage,
                    ETIMEDOUT,
                    format_args!("the disks could not be read within {limit} ms"),
                )));
            }
            match self.take_errand() {
                Some(done) => ControlFlow::Break(done),
                None => ControlFlow::Continue(inventory.deadline),
            }
        })?
    }

    /// From the first moment of being connected to removal.
    fn live(self: &Arc<Self>, mut session: KBox<Session>) {
        let first = session.inventory.clone();
        let (mut found, mut watch) = (None, Watch::new());
        loop {
            *self.inventory.lock() = Some(session.inventory.clone());
            self.enter(State::Live, None);
            self.log(format_args!("connected to {}", self.options.subsystem()));
            watch.begin(session.events);
            let ended = match self.serve_disks(&session, &mut found, &mut watch) {
                Ok(Wish::Removal(turn)) => return self.remove_live(session, turn),
                Ok(Wish::Reset) => Ok(()),
                Err(failure) => Err(failure),
            };
            let again = match ended {
                Ok(()) => self.reset(session, &first),
                Err(failure) => self.recover(session, &first, failure),
            };
            match again {
                Some((again, now)) => (session, found) = (again, Some(now)),
                None => break,
            }
        }
        self.await_removal();
        self.enter(State::Deleting, None);
        self.end_disks();
    }

    /// Removes the disks of a connection that is gone.
    fn end_disks(&self) {
        // The I/O that its holder waits for has ended.
        let turn = self.own_turn();
        turn.remove_namespaces();
    }

    /// Serves until something is wished for. Meanwhile the disks follow what the connection is
    /// now, what was `found` after connecting again, and what the target then tells.
    fn serve_disks<'a>(
        self: &'a Arc<Self>,
        session: &Session,
        found: &mut Option<Found>,
        watch: &mut Watch,
    ) -> Result<Wish<'a>, Failure> {
        // What does not work once is not tried again before the next connection.
        let mut queues = Some(session.queues());
        let mut again = Again::new();
        if found.is_none() {
            // The first disks are made.
            again.note(&Ok(()), self);
        }
        self.serve(session, || {
            if let Some(done) = self.take_errand() {
                again.note(&done, self);
                if let Err(failure) = done {
                    self.warn(format_args!("{}", failure.message()));
                }
                // The disks may have other hardware queues now.
                session.place();
            }
            let queue = session.admin.queue_pair();
            let next = watch.attend(self, queue, |event| self.act(event));
            if self.is_resetting() && !self.is_deleting() {
                return ControlFlow::Break(Wish::Reset);
            }
            let Some(turn) = self.turn_now() else {
                // Whoever has it wakes us when it is over.
                return ControlFlow::Continue(next);
            };
            let tag_set = &session.tag_set;
            if let Some(queues) = queues.take().filter(|n| *n != tag_set.queues()) {
                self.start_errand(turn, Errand::SetQueues(tag_set.clone(), queues));
            } else if let Some(found) = found.take() {
                self.start_errand(turn, Errand::Follow(found));
            } else if self.is_deleting() {
                return ControlFlow::Break(Wish::Removal(turn));
            } else if self.is_scan_due() || again.is_due() {
                again.next = Deadline::NEVER;
                self.start_errand(turn, Errand::Scan(session.inventory.clone()));
            }
            ControlFlow::Continue(next.min(again.next))
        })
    }

    /// Removes a controller whose connection works: its disks write back what
    /// they hold, and the target is told.
    fn remove_live(self: &Arc<Self>, session: KBox<Session>, turn: Turn<'_>) {
        self.enter(State::Deleting, None);
        self.removing.store(true, ordering::Relaxed);
        self.start_errand(turn, Errand::DeleteDisks);
        let mut retry = Deadline::after(RETRY);
        let disks = self.serve(&*session, || {
            if let Some(done) = self.take_errand() {
                return ControlFlow::Break(done);
            }
            if retry.left() == Msecs::new(0) {
                session.tag_set.kick_requeued();
                retry = Deadline::after(RETRY);
            }
            ControlFlow::Continue(retry)
        });
        match disks {
            Ok(_) => session.shut_down(self),
            Err(failure) => self.warn(format_args!("{}", failure.message())),
        }
        session.tear_down(Fate::Fail);
        // Nothing is left on it, and its removal need not wait for disks.
        self.release_device();
        // After the errand, whose I/O was ended.
        drop(self.own_turn());
    }

    /// Keeps a connection alive until `over` breaks, or trouble comes. `over` is asked
    /// whenever the thread is woken, and at the moment that it says.
    pub(super) fn serve<R>(
        &self,
        line: &impl Line,
        over: impl FnMut() -> ControlFlow<R, Deadline>,
    ) -> Result<R, Failure> {
        self.serve_until(line, Deadline::NEVER, over)
    }

    /// The same where it is over by the `deadline`: so long an answer is waited for at most.
    fn serve_until<R>(
        &self,
        line: &impl Line,
        deadline: Deadline,
        mut over: impl FnMut() -> ControlFlow<R, Deadline>,
    ) -> Result<R, Failure> {
        let keep_alive = KeepAlive::new(self.options.keep_alive_ms(), line.traffic_keeps_alive());
        let period = keep_alive.map_or(IDLE, |k| Msecs::new(k.period_ms()));
        let mut next = Deadline::after(period).min(self.next_sign_of_life());
        loop {
            if let Some(trouble) = self.alarm.trouble() {
                return Err(trouble.into());
            }
            let moment = match over() {
                ControlFlow::Break(answer) => return Ok(answer),
                ControlFlow::Continue(moment) => moment,
            };
            let left = next.left();
            if left > Msecs::new(0) {
                let limit = left.min(moment.left());
                // Who has the turn waits for requests, also of who does not poll.
                let polls = self.is_turn_taken() && line.poll();
                self.wait(if polls { limit.min(POLL) } else { limit });
                continue;
            }
            if let Some(keep_alive) = keep_alive {
                if keep_alive.is_due(line.take_traffic()) {
                    let limit = Msecs::new(keep_alive.timeout_ms());
                    self.keep_alive(line.admin(), Deadline::after(limit).min(deadline))?;
                }
            }
            next = Deadline::after(period);
        }
    }

    /// The connection failed, for good.
    pub(super) fn fail(&self, failure: &Failure) {
        self.release_device();
        self.enter(State::Dead, Some(failure));
        let message = failure.message();
        match self.is_deleting() {
            // Whoever wants that knows.
            true => self.log(format_args!("{message}")),
            false => self.log_error(format_args!("{message}")),
        }
    }

    fn await_removal(&self) {
        while !self.is_deleting() {
            // Nobody needs to know any more how an errand ended, and others may have the turn.
            let _ = self.take_errand();
            self.wait(IDLE);
        }
    }
}
