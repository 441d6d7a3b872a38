// SPDX-License-Identifier: GPL-2.0

//! Listeners at the addresses of ports.
//!
//! A thread takes the connection requests. It also listens again after the device of the address was
//! removed, or its link address changed.

use crate::{
    connection::Connections,
    devices::OWNER,
    queue::TargetQueue,
    rdma::Rdma, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::format::private_data::CmStatus;
use nvmet::Port;
use rrdma::{
    net::{
        Address,
        Namespace, //
    },
    rdma::cm::{
        self,
        ListenParams,
        Listener,
        Lost, //
    },
    sync::{
        Msecs,
        RelaxedBool,
        Thread,
        TimedCompletion, //
    },
};

/// Connection requests that wait.
const BACKLOG: u16 = 128;

/// Pause between attempts to listen again. A new device ends it early.
const PAUSE: Msecs = Msecs::from_secs(5);

/// State that the thread of a listener shares with its owner.
struct Shared {
    connections: Arc<Connections>,
    port: Arc<Port<Rdma>>,
    address: Address,
    wake: Arc<TimedCompletion>,
    is_stopped: RelaxedBool,
}

/// A listener at the address of a port. Dropping it rejects the requests that wait, and ends the
/// connections of the port.
pub(crate) struct PortListener {
    shared: Arc<Shared>,
    /// `None` once stopped.
    thread: Option<Thread>,
}

impl PortListener {
    /// Listens at the address of `port`. Sleeps.
    ///
    /// # Errors
    ///
    /// `EINVAL` for an address that is none; the error of the connection manager, which is logged;
    /// `ENOMEM`.
    pub(crate) fn new(connections: Arc<Connections>, port: Arc<Port<Rdma>>) -> Result<Self> {
        let number = port.number();
        let address = port.address().inspect_err(|_| {
            pr_err!("port {number}: addr_traddr and addr_trsvcid are no address of addr_adrfam\n");
        })?;
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let shared = Arc::new(
            Shared {
                connections,
                port,
                address,
                wake,
                is_stopped: RelaxedBool::new(false),
            },
            GFP_KERNEL,
        )?;
        let listener = shared.listen().map_err(|error| {
            pr_err!("port {number}: cannot listen at {address}: {error}\n");
            error.cause.errno()
        })?;
        shared.connections.wake_for_devices(shared.wake.clone())?;
        // Dropped on failure, so that the completion is forgotten.
        let mut this = Self {
            shared: shared.clone(),
            thread: None,
        };
        let stopped = shared.clone();
        let thread = Thread::spawn(
            fmt!("nvmet_rdma_{number}"),
            move || stopped.stop(),
            move || shared.run(listener),
        );
        this.thread = Some(thread?);
        pr_info!("port {number}: listening at {address}\n");
        Ok(this)
    }

    /// Returns the address.
    pub(crate) fn address(&self) -> &Address {
        &self.shared.address
    }
}

impl Drop for PortListener {
    fn drop(&mut self) {
        let shared = &self.shared;
        drop(self.thread.take());
        shared.connections.forget_listener(&shared.wake);
        // No new ones are accepted any more.
        shared
            .connections
            .disconnect(|connection| connection.is_of_port(&shared.port));
    }
}

impl Shared {
    fn listen(&self) -> Result<Listener<TargetQueue>, cm::Error> {
        let params = ListenParams {
            backlog: BACKLOG,
            refusal: &CmStatus::NoResources.encode(),
            wake: self.wake.clone(),
            owner: OWNER,
        };
        Listener::new(&Namespace::init(), &self.address, params)
    }

    /// Ends the thread. Any context.
    fn stop(&self) {
        self.is_stopped.set(true);
        self.wake.complete();
    }

    /// Takes connection requests until the listener is stopped.
    fn run(&self, listener: Listener<TargetQueue>) {
        let mut listener = Some(listener);
        while !self.is_stopped.get() {
            match &listener {
                Some(_) => self.wake.wait(),
                None => {
                    let _new_device = self.wake.wait_timeout(PAUSE);
                    listener = self.listen_again().ok();
                }
            }
            let lost = listener.as_ref().and_then(|listener| self.take(listener));
            if let Some(lost) = lost {
                let (number, address) = (self.port.number(), self.address);
                pr_warn!("port {number}: no longer listening at {address}: {lost}\n");
                // The address is free when the listener is gone.
                drop(listener.take());
                let again = self.listen_again().inspect_err(|error| {
                    pr_warn!("port {number}: cannot listen at {address}: {error}; trying again\n");
                });
                listener = again.ok();
            }
        }
    }

    /// Listens, and logs that it does.
    fn listen_again(&self) -> Result<Listener<TargetQueue>, cm::Error> {
        let listener = self.listen()?;
        let (number, address) = (self.port.number(), self.address);
        pr_info!("port {number}: listening at {address} again\n");
        Ok(listener)
    }

    /// Takes the requests that wait, until the listener is stopped: hosts may send more without an end.
    /// Returns why no more will arrive.
    fn take(&self, listener: &Listener<TargetQueue>) -> Option<Lost> {
        while !self.is_stopped.get() {
            match listener.next() {
                Ok(Some(incoming)) => self.connections.accept(&self.port, incoming),
                Ok(None) => return None,
                Err(lost) => return Some(lost),
            }
        }
        None
    }
}
