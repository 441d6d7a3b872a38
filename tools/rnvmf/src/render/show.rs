// SPDX-License-Identifier: GPL-2.0

//! `rnvmf show`: controllers.

use super::text::{row, size, table};
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::json_line;
use serde::Serialize;
use std::fmt::Display;

/// A table of controllers, or nothing where there are none.
pub(crate) fn normal(controllers: &[Controller]) -> String {
    if controllers.is_empty() {
        return String::new();
    }
    let mut rows = vec![row([
        "DEVICE",
        "STATE",
        "ADDRESS",
        "RDMA",
        "QUEUES",
        "DISKS",
        "SUBSYSTEM",
    ])];
    rows.extend(controllers.iter().map(cells));
    table(&rows)
}

fn cells(controller: &Controller) -> Vec<String> {
    vec![
        controller.device.clone(),
        controller.state.to_string(),
        controller.endpoint().to_string(),
        known(controller.rdma_device.as_ref()),
        known(controller.nr_all_queues()),
        known(controller.nr_namespaces),
        controller.subsysnqn.clone(),
    ]
}

fn known(value: Option<impl Display>) -> String {
    value.map_or("-".into(), |value| value.to_string())
}

/// All about one controller, a fact a line; what is not known is left out.
pub(crate) fn detail(controller: &Controller, namespaces: &[Namespace]) -> String {
    let mut rows = vec![
        fact("device", Some(&controller.device)),
        fact("state", Some(controller.state)),
        fact(
            "error",
            controller.error.as_ref().map(|error| &error.message),
        ),
        fact(
            "failed stage",
            controller.error.as_ref().map(|error| error.stage),
        ),
        fact("attempts to connect", attempts(controller)),
        fact("subsystem", Some(&controller.subsysnqn)),
        fact("address", Some(controller.endpoint())),
        fact("host address", controller.host_traddr.as_ref()),
        fact("host NQN", controller.hostnqn.as_ref()),
        fact("host id", controller.hostid.as_ref()),
        fact("controller id", controller.cntlid),
        fact("RDMA device", controller.rdma_device.as_ref()),
        fact("I/O queues", queues(controller)),
        fact("queue size", controller.queue_size),
        fact(
            "keep-alive",
            controller.keep_alive_tmo.map(|s| format!("{s} s")),
        ),
        fact(
            "time to connect",
            controller.connect_timeout.map(|ms| match ms % 1000 {
                0 => format!("{} s", ms / 1000),
                _ => format!("{ms} ms"),
            }),
        ),
        fact(
            "longest pause",
            controller.reconnect_delay.map(|s| format!("{s} s")),
        ),
        fact("given up after", controller.ctrl_loss_tmo),
        fact("I/O fails after", controller.fast_io_fail_tmo),
        fact("resets", controller.nr_resets),
        fact("reconnects", controller.nr_reconnects),
        fact("type of service", controller.tos),
        fact("model", controller.model.as_ref()),
        fact("serial", controller.serial.as_ref()),
        fact("firmware", controller.firmware.as_ref()),
        fact(
            "largest transfer",
            controller.max_transfer.map(|n| format!("{n} B")),
        ),
        fact(
            "inline data",
            controller.inline_size.map(|n| format!("{n} B")),
        ),
    ];
    rows.extend(of(controller, namespaces).map(disk).map(Some));
    let rejection_lines = controller.rejection_lines().into_iter();
    rows.extend(rejection_lines.map(|refusal| fact("no disk", Some(refusal))));
    let rows: Vec<Vec<String>> = rows.into_iter().flatten().collect();
    table(&rows)
}

/// The I/O queues, and how many of them are for what.
fn queues(controller: &Controller) -> Option<String> {
    let mut text = controller.nr_all_queues()?.to_string();
    for (count, what) in [
        (controller.nr_write_queues, "for writes"),
        (controller.nr_poll_queues, "polled"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    Some(text)
}

/// How connecting again goes on.
fn attempts(controller: &Controller) -> Option<String> {
    let attempts = controller.attempts?;
    let mut text = match controller.next_attempt {
        Some(ms) => format!("{attempts}, next in {} s", ms.div_ceil(1000)),
        None => format!("{attempts}, the last one under way"),
    };
    if let Some(ms) = controller.give_up {
        text.push_str(&format!(", given up in {} s", ms.div_ceil(1000)));
    }
    Some(text)
}

fn fact(name: &str, value: Option<impl Display>) -> Option<Vec<String>> {
    value.map(|value| vec![name.to_owned(), value.to_string()])
}

fn disk(namespace: &Namespace) -> Vec<String> {
    let mut text = format!(
        "/dev/{}: namespace {}, {}, blocks of {} B",
        namespace.name,
        namespace.nsid,
        size(namespace.size),
        namespace.block_size
    );
    if namespace.read_only {
        text.push_str(", read-only");
    }
    if namespace.write_cache {
        text.push_str(", write cache");
    }
    vec!["disk".into(), text]
}

fn of<'a>(
    controller: &Controller,
    namespaces: &'a [Namespace],
) -> impl Iterator<Item = &'a Namespace> {
    let id = controller.id;
    namespaces
        .iter()
        .filter(move |each| each.controller_id == id)
}

#[derive(Serialize)]
struct Document<'a> {
    controllers: Vec<ControllerDocument<'a>>,
}

#[derive(Serialize)]
struct ControllerDocument<'a> {
    #[serde(flatten)]
    controller: &'a Controller,
    namespaces: Vec<&'a Namespace>,
}

/// One line, the same for one controller and for all.
pub(crate) fn json(controllers: &[Controller], namespaces: &[Namespace]) -> String {
    let entries = controllers.iter().map(|controller| ControllerDocument {
        controller,
        namespaces: of(controller, namespaces).collect(),
    });
    json_line(&Document {
        controllers: entries.collect(),
    }) + "\n"
}

#[cfg(test)]
mod tests;
