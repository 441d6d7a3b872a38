// SPDX-License-Identifier: GPL-2.0

//! `rnvmf show`: controllers.

use super::text::{columns, known, size, table};
use crate::error::CtrlError;
use crate::model::controller::Controller;
use crate::model::namespace::Namespace;
use crate::output::json_member;
use serde::Serialize;
use std::fmt::Display;

/// Returns a table of controllers, or nothing without controllers.
pub(crate) fn normal(controllers: &[Controller]) -> String {
    let head = "DEVICE STATE ADDRESS RDMA QUEUES DISKS SUBSYSTEM";
    table(head, controllers.iter().map(cells))
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

/// Returns a line for each known attribute of a controller.
pub(crate) fn detail(controller: &Controller, namespaces: &[Namespace]) -> String {
    let c = controller;
    let error = c.error.as_ref().filter(|error| !error.over);
    let past_error = c.error.as_ref().filter(|error| error.over);
    let seconds = |s: u32| format!("{s} s");
    let bytes = |n| format!("{n} B");
    let mut rows = vec![
        ("device", Some(c.device.clone())),
        ("state", Some(c.state.to_string())),
        ("error", error.map(|error| error.message.clone())),
        ("failed stage", text(error.map(|error| error.stage))),
        ("attempts to connect", attempts(c)),
        ("held writes", held_writes(c)),
        ("subsystem", Some(c.subsysnqn.clone())),
        ("address", Some(c.endpoint().to_string())),
        ("host address", c.host_traddr.clone()),
        ("host NQN", c.hostnqn.clone()),
        ("host id", c.hostid.map(|id| id.to_string())),
        ("controller id", text(c.cntlid)),
        ("RDMA device", c.rdma_device.clone()),
        ("I/O queues", queues(c)),
        ("queue size", text(c.queue_size)),
        ("keep-alive", c.keep_alive_tmo.map(seconds)),
        ("connect timeout", c.connect_timeout.map(milliseconds)),
        ("reconnect delay", c.reconnect_delay.map(seconds)),
        ("given up after", text(c.ctrl_loss_tmo)),
        ("I/O fails after", text(c.fast_io_fail_tmo)),
        ("resets", text(c.nr_resets)),
        ("reconnects", text(c.nr_reconnects)),
        ("last error", past_error.map(recovered)),
        ("type of service", text(c.tos)),
        ("model", c.model.clone()),
        ("serial", c.serial.clone()),
        ("firmware", c.firmware.clone()),
        ("largest transfer", c.max_transfer.map(bytes)),
        ("inline data", c.inline_size.map(bytes)),
    ];
    rows.extend(of(c, namespaces).map(|each| ("disk", Some(disk(each)))));
    rows.extend(
        c.rejection_lines()
            .into_iter()
            .map(|why| ("no disk", Some(why))),
    );
    let row = |(name, value): (&str, Option<String>)| Some(vec![name.to_owned(), value?]);
    columns(&rows.into_iter().filter_map(row).collect::<Vec<_>>())
}

fn text(value: Option<impl Display>) -> Option<String> {
    value.map(|value| value.to_string())
}

fn milliseconds(ms: u32) -> String {
    match ms % 1000 {
        0 => format!("{} s", ms / 1000),
        _ => format!("{ms} ms"),
    }
}

/// Returns an error from which the controller has recovered.
fn recovered(error: &CtrlError) -> String {
    let age = error
        .age
        .map_or(String::new(), |ms| format!("{} ago, ", span(ms / 1000)));
    format!("{age}recovered since: {}", error.message)
}

/// Returns a time in hours, minutes or seconds: in the largest unit that gives at least 2.
fn span(seconds: u32) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// Returns the number of I/O queues, and of those with a purpose of their own.
fn queues(controller: &Controller) -> Option<String> {
    let mut text = controller.nr_all_queues()?.to_string();
    for (count, purpose) in [
        (controller.nr_write_queues, "for writes"),
        (controller.nr_poll_queues, "polled"),
    ] {
        if let Some(count) = count.filter(|count| *count > 0) {
            text += &format!(", {count} {purpose}");
        }
    }
    Some(text)
}

/// Returns the number of reconnect attempts, and when the next one and the last one are due.
fn attempts(controller: &Controller) -> Option<String> {
    let attempts = controller.attempts?;
    let mut text = match controller.next_attempt {
        Some(ms) => format!("{attempts}, next in {} s", ms.div_ceil(1000)),
        None => format!("{attempts}, the last one under way"),
    };
    if let Some(ms) = controller.give_up {
        text += &format!(", given up in {} s", ms.div_ceil(1000));
    }
    Some(text)
}

/// Returns how many writes are held, and until when.
fn held_writes(controller: &Controller) -> Option<String> {
    let (count, ms) = (controller.held_writes?, controller.held_writes_due?);
    let seconds = ms.div_ceil(1000);
    Some(format!(
        "{count}, for {seconds} s: the target may still execute them"
    ))
}

fn disk(namespace: &Namespace) -> String {
    let Namespace {
        name,
        nsid,
        size: bytes,
        block_size,
        ..
    } = namespace;
    let size = size(*bytes);
    let mut text = format!("/dev/{name}: namespace {nsid}, {size}, blocks of {block_size} B");
    if namespace.read_only {
        text += ", read-only";
    }
    if namespace.write_cache {
        text += ", write cache";
    }
    text
}

/// Returns the namespaces of a controller.
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
struct ControllerDocument<'a> {
    #[serde(flatten)]
    controller: &'a Controller,
    namespaces: Vec<&'a Namespace>,
}

/// Returns the JSON document. One controller is a list of one.
pub(crate) fn json(controllers: &[Controller], namespaces: &[Namespace]) -> String {
    let documents = controllers.iter().map(|controller| ControllerDocument {
        controller,
        namespaces: of(controller, namespaces).collect(),
    });
    json_member("controllers", &documents.collect::<Vec<_>>())
}

#[cfg(test)]
mod tests;
