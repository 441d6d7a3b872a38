// SPDX-License-Identifier: GPL-2.0

//! The life of a controller, in its own thread.

use super::{
    errand::Errand,
    session::Session,
    setup,
    Admin,
    Controller,
    Inventory,
    IDLE, //
};
use crate::{
    failure::Failure,
    namespace,
    netlink::uapi::ErrorStage, //
};
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering,
        Arc, //
    },
};
use nvme_wire::{
    keep_alive::KeepAlive,
    state::State, //
};
use rrdma::sync::{
    Deadline,
    Msecs, //
};

impl Controller {
    /// From connecting to when nothing is left of it but references. Sleeps.
    pub(crate) fn run(this: &Arc<Self>) {
        this.enter(State::Connecting, None);
        match setup::connect(this) {
            Ok((session, inventory)) => this.connected(session, &inventory),
            Err(failure) => this.fail(failure),
        }
        this.enter(State::Deleting, None);
        this.host.retire(this);
    }

    /// The queues are ready: the disks are next.
    fn connected(self: &Arc<Self>, session: Session, inventory: &Inventory) {
        match self.make_disks(&session, inventory) {
            Ok(()) => self.live(session),
            Err(failure) => {
                session.tear_down();
                self.finish_errand();
                self.remove_namespaces();
                self.fail(failure);
            }
        }
    }

    fn make_disks(
        self: &Arc<Self>,
        session: &Session,
        inventory: &Inventory,
    ) -> Result<(), Failure> {
        let admin = Admin {
            queue: &session.admin,
            controller: self,
            deadline: inventory.deadline,
        };
        let found = namespace::find(self, &admin, inventory)?;
        self.start_errand(Errand::MakeDisks(found));
        self.serve(session, inventory.deadline, || {
            let stage = ErrorStage::Namespaces;
            if self.is_deleting() {
                return Some(Err(Failure::cancelled(stage)));
            }
            if inventory.deadline.left() == Msecs::new(0) {
                let limit = self.options.connect_timeout.get();
                return Some(Err(Failure::new(
                    stage,
                    ETIMEDOUT,
                    format_args!("the disks could not be read within {limit} ms"),
                )));
            }
            self.take_errand()
        })?
    }

    /// From the first moment of being connected to removal.
    fn live(self: &Arc<Self>, session: Session) {
        self.enter(State::Live, None);
        self.log(format_args!("connected to {}", self.options.subsystem()));
        match self.serve(&session, Deadline::NEVER, || {
            self.is_deleting().then_some(())
        }) {
            Ok(()) => self.remove_live(session),
            Err(failure) => {
                self.enter(State::Resetting, Some(failure));
                session.tear_down();
                self.fail(failure);
                self.await_removal();
                self.enter(State::Deleting, None);
                self.remove_namespaces();
            }
        }
    }

    /// Removes a controller whose connection works: its disks write back what
    /// they hold, and the target is told.
    fn remove_live(self: &Arc<Self>, session: Session) {
        self.enter(State::Deleting, None);
        self.removing.store(true, ordering::Relaxed);
        self.start_errand(Errand::DeleteDisks);
        match self.serve(&session, Deadline::NEVER, || self.take_errand()) {
            Ok(_) => session.shut_down(self),
            Err(failure) => self.log(format_args!("{}", failure.message.as_str())),
        }
        session.tear_down();
        self.finish_errand();
        self.release_device();
    }

    /// Keeps the connection alive until `over` answers, or trouble comes. `over`
    /// is asked whenever the thread is woken, and at `moment`, when it must answer.
    fn serve<R>(
        &self,
        session: &Session,
        moment: Deadline,
        mut over: impl FnMut() -> Option<R>,
    ) -> Result<R, Failure> {
        let keep_alive = KeepAlive::new(self.options.keep_alive_ms(), session.traffic_keeps_alive);
        let period = keep_alive.map_or(IDLE, |k| Msecs::new(k.period_ms()));
        let mut next = Deadline::after(period);
        loop {
            if let Some(trouble) = self.alarm.trouble() {
                return Err(trouble.into());
            }
            if let Some(answer) = over() {
                return Ok(answer);
            }
            let left = next.left();
            if left > Msecs::new(0) {
                self.wait(left.min(moment.left()));
                continue;
            }
            if let Some(keep_alive) = keep_alive {
                if keep_alive.is_due(session.take_traffic()) {
                    session.keep_alive(self, Msecs::new(keep_alive.timeout_ms()))?;
                }
            }
            next = Deadline::after(period);
        }
    }

    /// The connection failed, for good.
    fn fail(&self, failure: Failure) {
        self.release_device();
        self.enter(State::Dead, Some(failure));
        self.log(format_args!("{}", failure.message.as_str()));
    }

    fn await_removal(&self) {
        while !self.is_deleting() {
            self.wait(IDLE);
        }
    }

    /// Waits for an errand that may be under way, after its I/O was ended.
    fn finish_errand(&self) {
        while self.has_errand() {
            self.wait(IDLE);
        }
    }
}
