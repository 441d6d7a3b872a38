// SPDX-License-Identifier: GPL-2.0

//! Work that a driver leaves for a device, which its removal waits for.

use super::DeviceRef;
use crate::bindings;
use kernel::{
    alloc::{
        AllocError,
        Flags, //
    },
    impl_has_work,
    new_work,
    prelude::*,
    workqueue::{
        Queue,
        Work,
        WorkItem, //
    }, //
};

/// A work item that calls a function of a driver.
///
/// The function is dropped before the reference to the device, by code of this module. The removal of the
/// device from the driver, and so the removal of the driver's module, waits for that reference.
#[pin_data]
struct DeferredWork {
    #[pin]
    work: Work<DeferredWork>,
    func: KBox<dyn FnMut() + Send>,
    _device: DeviceRef,
}

impl_has_work! {
    impl HasWork<Self> for DeferredWork { self.work }
}

impl WorkItem for DeferredWork {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        (this.as_mut().project().func)();
    }
}

impl DeviceRef {
    /// Calls `func` in a work item, which may sleep for any time. Any context that `flags` allow.
    ///
    /// # Errors
    ///
    /// `AllocError`: without memory, `func` is dropped.
    pub(in crate::rdma) fn defer(
        &self,
        flags: Flags,
        func: impl FnOnce() + Send + 'static,
    ) -> Result<(), AllocError> {
        let mut func = Some(func);
        let call = move || {
            if let Some(func) = func.take() {
                func();
            }
        };
        spawn(self.clone(), flags, KBox::new(call, flags)?)
    }
}

/// Queues a work item. Not inlined into other modules, so its lockdep class has one name.
#[inline(never)]
fn spawn(
    device: DeviceRef,
    flags: Flags,
    func: KBox<dyn FnMut() + Send>,
) -> Result<(), AllocError> {
    let init = pin_init!(DeferredWork {
        work <- new_work!("rrdma::DeviceRef::defer"),
        func,
        _device: device,
    });
    let work = KBox::pin_init(init, flags).map_err(|_| AllocError)?;
    // SAFETY: The kernel never destroys this queue. It is unbound: work may take any time.
    let queue = unsafe { Queue::from_raw(bindings::system_dfl_wq()) };
    queue.enqueue(work);
    Ok(())
}
