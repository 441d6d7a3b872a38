// SPDX-License-Identifier: GPL-2.0

//! Ports of nvmet's configuration.

use crate::{
    bindings,
    connecting::ConnectingQueues,
    types::TransportTypes, //
};
use core::{
    marker::PhantomData,
    ptr::NonNull,
    sync::atomic::{
        AtomicI32,
        AtomicUsize,
        Ordering, //
    },
};
use kernel::{
    error::to_result,
    impl_has_work, new_work,
    prelude::*,
    str::CStr,
    sync::Arc,
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    },
};
use rrdma::{
    net::{
        Address,
        Namespace, //
    },
    sync::TimedCompletion,
};

/// Number of the ports that exist, and of one more that the registration removes.
#[pin_data]
pub(crate) struct PortCount {
    count: AtomicUsize,
    #[pin]
    none: TimedCompletion,
}

impl PortCount {
    /// Creates the count for a registration. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                count: AtomicUsize::new(1),
                none <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    fn remove(&self) {
        if self.count.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.none.complete_all();
        }
    }

    /// Removes the registration from the count, and waits until no port exists. Sleeps.
    pub(crate) fn wait_for_none(&self) {
        self.remove();
        self.none.wait();
    }
}

/// Keeps the memory of a port valid until its [`Port`] is dropped.
///
/// The release of a port, in the `rmdir` of the user, waits for works of nvmet. One of these waits for
/// the drop. A reference to the port in configfs would not do: the last one must be dropped by `rmdir`,
/// whose lock protects nvmet's list of ports.
#[pin_data]
pub(crate) struct PortHold {
    #[pin]
    unused: TimedCompletion,
    #[pin]
    work: Work<PortHold>,
}

impl_has_work! {
    impl HasWork<Self> for PortHold { self.work }
}

impl PortHold {
    /// Creates a hold. May sleep.
    pub(crate) fn new() -> Result<Arc<Self>> {
        Arc::pin_init(
            pin_init!(Self {
                unused <- TimedCompletion::new(),
                work <- new_work!("nvmet::PortHold"),
            }),
            GFP_KERNEL,
        )
    }

    /// Queues the work that waits for the drop. Called once, before the user can remove the port.
    pub(crate) fn queue(self: Arc<Self>) {
        // SAFETY: nvmet destroys the queue when it is unloaded, and this module uses nvmet.
        let queue = unsafe { Queue::from_raw(bindings::nvmet_wq) };
        // It was not queued before.
        let _ = queue.enqueue(self);
    }
}

impl WorkItem for PortHold {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        this.unused.wait();
    }
}

/// A port of nvmet's configuration (`struct nvmet_port`), which stays valid while this exists.
///
/// Must not be dropped by a work of nvmet: one of these waits for the drop.
///
/// # Invariants
///
/// `raw` is valid until `hold.unused` is completed. `ops` is the table of the registration, which waits
/// until no port exists.
pub struct Port<T: TransportTypes> {
    raw: NonNull<bindings::nvmet_port>,
    ops: *const bindings::nvmet_fabrics_ops,
    /// Largest in-capsule data in bytes, as it was configured when the port was enabled.
    in_capsule: u32,
    hold: Arc<PortHold>,
    users: Arc<PortCount>,
    connecting: Arc<ConnectingQueues>,
    _transport: PhantomData<fn(T)>,
}

// SAFETY: What is read of the port does not change while the port is enabled, or is checked.
unsafe impl<T: TransportTypes> Send for Port<T> {}

// SAFETY: As for `Send`.
unsafe impl<T: TransportTypes> Sync for Port<T> {}

impl<T: TransportTypes> Port<T> {
    /// Begins the use of a port that is being enabled, and sets its limits. May sleep.
    ///
    /// # Safety
    ///
    /// `raw` must be the argument of `add_port`, which is running. `ops` must be valid until `users`
    /// has no user. `hold` must be queued when the port is disabled, or if it is not enabled.
    pub(crate) unsafe fn new(
        raw: NonNull<bindings::nvmet_port>,
        ops: *const bindings::nvmet_fabrics_ops,
        hold: Arc<PortHold>,
        users: Arc<PortCount>,
        connecting: Arc<ConnectingQueues>,
    ) -> Result<Arc<Self>> {
        // SAFETY: By the safety requirements, the port is valid, and nobody else changes it.
        let in_capsule = unsafe {
            let port = &mut *raw.as_ptr();
            T::LIMITS
                .in_capsule
                .apply(&mut port.inline_data_size, "param_inline_data_size");
            T::LIMITS
                .queue_size
                .apply(&mut port.max_queue_size, "param_max_queue_size");
            // Not negative: it was limited above.
            u32::try_from(port.inline_data_size).unwrap_or_default()
        };
        users.add();
        // INVARIANT: By the safety requirements. A port cannot be removed while it is enabled.
        Ok(Arc::new(
            Self {
                raw,
                ops,
                in_capsule,
                hold,
                users,
                connecting,
                _transport: PhantomData,
            },
            GFP_KERNEL,
        )?)
    }

    pub(crate) fn as_raw(&self) -> *mut bindings::nvmet_port {
        self.raw.as_ptr()
    }

    pub(crate) fn ops(&self) -> *const bindings::nvmet_fabrics_ops {
        self.ops
    }

    /// Returns the list of queues whose Connect command nvmet executes.
    pub(crate) fn connecting(&self) -> &Arc<ConnectingQueues> {
        &self.connecting
    }

    fn disc_addr(&self) -> &bindings::nvmf_disc_rsp_page_entry {
        // SAFETY: By the type invariants, the port is valid.
        unsafe { &(*self.raw.as_ptr()).disc_addr }
    }

    /// Returns the number of the port in the configuration.
    pub fn number(&self) -> u16 {
        u16::from_le(self.disc_addr().portid)
    }

    /// Returns the largest in-capsule data in bytes (`param_inline_data_size`).
    pub fn in_capsule(&self) -> u32 {
        self.in_capsule
    }

    /// Lets nvmet announce no in-capsule data to the controllers that are identified from now on. Returns whether
    /// it has announced some before. Any context.
    pub fn stop_in_capsule(&self) -> bool {
        // SAFETY: By the type invariants, the port is valid. nvmet reads the field without a lock.
        let announced =
            unsafe { AtomicI32::from_ptr(&raw mut (*self.raw.as_ptr()).inline_data_size) };
        announced.swap(0, Ordering::Relaxed) > 0
    }

    /// Returns the maximum size of an I/O queue (`param_max_queue_size`).
    pub fn max_queue_size(&self) -> u16 {
        // SAFETY: By the type invariants, the port is valid.
        let size = unsafe { (*self.raw.as_ptr()).max_queue_size };
        // The user may change it once the port is disabled.
        let size = u32::try_from(size).unwrap_or_default();
        size.min(T::LIMITS.queue_size.max) as u16
    }

    /// Parses the address to listen at (`addr_traddr`, `addr_trsvcid`), in the initial network
    /// namespace. May sleep.
    ///
    /// # Errors
    ///
    /// `EINVAL` if it is not an IP address of the family in `addr_adrfam`, with a port.
    pub fn address(&self) -> Result<Address> {
        let address = self.disc_addr();
        let (service, mut port) = (string(&address.trsvcid)?, 0);
        // SAFETY: `service` is a string, and `port` valid for writes.
        to_result(unsafe { bindings::kstrtou16(service.as_char_ptr(), 10, &mut port) })
            .map_err(|_| EINVAL)?;
        let text = string(&address.traddr)?.to_str().map_err(|_| EINVAL)?;
        let parsed = Address::parse(&Namespace::init(), text, port)?;
        let is_ipv6 = match u32::from(address.adrfam) {
            bindings::NVMF_ADDR_FAMILY_IP4 => false,
            bindings::NVMF_ADDR_FAMILY_IP6 => true,
            _ => return Err(EINVAL),
        };
        match parsed.ip().is_ipv6() == is_ipv6 {
            true => Ok(parsed),
            false => Err(EINVAL),
        }
    }
}

/// Returns the string in a field that ends with a NUL.
fn string(field: &[c_char]) -> Result<&CStr> {
    // SAFETY: A `c_char` is a byte.
    let bytes = unsafe { core::slice::from_raw_parts(field.as_ptr().cast::<u8>(), field.len()) };
    CStr::from_bytes_until_nul(bytes).map_err(|_| EINVAL)
}

impl<T: TransportTypes> Drop for Port<T> {
    fn drop(&mut self) {
        // The port is not used any more.
        self.hold.unused.complete_all();
        self.users.remove();
    }
}
