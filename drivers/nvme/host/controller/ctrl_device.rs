// SPDX-License-Identifier: GPL-2.0

//! The device of a controller in sysfs, and its uevents.
//!
//! Sending a uevent allocates memory, and waits for other senders, which allocate memory. An
//! allocation may wait for I/O, and I/O may wait for the controller's thread. So the thread only
//! queues uevents, and a work item sends them.

use crate::name::CtrlName;
use kernel::{
    fmt, impl_has_work, new_mutex, new_work,
    prelude::*,
    str::CString,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};
use nvme_proto::policy::ctrl_state::CtrlState;
use rrdma::{
    sync::TimedCompletion,
    sysfs::Device, //
};

/// Most uevents in the queue.
const MOST: usize = 8;

/// A uevent of a controller, displayed as the variable that it has.
#[derive(Clone, Copy)]
pub(super) enum Uevent {
    /// The controller is in another state.
    State(CtrlState),
    /// The target reported an asynchronous event with this result. The variable is that of the C
    /// host.
    Aen(u32),
}

impl From<CtrlState> for Uevent {
    fn from(state: CtrlState) -> Self {
        Self::State(state)
    }
}

impl fmt::Display for Uevent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::State(state) => write!(f, "RNVMF_STATE={}", state.name()),
            Self::Aen(result) => write!(f, "NVME_AEN={result:#08x}"),
        }
    }
}

/// The device of a controller in sysfs.
#[pin_data]
pub(crate) struct CtrlDevice {
    name: CtrlName,
    /// Wakes the controller's thread.
    wake: Arc<TimedCompletion>,
    #[pin]
    queue: Mutex<UeventQueue>,
    #[pin]
    work: Work<CtrlDevice>,
}

impl_has_work! {
    impl HasWork<Self> for CtrlDevice { self.work }
}

/// The uevents to send, and the device that sends them.
struct UeventQueue {
    /// `None` once [removed](CtrlDevice::leave).
    device: Option<Arc<Device>>,
    /// The state that was queued last.
    latest: CtrlState,
    /// Uevents to send; the first one is being sent.
    due: KVec<Uevent>,
}

impl CtrlDevice {
    /// Returns the device of a controller. Readers of the device see `state` already, so it needs
    /// no uevent. May sleep.
    pub(super) fn new(
        name: CtrlName,
        wake: Arc<TimedCompletion>,
        device: Arc<Device>,
        state: CtrlState,
    ) -> Result<Arc<Self>> {
        let queue = UeventQueue {
            device: Some(device),
            latest: state,
            due: KVec::with_capacity(MOST, GFP_KERNEL)?,
        };
        Arc::pin_init(
            pin_init!(Self {
                name,
                wake,
                queue <- new_mutex!(queue, "rnvmf::CtrlDevice::queue"),
                work <- new_work!("rnvmf::CtrlDevice::work"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns the device, the parent of the controller's disks; `None` once removed. May sleep.
    pub(super) fn device(&self) -> Option<Arc<Device>> {
        self.queue.lock().device.clone()
    }

    /// Queues a uevent, and returns whether the work item must be queued. In a full queue, a state
    /// replaces the last uevent, and an asynchronous event is dropped. May sleep.
    pub(super) fn note(&self, uevent: Uevent) -> bool {
        let mut queue = self.queue.lock();
        if let Uevent::State(state) = uevent {
            if queue.latest == state {
                return false;
            }
            queue.latest = state;
        }
        let is_full = queue.due.push_within_capacity(uevent).is_err();
        if let (true, Uevent::State(_), Some(last)) = (is_full, uevent, queue.due.last_mut()) {
            *last = uevent;
        }
        true
    }

    /// Removes the device from sysfs if no uevent is queued, and returns whether it was removed.
    /// Otherwise the work item wakes the thread once it has sent all uevents. Sleeps.
    pub(super) fn leave(&self) -> bool {
        let device = {
            let mut queue = self.queue.lock();
            if !queue.due.is_empty() {
                return false;
            }
            queue.device.take()
        };
        // Dropped without the lock, because it waits for readers of attributes.
        drop(device);
        true
    }

    /// Returns the next uevent to send, with the device.
    fn next(&self) -> Option<(Arc<Device>, Uevent)> {
        let queue = self.queue.lock();
        Some((queue.device.clone()?, *queue.due.first()?))
    }
}

impl WorkItem for CtrlDevice {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        while let Some((device, uevent)) = this.next() {
            let sent = CString::try_from_fmt(fmt!("{uevent}"))
                .and_then(|variable| device.tell_change(&variable));
            if let Err(error) = sent {
                let errno = error.to_errno();
                pr_warn!(
                    "{}: uevent {} not sent: error {}\n",
                    this.name,
                    uevent,
                    errno
                );
            }
            // Dropped before the queue is empty: then the thread may remove the device, and must
            // hold the last reference.
            drop(device);
            let _ = this.queue.lock().due.remove(0);
        }
        this.wake.complete();
    }
}
