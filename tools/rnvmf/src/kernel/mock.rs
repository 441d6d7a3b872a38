// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::error::Status;
use crate::model::event::{Change, Event};
use std::collections::VecDeque;

/// Returns prepared results and records the requests.
#[derive(Default)]
pub(crate) struct MockKernel {
    pub(crate) connect_replies: VecDeque<Result<NewController, Error>>,
    pub(crate) wait_results: VecDeque<WaitResult>,
    pub(crate) controllers: Vec<Controller>,
    pub(crate) namespaces: Vec<Namespace>,
    /// Opens that end: of a controller, with the number of refused requests until then.
    pub(crate) closing: Vec<(u32, u32)>,
    pub(crate) queues: Vec<QueueStats>,
    pub(crate) latency: Vec<(u32, Switch)>,
    pub(crate) connect_requests: Vec<ConnectArgs>,
    pub(crate) disconnected: Vec<u32>,
    pub(crate) resets: Vec<u32>,
    pub(crate) rescans: VecDeque<Result<u32, Error>>,
    pub(crate) settings: Vec<(u32, Settings)>,
    pub(crate) discovery_logs: VecDeque<Result<Option<DiscoveryLog>, Error>>,
    pub(crate) rejections: VecDeque<Error>,
    pub(crate) discover_targets: Vec<Target>,
    pub(crate) persistent_args: Vec<PersistentArgs>,
    pub(crate) cancelled: Vec<u32>,
    pub(crate) deadlines: Vec<Option<Instant>>,
    pub(crate) subscribed: bool,
}

impl MockKernel {
    /// Queues an event of a controller.
    pub(crate) fn push_event(&mut self, change: Change, controller: Controller) {
        let event = Event::Controller(change, Box::new(controller));
        self.wait_results.push_back(WaitResult::Event(event));
    }
}

impl Kernel for MockKernel {
    fn connect(&mut self, args: &ConnectArgs) -> Result<NewController, Error> {
        assert!(
            self.subscribed,
            "events may be missed: subscribe comes first"
        );
        self.connect_requests.push(args.clone());
        self.connect_replies
            .pop_front()
            .expect("no result is prepared")
    }

    fn disconnect(&mut self, id: u32) -> Result<(), Error> {
        self.disconnected.push(id);
        if let Some(error) = self.rejections.pop_front() {
            return Err(error);
        }
        if self.controllers.iter().any(|each| each.id == id) {
            Ok(())
        } else {
            Err(Error::new(Status::NotFound, "no such controller"))
        }
    }

    fn disconnect_unused(&mut self, id: u32) -> Result<Disconnect, Error> {
        let mut ours = self
            .namespaces
            .iter_mut()
            .filter(|each| each.controller_id == id);
        if let Some((_, left)) = self.closing.iter_mut().find(|(of, _)| *of == id) {
            match left.checked_sub(1) {
                Some(less) => *left = less,
                None => ours.by_ref().for_each(|each| each.usage = Some(0)),
            }
        }
        if ours.any(|each| each.is_open()) {
            return Ok(Disconnect::InUse);
        }
        self.disconnect(id).map(|()| Disconnect::Started)
    }

    fn reset(&mut self, id: u32) -> Result<(), Error> {
        assert!(
            !self.subscribed,
            "an earlier event may be mistaken for the end"
        );
        self.resets.push(id);
        Ok(())
    }

    fn rescan(&mut self, _id: u32) -> Result<u32, Error> {
        assert!(self.subscribed, "the event of its end may be missed");
        self.rescans.pop_front().expect("no result is prepared")
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
        persistent: Option<PersistentArgs>,
    ) -> Result<u32, Error> {
        assert!(self.subscribed, "the event of its end may be missed");
        if let Some(error) = self.rejections.pop_front() {
            return Err(error);
        }
        self.discover_targets.push(target.clone());
        self.persistent_args.extend(persistent);
        Ok(self.discover_targets.len() as u32 - 1)
    }

    fn discovery_log(&mut self, _id: u32) -> Result<Option<DiscoveryLog>, Error> {
        self.discovery_logs
            .pop_front()
            .expect("no result is prepared")
    }

    fn cancel_discovery(&mut self, id: u32) {
        self.cancelled.push(id);
    }

    fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error> {
        let queues = self.queues.iter();
        let wanted = queues.filter(|each| id.is_none_or(|id| each.controller_id == id));
        Ok(wanted.cloned().collect())
    }

    fn set_latency(&mut self, id: u32, switch: Switch) -> Result<(), Error> {
        self.latency.push((id, switch));
        Ok(())
    }

    fn subscribe(&mut self) -> Result<(), Error> {
        self.subscribed = true;
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error> {
        assert!(self.subscribed);
        self.deadlines.push(deadline);
        Ok(self
            .wait_results
            .pop_front()
            .expect("no result is prepared"))
    }
}
