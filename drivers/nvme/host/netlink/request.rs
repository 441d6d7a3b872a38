// SPDX-License-Identifier: GPL-2.0

//! The requests of user space. All handlers run in process context and may sleep.

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
        QuiesceTime,
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
use core::num::{
    NonZeroU16,
    NonZeroU32, //
};
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
        Message,
        Request, //
    },
    sync::Msecs,
};

/// Settings of a connect that has no attributes for them.
const DEFAULTS: Settings = Settings {
    connect_timeout: Msecs::new(uapi::CONNECT_TIMEOUT_DEFAULT),
    reconnect_delay: uapi::RECONNECT_DELAY_DEFAULT,
    ctrl_loss_tmo: Limit::After(uapi::CTRL_LOSS_TMO_DEFAULT),
    fast_io_fail_tmo: Limit::Never,
    quiesce: QuiesceTime::Reported,
};

/// Attributes of [`Settings`].
const SETTINGS: [u16; 5] = [
    ctrl::CONNECT_TIMEOUT,
    ctrl::RECONNECT_DELAY,
    ctrl::CTRL_LOSS_TMO,
    ctrl::FAST_IO_FAIL_TMO,
    ctrl::CQT,
];

/// Starts to connect a controller; replies with its number and name.
pub(super) fn connect(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let options = options(request, nqn(request, ctrl::SUBSYSNQN)?)?;
    let settings = settings(request, DEFAULTS)?;
    let duplicate = request.flag(ctrl::DUPLICATE_CONNECT);
    let controller =
        registry
            .connect(options, settings, duplicate)
            .map_err(|error| match error {
                InsertError::HostIdConflict(HostIdConflict::HostId, name) => request.refuse(
                    ctrl::HOSTID,
                    fmt!("{name} has the same hostnqn and another hostid"),
                ),
                InsertError::HostIdConflict(HostIdConflict::HostName, name) => request.refuse(
                    ctrl::HOSTNQN,
                    fmt!("{name} has the same hostid and another hostnqn"),
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
        // Without the number the caller cannot remove the controller.
        .inspect_err(|_| controller.delete())
}

/// Starts to remove a controller; with a flag, only if nobody has a disk of it open.
pub(super) fn disconnect(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    if request.flag(ctrl::IF_UNUSED) && !controller.namespaces.refuse_opens() {
        return Err(match controller.namespaces.first_open() {
            Some(disk) => request.fail(EBUSY, format_args!("{} is in use", disk.as_str())),
            // It was closed meanwhile, or is being opened.
            None => request.fail(EBUSY, format_args!("a disk is in use")),
        });
    }
    controller.delete();
    Ok(())
}

/// Starts to reset a controller.
pub(super) fn reset(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    controller.request_reset().map_err(|state| {
        request.fail(
            EBUSY,
            format_args!("the controller is {state}; only a live controller can be reset"),
        )
    })
}

/// Starts a namespace scan; replies with its number.
pub(super) fn rescan(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    let number = controller.request_scan().map_err(|state| {
        request.fail(
            EBUSY,
            format_args!("the controller is {state}; it scans its namespaces when it connects"),
        )
    })?;
    request.reply(Command::CtrlRescan as u8, |message| {
        message.put_u32(ctrl::SCAN, number)
    })
}

/// Changes settings of a controller.
pub(super) fn set(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    if SETTINGS.iter().all(|id| request.u32(*id).is_none()) {
        return Err(request.fail(EINVAL, format_args!("nothing to set")));
    }
    controller.set(|now| settings(request, now))
}

/// Replies with a controller.
pub(super) fn get_controller(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, ctrl::CTRL_ID)?;
    request.reply(Command::CtrlGet as u8, |message| {
        encode::controller(message, &controller.view())
    })
}

/// Dumps controllers.
pub(super) fn dump_controllers(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    dump_by_controller(registry, dump, ctrl::CTRL_ID, |controller, dump| {
        dump.message(Command::CtrlGet as u8, |message| {
            encode::controller(message, &controller.view())
        })
    })
}

/// Replies with a namespace.
pub(super) fn get_namespace(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
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

/// Dumps namespaces. The lower half of the cursor is the last NSID.
pub(super) fn dump_namespaces(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    dump_by_controller(registry, dump, ns::CTRL_ID, |controller, dump| {
        let base = u64::from(controller.id) << 32;
        let last = dump.cursor().saturating_sub(base);
        controller.namespaces.with_disks(|namespaces| {
            dump.set_generation(controller.services.generation());
            for namespace in namespaces.iter().filter(|n| u64::from(n.nsid()) > last) {
                let next = base | u64::from(namespace.nsid());
                let fitted = append(dump, Command::NsGet, next, |message| {
                    encode::namespace(message, controller.id, &namespace.info())
                })?;
                if !fitted {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    })
}

/// Dumps controllers or what belongs to them: all, or the one that `attribute` names. The upper
/// half of the cursor is the number of the controller.
///
/// `dump_of` returns whether all messages of a controller fitted.
fn dump_by_controller(
    registry: &Arc<Registry>,
    dump: &mut Dump<'_>,
    attribute: u16,
    dump_of: fn(&Controller, &mut Dump<'_>) -> Result<bool>,
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
        dump.set_generation(registry.services.generation());
        let next = registry.next(&namespace, dump.cursor() >> 32);
        let Some(controller) = next.filter(|c| only.is_none_or(|id| c.id == id)) else {
            return Ok(());
        };
        if !dump_of(&controller, dump)? {
            return Ok(());
        }
        dump.set_cursor(u64::from(controller.id).saturating_add(1) << 32);
    }
}

/// Appends a message to a dump and moves the cursor to `next`. Returns `false`, with the cursor as
/// before, if the message did not fit.
fn append(
    dump: &mut Dump<'_>,
    command: Command,
    next: u64,
    build: impl FnOnce(&mut Message<'_>) -> Result,
) -> Result<bool> {
    let fitted = dump.message(command as u8, build)?;
    if fitted {
        dump.set_cursor(next);
    }
    Ok(fitted)
}

/// Starts a discovery; replies with its number.
pub(super) fn discover(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let subsystem = match request.str(ctrl::SUBSYSNQN)? {
        Some(_) => nqn(request, ctrl::SUBSYSNQN)?,
        None => CString::try_from_fmt(fmt!("{}", nqn::DISCOVERY))?,
    };
    let settings = settings(request, DEFAULTS)?;
    let persistent = request.flag(ctrl::PERSISTENT);
    let persistent = persistent.then(|| Msecs::from_secs(settings.reconnect_delay));
    let mut options = options(request, subsystem)?;
    // One reading of the log ends before a keep-alive would be due.
    if persistent.is_none() {
        options.keep_alive = 0;
    }
    let (timeout, owner) = (settings.connect_timeout, request.portid());
    let discovery = registry
        .discover(options, timeout, persistent, owner)
        .map_err(|error| match error {
            EBUSY => request.fail(EBUSY, format_args!("too many discoveries")),
            e => e,
        })?;
    request.reply(Command::Discover as u8, |message| {
        message.put_u32(ctrl::DISCOVERY_ID, discovery.id)
    })
}

/// Replies with the result of a discovery.
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
    discovery.with_view(|view| {
        dump.set_generation(view.generation);
        let why = match view.result {
            Some(DiscoveryResult::Read(log)) => return dump_log(log, dump),
            Some(DiscoveryResult::Failed(..)) => "the discovery failed",
            None => "the discovery has not read the log yet",
        };
        Err(dump.refuse(discovery::DISCOVERY_ID, format_args!("{why}")))
    })
}

fn dump_log(log: &Log, dump: &mut Dump<'_>) -> Result {
    for entry in log.entries().skip(usize::try_from(dump.cursor())?) {
        let next = dump.cursor().saturating_add(1);
        let fitted = append(dump, Command::DiscoverGet, next, |message| {
            message.put_bytes(discovery::ENTRY, entry)
        })?;
        if !fitted {
            break;
        }
    }
    Ok(())
}

/// Returns the discovery that a request names, if the socket with port `owner` started it.
fn find_discovery(
    registry: &Arc<Registry>,
    request: &Attributes<'_>,
    namespace: &Namespace,
    owner: u32,
) -> Result<Arc<Discovery>> {
    let id = request.required_u32(discovery::DISCOVERY_ID)?;
    let discovery = registry.discoveries.find(namespace, owner, id);
    discovery.ok_or_else(|| {
        let why = format_args!("this socket has no such discovery");
        request.refuse(discovery::DISCOVERY_ID, why);
        ENOENT
    })
}

/// Replies with the sum of the counters of all queues.
pub(super) fn get_stats(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, stats::CTRL_ID)?;
    request.reply(Command::StatsGet as u8, |message| {
        controller.with_stats(|sum| encode::stats(message, &controller, None, sum))
    })
}

/// Enables or disables the measurement of latencies.
pub(super) fn set_stats(registry: &Arc<Registry>, request: &mut Request<'_>) -> Result {
    let controller = find(registry, request, stats::CTRL_ID)?;
    let Some(timed) = request.u8(stats::LATENCY) else {
        return Err(request.fail(EINVAL, format_args!("nothing to set")));
    };
    controller.set_timed(timed != 0);
    Ok(())
}

/// Dumps the counters of each queue. The lower half of the cursor is the last position in the list
/// of queues, from 1.
pub(super) fn dump_stats(registry: &Arc<Registry>, dump: &mut Dump<'_>) -> Result {
    dump_by_controller(registry, dump, stats::CTRL_ID, |controller, dump| {
        let base = u64::from(controller.id) << 32;
        let last = dump.cursor().saturating_sub(base);
        controller.with_stats(|all| {
            let queues = all.queues().iter().zip(1..u64::MAX);
            for (queue, position) in queues.filter(|(_, position)| *position > last) {
                let fitted = append(dump, Command::StatsGet, base | position, |message| {
                    encode::stats(message, controller, Some(queue.qid()), &**queue)
                })?;
                if !fitted {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    })
}

/// Returns the controller that a request names.
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

/// Returns the validated options of a connect or a discovery. Not inlined, to free its stack frame
/// before the controller is created.
#[inline(never)]
fn options(request: &Request<'_>, subsystem: CString) -> Result<Options> {
    let namespace = request.net();
    let parse = |attribute, text: &str, port| {
        TransportAddr::parse(&namespace, text, port).map_err(|error| match error {
            ENOMEM => ENOMEM,
            _ => request.refuse(
                attribute,
                format_args!("not a numeric IPv4 or IPv6 address with a known scope"),
            ),
        })
    };
    let port = request.u16(ctrl::TRSVCID);
    let port = port.unwrap_or(const { uapi::TRSVCID_DEFAULT as u16 });
    let target = parse(ctrl::TRADDR, request.required_str(ctrl::TRADDR)?, port)?;
    let source = request.str(ctrl::HOST_TRADDR)?;
    let source = source.map(|text| parse(ctrl::HOST_TRADDR, text, 0));
    let source = source.transpose()?;
    if source
        .as_ref()
        .is_some_and(|source| !source.address.same_family(&target.address))
    {
        let why = format_args!("not of the address family of traddr");
        return Err(request.refuse(ctrl::HOST_TRADDR, why));
    }
    // The policies limit the numbers to those that fit.
    let queues = |id| NonZeroU16::new(request.u32(id)?.try_into().ok()?);
    let number = |id, default| request.u32(id).unwrap_or(default);
    Ok(Options {
        source,
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

/// Returns the settings of a request; those without an attribute are taken from `rest`.
fn settings(request: &Request<'_>, rest: Settings) -> Result<Settings> {
    let delay = request.u32(ctrl::RECONNECT_DELAY);
    let timeout = request.u32(ctrl::CONNECT_TIMEOUT);
    Ok(Settings {
        connect_timeout: timeout.map_or(rest.connect_timeout, Msecs::new),
        reconnect_delay: delay.unwrap_or(rest.reconnect_delay),
        ctrl_loss_tmo: limit(request, ctrl::CTRL_LOSS_TMO, rest.ctrl_loss_tmo)?,
        fast_io_fail_tmo: limit(request, ctrl::FAST_IO_FAIL_TMO, rest.fast_io_fail_tmo)?,
        quiesce: quiesce_time(request, rest.quiesce)?,
    })
}

fn quiesce_time(request: &Request<'_>, rest: QuiesceTime) -> Result<QuiesceTime> {
    match request.u32(ctrl::CQT) {
        None => Ok(rest),
        Some(uapi::CQT_REPORTED) => Ok(QuiesceTime::Reported),
        Some(seconds) if seconds <= uapi::LOSS_TMO_MAX => {
            Ok(NonZeroU32::new(seconds).map_or(QuiesceTime::NoHold, QuiesceTime::After))
        }
        Some(_) => Err(too_long(request, ctrl::CQT)),
    }
}

fn limit(request: &Request<'_>, attribute: u16, rest: Limit) -> Result<Limit> {
    match request.u32(attribute) {
        None => Ok(rest),
        Some(uapi::LOSS_TMO_NEVER) => Ok(Limit::Never),
        Some(seconds) if seconds <= uapi::LOSS_TMO_MAX => Ok(Limit::After(seconds)),
        Some(_) => Err(too_long(request, attribute)),
    }
}

fn too_long(request: &Request<'_>, attribute: u16) -> Error {
    let max = uapi::LOSS_TMO_MAX;
    request.refuse(attribute, format_args!("more than {max} seconds"))
}

fn nqn(request: &Request<'_>, attribute: u16) -> Result<CString> {
    let text = request.required_str(attribute)?;
    Nqn::new(text.as_bytes()).map_err(|why| request.refuse(attribute, format_args!("{why}")))?;
    CString::try_from_fmt(fmt!("{text}"))
}

fn host_id(request: &Request<'_>) -> Result<Uuid> {
    let bytes = request.required_bytes(ctrl::HOSTID)?;
    // The policy limits the length.
    let id = Uuid::from_bytes(bytes.try_into().map_err(|_| EINVAL)?);
    if id.is_nil() {
        return Err(request.refuse(ctrl::HOSTID, format_args!("the host identifier is zero")));
    }
    Ok(id)
}
