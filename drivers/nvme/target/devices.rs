// SPDX-License-Identifier: GPL-2.0

//! RDMA devices, and what the queues on one device share.

use kernel::{
    new_mutex,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Mutex, //
    },
};
use rrdma::rdma::{
    client::{
        self,
        Client, //
    },
    device::{
        Device,
        DeviceRef, //
    },
    pd::ProtectionDomain,
};

/// Name of the module's objects in `rdma resource show`.
pub(crate) const OWNER: &CStr = c"nvmet_rdma_rust";

/// Handler of added and removed devices.
pub(crate) trait DeviceEvents: Send + Sync {
    /// Tells that there is a new device. May sleep.
    fn added(&self);

    /// Ends the connections through a device. May sleep.
    fn removing(&self, device: &Device);
}

/// The client of RDMA devices.
pub(crate) struct Devices;

impl Client for Devices {
    const NAME: &'static CStr = OWNER;

    type Context = Arc<dyn DeviceEvents>;

    fn added(events: &Arc<dyn DeviceEvents>, _device: &DeviceRef) {
        events.added();
    }

    fn removing(events: &Arc<dyn DeviceEvents>, device: &Device) {
        events.removing(device);
    }
}

/// A device with a protection domain and shared receives `S`, while a queue uses them.
struct Entry<S> {
    /// The only host whose queues are in the domain; `None` for all hosts.
    owner: Option<[u8; 16]>,
    pd: Arc<ProtectionDomain>,
    shared: Arc<S>,
    users: usize,
}

/// The devices that queues use.
#[pin_data]
pub(crate) struct UsedDevices<S> {
    #[pin]
    entries: Mutex<KVec<Entry<S>>>,
}

/// A use of a device. The last one to be dropped releases the device's objects. May sleep.
pub(crate) struct DeviceUse<S> {
    pd: Arc<ProtectionDomain>,
    shared: Arc<S>,
    devices: Arc<UsedDevices<S>>,
}

impl<S> UsedDevices<S> {
    /// Creates an empty set. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                entries <- new_mutex!(KVec::new(), "nvmet_rdma_rust::UsedDevices"),
            }),
            GFP_KERNEL,
        )
    }

    /// Begins a use of a device with shared receives that `fit`. The first user makes them with `share`. A protection
    /// domain with an `owner` is for the queues of this host. May sleep.
    ///
    /// # Errors
    ///
    /// `ENODEV` if the device is being removed; `ENOMEM`; the error of `share`.
    pub(crate) fn acquire(
        self: &Arc<Self>,
        devices: &client::Registration<Devices>,
        device: &Device,
        owner: Option<[u8; 16]>,
        fit: impl Fn(&S) -> bool,
        share: impl FnOnce(&Arc<ProtectionDomain>) -> Result<S>,
    ) -> Result<DeviceUse<S>> {
        let mut entries = self.entries.lock();
        let known = entries
            .iter_mut()
            .filter(|entry| entry.owner == owner)
            .find(|entry| **entry.pd.device() == *device && fit(&entry.shared));
        let (pd, shared) = match known {
            Some(entry) if entry.pd.device().is_removing() => return Err(ENODEV),
            Some(entry) => {
                entry.users = entry.users.saturating_add(1);
                (entry.pd.clone(), entry.shared.clone())
            }
            None => {
                let device = devices.acquire(device).ok_or(ENODEV)?;
                let pd = ProtectionDomain::new(device, OWNER)?;
                let shared = Arc::new(share(&pd)?, GFP_KERNEL)?;
                entries.push(
                    Entry {
                        owner,
                        pd: pd.clone(),
                        shared: shared.clone(),
                        users: 1,
                    },
                    GFP_KERNEL,
                )?;
                (pd, shared)
            }
        };
        Ok(DeviceUse {
            pd,
            shared,
            devices: self.clone(),
        })
    }
}

impl<S> DeviceUse<S> {
    /// Returns the receives that the queues on the device share.
    pub(crate) fn shared(&self) -> &S {
        &self.shared
    }

    /// Returns the protection domain.
    pub(crate) fn pd(&self) -> &Arc<ProtectionDomain> {
        &self.pd
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &DeviceRef {
        self.pd.device()
    }
}

impl<S> Drop for DeviceUse<S> {
    fn drop(&mut self) {
        let mut entries = self.devices.entries.lock();
        let own = |entry: &Entry<S>| Arc::ptr_eq(&entry.pd, &self.pd);
        let Some(place) = entries.iter().position(own) else {
            return;
        };
        let is_last = entries.get_mut(place).is_some_and(|entry| {
            entry.users = entry.users.saturating_sub(1);
            entry.users == 0
        });
        if is_last {
            let entry = entries.remove(place);
            drop(entries);
            drop(entry);
        }
    }
}
