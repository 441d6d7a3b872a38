// SPDX-License-Identifier: GPL-2.0

//! Sysfs attributes of a controller, with the names and formats of the C host.
//!
//! Strings of the target were made printable when they were parsed.

use crate::{
    controller::{
        Controller,
        CtrlInfo, //
    },
    options::Limit, //
};
use kernel::{
    fmt,
    prelude::*, //
};
use nvme_proto::format::identify::ControllerType;
use rrdma::sysfs::{
    Attribute,
    Attributes, //
};

/// An attribute with a property of a connected controller; empty before the first connection.
macro_rules! info_attribute {
    ($name:literal, $which:expr) => {
        Attribute::new($name, |controller, f| show_info(controller, f, $which))
    };
}

impl Attributes for Controller {
    const ATTRIBUTES: &'static [Attribute<Self>] = &[
        // The connection.
        Attribute::new(c"state", |controller, f| {
            controller
                .status
                .with(|status| f.write_str(status.state.name()))
        }),
        Attribute::new(c"transport", |_, f| f.write_str("rdma")),
        Attribute::new(c"address", address),
        Attribute::new(c"subsysnqn", |controller, f| {
            f.write_str(controller.options.subsystem())
        }),
        Attribute::new(c"hostnqn", |controller, f| {
            f.write_str(controller.options.host())
        }),
        Attribute::new(c"hostid", |controller, f| {
            write!(f, "{}", controller.options.host_id)
        }),
        // The target.
        info_attribute!(c"cntlid", |info| info.identity.controller_id),
        // Discovery and administrative controllers are not in sysfs.
        info_attribute!(c"cntrltype", |info| match info.identity.kind {
            ControllerType::Io => "io",
            _ => "reserved",
        }),
        Attribute::new(c"dctype", |_, f| f.write_str("none")),
        info_attribute!(c"model", |info| info.identity.model),
        info_attribute!(c"serial", |info| info.identity.serial),
        info_attribute!(c"firmware_rev", |info| info.identity.firmware),
        info_attribute!(c"numa_node", |info| info.numa_node),
        // The queues: `queue_count` includes the admin queue, `sqsize` is zero-based.
        info_attribute!(c"queue_count", |info| info
            .io_queues
            .total()
            .saturating_add(1)),
        info_attribute!(c"nr_write_queues", |info| info.io_queues.write()),
        info_attribute!(c"nr_poll_queues", |info| info.io_queues.poll()),
        info_attribute!(c"sqsize", |info| info.queue_size.saturating_sub(1)),
        // Times, in seconds.
        Attribute::new(c"kato", |controller, f| {
            write!(f, "{}", controller.options.keep_alive)
        }),
        Attribute::new(c"reconnect_delay", |controller, f| {
            write!(f, "{}", controller.settings().reconnect_delay)
        }),
        Attribute::new(c"ctrl_loss_tmo", |controller, f| {
            limit(controller.settings().ctrl_loss_tmo, f)
        }),
        Attribute::new(c"fast_io_fail_tmo", |controller, f| {
            limit(controller.settings().fast_io_fail_tmo, f)
        }),
        // Completed resets and reconnects.
        Attribute::new(c"reset_count", |controller, f| {
            write!(f, "{}", controller.status.with(|status| status.resets))
        }),
        Attribute::new(c"reconnect_count", |controller, f| {
            write!(f, "{}", controller.status.with(|status| status.reconnects))
        }),
        // Actions for root, for a controller in any network namespace. A write returns before the
        // action completes.
        Attribute::action(c"delete_controller", |controller| {
            controller.delete();
            Ok(())
        }),
        Attribute::action(c"reset_controller", |controller| {
            controller.request_reset().map_err(|_| EBUSY)
        }),
        Attribute::action(c"rescan_controller", |controller| {
            controller.request_scan().map(drop).map_err(|_| EBUSY)
        }),
    ];
}

/// Writes a property of a connected controller; nothing before the first connection.
#[inline(never)]
fn show_info<T: core::fmt::Display>(
    controller: &Controller,
    f: &mut fmt::Formatter<'_>,
    which: fn(&CtrlInfo) -> T,
) -> fmt::Result {
    match controller
        .status
        .with(|status| status.info.as_ref().map(which))
    {
        Some(value) => write!(f, "{value}"),
        None => Ok(()),
    }
}

fn address(controller: &Controller, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let options = &controller.options;
    let target = &options.target;
    write!(f, "traddr={},trsvcid={}", target.text(), target.port)?;
    match &options.source {
        Some(source) => write!(f, ",host_traddr={}", source.text()),
        None => Ok(()),
    }
}

fn limit(limit: Limit, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match limit {
        Limit::After(seconds) => write!(f, "{seconds}"),
        Limit::Never => f.write_str("off"),
    }
}
