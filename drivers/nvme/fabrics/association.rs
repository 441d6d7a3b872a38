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
use nvme_core::WeakController;
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
    used: Mutex<Option<UsedDevice>>,
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
                used <- new_mutex!(None, "nvme_rdma_rust::Association"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the controller uses a device. Sleeps.
    pub(crate) fn uses(&self, device: &Device) -> bool {
        let used = self.used.lock();
        used.as_ref()
            .is_some_and(|used| core::ptr::eq::<Device>(&*used.device, device))
    }

    /// Returns the device, if the admin queue is connected. Sleeps.
    pub(crate) fn device(&self) -> Option<DeviceRef> {
        let used = self.used.lock();
        Some(used.as_ref()?.device.clone())
    }

    /// Returns the protection domain, if the admin queue is connected. Sleeps.
    pub(crate) fn domain(&self) -> Option<Arc<ProtectionDomain>> {
        self.used.lock().as_ref()?.pd.clone()
    }

    /// Keeps the protection domain of the admin queue for the I/O queues. Sleeps.
    pub(crate) fn keep_domain(&self, pd: &Arc<ProtectionDomain>) {
        if let Some(used) = &mut *self.used.lock() {
            used.pd = Some(pd.clone());
        }
    }

    /// Releases the device, after the queues were disconnected. Sleeps.
    pub(crate) fn release_device(&self) {
        let used = self.used.lock().take();
        drop(used);
    }
}

impl Waiter for Association {
    fn interruption(&self) -> Option<Interruption> {
        self.notifier.error().map(Interruption::ConnError)
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
        *self.used.lock() = Some(UsedDevice {
            device: device.clone(),
            pd: None,
        });
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
        self.controller.report_error(format_args!("{error}"));
        self.wake.complete();
    }
}
