// SPDX-License-Identifier: GPL-2.0

//! The kernel behind a generic netlink socket.

use super::family::Family;
use super::listener::Listener;
use super::message::Payload;
use super::request::Request;
use super::socket::{RequestError, Socket};
use crate::error::{Error, Status};
use crate::kernel::Kernel;
use crate::model::controller::Controller;
use crate::model::discovery::{DiscoveryLog, LogEntry};
use crate::model::event::WaitResult;
use crate::model::namespace::Namespace;
use crate::model::options::{
    ConnectArgs, NewController, PersistentArgs, ReconnectOptions, Settings, Switch, Target,
};
use crate::model::stats::QueueStats;
use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{ctrl, discovery, stats, Command};
use netlink_sys::protocols::NETLINK_GENERIC;
use std::collections::HashMap;
use std::time::Instant;

/// A client of the family.
pub(crate) struct Client {
    socket: Socket,
    family: Family,
    listener: Option<Listener>,
    /// By number: the kernel keeps one discovery for a socket, and no longer than that is open.
    discoveries: HashMap<u32, Socket>,
}

impl Client {
    /// Open a socket and find the family.
    pub(crate) fn open() -> Result<Self, Error> {
        let mut socket = Socket::open(NETLINK_GENERIC)?;
        let family = Family::resolve(&mut socket)?;
        Ok(Self {
            socket,
            family,
            listener: None,
            discoveries: HashMap::new(),
        })
    }

    fn request(&mut self, request: &Request) -> Result<Vec<Payload>, Error> {
        Ok(self.socket.request(self.family.id, request)?)
    }

    fn dump<T>(
        &mut self,
        request: Request,
        read: fn(&Attributes) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Error> {
        let replies = self.request(&request.dump())?;
        let objects = replies.iter().map(|reply| read(&reply.attributes));
        Ok(objects.collect::<Result<_, _>>()?)
    }

    /// Sends a request about a discovery through the socket that owns it.
    fn discovery_request(&mut self, id: u32, request: &Request) -> Result<Vec<Payload>, Error> {
        let socket = self.discoveries.get_mut(&id);
        let socket = socket.ok_or_else(|| Error::failed("there is no such discovery"))?;
        socket
            .request(self.family.id, request)
            .map_err(unloaded_if_missing)
    }

    /// Reads the log of a discovery without its entries.
    fn log_header(&mut self, id: u32) -> Result<Option<DiscoveryLog>, Error> {
        match self.discovery_request(id, &discover_get(id))?.first() {
            Some(Payload { attributes, .. }) => DiscoveryLog::read(attributes),
            None => Err(Error::failed("the kernel did not describe the discovery")),
        }
    }

    fn log_entries(&mut self, id: u32) -> Result<Vec<LogEntry>, Error> {
        let replies = self.discovery_request(id, &discover_get(id).dump())?;
        let entries = replies.iter().map(|each| LogEntry::read(&each.attributes));
        Ok(entries.collect::<Result<_, _>>()?)
    }
}

/// A request that needs no object but the family is rejected with `ENOENT` if the module is gone.
fn unloaded_if_missing(error: RequestError) -> Error {
    match error {
        RequestError::Rejected(nl_error) if nl_error.errno() == libc::ENOENT => Error::unloaded(),
        other => other.into(),
    }
}

impl Kernel for Client {
    fn connect(&mut self, args: &ConnectArgs) -> Result<NewController, Error> {
        let replies = self.socket.request(self.family.id, &connect_request(args));
        let replies = replies.map_err(unloaded_if_missing)?;
        let Some(Payload { attributes, .. }) = replies.first() else {
            return Err(Error::failed("the kernel did not name the controller"));
        };
        Ok(NewController {
            id: attributes.require("ctrl-id", attributes.u32(ctrl::CTRL_ID)?)?,
            name: attributes.require("name", attributes.string(ctrl::NAME)?)?,
        })
    }

    fn disconnect(&mut self, id: u32) -> Result<(), Error> {
        let request = Request::new(Command::Disconnect).with(ctrl::CTRL_ID, id);
        self.request(&request).map(|_| ())
    }

    fn reset(&mut self, id: u32) -> Result<(), Error> {
        let request = Request::new(Command::CtrlReset).with(ctrl::CTRL_ID, id);
        self.request(&request).map(|_| ())
    }

    fn rescan(&mut self, id: u32) -> Result<u32, Error> {
        let request = Request::new(Command::CtrlRescan).with(ctrl::CTRL_ID, id);
        let replies = self.request(&request)?;
        let Some(Payload { attributes, .. }) = replies.first() else {
            return Err(Error::failed("the kernel did not number the rescan"));
        };
        Ok(attributes.require("scan", attributes.u32(ctrl::SCAN)?)?)
    }

    fn set(&mut self, id: u32, settings: &Settings) -> Result<(), Error> {
        let request = Request::new(Command::CtrlSet)
            .with(ctrl::CTRL_ID, id)
            .with_some(ctrl::CONNECT_TIMEOUT, settings.connect_timeout);
        self.request(&with_reconnect(request, &settings.reconnect))
            .map(|_| ())
    }

    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error> {
        let request = Request::new(Command::CtrlGet).with(ctrl::CTRL_ID, id);
        match self.request(&request) {
            Ok(replies) => match replies.first() {
                Some(reply) => Ok(Some(Controller::read(&reply.attributes)?)),
                None => Err(Error::failed("the kernel did not describe the controller")),
            },
            Err(error) if error.status == Status::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn controllers(&mut self) -> Result<Vec<Controller>, Error> {
        let mut all = self.dump(Request::new(Command::CtrlGet), Controller::read)?;
        Controller::sort(&mut all);
        Ok(all)
    }

    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error> {
        self.dump(Request::new(Command::NsGet), Namespace::read)
    }

    fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error> {
        let request = Request::new(Command::StatsGet).with_some(stats::CTRL_ID, id);
        self.dump(request, QueueStats::read)
    }

    fn discover(
        &mut self,
        target: &Target,
        persistent: Option<PersistentArgs>,
    ) -> Result<u32, Error> {
        let mut request = with_target(Request::new(Command::Discover), target);
        if let Some(persistent) = persistent {
            request = request
                .with(ctrl::PERSISTENT, ())
                .with_some(ctrl::KEEP_ALIVE_TMO, persistent.keep_alive_tmo)
                .with_some(ctrl::RECONNECT_DELAY, persistent.reconnect_delay);
        }
        let mut socket = Socket::open(NETLINK_GENERIC)?;
        let replies = socket
            .request(self.family.id, &request)
            .map_err(unloaded_if_missing)?;
        let Some(Payload { attributes, .. }) = replies.first() else {
            return Err(Error::failed("the kernel did not number the discovery"));
        };
        let id = attributes.u32(ctrl::DISCOVERY_ID)?;
        let id = attributes.require("discovery-id", id)?;
        self.discoveries.insert(id, socket);
        Ok(id)
    }

    fn discovery_log(&mut self, id: u32) -> Result<Option<DiscoveryLog>, Error> {
        // A persistent discovery may read another log, or lose it, between any two requests.
        const ATTEMPTS: u32 = 10;
        let mut found = self.log_header(id)?;
        for _ in 0..ATTEMPTS {
            let Some(log) = found else {
                return Ok(None);
            };
            let entries = self.log_entries(id);
            found = self.log_header(id)?;
            if found.as_ref() == Some(&log) {
                let entries = entries?;
                return Ok(Some(DiscoveryLog { entries, ..log }));
            }
        }
        let why = "the discovery log changes faster than it can be read";
        Err(Error::failed(why))
    }

    fn cancel_discovery(&mut self, id: u32) {
        self.discoveries.remove(&id);
    }

    fn set_latency(&mut self, id: u32, switch: Switch) -> Result<(), Error> {
        let request = Request::new(Command::StatsSet)
            .with(stats::CTRL_ID, id)
            .with(stats::LATENCY, u8::from(switch == Switch::On));
        self.request(&request).map(|_| ())
    }

    fn subscribe(&mut self) -> Result<(), Error> {
        let listener = Listener::start(Socket::open(NETLINK_GENERIC)?, self.family.events)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error> {
        match &self.listener {
            Some(listener) => listener.wait(deadline),
            None => Err(Error::failed("no events were asked for")),
        }
    }
}

fn discover_get(id: u32) -> Request {
    Request::new(Command::DiscoverGet).with(discovery::DISCOVERY_ID, id)
}

fn with_reconnect(request: Request, reconnect: &ReconnectOptions) -> Request {
    request
        .with_some(ctrl::RECONNECT_DELAY, reconnect.reconnect_delay)
        .with_some(ctrl::CTRL_LOSS_TMO, reconnect.ctrl_loss_tmo)
        .with_some(ctrl::FAST_IO_FAIL_TMO, reconnect.fast_io_fail_tmo)
}

fn with_target(request: Request, target: &Target) -> Request {
    request
        .with(ctrl::TRADDR, target.traddr.as_str())
        .with(ctrl::TRSVCID, target.trsvcid)
        .with_some(ctrl::HOST_TRADDR, target.host_traddr.as_deref())
        .with(ctrl::SUBSYSNQN, target.subsysnqn.as_str())
        .with(ctrl::HOSTNQN, target.hostnqn.as_str())
        .with(ctrl::HOSTID, target.hostid)
        .with(ctrl::CONNECT_TIMEOUT, target.connect_timeout)
        .with_some(ctrl::TOS, target.tos)
}

fn connect_request(args: &ConnectArgs) -> Request {
    let request = with_target(Request::new(Command::Connect), &args.target);
    with_reconnect(request, &args.reconnect)
        .with_some(ctrl::NR_IO_QUEUES, args.nr_io_queues)
        .with_some(ctrl::NR_WRITE_QUEUES, args.nr_write_queues)
        .with_some(ctrl::NR_POLL_QUEUES, args.nr_poll_queues)
        .with_some(ctrl::QUEUE_SIZE, args.queue_size)
        .with_some(ctrl::KEEP_ALIVE_TMO, args.keep_alive_tmo)
        .with_some(ctrl::DISABLE_SQFLOW, args.disable_sqflow.then_some(()))
        .with_some(
            ctrl::DUPLICATE_CONNECT,
            args.duplicate_connect.then_some(()),
        )
}
