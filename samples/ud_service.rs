// SPDX-License-Identifier: GPL-2.0

//! Datagrams to a service that the connection manager resolves; a peer of `udaddy`.
//!
//! The client resolves the service to a queue pair (SIDR) and sends it datagrams. The server sends as
//! many back: a received datagram has the address of its sender.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    ah::AddressHandle,
    cm::{
        ListenParams,
        Lost,
        Service,
        ServiceListener,
        QKEY, //
    },
    device::DeviceRef,
    qp::Qpn,
};

#[path = "common/common.rs"]
mod common;
#[path = "rdma_cm/rdma_cm.rs"]
mod rdma_cm;
#[path = "datagram/ud_endpoint.rs"]
mod ud_endpoint;

use common::{
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary,
        NAME, //
    },
};
use ud_endpoint::{
    UdConfig,
    UdEndpoint, //
};

module! {
    type: task::Handle,
    name: "rrdma_ud_service",
    authors: ["The rnvmf developers"],
    description: "Sample: datagrams to a service that is resolved (SIDR), a peer of udaddy",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<64> = "", "address of the server; empty: be the server";
    listen: Text<64> = "0.0.0.0", "server: address to listen on; default 0.0.0.0";
    port: Number<1, 65535> = 7174, "port number of the server; default 7174";
    size: Number<1, 4096> = 100, "datagram size in bytes; default 100";
    count: Number<1, 1000> = 10, "number of datagrams in each direction; default 10";
    spare: Number<0, 1000> = 0, "additional datagrams to send, in case some are lost; default 0";
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    match &*parameters::server.get() {
        "" => serve(task)?,
        server => ask(task, server)?,
    }
    let (count, size) = (parameters::count.get(), parameters::size.get());
    Ok(match parameters::spare.get() {
        0 => Summary::new(fmt!("{count} datagrams of {size} bytes in each direction")),
        spare => Summary::new(fmt!(
            "{count} datagrams of {size} bytes in each direction, {spare} more sent"
        )),
    })
}

/// Answers queries for the service, and replies to the datagrams of the first client.
fn serve(task: &SampleTask) -> Result<(), StepError> {
    let at = rdma_cm::address(task, &parameters::listen.get(), parameters::port.get())?;
    let params = ListenParams {
        backlog: 1,
        refusal: &[],
        wake: task.wake().clone(),
        owner: NAME,
    };
    let listener = ServiceListener::new(task.namespace(), &at, params).step("listen")?;
    pr_info!("listening\n");
    let query = task
        .wait_for("client", rdma_cm::EVER, || listener.next().transpose())?
        .map_err(gone)?;
    let device = task.acquire(query.device())?;
    let endpoint = UdEndpoint::new(task, &device, query.port(), &config())?;
    let own = number(endpoint.number())?;
    query.answer(own, QKEY, &[]).step("answer")?;
    let meanwhile = || answer_again(&listener, &device, own).err();
    let datagram = endpoint.receive(parameters::count.get(), meanwhile)?;
    let back = AddressHandle::reply(endpoint.domain(), &datagram.sender).step("address handle")?;
    endpoint.send(sends(), back, datagram.number(), QKEY)
}

/// Answers the next query, if there is one.
///
/// A client whose answer was lost repeats its query. The connection manager does not remember that
/// it was answered, so it arrives as another query.
fn answer_again(listener: &ServiceListener, device: &DeviceRef, own: Qpn) -> Result<(), StepError> {
    match listener.next().map_err(gone)? {
        // The queue pair is not reachable through another device. Dropping such a query rejects it.
        Some(query) if *query.device() == **device => query.answer(own, QKEY, &[]).step("answer"),
        _ => Ok(()),
    }
}

/// Returns the failure of a listener that gets no more queries.
fn gone(lost: Lost) -> StepError {
    StepError::new("client", fmt!("{lost}"))
}

/// Resolves the service, sends datagrams to it, and waits for as many replies.
fn ask(task: &SampleTask, server: &str) -> Result<(), StepError> {
    let cancelled = || task.is_stopped();
    let patience = rdma_cm::patience(&cancelled);
    let to = rdma_cm::address(task, server, parameters::port.get())?;
    let wake = task.wake().clone();
    let service =
        Service::find(task.namespace(), None, &to, &[], wake, NAME, patience).step("service")?;
    let device = task.acquire(service.device())?;
    let endpoint = UdEndpoint::new(task, &device, service.port(), &config())?;
    let there = service
        .address_handle(endpoint.domain())
        .step("address handle")?;
    endpoint.send(sends(), there, service.number(), service.qkey())?;
    endpoint.receive(parameters::count.get(), || None)?;
    Ok(())
}

/// Returns the number of datagrams to send.
fn sends() -> u32 {
    parameters::count
        .get()
        .saturating_add(parameters::spare.get())
}

fn config() -> UdConfig {
    UdConfig {
        key: QKEY,
        receives: parameters::count.get(),
        size: parameters::size.get(),
    }
}

/// Checks a queue pair number.
fn number(raw: u32) -> Result<Qpn, StepError> {
    Qpn::new(raw).ok_or_else(|| StepError::new("queue pair", fmt!("invalid number {raw:#x}")))
}
