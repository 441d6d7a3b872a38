// SPDX-License-Identifier: GPL-2.0

//! What user space asks for.

use super::encode;
use crate::{
    controller::{
        Controller,
        Discovery,
        DiscoveryResult, //
        Log,
    },
    options::{
        HostIdConflict,
        Limit,
        Options,
        Settings, //
        TransportAddr,
    },
    registry::{
        InsertError, //
        Registry,
    },
    uapi::{
        self,
        ctrl,
        discovery,
        ns,
        stats,
        Command, //
    },
};
use core::num::NonZeroU16;
use kernel::{
    prelude::*,
    str::CString,
    sync::Arc, //
};
use nvme_proto::format::{
    nqn::{
        self,
        Nqn, //
    },
    uuid::Uuid,
};
use rrdma::{
    errno,
    net::Namespace,
    netlink::{
        Attributes,
        Dump,
        Request, //
    },
    sync::Msecs,
};

/// What a connect gets that says nothing of it.
const DEFAULTS: Settings = Settings {
    connect_timeout: Msecs::new(uapi::CONNECT_TIMEOUT_DEFAULT),
    reconnect_delay: uapi::RECONNECT_DELAY_DEFAULT,
    give_up: Limit::After(uapi::CTRL_LOSS_TMO_DEFAULT),
    fail_io: Limit::Never,
};

/// What of a controller can be changed.
const SETTABLE: [u16; 4] = [
    ctrl::CONNECT_TIMEOUT,
    ctrl::RECONNECT_DELAY,
    ctrl::CTRL_LOSS_TMO,
    ctrl::FAST_IO_FAIL_TMO,
];

/// Starts to connect a controller, and replies with its number and name.
pub(super) fn connect(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let options = options(request, nqn(request, ctrl::SUBSYSNQN)?)?;
    let settings = settings(request, DEFAULTS)?;
    let duplicate = request.flag(ctrl::DUPLICATE_CONNECT);
    let controller =
        registry
            .connect(options, settings, duplicate)
            .map_err(|refusal| match refusal {
                InsertError::HostIdConflict(HostIdConflict::HostId, of) => request.refuse(
                    ctrl::HOSTID,
                    fmt!("{of} has the same hostnqn and another hostid"),
                ),
                InsertError::HostIdConflict(HostIdConflict::HostName, of) => request.refuse(
                    ctrl::HOSTNQN,
                    fmt!("{of} has the same hostid and another hostnqn"),
                ),
                InsertError::Other(e) if e == errno::EALREADY => {
                    request.fail(e, format_args!("already connected"))
                }
                InsertError::Other(EBUSY) => {
                    request.fail(EBUSY, format_args!("too many controllers"))
                }
                InsertError::Other(e) => e,
            })?;
    request
        .reply(Command::Connect as u8, |message| {
            message.put_u32(ctrl::CTRL_ID, controller.id)?;
            message.put_str(ctrl::NAME, encode::name(controller.name).as_str())
        })
        // Who is not told of it cannot be expected to remove it.
        .inspect_err(|_| controller.delete())
}

/// Starts to remove a controller.
pub(super) fn disconnect(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    find(registry, request, ctrl::CTRL_ID)?.delete();
    Ok(())
}

/// Starts to reset a controller.
pub(super) fn reset(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    controller.request_reset().map_err(|state| {
        request.fail(
            EBUSY,
            format_args!("the controller is {state}, and only a live one can be reset"),
        )
    })
}

/// Starts to look at the namespaces of a controller, and replies with the number of that look.
pub(super) fn rescan(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    let number = controller.request_scan().map_err(|state| {
        request.fail(
            EBUSY,
            format_args!("the controller is {state}: it looks at its namespaces when it connects"),
        )
    })?;
    request.reply(Command::CtrlRescan as u8, |message| {
        message.put_u32(ctrl::SCAN, number)
    })
}

/// Changes what can be changed of a controller.
pub(super) fn set(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    if SETTABLE.iter().all(|id| request.u32(*id).is_none()) {
        return Err(request.fail(EINVAL, format_args!("nothing to set")));
    }
    controller.set(|now| settings(request, now))
}

pub(super) fn get_controller(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    request.reply(Command::CtrlGet as u8, |message| {
        encode::controller(message, &controller.view())
    })
}

pub(super) fn dump_controllers(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    let namespace = dump.net();
    loop {
        let (generation, next) = registry.next(&namespace, dump.cursor());
        dump.set_generation(generation);
        let Some(controller) = next else {
            return Ok(());
        };
        let written = dump.message(Command::CtrlGet as u8, |message| {
            encode::controller(message, &controller.view())
        })?;
        if !written {
            return Ok(());
        }
        dump.set_cursor(u64::from(controller.id).saturating_add(1));
    }
}

pub(super) fn get_namespace(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    // What is missing is told before what is not there.
    request.required_u32(ns::CTRL_ID)?;
    let nsid = request.required_u32(ns::NSID)?;
    let controller = find(registry, request, ns::CTRL_ID)?;
    controller.namespaces.with_disks(|namespaces| {
        let Some(namespace) = namespaces.iter().find(|n| n.nsid() == nsid) else {
            request.refuse(ns::NSID, format_args!("no such namespace"));
            return Err(ENOENT);
        };
        request.reply(Command::NsGet as u8, |message| {
            encode::namespace(message, controller.id, &namespace.info())
        })
    })
}

/// The cursor is the number of the controller and that of the namespace.
pub(super) fn dump_namespaces(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    dump_by_controller(registry, dump, ns::CTRL_ID, dump_namespaces_of)
}

/// Dumps what belongs to controllers, of all or of the one that `attribute` names; the
/// upper half of the cursor is the number of the controller. `dump_of`, which gets the generation of
/// the list of controllers, says whether all that were left of one fitted.
fn dump_by_controller(
    registry: &Arc<Registry>,
    dump: &mut Dump<'_>,
    attribute: u16,
    dump_of: fn(&Controller, &mut Dump<'_>, u32) -> Result<bool>,
) -> Result {
    let namespace = dump.net();
    let only = dump.u32(attribute);
    if let (Some(id), 0) = (only, dump.cursor()) {
        if registry.find(&namespace, id).is_none() {
            dump.refuse(attribute, format_args!("no such controller"));
            return Err(ENOENT);
        }
        dump.set_cursor(u64::from(id) << 32);
    }
    loop {
        let (list, next) = registry.next(&namespace, dump.cursor() >> 32);
        dump.set_generation(registry.services.generation_of_disks(list));
        let Some(controller) = next.filter(|c| only.is_none_or(|id| c.id == id)) else {
            return Ok(());
        };
        if !dump_of(&controller, dump, list)? {
            return Ok(());
        }
        dump.set_cursor(u64::from(controller.id).saturating_add(1) << 32);
    }
}

/// Whether all that were left fitted.
fn dump_namespaces_of(controller: &Controller, dump: &mut Dump<'_>, list: u32) -> Result<bool> {
    let base = u64::from(controller.id) << 32;
    let after = dump.cursor().saturating_sub(base);
    controller.namespaces.with_disks(|namespaces| {
        dump.set_generation(controller.generation_of_disks(list));
        for namespace in namespaces.iter().filter(|n| u64::from(n.nsid()) > after) {
            let written = dump.message(Command::NsGet as u8, |message| {
                encode::namespace(message, controller.id, &namespace.info())
            })?;
            if !written {
                return Ok(false);
            }
            dump.set_cursor(base | u64::from(namespace.nsid()));
        }
        Ok(true)
    })
}

/// Starts to read or to follow the log of a discovery controller, and replies with a number.
pub(super) fn discover(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let subsystem = match request.str(ctrl::SUBSYSNQN)? {
        Some(_) => nqn(request, ctrl::SUBSYSNQN)?,
        None => CString::try_from_fmt(fmt!("{}", nqn::DISCOVERY))?,
    };
    let delay = request.u32(ctrl::RECONNECT_DELAY);
    let delay = delay.unwrap_or(uapi::RECONNECT_DELAY_DEFAULT);
    let persistent = request.flag(ctrl::PERSISTENT);
    let persistent = persistent.then(|| Msecs::from_secs(delay));
    let connect_timeout = connect_timeout(request, DEFAULTS.connect_timeout);
    let mut options = options(request, subsystem)?;
    // What is over soon is not kept alive.
    if persistent.is_none() {
        options.keep_alive = 0;
    }
    let discovery = registry
        .discover(options, connect_timeout, persistent, request.portid())
        .map_err(|error| match error {
            EBUSY => request.fail(EBUSY, format_args!("too many discoveries")),
            e => e,
        })?;
    request.reply(Command::Discover as u8, |message| {
        message.put_u32(ctrl::DISCOVERY_ID, discovery.id)
    })
}

pub(super) fn get_discovery(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let (namespace, owner) = (request.net(), request.portid());
    let discovery = find_discovery(registry, request, &namespace, owner)?;
    request.reply(Command::DiscoverGet as u8, |message| {
        discovery.with_view(|view| encode::discovery(message, view))
    })
}

/// Dumps the log of a discovery. The cursor is the number of the next entry.
pub(super) fn dump_entries(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    let (namespace, owner) = (dump.net(), dump.portid());
    let discovery = find_discovery(registry, dump, &namespace, owner)?;
    discovery.with_result(|outcome, generation| {
        dump.set_generation(generation);
        let why = match outcome {
            Some(DiscoveryResult::Read(log)) => return dump_log(log, dump),
            Some(DiscoveryResult::Failed(..)) => "the discovery failed",
            None => "the discovery is not over yet",
        };
        Err(dump.refuse(discovery::DISCOVERY_ID, format_args!("{why}")))
    })
}

fn dump_log(log: &Log, dump: &mut Dump<'_>) -> Result {
    for entry in log.entries().skip(usize::try_from(dump.cursor())?) {
        let written = dump.message(Command::DiscoverGet as u8, |message| {
            message.put_bytes(discovery::ENTRY, entry)
        })?;
        if !written {
            break;
        }
        dump.set_cursor(dump.cursor().saturating_add(1));
    }
    Ok(())
}

/// The discovery of a socket that its request names.
fn find_discovery(
    registry: &Arc<Registry>,
    request: &Attributes<'_>,
    namespace: &Namespace,
    owner: u32,
) -> Result<Arc<Discovery>> {
    let id = request.required_u32(discovery::DISCOVERY_ID)?;
    registry
        .discoveries
        .find(namespace, owner, id)
        .ok_or_else(|| {
            request.refuse(
                discovery::DISCOVERY_ID,
                format_args!("this socket has no such discovery"),
            );
            ENOENT
        })
}

/// What all queues of a controller have done together.
pub(super) fn get_stats(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, stats::CTRL_ID)?;
    request.reply(Command::StatsGet as u8, |message| {
        controller.with_stats(|ctrl_stats| encode::stats(message, &controller, None, ctrl_stats))
    })
}

/// Changes what is measured.
pub(super) fn set_stats(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, stats::CTRL_ID)?;
    let Some(timed) = request.u8(stats::LATENCY) else {
        return Err(request.fail(EINVAL, format_args!("nothing to set")));
    };
    controller.set_timed(timed != 0);
    Ok(())
}

/// The cursor is the number of the controller and, from 1, the place of the queue.
pub(super) fn dump_stats(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    dump_by_controller(registry, dump, stats::CTRL_ID, dump_stats_of)
}

/// Whether all that were left fitted.
fn dump_stats_of(controller: &Controller, dump: &mut Dump<'_>, _list: u32) -> Result<bool> {
    let base = u64::from(controller.id) << 32;
    let after = dump.cursor().saturating_sub(base);
    controller.with_stats(|ctrl_stats| {
        for (queue, place) in ctrl_stats.queues().iter().zip(1_u64..) {
            if place <= after {
                continue;
            }
            let written = dump.message(Command::StatsGet as u8, |message| {
                encode::stats(message, controller, Some(queue.qid()), &**queue)
            })?;
            if !written {
                return Ok(false);
            }
            dump.set_cursor(base | place);
        }
        Ok(true)
    })
}

/// The controller that a request names.
fn find(
    registry: &Arc<Registry>,
    request: &Request<'_>,
    attribute: u16,
) -> Result<Arc<Controller>> {
    let id = request.required_u32(attribute)?;
    registry.find(&request.net(), id).ok_or_else(|| {
        request.refuse(attribute, format_args!("no such controller"));
        ENOENT
    })
}

/// The options of a connect, checked. What that takes of the stack is free again when the
/// controller is made of them.
#[inline(never)]
fn options(request: &Request<'_>, subsystem: CString) -> Result<Options> {
    let namespace = request.net();
    let number = |id, default: u32| request.u32(id).unwrap_or(default);
    // The policies keep the numbers within their types.
    let queues = |id| {
        let count = request.u32(id)?;
        u16::try_from(count).ok().and_then(NonZeroU16::new)
    };
    let target = target(request, &namespace)?;
    Ok(Options {
        source: source(request, &namespace, &target)?,
        target,
        subsystem,
        host: nqn(request, ctrl::HOSTNQN)?,
        host_id: host_id(request)?,
        io_queues: queues(ctrl::NR_IO_QUEUES),
        write_queues: queues(ctrl::NR_WRITE_QUEUES),
        poll_queues: queues(ctrl::NR_POLL_QUEUES),
        queue_size: number(ctrl::QUEUE_SIZE, uapi::QUEUE_SIZE_DEFAULT).try_into()?,
        keep_alive: number(ctrl::KEEP_ALIVE_TMO, uapi::KEEP_ALIVE_TMO_DEFAULT),
        tos: request.u8(ctrl::TOS),
        disable_sq_flow: request.flag(ctrl::DISABLE_SQFLOW),
        namespace,
    })
}

/// What a request says of the settings, and for the rest what there is.
fn settings(request: &Request<'_>, rest: Settings) -> Result<Settings> {
    Ok(Settings {
        connect_timeout: connect_timeout(request, rest.connect_timeout),
        reconnect_delay: request
            .u32(ctrl::RECONNECT_DELAY)
            .unwrap_or(rest.reconnect_delay),
        give_up: limit(request, ctrl::CTRL_LOSS_TMO, rest.give_up)?,
        fail_io: limit(request, ctrl::FAST_IO_FAIL_TMO, rest.fail_io)?,
    })
}

/// How long an attempt to connect may take.
fn connect_timeout(request: &Request<'_>, rest: Msecs) -> Msecs {
    request.u32(ctrl::CONNECT_TIMEOUT).map_or(rest, Msecs::new)
}

fn limit(request: &Request<'_>, attribute: u16, rest: Limit) -> Result<Limit> {
    match request.u32(attribute) {
        None => Ok(rest),
        Some(uapi::LOSS_TMO_NEVER) => Ok(Limit::Never),
        Some(seconds) if seconds <= uapi::LOSS_TMO_MAX => Ok(Limit::After(seconds)),
        Some(_) => {
            let most = uapi::LOSS_TMO_MAX;
            Err(request.refuse(attribute, format_args!("more than {most} seconds")))
        }
    }
}

fn target(request: &Request<'_>, namespace: &Namespace) -> Result<TransportAddr> {
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

fn source(
    request: &Request<'_>,
    namespace: &Namespace,
    target: &TransportAddr,
) -> Result<Option<TransportAddr>> {
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
) -> Result<TransportAddr> {
    TransportAddr::parse(namespace, text, port).map_err(|error| match error {
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
