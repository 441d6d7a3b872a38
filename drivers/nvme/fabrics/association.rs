// SPDX-License-Identifier: GPL-2.0

//! What the queues of one controller share.

use crate::devices::Devices;
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_core::{
    AssociationNumber,
    WeakController, //
};
use nvme_proto::policy::device_usage::DeviceUsage;
use nvme_rdma_transport::{
    conn_error::{
        ConnError,
        ErrorNotifier,
        Wake, //
    },
    connect::DeviceUser,
    ulp::{
        Interruption,
        Waiter, //
    },
};
use rrdma::{
    rdma::{
        client,
        device::{
            Device,
            DeviceRef, //
        },
        pd::ProtectionDomain,
    },
    sync::{
        Msecs,
        TimedCompletion, //
    },
};

/// An RDMA device that a controller uses.
struct UsedDevice {
    device: DeviceRef,
    /// Created with the admin queue.
    pd: Option<Arc<ProtectionDomain>>,
}

/// The association of a controller with a target: what its queues share.
#[pin_data]
pub(crate) struct Association {
    devices: Arc<client::Registration<Devices>>,
    pub(crate) controller: Arc<WeakController>,
    pub(crate) notifier: Arc<ErrorNotifier<Recovery>>,
    /// Completed for the thread that connects or disconnects.
    pub(crate) wake: Arc<TimedCompletion>,
    /// How long a target may execute the writes of a connection that it has not acknowledged as ended.
    pub(crate) quiesce_time: Msecs,
    #[pin]
    used: Mutex<DeviceUsage<AssociationNumber, UsedDevice>>,
}

impl Association {
    /// Creates an association without connections. May sleep.
    pub(crate) fn new(
        devices: Arc<client::Registration<Devices>>,
        controller: Arc<WeakController>,
        quiesce_time: Msecs,
    ) -> Result<Arc<Self>> {
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let recovery = Recovery {
            controller: controller.clone(),
            wake: wake.clone(),
        };
        let notifier = ErrorNotifier::new(Arc::new(recovery, GFP_KERNEL)?)?;
        Arc::pin_init(
            pin_init!(Self {
                devices,
                controller,
                notifier,
                wake,
                quiesce_time,
                used <- new_mutex!(
                    DeviceUsage::new(AssociationNumber::default()),
                    "nvme_rdma_rust::Association"
                ),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins an association: its admin queue is connected next, and no queue of an earlier one is. Sleeps.
    pub(crate) fn begin(&self, number: AssociationNumber) {
        // No queue is connected, so none can report another error.
        self.notifier.reset();
        self.used.lock().begin(number);
    }

    /// Counts a queue that was connected. Sleeps.
    pub(crate) fn queue_connected(&self) {
        self.used.lock().connected();
    }

    /// Releases the device if no queue of an association is connected any more. `was_connected` says whether the
    /// queue that was disconnected was. Does nothing for an earlier association. Sleeps.
    pub(crate) fn queue_disconnected(&self, number: AssociationNumber, was_connected: bool) {
        let device = self.used.lock().disconnected(&number, was_connected);
        drop(device);
    }

    /// Returns whether the controller uses a device. Sleeps.
    pub(crate) fn uses(&self, device: &Device) -> bool {
        let used = self.used.lock();
        let used = used.device();
        used.is_some_and(|used| core::ptr::eq::<Device>(&*used.device, device))
    }

    /// Returns the device, if a queue is connected. Sleeps.
    pub(crate) fn device(&self) -> Option<DeviceRef> {
        let used = self.used.lock();
        Some(used.device()?.device.clone())
    }

    /// Returns the protection domain, if a queue is connected. Sleeps.
    pub(crate) fn domain(&self) -> Option<Arc<ProtectionDomain>> {
        self.used.lock().device()?.pd.clone()
    }

    /// Keeps the protection domain of the admin queue for the I/O queues. Sleeps.
    pub(crate) fn keep_domain(&self, pd: &Arc<ProtectionDomain>) {
        if let Some(used) = self.used.lock().device_mut() {
            used.pd = Some(pd.clone());
        }
    }
}

impl Waiter for Association {
    fn interruption(&self) -> Option<Interruption> {
        let lost = self.notifier.error().map(Interruption::ConnError);
        let deleted = || {
            self.controller
                .is_deleted()
                .then_some(Interruption::Cancelled)
        };
        lost.or_else(deleted)
    }

    fn wait(&self, limit: Msecs) {
        let _woken = self.wake.wait_timeout(limit);
    }
}

impl DeviceUser for Association {
    fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        self.devices.acquire(device)
    }

    fn use_device(&self, device: &DeviceRef) -> Result<(), ConnError> {
        let before = self.used.lock().set(UsedDevice {
            device: device.clone(),
            pd: None,
        });
        drop(before);
        // A removal that began too early to see the device here has set its flag by now.
        match device.is_removing() {
            true => Err(ConnError::DeviceRemoved),
            false => Ok(()),
        }
    }
}

/// Starts error recovery when a connection is lost.
pub(crate) struct Recovery {
    controller: Arc<WeakController>,
    wake: Arc<TimedCompletion>,
}

impl Wake for Recovery {
    fn wake(&self) {
        self.wake.complete();
    }

    fn lost(&self, error: &ConnError) {
        self.controller
            .report_error(error.qid(), format_args!("{error}"));
        self.wake.complete();
    }
}
