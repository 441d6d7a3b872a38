// SPDX-License-Identifier: GPL-2.0

//! What user space asks for.

use super::{
    encode,
    uapi::{
        self,
        ctrl,
        ns,
        Command, //
    },
};
use crate::{
    controller::Controller,
    host::Host,
    options::{
        Options,
        Place, //
    },
};
use core::num::NonZeroU16;
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use nvme_wire::{
    nqn::Nqn,
    uuid::Uuid, //
};
use rrdma::{
    errno,
    net::Namespace,
    netlink::{
        Dump,
        Request, //
    },
    sync::Msecs,
};

/// Starts to connect a controller, and replies with its number and name.
pub(super) fn connect(host: &Arc<Host>, request: &mut Request<'_>) -> Result {
    let options = options(request)?;
    let duplicate = request.flag(ctrl::DUPLICATE_CONNECT);
    let controller = host
        .connect(options, duplicate)
        .map_err(|error| match error {
            e if e == errno::EALREADY => request.fail(e, format_args!("already connected")),
            EBUSY => request.fail(EBUSY, format_args!("too many controllers")),
            e => e,
        })?;
    request.reply(Command::Connect as u8, |message| {
        message.put_u32(ctrl::CTRL_ID, controller.id)?;
        message.put_str(ctrl::NAME, encode::text(&encode::name(&controller)?)?)
    })
}

/// Starts to remove a controller.
pub(super) fn disconnect(host: &Arc<Host>, request: &mut Request<'_>) -> Result {
    find(host, request, ctrl::CTRL_ID)?.delete();
    Ok(())
}

pub(super) fn get_controller(host: &Arc<Host>, request: &mut Request<'_>) -> Result {
    let controller = find(host, request, ctrl::CTRL_ID)?;
    request.reply(Command::CtrlGet as u8, |message| {
        encode::controller(message, &controller)
    })
}

pub(super) fn dump_controllers(host: &Arc<Host>, dump: &mut Dump<'_>) -> Result {
    let namespace = dump.net();
    loop {
        let (generation, next) = host.next(&namespace, dump.cursor());
        dump.set_generation(generation);
        let Some(controller) = next else {
            return Ok(());
        };
        let written = dump.message(Command::CtrlGet as u8, |message| {
            encode::controller(message, &controller)
        })?;
        if !written {
            return Ok(());
        }
        dump.set_cursor(u64::from(controller.id).saturating_add(1));
    }
}

pub(super) fn get_namespace(host: &Arc<Host>, request: &mut Request<'_>) -> Result {
    // What is missing is told before what is not there.
    request.required_u32(ns::CTRL_ID)?;
    let nsid = request.required_u32(ns::NSID)?;
    let controller = find(host, request, ns::CTRL_ID)?;
    controller.with_namespaces(|namespaces| {
        let Some(namespace) = namespaces.iter().find(|n| n.nsid == nsid) else {
            request.refuse(ns::NSID, format_args!("no such namespace"));
            return Err(ENOENT);
        };
        request.reply(Command::NsGet as u8, |message| {
            encode::namespace(message, &controller, namespace)
        })
    })
}

/// The cursor is the number of the controller and that of the namespace.
pub(super) fn dump_namespaces(host: &Arc<Host>, dump: &mut Dump<'_>) -> Result {
    let namespace = dump.net();
    let only = dump.u32(ns::CTRL_ID);
    if let (Some(id), 0) = (only, dump.cursor()) {
        if host.find(&namespace, id).is_none() {
            dump.refuse(ns::CTRL_ID, format_args!("no such controller"));
            return Err(ENOENT);
        }
        dump.set_cursor(u64::from(id) << 32);
    }
    loop {
        let (generation, next) = host.next(&namespace, dump.cursor() >> 32);
        dump.set_generation(generation);
        let Some(controller) = next.filter(|c| only.is_none_or(|id| c.id == id)) else {
            return Ok(());
        };
        if !dump_namespaces_of(&controller, dump)? {
            return Ok(());
        }
        dump.set_cursor(u64::from(controller.id).saturating_add(1) << 32);
    }
}

/// Whether all that were left fitted.
fn dump_namespaces_of(controller: &Controller, dump: &mut Dump<'_>) -> Result<bool> {
    let base = u64::from(controller.id) << 32;
    let after = dump.cursor().saturating_sub(base);
    controller.with_namespaces(|namespaces| {
        for namespace in namespaces.iter().filter(|n| u64::from(n.nsid) > after) {
            let written = dump.message(Command::NsGet as u8, |message| {
                encode::namespace(message, controller, namespace)
            })?;
            if !written {
                return Ok(false);
            }
            dump.set_cursor(base | u64::from(namespace.nsid));
        }
        Ok(true)
    })
}

/// The controller that a request names.
fn find(host: &Arc<Host>, request: &Request<'_>, attribute: u16) -> Result<Arc<Controller>> {
    let id = request.required_u32(attribute)?;
    host.find(&request.net(), id).ok_or_else(|| {
        request.refuse(attribute, format_args!("no such controller"));
        ENOENT
    })
}

/// The options of a connect, checked.
fn options(request: &Request<'_>) -> Result<Options> {
    let namespace = request.net();
    let number = |id, default: u32| request.u32(id).unwrap_or(default);
    let io_queues = request.u32(ctrl::NR_IO_QUEUES);
    let target = target(request, &namespace)?;
    Ok(Options {
        source: source(request, &namespace, &target)?,
        target,
        subsystem: nqn(request, ctrl::SUBSYSNQN)?,
        host: nqn(request, ctrl::HOSTNQN)?,
        host_id: host_id(request)?,
        // The policies keep the numbers within their types.
        io_queues: io_queues
            .and_then(|n| u16::try_from(n).ok())
            .and_then(NonZeroU16::new),
        queue_size: number(ctrl::QUEUE_SIZE, uapi::QUEUE_SIZE_DEFAULT).try_into()?,
        keep_alive: number(ctrl::KEEP_ALIVE_TMO, uapi::KEEP_ALIVE_TMO_DEFAULT),
        connect_timeout: Msecs::new(number(ctrl::CONNECT_TIMEOUT, uapi::CONNECT_TIMEOUT_DEFAULT)),
        tos: request.u8(ctrl::TOS),
        namespace,
    })
}

fn target(request: &Request<'_>, namespace: &Namespace) -> Result<Place> {
    let default = u16::try_from(uapi::TRSVCID_DEFAULT)?;
    let port = request.u16(ctrl::TRSVCID).unwrap_or(default);
    place(
        request,
        namespace,
        ctrl::TRADDR,
        request.required_str(ctrl::TRADDR)?,
        port,
    )
}

fn source(request: &Request<'_>, namespace: &Namespace, target: &Place) -> Result<Option<Place>> {
    let Some(text) = request.str(ctrl::HOST_TRADDR)? else {
        return Ok(None);
    };
    let source = place(request, namespace, ctrl::HOST_TRADDR, text, 0)?;
    if !source.address.same_family(&target.address) {
        let why = format_args!("not of the family of the target's address");
        return Err(request.refuse(ctrl::HOST_TRADDR, why));
    }
    Ok(Some(source))
}

fn place(
    request: &Request<'_>,
    namespace: &Namespace,
    attribute: u16,
    text: &str,
    port: u16,
) -> Result<Place> {
    Place::parse(namespace, text, port).map_err(|error| match error {
        ENOMEM => ENOMEM,
        _ => request.refuse(
            attribute,
            format_args!("not a numeric IPv4 or IPv6 address with a known scope"),
        ),
    })
}

fn nqn(request: &Request<'_>, attribute: u16) -> Result<CString> {
    let text = request.required_str(attribute)?;
    if let Err(why) = Nqn::new(text.as_bytes()) {
        return Err(request.refuse(attribute, format_args!("{why}")));
    }
    CString::try_from_fmt(fmt!("{text}"))
}

fn host_id(request: &Request<'_>) -> Result<Uuid> {
    let bytes = request.required_bytes(ctrl::HOSTID)?;
    let bytes = bytes
        .try_into()
        .map_err(|_| request.refuse(ctrl::HOSTID, format_args!("not 16 bytes")))?;
    let id = Uuid::from_bytes(bytes);
    if id.is_nil() {
        return Err(request.refuse(ctrl::HOSTID, format_args!("all zeroes is no identifier")));
    }
    Ok(id)
}
