// SPDX-License-Identifier: GPL-2.0

//! A controller in sysfs, and its events for udev.
//!
//! Who sends an event takes memory, and waits for others who send one and may wait for memory
//! meanwhile. So he may wait for I/O, and I/O may wait for the controller's thread: it says what is
//! to be told, and a work item tells it.

use crate::name::CtrlName;
use kernel::{
    impl_has_work, new_mutex, new_work,
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

/// The most states that wait to be told.
const MOST: usize = 8;

/// A controller in sysfs.
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

/// What is told, and of what.
struct UeventQueue {
    /// Until it [leaves](CtrlDevice::leave).
    device: Option<Arc<Device>>,
    /// The state that came last.
    latest: CtrlState,
    /// States to be told, the first of them at the moment.
    due: KVec<CtrlState>,
}

impl CtrlDevice {
    /// That of a controller which is in this state, as who looks at the device sees. May sleep.
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

    /// The device, to which the controller's disks belong. May sleep.
    pub(super) fn device(&self) -> Option<Arc<Device>> {
        self.queue.lock().device.clone()
    }

    /// Takes note of a state; whether the work item is to tell it. Of more states than can wait
    /// the latest is told. May sleep.
    pub(super) fn note(&self, state: CtrlState) -> bool {
        let mut queue = self.queue.lock();
        if queue.latest == state {
            return false;
        }
        queue.latest = state;
        if queue.due.push_within_capacity(state).is_err() {
            if let Some(last) = queue.due.last_mut() {
                *last = state;
            }
        }
        true
    }

    /// Takes the device out of sysfs if all was told of it; otherwise the thread is woken when it
    /// was. Sleeps.
    pub(super) fn leave(&self) -> bool {
        let device = {
            let mut queue = self.queue.lock();
            if !queue.due.is_empty() {
                return false;
            }
            queue.device.take()
        };
        // Its readers are waited for without the lock.
        drop(device);
        true
    }

    /// What is to be told now.
    fn next(&self) -> Option<(Arc<Device>, CtrlState)> {
        let queue = self.queue.lock();
        Some((queue.device.clone()?, *queue.due.first()?))
    }
}

impl WorkItem for CtrlDevice {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        while let Some((device, state)) = this.next() {
            let state = state.name();
            let aer_done = CString::try_from_fmt(fmt!("RNVMF_STATE={state}"))
                .and_then(|variable| device.tell_change(&variable));
            if let Err(error) = aer_done {
                let errno = error.to_errno();
                pr_warn!("{}: udev is not told: {} ({})\n", this.name, state, errno);
            }
            // Ours must not be the last reference when the thread takes the device out.
            drop(device);
            let _ = this.queue.lock().due.remove(0);
        }
        this.wake.complete();
    }
}
