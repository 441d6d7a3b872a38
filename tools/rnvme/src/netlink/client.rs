// SPDX-License-Identifier: GPL-2.0

//! The kernel behind a generic netlink socket.

use super::attributes::{Attributes, Malformed};
use super::family::Family;
use super::listener::Listener;
use super::message::Data;
use super::request::Request;
use super::socket::Socket;
use crate::controller::Controller;
use crate::error::{Error, Status};
use crate::event::Notice;
use crate::kernel::{Kernel, Made, Wish};
use crate::namespace::Namespace;
use crate::uapi::{ctrl, Command};
use std::time::Instant;

/// A client of the family.
pub(crate) struct Client {
    socket: Socket,
    family: Family,
    listener: Option<Listener>,
}

impl Client {
    /// Open a socket and find the family.
    pub(crate) fn open() -> Result<Self, Error> {
        let mut socket = Socket::open()?;
        let family = Family::resolve(&mut socket)?;
        Ok(Self {
            socket,
            family,
            listener: None,
        })
    }

    fn ask(&mut self, request: &Request) -> Result<Vec<Data>, Error> {
        Ok(self.socket.ask(self.family.id, request)?)
    }

    fn dump<T>(
        &mut self,
        command: Command,
        read: fn(&Attributes) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Error> {
        let replies = self.ask(&Request::new(command).dump())?;
        let objects = replies.iter().map(|reply| read(&reply.attributes));
        Ok(objects.collect::<Result<_, _>>()?)
    }
}

impl Kernel for Client {
    fn connect(&mut self, wish: &Wish) -> Result<Made, Error> {
        let replies = self.ask(&connect_request(wish))?;
        let Some(Data { attributes, .. }) = replies.first() else {
            return Err(Error::failed("the kernel did not name the controller"));
        };
        Ok(Made {
            id: attributes.require("ctrl-id", attributes.u32(ctrl::CTRL_ID)?)?,
            name: attributes.require("name", attributes.string(ctrl::NAME)?)?,
        })
    }

    fn disconnect(&mut self, id: u32) -> Result<(), Error> {
        let request = Request::new(Command::Disconnect).with(ctrl::CTRL_ID, id);
        self.ask(&request).map(|_| ())
    }

    fn controller(&mut self, id: u32) -> Result<Option<Controller>, Error> {
        let request = Request::new(Command::CtrlGet).with(ctrl::CTRL_ID, id);
        match self.ask(&request) {
            Ok(replies) => match replies.first() {
                Some(reply) => Ok(Some(Controller::read(&reply.attributes)?)),
                None => Err(Error::failed("the kernel did not describe the controller")),
            },
            Err(error) if error.status == Status::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn controllers(&mut self) -> Result<Vec<Controller>, Error> {
        self.dump(Command::CtrlGet, Controller::read)
    }

    fn namespaces(&mut self) -> Result<Vec<Namespace>, Error> {
        self.dump(Command::NsGet, Namespace::read)
    }

    fn subscribe(&mut self) -> Result<(), Error> {
        let listener = Listener::start(Socket::open()?, self.family.events)?;
        self.listener = Some(listener);
        Ok(())
    }

    fn next(&mut self, deadline: Option<Instant>) -> Result<Notice, Error> {
        match &self.listener {
            Some(listener) => listener.next(deadline),
            None => Err(Error::failed("no events were asked for")),
        }
    }
}

fn connect_request(wish: &Wish) -> Request {
    Request::new(Command::Connect)
        .with(ctrl::TRADDR, wish.traddr.as_str())
        .with(ctrl::TRSVCID, wish.trsvcid)
        .with_some(ctrl::HOST_TRADDR, wish.host_traddr.as_deref())
        .with(ctrl::SUBSYSNQN, wish.subsysnqn.as_str())
        .with(ctrl::HOSTNQN, wish.hostnqn.as_str())
        .with(ctrl::HOSTID, wish.hostid)
        .with_some(ctrl::NR_IO_QUEUES, wish.nr_io_queues)
        .with_some(ctrl::QUEUE_SIZE, wish.queue_size)
        .with_some(ctrl::KEEP_ALIVE_TMO, wish.keep_alive_tmo)
        .with(ctrl::CONNECT_TIMEOUT, wish.connect_timeout)
        .with_some(ctrl::TOS, wish.tos)
        .with_some(
            ctrl::DUPLICATE_CONNECT,
            wish.duplicate_connect.then_some(()),
        )
}
