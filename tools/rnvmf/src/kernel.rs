// SPDX-License-Identifier: GPL-2.0

//! What verbs ask of the kernel.

use crate::address::Endpoint;
use crate::controller::Controller;
use crate::discovery::DiscoveryLog;
use crate::error::Error;
use crate::event::WaitResult;
use crate::namespace::Namespace;
use crate::stats::QueueStats;
use crate::uapi::LOSS_TMO_NEVER;
use std::time::Instant;

/// The subsystem of a target, and how it is reached; an option that is absent is left to the
/// kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
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
    /// Milliseconds that connecting may take.
    pub(crate) connect_timeout: u32,
    /// Type of service.
    pub(crate) tos: Option<u8>,
}

impl Target {
    /// Where it is.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.traddr, self.trsvcid)
    }
}

/// What a connect asks for; an option that is absent is left to the kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectArgs {
    /// Of what.
    pub(crate) target: Target,
    /// Number of I/O queues.
    pub(crate) nr_io_queues: Option<u32>,
    /// Number of I/O queues for writes only.
    pub(crate) nr_write_queues: Option<u32>,
    /// Number of I/O queues for polled requests.
    pub(crate) nr_poll_queues: Option<u32>,
    /// Entries of each I/O queue.
    pub(crate) queue_size: Option<u32>,
    /// Keep-alive timeout in seconds.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// The target need not tell how far it is in its queues.
    pub(crate) disable_sqflow: bool,
    /// What to do when the connection is lost.
    pub(crate) reconnect: ReconnectOptions,
    /// Connect even where the same controller exists.
    pub(crate) duplicate_connect: bool,
}

/// What a controller does when its connection is lost; an option that is absent is as it was, or
/// left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReconnectOptions {
    /// Longest pause between attempts to connect again, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
    /// Seconds after a loss that attempts go on for.
    pub(crate) ctrl_loss_tmo: Option<u32>,
    /// Seconds after a loss that I/O waits.
    pub(crate) fast_io_fail_tmo: Option<u32>,
}

impl ReconnectOptions {
    /// What of it has no effect, where `now` is what is left as it is: when no more attempts are made
    /// I/O fails in any case.
    pub(crate) fn ineffective(&self, now: &Self) -> Option<String> {
        self.ctrl_loss_tmo.or(self.fast_io_fail_tmo)?;
        let attempts = self.ctrl_loss_tmo.or(now.ctrl_loss_tmo)?;
        let wait = self.fast_io_fail_tmo.or(now.fast_io_fail_tmo)?;
        // No end is the highest number.
        (attempts < wait && wait != LOSS_TMO_NEVER).then(|| {
            format!(
                "a --fast_io_fail_tmo of {wait} s has no effect, as --ctrl-loss-tmo is {attempts} s"
            )
        })
    }
}

/// What can be changed of a controller; what is absent stays as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Settings {
    /// What to do when the connection is lost.
    pub(crate) reconnect: ReconnectOptions,
    /// Milliseconds that an attempt to connect may take.
    pub(crate) connect_timeout: Option<u32>,
}

/// How a discovery controller is followed; an option that is absent is left to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PersistentArgs {
    /// Keep-alive timeout in seconds.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Longest pause between attempts to connect, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
}

/// A controller that a connect made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewController {
    /// Its number.
    pub(crate) id: u32,
    /// Its name.
    pub(crate) name: String,
}

/// The operations of the family and its events.
pub(crate) trait Kernel {
    /// Start to connect.
    fn connect(&mut self, connect_args: &ConnectArgs) -> Result<NewController, Error>;
    /// Start to disconnect; the status is `NotFound` where the controller is gone already.
    fn disconnect(&mut self, id: u32) -> Result<(), Error>;
    /// Start to reset; then the state is no longer live, and there is no error.
    fn reset(&mut self, id: u32) -> Result<(), Error>;
    /// Start to look at the namespaces, and get the number of that look; then there is no error.
    fn rescan(&mut self, id: u32) -> Result<u32, Error>;
    /// Change settings.
    fn set(&mut self, id: u32, settings: &Settings) -> Result<(), Error>;
    /// Read a controller; none where there is no such.
    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error>;
    /// Read all controllers, in the order of their names.
    fn controllers(&mut self) -> Result<Vec<Controller>, Error>;
    /// Read the namespaces of all controllers.
    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error>;
    /// Start to ask a discovery controller, once or from now on.
    fn discover(&mut self, target: &Target, follow: Option<PersistentArgs>) -> Result<u32, Error>;
    /// Read what a discovery has found; none while it is under way.
    fn log(&mut self, id: u32) -> Result<Option<DiscoveryLog>, Error>;
    /// End a discovery.
    fn forget(&mut self, id: u32);
    /// Read what the queues of a controller have done, or those of all.
    fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error>;
    /// Measure the time that a controller's commands take, or do not.
    fn measure(&mut self, id: u32, on: bool) -> Result<(), Error>;
    /// Queue events and requests to stop from now on, for `next`.
    fn subscribe(&mut self) -> Result<(), Error>;
    /// Wait for an event, until the deadline if there is one.
    fn next(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error>;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::error::Status;
    use crate::event::{Change, Event};
    use std::collections::VecDeque;

    /// A kernel that says what a test wrote down, and remembers what it was asked.
    #[derive(Default)]
    pub(crate) struct MockKernel {
        pub(crate) connects: VecDeque<Result<NewController, Error>>,
        pub(crate) wait_results: VecDeque<WaitResult>,
        pub(crate) controllers: Vec<Controller>,
        pub(crate) namespaces: Vec<Namespace>,
        pub(crate) queues: Vec<QueueStats>,
        pub(crate) measured: Vec<(u32, bool)>,
        pub(crate) connect_requests: Vec<ConnectArgs>,
        pub(crate) disconnected: Vec<u32>,
        pub(crate) reset: Vec<u32>,
        pub(crate) rescans: VecDeque<Result<u32, Error>>,
        pub(crate) settings: Vec<(u32, Settings)>,
        pub(crate) logs: VecDeque<Result<Option<DiscoveryLog>, Error>>,
        pub(crate) refused: VecDeque<Error>,
        pub(crate) asked: Vec<Target>,
        pub(crate) followed: Vec<PersistentArgs>,
        pub(crate) forgotten: Vec<u32>,
        pub(crate) subscribed: bool,
    }

    impl MockKernel {
        /// Queue an event of a controller.
        pub(crate) fn tell(&mut self, change: Change, controller: Controller) {
            let event = Event::Controller(change, Box::new(controller));
            self.wait_results.push_back(WaitResult::Event(event));
        }
    }

    impl Kernel for MockKernel {
        fn connect(&mut self, connect_args: &ConnectArgs) -> Result<NewController, Error> {
            assert!(
                self.subscribed,
                "events may be missed: subscribe comes first"
            );
            self.connect_requests.push(connect_args.clone());
            self.connects.pop_front().expect("no connect was foreseen")
        }

        fn disconnect(&mut self, id: u32) -> Result<(), Error> {
            self.disconnected.push(id);
            if let Some(error) = self.refused.pop_front() {
                return Err(error);
            }
            match self.controllers.iter().any(|each| each.id == id) {
                true => Ok(()),
                false => Err(Error::new(Status::NotFound, "no such controller")),
            }
        }

        fn reset(&mut self, id: u32) -> Result<(), Error> {
            assert!(!self.subscribed, "an older event may be taken for the end");
            self.reset.push(id);
            Ok(())
        }

        fn rescan(&mut self, _id: u32) -> Result<u32, Error> {
            assert!(self.subscribed, "its end may be missed");
            self.rescans.pop_front().expect("no rescan was foreseen")
        }

        fn set(&mut self, id: u32, settings: &Settings) -> Result<(), Error> {
            self.settings.push((id, *settings));
            Ok(())
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

        fn discover(
            &mut self,
            target: &Target,
            follow: Option<PersistentArgs>,
        ) -> Result<u32, Error> {
            assert!(self.subscribed, "its end may be missed");
            if let Some(error) = self.refused.pop_front() {
                return Err(error);
            }
            self.asked.push(target.clone());
            self.followed.extend(follow);
            Ok(self.asked.len() as u32 - 1)
        }

        fn log(&mut self, _id: u32) -> Result<Option<DiscoveryLog>, Error> {
            self.logs.pop_front().expect("no log was foreseen")
        }

        fn forget(&mut self, id: u32) {
            self.forgotten.push(id);
        }

        fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error> {
            let queues = self.queues.iter();
            let wanted = queues.filter(|each| id.is_none_or(|id| each.controller_id == id));
            Ok(wanted.cloned().collect())
        }

        fn measure(&mut self, id: u32, on: bool) -> Result<(), Error> {
            self.measured.push((id, on));
            Ok(())
        }

        fn subscribe(&mut self) -> Result<(), Error> {
            self.subscribed = true;
            Ok(())
        }

        fn next(&mut self, _deadline: Option<Instant>) -> Result<WaitResult, Error> {
            assert!(self.subscribed);
            Ok(self.wait_results.pop_front().expect("no more was foreseen"))
        }
    }

    #[test]
    fn io_does_not_wait_longer_than_attempts_go_on() {
        let reconnect = |ctrl_loss_tmo, fast_io_fail_tmo| ReconnectOptions {
            reconnect_delay: Some(1),
            ctrl_loss_tmo,
            fast_io_fail_tmo,
        };
        let now = reconnect(Some(600), Some(LOSS_TMO_NEVER));
        for (asked, now, text) in [
            (
                reconnect(None, Some(601)),
                now,
                "of 601 s has no effect, as --ctrl-loss-tmo is 600 s",
            ),
            (
                reconnect(Some(1), Some(2)),
                now,
                "of 2 s has no effect, as --ctrl-loss-tmo is 1 s",
            ),
            (
                reconnect(Some(1), None),
                reconnect(Some(9), Some(9)),
                "of 9 s has no effect, as --ctrl-loss-tmo is 1 s",
            ),
        ] {
            let wanted = format!("a --fast_io_fail_tmo {text}");
            assert_eq!(asked.ineffective(&now), Some(wanted));
        }
        for (asked, now) in [
            (reconnect(None, Some(600)), now),
            (reconnect(Some(5), None), now),
            (reconnect(Some(5), Some(LOSS_TMO_NEVER)), now),
            (reconnect(Some(LOSS_TMO_NEVER), Some(601)), now),
            // It was so before.
            (reconnect(None, None), reconnect(Some(1), Some(2))),
        ] {
            assert_eq!(asked.ineffective(&now), None, "{asked:?}");
        }
    }
}
