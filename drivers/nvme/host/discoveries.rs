// SPDX-License-Identifier: GPL-2.0

//! The discoveries there are: each belongs to a socket, and goes when that is closed and its thread
//! has ended.

use crate::{
    controller::Discovery, //
};
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

/// Most discoveries: each is a thread, and keeps a log.
const MAX_DISCOVERIES: usize = 64;

/// The discoveries.
#[pin_data]
pub(crate) struct Discoveries {
    #[pin]
    list: Mutex<List>,
}

struct List {
    all: KVec<Arc<Discovery>>,
    /// The number of the next one.
    next: u32,
    closed: bool,
}

impl Discoveries {
    /// None.
    pub(crate) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            list <- new_mutex!(List {
                all: KVec::new(),
                next: 0,
                closed: false,
            }, "rnvmf::Discoveries::list"),
        })
    }

    /// Takes the discovery that `make` makes with a number, in place of that of the same socket.
    /// One that is being cancelled still counts. May sleep.
    ///
    /// # Errors
    ///
    /// As `make`; `EBUSY` for too many; [`ESHUTDOWN`](errno::ESHUTDOWN); `ENOMEM`.
    pub(crate) fn insert(
        &self,
        namespace: &Namespace,
        owner: u32,
        make: impl FnOnce(u32) -> Result<Arc<Discovery>>,
    ) -> Result<Arc<Discovery>> {
        // I/O that memory waits for may be ended by who removes a device, or by a program that ends.
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

    /// Forgets one that never ran.
    pub(crate) fn leave(&self, gone: &Discovery) {
        self.list.lock().remove(gone);
    }

    /// One is over: nobody asks for its outcome if it was cancelled. May sleep.
    pub(crate) fn over(&self, discovery: &Discovery) {
        let mut list = self.list.lock();
        if discovery.is_cancelled() {
            list.remove(discovery);
        }
    }

    /// Cancels what a socket has asked for, and forgets it when it is over. May sleep.
    pub(crate) fn forget(&self, namespace: &Namespace, owner: u32) {
        let mut list = self.list.lock();
        list.forget(|discovery| discovery.is_of(namespace, owner));
    }

    /// One of a socket, by its number.
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

    /// A device goes: who has something on it lets go.
    pub(crate) fn removing(&self, device: &Device) {
        let list = self.list.lock();
        for controller in list.all.iter().filter_map(|one| one.controller_on(device)) {
            controller.notifier.report(ConnError::DeviceRemoved);
        }
    }

    /// Takes no more, ends those there are, and waits for them. Sleeps.
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
    /// Cancels some; [`Discoveries::over`] takes away those that are not over yet.
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
