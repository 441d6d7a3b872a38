// SPDX-License-Identifier: GPL-2.0

//! Controllers and namespaces as attributes.

use super::uapi::{
    ctrl,
    error,
    ns, //
};
use crate::{
    controller::{
        Controller,
        Facts,
        Shown, //
    },
    failure::Failure,
    namespace::Namespace,
    options::Options, //
};
use kernel::{
    prelude::*,
    str::CString, //
};
use rrdma::netlink::Message;

/// Bytes of a sector.
const SECTOR: u32 = 512;

/// The name of a controller.
pub(super) fn name(controller: &Controller) -> Result<CString> {
    let id = controller.id;
    CString::try_from_fmt(fmt!("rnvme{id}"))
}

/// All that is known of a controller.
pub(super) fn controller(message: &mut Message<'_>, controller: &Controller) -> Result {
    message.put_u32(ctrl::CTRL_ID, controller.id)?;
    message.put_str(ctrl::NAME, text(&name(controller)?)?)?;
    options(message, &controller.options)?;
    controller.shown(|shown| self::shown(message, shown))
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
    if let Some(tos) = options.tos {
        message.put_u8(ctrl::TOS, tos)?;
    }
    Ok(())
}

fn shown(message: &mut Message<'_>, shown: &Shown) -> Result {
    message.put_u32(ctrl::STATE, shown.state.to_u8().into())?;
    message.put_u32(ctrl::NR_NAMESPACES, shown.namespaces)?;
    if let Some(facts) = &shown.facts {
        self::facts(message, facts)?;
    }
    match &shown.failure {
        Some(failure) => message.nest(ctrl::ERROR, |nest| self::failure(nest, failure)),
        None => Ok(()),
    }
}

fn facts(message: &mut Message<'_>, facts: &Facts) -> Result {
    let identity = &facts.identity;
    message.put_u16(ctrl::CNTLID, identity.controller_id)?;
    message.put_str(ctrl::RDMA_DEVICE, facts.device.as_str())?;
    message.put_str(ctrl::MODEL, identity.model.as_str())?;
    message.put_str(ctrl::SERIAL, identity.serial.as_str())?;
    message.put_str(ctrl::FIRMWARE, identity.firmware.as_str())?;
    message.put_u32(ctrl::NR_IO_QUEUES, facts.io_queues.into())?;
    message.put_u32(ctrl::QUEUE_SIZE, facts.queue_size.into())?;
    message.put_u32(ctrl::MAX_TRANSFER, facts.max_sectors.saturating_mul(SECTOR))?;
    message.put_u32(ctrl::INLINE_SIZE, facts.inline_size)
}

fn failure(message: &mut Message<'_>, failure: &Failure) -> Result {
    message.put_u32(error::STAGE, failure.stage as u32)?;
    message.put_i32(error::ERRNO, failure.error.to_errno().saturating_neg())?;
    if let Some(reason) = failure.reject_reason {
        message.put_u32(error::REJECT_REASON, reason)?;
    }
    if let Some(status) = failure.cm_status {
        message.put_u16(error::CM_STATUS, status)?;
    }
    if let Some(status) = failure.nvme_status {
        message.put_u16(error::NVME_STATUS, status)?;
    }
    if let Some(qid) = failure.qid {
        message.put_u16(error::QID, qid)?;
    }
    message.put_str(error::MESSAGE, failure.message.as_str())
}

/// All that is known of a namespace.
pub(super) fn namespace(
    message: &mut Message<'_>,
    controller: &Controller,
    namespace: &Namespace,
) -> Result {
    message.put_u32(ns::CTRL_ID, controller.id)?;
    message.put_u32(ns::NSID, namespace.nsid)?;
    message.put_str(ns::NAME, namespace.name().to_str()?)?;
    message.put_uint(ns::SIZE, namespace.size())?;
    message.put_u32(ns::BLOCK_SIZE, namespace.block_size())?;
    message.put_u32(
        ns::PHYSICAL_BLOCK_SIZE,
        namespace.limits.physical_block_size,
    )?;
    if let Some(nguid) = &namespace.ids.nguid {
        message.put_bytes(ns::NGUID, nguid)?;
    }
    if let Some(eui64) = &namespace.ids.eui64 {
        message.put_bytes(ns::EUI64, eui64)?;
    }
    if let Some(uuid) = &namespace.ids.uuid {
        message.put_bytes(ns::UUID, &uuid.to_bytes())?;
    }
    message.put_flag(ns::READ_ONLY, namespace.limits.read_only)?;
    message.put_flag(ns::WRITE_CACHE, namespace.limits.write_cache)
}

pub(super) fn text(name: &CString) -> Result<&str> {
    name.to_str().map_err(|_| EINVAL)
}
