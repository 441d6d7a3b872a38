// SPDX-License-Identifier: GPL-2.0

//! Leaks a thread, which owns an object of each kind that calls functions of this module.
//!
//! The unload of the module waits until the thread has dropped them and has ended, which a write to `release` of the
//! device in sysfs has it do. Before, the thread queues a work item: functions of the module run after its exit
//! function has returned.

use core::mem;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use null_driver::Driver;
use rrdma::{
    block::Disk,
    chrdev::Node,
    errno::ECANCELED,
    net::Namespace,
    netlink,
    rdma::{
        client,
        cm::{
            Event,
            Id,
            Observer, //
        },
    },
    sync::{
        Claim,
        Msecs,
        OwnedQueue,
        Thread,
        TimedCompletion,
        WorkKind, //
    },
    sysfs::{
        Attribute,
        Attributes,
        Class,
        Device, //
    },
};

mod null_driver;

module! {
    type: Leaks,
    name: "rrdma_test_leaks",
    authors: ["The rnvmf developers"],
    description: "Test: a module that leaks objects which call its functions",
    license: "GPL",
}

rrdma::parameters! {
    fails: Number<0, 1> = 0, "1: the module fails to load; default 0";
}

const NAME: &CStr = c"rrdma_leaks";

/// The data of the device: its action ends the thread.
struct Release(Arc<TimedCompletion>);

impl Attributes for Release {
    const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::action(c"release", |release| {
        release.0.complete();
        Ok(())
    })];
}

impl Observer for Driver {
    fn heard(&self, _event: Event) {}
}

/// Objects that exist only while their module is loaded: a program may have them open.
struct Opened {
    disk: Disk<Driver>,
    node: Node,
}

impl Opened {
    fn new(module: &'static ThisModule) -> Result<Self> {
        Ok(Self {
            node: null_driver::node(module)?,
            disk: null_driver::disk(module)?,
        })
    }

    /// Creates the objects when the module has been loaded.
    fn when_loaded(module: &'static ThisModule, released: &TimedCompletion) -> Result<Self> {
        loop {
            match Self::new(module) {
                Err(EBUSY) => {
                    let _early = released.wait_timeout(Msecs::new(20));
                }
                opened => return opened,
            }
        }
    }
}

/// Leaks the guard of a claim: the value stays claimed.
fn leak_claim() -> Result {
    let claim = Claim::new(());
    mem::forget(claim.try_claim());
    let is_free = claim.try_claim().is_some();
    match is_free {
        false => Ok(()),
        true => Err(EEXIST),
    }
}

/// Creates the objects, and keeps them until `released` is completed.
fn hold(module: &'static ThisModule, released: &Arc<TimedCompletion>) -> Result {
    leak_claim()?;
    let (disk, node) = match parameters::fails.get() {
        0 => {
            let Opened { disk, node } = Opened::when_loaded(module, released)?;
            (Some(disk), Some(node))
        }
        _ => (None, None),
    };
    let _family = netlink::Registration::<Driver>::new(Ok(()), module)?;
    let _client = client::Registration::<Driver>::new(())?;
    let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
    let id = Id::<Driver>::new(&Namespace::init(), wake, NAME)?;
    id.observe(Arc::new(Driver, GFP_KERNEL)?)?;
    let queue = OwnedQueue::new(NAME, WorkKind::Ordinary, 1)?;
    let data = Arc::new(Release(released.clone()), GFP_KERNEL)?;
    // Last: the test waits for it.
    let _device = Device::new(Class::new(NAME)?, c"leaked", data, node)?;
    released.wait();
    queue.try_spawn(GFP_KERNEL, || {
        pr_info!("a work item runs, and then the thread ends\n")
    })?;
    drop(queue);
    if let Some(disk) = disk {
        // Nobody can open the disk any more. A frozen one can be dropped.
        mem::forget(disk.freeze()?);
    }
    Ok(())
}

struct Leaks;

impl kernel::Module for Leaks {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let released = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let stop = released.clone();
        let thread = Thread::spawn(
            fmt!("rrdma_leaks"),
            move || stop.complete(),
            move || {
                if let Err(error) = hold(module, &released) {
                    pr_err!("failed: {error:?}\n");
                }
            },
        )?;
        mem::forget(thread);
        match parameters::fails.get() {
            0 => Ok(Self),
            _ => Err(ECANCELED),
        }
    }
}
