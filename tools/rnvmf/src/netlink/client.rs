// SPDX-License-Identifier: GPL-2.0

//! The kernel behind generic netlink sockets.

use super::family::Family;
use super::listener::Listener;
use super::socket::{open, Socket};
use crate::error::{Error, Status};
use crate::kernel::{Disconnect, Kernel};
use crate::model::controller::Controller;
use crate::model::discovery::{DiscoveryLog, DiscoveryReply, LogEntry};
use crate::model::event::WaitResult;
use crate::model::namespace::Namespace;
use crate::model::options::{ConnectArgs, NewController, PersistentArgs, Settings, Switch, Target};
use crate::model::stats::QueueStats;
use crate::signal::StopSignals;
use crate::uapi;
use netlink_sys::protocols::NETLINK_GENERIC;
use serde::Deserialize;
use serde_json::json;
use std::collections::HashMap;
use std::time::Instant;

/// A client of the family.
pub(crate) struct Client {
    socket: Socket,
    family: Family,
    listener: Option<Listener>,
    /// By number: a discovery belongs to a socket, and ends when the socket is closed.
    discoveries: HashMap<u32, Socket>,
}

impl Client {
    /// Resolves the family and opens a socket.
    pub(crate) fn open() -> Result<Self, Error> {
        let family = Family::resolve()?;
        Ok(Self {
            socket: Socket::open(family.id)?,
            family,
            listener: None,
            discoveries: HashMap::new(),
        })
    }
}

/// Reads the log of a discovery without its entries; `None` if there is no log yet.
fn log_header(socket: &mut Socket, id: u32) -> Result<Option<DiscoveryLog>, Error> {
    let reply = socket.request(&uapi::DISCOVER_GET_DO, &json!({"discovery_id": id}));
    let reply: DiscoveryReply = reply.map_err(unloaded_if_missing)?;
    reply.log()
}

fn log_entries(socket: &mut Socket, id: u32) -> Result<Vec<LogEntry>, Error> {
    let entries = socket.dump(&uapi::DISCOVER_GET_DUMP, &json!({"discovery_id": id}));
    entries.map_err(unloaded_if_missing)
}

/// Where a request names no controller, only the family can be missing: the module was unloaded.
fn unloaded_if_missing(error: Error) -> Error {
    match error.status {
        Status::NotFound => Error::unloaded(),
        _ => error,
    }
}

impl Kernel for Client {
    fn connect(&mut self, args: &ConnectArgs) -> Result<NewController, Error> {
        let reply = self.socket.request(&uapi::CONNECT_DO, args);
        reply.map_err(unloaded_if_missing)
    }

    fn disconnect(&mut self, id: u32) -> Result<(), Error> {
        (self.socket).request(&uapi::DISCONNECT_DO, &json!({"ctrl_id": id}))
    }

    fn disconnect_unused(&mut self, id: u32) -> Result<Disconnect, Error> {
        let args = json!({"ctrl_id": id, "if_unused": true});
        match self.socket.request(&uapi::DISCONNECT_DO, &args) {
            Err(error) if error.errno == Some(libc::EBUSY) => Ok(Disconnect::InUse),
            reply => reply.map(|()| Disconnect::Started),
        }
    }

    fn reset(&mut self, id: u32) -> Result<(), Error> {
        (self.socket).request(&uapi::CTRL_RESET_DO, &json!({"ctrl_id": id}))
    }

    fn rescan(&mut self, id: u32) -> Result<u32, Error> {
        #[derive(Deserialize)]
        struct Reply {
            scan: u32,
        }
        let args = json!({"ctrl_id": id});
        let Reply { scan } = self.socket.request(&uapi::CTRL_RESCAN_DO, &args)?;
        Ok(scan)
    }

    fn set(&mut self, id: u32, settings: &Settings) -> Result<(), Error> {
        let mut args = json!(settings);
        args["ctrl_id"] = id.into();
        self.socket.request(&uapi::CTRL_SET_DO, &args)
    }

    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error> {
        let args = json!({"ctrl_id": id});
        match self.socket.request(&uapi::CTRL_GET_DO, &args) {
            Err(error) if error.status == Status::NotFound => Ok(None),
            reply => reply.map(Some),
        }
    }

    fn controllers(&mut self) -> Result<Vec<Controller>, Error> {
        let mut all = self.socket.dump(&uapi::CTRL_GET_DUMP, &json!({}))?;
        Controller::sort(&mut all);
        Ok(all)
    }

    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error> {
        self.socket.dump(&uapi::NS_GET_DUMP, &json!({}))
    }

    fn stats(&mut self, id: Option<u32>) -> Result<Vec<QueueStats>, Error> {
        let args = json!({"ctrl_id": id});
        self.socket.dump(&uapi::STATS_GET_DUMP, &args)
    }

    fn discover(
        &mut self,
        target: &Target,
        persistent: Option<PersistentArgs>,
    ) -> Result<u32, Error> {
        let mut args = json!(target);
        if let Some(persistent) = persistent {
            args["persistent"] = true.into();
            args["keep_alive_tmo"] = persistent.keep_alive_tmo.into();
            args["reconnect_delay"] = persistent.reconnect_delay.into();
        }
        let mut socket = Socket::open(self.family.id)?;
        let reply = socket.request(&uapi::DISCOVER_DO, &args);
        let DiscoveryReply { discovery_id, .. } = reply.map_err(unloaded_if_missing)?;
        self.discoveries.insert(discovery_id, socket);
        Ok(discovery_id)
    }

    fn discovery_log(&mut self, id: u32) -> Result<Option<DiscoveryLog>, Error> {
        // A persistent discovery may read another log, or lose it, between any two requests.
        const ATTEMPTS: u32 = 10;
        let socket = self.discoveries.get_mut(&id);
        let socket = socket.ok_or_else(|| Error::failed("there is no such discovery"))?;
        let mut found = log_header(socket, id)?;
        for _ in 0..ATTEMPTS {
            let Some(log) = found else {
                return Ok(None);
            };
            let entries = log_entries(socket, id);
            found = log_header(socket, id)?;
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
        let args = json!({"ctrl_id": id, "latency": u8::from(switch == Switch::On)});
        self.socket.request(&uapi::STATS_SET_DO, &args)
    }

    fn subscribe(&mut self) -> Result<(), Error> {
        let signals = StopSignals::catch();
        let signals = signals.map_err(|error| Error::from(error).context("signal handlers"))?;
        let socket = open(NETLINK_GENERIC)?;
        self.listener = Some(Listener::start(socket, self.family.events, signals)?);
        Ok(())
    }

    fn wait(&mut self, deadline: Option<Instant>) -> Result<WaitResult, Error> {
        match &mut self.listener {
            Some(listener) => listener.wait(deadline),
            None => Err(Error::failed("wait without a subscription")),
        }
    }
}
