// SPDX-License-Identifier: GPL-2.0

//! What verbs ask of the kernel.

use crate::controller::Controller;
use crate::error::Error;
use crate::event::Notice;
use crate::namespace::Namespace;
use std::time::Instant;

/// What a connect asks for; an option that is absent is left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    /// Numeric address of the target.
    pub(crate) traddr: String,
    /// Port of the target.
    pub(crate) trsvcid: u16,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subsysnqn: String,
    /// NVMe Qualified Name of the host.
    pub(crate) hostnqn: String,
    /// Identifier of the host.
    pub(crate) hostid: [u8; 16],
    /// Numeric address to connect from.
    pub(crate) host_traddr: Option<String>,
    /// Number of I/O queues.
    pub(crate) nr_io_queues: Option<u32>,
    /// Entries of each I/O queue.
    pub(crate) queue_size: Option<u32>,
    /// Keep-alive timeout in seconds.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Milliseconds that connecting may take.
    pub(crate) connect_timeout: u32,
    /// Type of service.
    pub(crate) tos: Option<u8>,
    /// Connect even where the same controller exists.
    pub(crate) duplicate_connect: bool,
}

/// A controller that a connect made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Made {
    /// Its number.
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: String,
}

/// The operations of the family and its events.
pub(crate) trait Kernel {
    /// Start to connect.
    fn connect(&mut self, wish: &Wish) -> Result<Made, Error>;
    /// Start to disconnect; the status is `NotFound` where the controller is gone already.
    fn disconnect(&mut self, id: u32) -> Result<(), Error>;
    /// Read a controller; none where there is no such.
    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error>;
    /// Read all controllers.
    fn controllers(&mut self) -> Result<Vec<Controller>, Error>;
    /// Read the namespaces of all controllers.
    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error>;
    /// Queue events and requests to stop from now on, for `next`.
    fn subscribe(&mut self) -> Result<(), Error>;
    /// Wait for an event, until the deadline if there is one.
    fn next(&mut self, deadline: Option<Instant>) -> Result<Notice, Error>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Status;
    use crate::event::{Change, Event};
    use std::collections::VecDeque;

    /// A kernel that says what a test wrote down, and remembers what it was asked.
    #[derive(Default)]
    pub(crate) struct Script {
        pub(crate) connects: VecDeque<Result<Made, Error>>,
        pub(crate) notices: VecDeque<Notice>,
        pub(crate) controllers: Vec<Controller>,
        pub(crate) namespaces: Vec<Namespace>,
        pub(crate) wishes: Vec<Wish>,
        pub(crate) disconnected: Vec<u32>,
        pub(crate) subscribed: bool,
    }

    impl Script {
        /// Queue an event of a controller.
        pub(crate) fn tell(&mut self, change: Change, controller: Controller) {
            let event = Event::Controller(change, Box::new(controller));
            self.notices.push_back(Notice::Event(event));
        }
    }

    impl Kernel for Script {
        fn connect(&mut self, wish: &Wish) -> Result<Made, Error> {
            assert!(
                self.subscribed,
                "events may be missed: subscribe comes first"
            );
            self.wishes.push(wish.clone());
            self.connects.pop_front().expect("no connect was foreseen")
        }

        fn disconnect(&mut self, id: u32) -> Result<(), Error> {
            self.disconnected.push(id);
            match self.controllers.iter().any(|each| each.id == id) {
                true => Ok(()),
                false => Err(Error::new(Status::NotFound, "no such controller")),
            }
        }

        fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error> {
            Ok(self.controllers.iter().find(|each| each.id == id).cloned())
        }

        fn controllers(&mut self) -> Result<Vec<Controller>, Error> {
            Ok(self.controllers.clone())
        }

        fn namespaces(&mut self) -> Result<Vec<Namespace>, Error> {
            Ok(self.namespaces.clone())
        }

        fn subscribe(&mut self) -> Result<(), Error> {
            self.subscribed = true;
            Ok(())
        }

        fn next(&mut self, _deadline: Option<Instant>) -> Result<Notice, Error> {
            assert!(self.subscribed);
            Ok(self.notices.pop_front().expect("no more was foreseen"))
        }
    }
}
