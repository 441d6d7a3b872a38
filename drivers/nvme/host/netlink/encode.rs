// SPDX-License-Identifier: GPL-2.0

//! Objects as attributes of messages. All functions fail with `EMSGSIZE` on a full message.

use crate::uapi::{
    self,
    ctrl,
    discovery,
    error,
    latency_bucket,
    ns,
    refusal,
    stats,
    DiskUse, //
};
use crate::{
    controller::{
        Controller,
        CtrlInfo,
        CtrlStatus, //
        CtrlView,
        DiscoveryResult,
        DiscoveryView,
        ReconnectStatus,
    },
    ctrl_error::CtrlError,
    event::NsInfo,
    name::CtrlName,
    namespace::{
        NsRejection,
        NsRejections, //
    },
    options::{
        Limit,
        Options,
        QuiesceTime,
        Settings, //
    },
};
use kernel::prelude::*;
use nvme_proto::policy::latency;
use nvme_rdma_transport::stats::{Count, ReadStats, TimedCommand};
use rrdma::{
    block,
    netlink::Message,
    text::Message as Text, //
};

/// Bytes of a sector.
const SECTOR: u32 = 512;

/// Returns the name of a controller as text. Needs no memory, so that a dump works without any.
pub(super) fn name(name: CtrlName) -> Text<{ uapi::NAME_MAX_LEN }> {
    Text::new(fmt!("{name}"))
}

/// Puts the attributes of a controller.
pub(super) fn controller(message: &mut Message<'_>, ctrl: &CtrlView<'_>) -> Result {
    message.put_u32(ctrl::CTRL_ID, ctrl.id)?;
    message.put_str(ctrl::NAME, name(ctrl.name).as_str())?;
    options(message, ctrl.options)?;
    settings(message, &ctrl.settings)?;
    if ctrl.held_writes > 0 {
        message.put_u32(ctrl::HELD_WRITES, ctrl.held_writes)?;
        message.put_u32(ctrl::HELD_WRITES_DUE, ctrl.held_writes_due.left().get())?;
    }
    ctrl.status.with(|status| {
        if let Some(reconnect) = &status.reconnect {
            self::reconnect(message, reconnect, ctrl.settings.ctrl_loss_tmo)?;
        }
        self::status(message, status, ctrl.namespaces)
    })
}

fn options(message: &mut Message<'_>, options: &Options) -> Result {
    message.put_str(ctrl::TRADDR, options.target.text())?;
    message.put_u16(ctrl::TRSVCID, options.target.port)?;
    if let Some(source) = &options.source {
        message.put_str(ctrl::HOST_TRADDR, source.text())?;
    }
    message.put_str(ctrl::SUBSYSNQN, options.subsystem())?;
    message.put_str(ctrl::HOSTNQN, options.host())?;
    message.put_bytes(ctrl::HOSTID, &options.host_id.to_bytes())?;
    message.put_u32(ctrl::KEEP_ALIVE_TMO, options.keep_alive)?;
    optional(options.tos, |tos| message.put_u8(ctrl::TOS, tos))
}

fn settings(message: &mut Message<'_>, settings: &Settings) -> Result {
    message.put_u32(ctrl::CONNECT_TIMEOUT, settings.connect_timeout.get())?;
    message.put_u32(ctrl::RECONNECT_DELAY, settings.reconnect_delay)?;
    message.put_u32(ctrl::CTRL_LOSS_TMO, seconds(settings.ctrl_loss_tmo))?;
    message.put_u32(ctrl::FAST_IO_FAIL_TMO, seconds(settings.fast_io_fail_tmo))?;
    message.put_u32(
        ctrl::CQT,
        match settings.quiesce {
            QuiesceTime::Reported => uapi::CQT_REPORTED,
            QuiesceTime::After(seconds) => seconds.get(),
            QuiesceTime::NoHold => 0,
        },
    )
}

fn seconds(limit: Limit) -> u32 {
    match limit {
        Limit::After(seconds) => seconds,
        Limit::Never => uapi::LOSS_TMO_NEVER,
    }
}

fn reconnect(
    message: &mut Message<'_>,
    reconnect: &ReconnectStatus,
    ctrl_loss_tmo: Limit,
) -> Result {
    message.put_u32(ctrl::ATTEMPTS, reconnect.attempts())?;
    optional(reconnect.next, |time| {
        message.put_u32(ctrl::NEXT_ATTEMPT, time.left().get())
    })?;
    match ctrl_loss_tmo {
        Limit::After(seconds) => {
            let limit = seconds.saturating_mul(1000);
            message.put_u32(ctrl::GIVE_UP, limit.saturating_sub(reconnect.outage_ms()))
        }
        Limit::Never => Ok(()),
    }
}

fn status(message: &mut Message<'_>, status: &CtrlStatus, namespaces: u32) -> Result {
    message.put_u32(ctrl::STATE, status.state.to_u8().into())?;
    message.put_u32(ctrl::NR_NAMESPACES, namespaces)?;
    message.put_u32(ctrl::SCAN, status.scans.done())?;
    message.put_u32(ctrl::NR_RESETS, status.resets)?;
    message.put_u32(ctrl::NR_RECONNECTS, status.reconnects)?;
    optional(status.info.as_ref(), |info| self::info(message, info))?;
    rejections(message, &status.rejections)?;
    optional(status.error.as_ref(), |error| {
        message.nest(ctrl::ERROR, |nest| failure(nest, error))
    })
}

fn rejections(message: &mut Message<'_>, rejections: &NsRejections) -> Result {
    message.put_u32(ctrl::NR_NO_DISK, rejections.count())?;
    for NsRejection { nsid, reason } in rejections.kept() {
        message.nest(ctrl::NO_DISK, |nest| {
            nest.put_u32(refusal::NSID, *nsid)?;
            nest.put_str(refusal::REASON, reason.as_str())
        })?;
    }
    Ok(())
}

fn info(message: &mut Message<'_>, info: &CtrlInfo) -> Result {
    let identity = &info.identity;
    message.put_u16(ctrl::CNTLID, identity.controller_id)?;
    message.put_str(ctrl::RDMA_DEVICE, info.device.as_str())?;
    message.put_str(ctrl::MODEL, identity.model.as_str())?;
    message.put_str(ctrl::SERIAL, identity.serial.as_str())?;
    message.put_str(ctrl::FIRMWARE, identity.firmware.as_str())?;
    message.put_u32(ctrl::NR_IO_QUEUES, info.io_queues.io().into())?;
    message.put_u32(ctrl::NR_WRITE_QUEUES, info.io_queues.write().into())?;
    message.put_u32(ctrl::NR_POLL_QUEUES, info.io_queues.poll().into())?;
    message.put_u32(ctrl::QUEUE_SIZE, info.queue_size.into())?;
    message.put_u32(ctrl::MAX_TRANSFER, info.max_sectors.saturating_mul(SECTOR))?;
    message.put_u32(ctrl::INLINE_SIZE, info.inline_size)
}

fn failure(message: &mut Message<'_>, failure: &CtrlError) -> Result {
    message.put_u32(error::STAGE, failure.stage as u32)?;
    message.put_i32(error::ERRNO, failure.error.to_errno().saturating_neg())?;
    optional(failure.reject_reason, |reason| {
        message.put_u32(error::REJECT_REASON, reason)
    })?;
    for (id, number) in [
        (error::CM_STATUS, failure.cm_status),
        (error::NVME_STATUS, failure.nvme_status),
        (error::QID, failure.qid),
    ] {
        optional(number, |number| message.put_u16(id, number))?;
    }
    message.put_str(error::MESSAGE, failure.message())?;
    message.put_u32(error::AGE, failure.age().get())?;
    message.put_flag(error::OVER, failure.over)?;
    message.put_flag(error::UNANSWERED, failure.unanswered)
}

/// Puts the attributes of a namespace.
pub(super) fn namespace(message: &mut Message<'_>, ctrl_id: u32, namespace: &NsInfo) -> Result {
    let NsInfo { ids, limits, .. } = namespace;
    message.put_u32(ns::CTRL_ID, ctrl_id)?;
    message.put_u32(ns::NSID, namespace.nsid)?;
    message.put_str(ns::NAME, namespace.name.as_str())?;
    message.put_uint(ns::SIZE, namespace.size)?;
    message.put_u32(ns::BLOCK_SIZE, namespace.block_size())?;
    message.put_u32(ns::PHYSICAL_BLOCK_SIZE, limits.physical_block_size)?;
    optional(ids.nguid, |nguid| message.put_bytes(ns::NGUID, &nguid))?;
    optional(ids.eui64, |eui64| message.put_bytes(ns::EUI64, &eui64))?;
    optional(ids.uuid, |uuid| {
        message.put_bytes(ns::UUID, &uuid.to_bytes())
    })?;
    message.put_flag(ns::READ_ONLY, limits.read_only)?;
    message.put_flag(ns::WRITE_CACHE, limits.write_cache)?;
    message.put_u32(ns::USE, disk_use(namespace.usage) as u32)
}

fn disk_use(usage: block::DiskUse) -> DiskUse {
    match usage {
        block::DiskUse::Closed => DiskUse::Closed,
        block::DiskUse::Open => DiskUse::Open,
        block::DiskUse::Claimed => DiskUse::Claimed,
    }
}

/// Puts the result of a discovery.
pub(super) fn discovery(message: &mut Message<'_>, discovery: &DiscoveryView<'_>) -> Result {
    message.put_u32(discovery::DISCOVERY_ID, discovery.id)?;
    match discovery.result {
        None => Ok(()),
        Some(DiscoveryResult::Read(log)) => {
            message.put_uint(discovery::GENERATION, log.header.generation)?;
            message.put_uint(discovery::NR_ENTRIES, log.header.entries)
        }
        Some(DiscoveryResult::Failed(error, next)) => {
            message.nest(discovery::ERROR, |nest| failure(nest, error))?;
            optional(*next, |time| {
                message.put_u32(discovery::NEXT_ATTEMPT, time.left().get())
            })
        }
    }
}

/// Puts a value if there is one.
fn optional<T>(value: Option<T>, put: impl FnOnce(T) -> Result) -> Result {
    value.map_or(Ok(()), put)
}

/// The attributes of counters.
const COUNTS: [(Count, u16); 16] = [
    (Count::Reads, stats::READS),
    (Count::Writes, stats::WRITES),
    (Count::Flushes, stats::FLUSHES),
    (Count::Others, stats::OTHERS),
    (Count::ReadBytes, stats::READ_BYTES),
    (Count::WrittenBytes, stats::WRITTEN_BYTES),
    (Count::Errors, stats::ERRORS),
    (Count::Retries, stats::RETRIES),
    (Count::InCapsule, stats::IN_CAPSULE),
    (Count::Registrations, stats::REGISTRATIONS),
    (Count::RemoteInvalidations, stats::REMOTE_INVALIDATIONS),
    (Count::LocalInvalidations, stats::LOCAL_INVALIDATIONS),
    (Count::Doorbells, stats::DOORBELLS),
    (Count::WorkRequests, stats::WORK_REQUESTS),
    (Count::Completions, stats::COMPLETIONS),
    (Count::Polls, stats::POLLS),
];

/// The attributes of latencies.
const TIMES: [(TimedCommand, u16); 2] = [
    (TimedCommand::Read, stats::READ_LATENCY),
    (TimedCommand::Write, stats::WRITE_LATENCY),
];

/// Puts the counters of a queue; without `qid`, the sum of all queues of the controller.
pub(super) fn stats(
    message: &mut Message<'_>,
    controller: &Controller,
    qid: Option<u16>,
    numbers: &impl ReadStats,
) -> Result {
    message.put_u32(stats::CTRL_ID, controller.id)?;
    message.put_str(stats::NAME, name(controller.name).as_str())?;
    optional(qid, |qid| message.put_u16(stats::QID, qid))?;
    for (count, id) in COUNTS {
        message.put_uint(id, numbers.count(count))?;
    }
    message.put_u8(stats::LATENCY, numbers.counts_latencies().into())?;
    for (command, id) in TIMES {
        for bucket in 0..latency::BUCKETS {
            let count = numbers.latencies(command, bucket);
            if count != 0 {
                message.nest(id, |nest| {
                    let limit = latency::limit(bucket);
                    optional(limit, |limit| nest.put_uint(latency_bucket::BELOW, limit))?;
                    nest.put_uint(latency_bucket::COUNT, count)
                })?;
            }
        }
    }
    Ok(())
}
