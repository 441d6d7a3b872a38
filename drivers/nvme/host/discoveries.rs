// SPDX-License-Identifier: GPL-2.0

//! The list of discoveries. A discovery belongs to a socket, and is removed when the socket is
//! closed and its thread has ended.

use crate::controller::Discovery;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_rdma_transport::conn_error::ConnError;
use rrdma::{
    errno,
    memory,
    net::Namespace,
    rdma::device::Device, //
};

/// Largest number of discoveries; each has a thread and up to 1 MiB of log.
const MAX_DISCOVERIES: usize = 64;

/// The list of discoveries of all network namespaces.
#[pin_data]
pub(crate) struct Discoveries {
    #[pin]
    list: Mutex<List>,
}

struct List {
    all: KVec<Arc<Discovery>>,
    /// Number of the next discovery.
    next: u32,
    /// Set by [`close`](Discoveries::close): no more discoveries are added.
    closed: bool,
}

impl Discoveries {
    /// Returns an empty list.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(List {
                all: KVec::new(),
                next: 0,
                closed: false,
            }, "rnvmf::Discoveries::list"),
        })
    }

    /// Adds the discovery that `make` creates with a number, and cancels another one of the same
    /// socket. A cancelled discovery counts until its thread ends. May sleep.
    ///
    /// # Errors
    ///
    /// Those of `make`; `EBUSY` for too many discoveries; [`ESHUTDOWN`](errno::ESHUTDOWN) once
    /// closed; `ENOMEM`.
    pub(crate) fn insert(
        &self,
        namespace: &Namespace,
        owner: u32,
        make: impl FnOnce(u32) -> Result<Arc<Discovery>>,
    ) -> Result<Arc<Discovery>> {
        // Reclaim may wait for I/O that ends only with a device removal or the exit of a program,
        // which take this lock.
        memory::without_io(|| {
            let mut list = self.list.lock();
            if list.closed {
                return Err(errno::ESHUTDOWN);
            }
            list.forget(|discovery| discovery.is_of(namespace, owner));
            if list.all.len() >= MAX_DISCOVERIES {
                return Err(EBUSY);
            }
            let discovery = make(list.next)?;
            list.all.push(discovery.clone(), GFP_KERNEL)?;
            list.next = list.next.wrapping_add(1);
            Ok(discovery)
        })
    }

    /// Removes a discovery whose thread did not start. May sleep.
    pub(crate) fn leave(&self, gone: &Discovery) {
        self.list.lock().remove(gone);
    }

    /// Removes a cancelled discovery whose thread ends; the result of others stays. May sleep.
    pub(crate) fn over(&self, discovery: &Discovery) {
        let mut list = self.list.lock();
        if discovery.is_cancelled() {
            list.remove(discovery);
        }
    }

    /// Cancels the discovery of a socket that was closed. May sleep.
    pub(crate) fn forget(&self, namespace: &Namespace, owner: u32) {
        let mut list = self.list.lock();
        list.forget(|discovery| discovery.is_of(namespace, owner));
    }

    /// Returns the discovery of a socket with this number. May sleep.
    pub(crate) fn find(
        &self,
        namespace: &Namespace,
        owner: u32,
        id: u32,
    ) -> Option<Arc<Discovery>> {
        let list = self.list.lock();
        let mut all = list.all.iter();
        all.find(|one| one.id == id && one.is_of(namespace, owner) && !one.is_cancelled())
            .cloned()
    }

    /// Reports the removal of a device to the discoveries that use it. May sleep.
    pub(crate) fn removing(&self, device: &Device) {
        let list = self.list.lock();
        for controller in list.all.iter().filter_map(|one| one.controller_on(device)) {
            controller.notifier.report(ConnError::DeviceRemoved);
        }
    }

    /// Cancels all discoveries, waits for their threads, and adds no more. Sleeps.
    pub(crate) fn close(&self) {
        let all = {
            let mut list = self.list.lock();
            list.closed = true;
            core::mem::take(&mut list.all)
        };
        for discovery in &all {
            discovery.cancel();
        }
        for discovery in &all {
            discovery.wait();
        }
    }
}

impl List {
    /// Cancels some discoveries, and removes those whose thread has ended.
    /// [`Discoveries::over`] removes the others.
    fn forget(&mut self, which: impl Fn(&Discovery) -> bool) {
        self.all.retain(|discovery| {
            if !which(discovery) {
                return true;
            }
            discovery.cancel();
            !discovery.is_over()
        });
    }

    fn remove(&mut self, gone: &Discovery) {
        self.all.retain(|one| !core::ptr::eq(&**one, gone));
    }
}
