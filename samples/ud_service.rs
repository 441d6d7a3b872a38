// SPDX-License-Identifier: GPL-2.0

//! Datagrams to a service at an address: a peer of `udaddy`.
//!
//! The client asks where the service is and sends it datagrams; the server answers
//! each of them, which it can because a datagram says where it came from.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    ah::AddressHandle,
    cm::{
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
    failure::{
        Failure,
        Step, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
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
    description: "Sample: datagrams to a service at an address, a peer of udaddy",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<64> = "", "address of the server; empty: be the server";
    listen: Text<64> = "0.0.0.0", "address to listen at, as the server";
    port: Number<1, 65535> = 7174, "port of the connection manager";
    size: Number<1, 4096> = 100, "bytes of a datagram";
    count: Number<1, 1000> = 10, "datagrams in each direction";
    spare: Number<0, 1000> = 0, "datagrams sent beyond these, in place of lost ones";
}

/// What `rdma res` names as the owner of what the sample makes.
const NAME: &CStr = c"rrdma_ud_service";

fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    match &*parameters::server.get() {
        "" => serve(task)?,
        server => ask(task, server)?,
    }
    let (count, size) = (parameters::count.get(), parameters::size.get());
    Ok(match parameters::spare.get() {
        0 => Summary::new(fmt!("{count} datagrams of {size} bytes in each direction")),
        spare => Summary::new(fmt!(
            "{count} datagrams of {size} bytes in each direction, {spare} more were sent"
        )),
    })
}

/// Tells clients where the service is, and answers what the first one sends there.
fn serve(task: &SampleTask) -> Result<(), Failure> {
    let at = rdma_cm::address(task, &parameters::listen.get(), parameters::port.get())?;
    let wake = task.wake().clone();
    let listener = ServiceListener::new(task.namespace(), &at, 1, wake, NAME).step("listen")?;
    pr_info!("listens\n");
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

/// Answers the next one who asks. A client that has not heard the answer asks again,
/// and for the connection manager, which knows nothing of the answer any more, that is
/// another question.
fn answer_again(listener: &ServiceListener, device: &DeviceRef, own: Qpn) -> Result<(), Failure> {
    match listener.next().map_err(gone)? {
        // Through another device the queue pair is out of reach: dropped, it is told
        // that there is no service.
        Some(query) if *query.device() == **device => query.answer(own, QKEY, &[]).step("answer"),
        _ => Ok(()),
    }
}

/// There are no more questions.
fn gone(lost: Lost) -> Failure {
    Failure::new("client", fmt!("{lost}"))
}

/// Asks where the service is, sends it datagrams, and waits for as many answers.
fn ask(task: &SampleTask, server: &str) -> Result<(), Failure> {
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

/// How many datagrams are sent.
fn sends() -> u32 {
    parameters::count
        .get()
        .saturating_add(parameters::spare.get())
}

fn config() -> UdConfig {
    UdConfig {
        owner: NAME,
        key: QKEY,
        receives: parameters::count.get(),
        size: parameters::size.get(),
    }
}

/// The number of a queue pair, if it is one.
fn number(raw: u32) -> Result<Qpn, Failure> {
    Qpn::new(raw).ok_or_else(|| Failure::new("queue pair", fmt!("{raw:#x} is no number of one")))
}
