// SPDX-License-Identifier: GPL-2.0

//! Returns a request of another disk from `queue_rq`, which has the address of the request that was passed.
//!
//! Two disks share a tag set with one tag, so each request of either has the same address. `queue_rq` of the first disk
//! completes its request, waits until the other disk has queued one, and refuses that one. blk-mq must not get it: it
//! would queue it to the first disk.

use kernel::{
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc, //
    },
};
use rrdma::{
    block::{
        Disk,
        DiskConfig,
        Limits,
        Openers,
        Operations,
        QueueCounts,
        QueueKinds,
        Refused,
        Request,
        RequestRef,
        Status,
        TagSet,
        TagSetConfig,
        TimeoutAction, //
    },
    new_irq_lock,
    sync::{
        Deadline,
        IrqLock,
        Msecs,
        RcuSection,
        Thread,
        TimedCompletion, //
    },
};

module! {
    type: Handle,
    name: "rrdma_test_foreign_request",
    authors: ["The rnvmf developers"],
    description: "Test: a driver returns a request of another disk",
    license: "GPL",
}

/// Sector whose request starts the test: programs of the system read others.
const SECTOR: u64 = 64;

/// Time until `queue_rq` gives up. It must not sleep, so it spins.
const LIMIT: Msecs = Msecs::from_secs(10);

/// What happens to the next request of [`SECTOR`].
#[derive(Clone, Copy, PartialEq)]
#[repr(u32)]
enum Phase {
    /// The first disk refuses it, so that it is queued by a work item.
    Refuse,
    /// The first disk completes it, and returns that of the other disk.
    Return,
    /// The other disk keeps it.
    Keep,
    /// It is completed.
    Done,
}

/// What the disks share.
#[pin_data]
struct Shared {
    phase: Atomic<u32>,
    #[pin]
    kept: IrqLock<Option<Request<Driver>>>,
}

impl Shared {
    fn set(&self, phase: Phase) {
        self.phase.store(phase as u32, ordering::Release);
    }

    fn is(&self, phase: Phase) -> bool {
        self.phase.load(ordering::Acquire) == phase as u32
    }

    /// Waits for the request that the other disk keeps.
    fn take(&self) -> Option<Request<Driver>> {
        let end = Deadline::after(LIMIT);
        loop {
            let kept = self.kept.lock().take();
            if kept.is_some() || end.left() == Msecs::ZERO {
                return kept;
            }
            core::hint::spin_loop();
        }
    }
}

/// The data of a disk.
struct DiskData {
    is_first: bool,
    shared: Arc<Shared>,
}

struct Driver;

impl Operations for Driver {
    type SetData = ();
    type QueueData = ();
    type DiskData = DiskData;
    type RequestData = ();

    fn new_queue(_set: &(), _index: u32) -> Result {
        Ok(())
    }

    fn new_request_data(_set: &(), _queue: u32) -> impl PinInit<()> {}

    fn queue_rq(
        _queue: &(),
        disk: &DiskData,
        request: Request<Self>,
        _last: bool,
        _section: &RcuSection,
    ) -> Result<(), Refused<Self>> {
        let shared = &disk.shared;
        if request.disk_data().is_first != disk.is_first {
            pr_err!("failed: a disk got a request of the other one\n");
        }
        if request.sector() != SECTOR {
            request.complete(Status::Ok);
        } else if disk.is_first && shared.is(Phase::Refuse) {
            shared.set(Phase::Return);
            return Err(request.refuse(Status::Resource));
        } else if disk.is_first && shared.is(Phase::Return) {
            shared.set(Phase::Keep);
            request.complete(Status::Ok);
            let other = shared.take();
            shared.set(Phase::Done);
            if let Some(other) = other {
                pr_info!("done: returned a request of the other disk\n");
                return Err(other.refuse(Status::Resource));
            }
            pr_err!("failed: no request of the other disk\n");
        } else if !disk.is_first && shared.is(Phase::Keep) {
            let none = shared.kept.lock().replace(request);
            drop(none);
        } else {
            request.complete(Status::Ok);
        }
        Ok(())
    }

    fn timeout(_queue: &(), _request: &RequestRef<Self>) -> TimeoutAction {
        TimeoutAction::ResetTimer
    }
}

/// Adds a disk on the set, when the module has been loaded.
fn add_disk(
    name: &CStr,
    set: &Arc<TagSet<Driver>>,
    shared: &Arc<Shared>,
    module: &'static ThisModule,
    stop: &TimedCompletion,
) -> Result<Disk<Driver>> {
    let is_first = name == c"rrdma_first";
    loop {
        let config = DiskConfig {
            name,
            limits: Limits::default(),
            capacity_sectors: 2048,
            read_only: false,
            module,
            parent: None,
            openers: &Openers::new()?,
        };
        let data = DiskData {
            is_first,
            shared: shared.clone(),
        };
        match Disk::new(config, set.clone(), data) {
            Err(EBUSY) if !stop.wait_timeout(Msecs::new(20)) => (),
            other => return other,
        }
    }
}

/// Adds the disks, and keeps them until `stop` is completed.
fn run(module: &'static ThisModule, stop: &TimedCompletion) -> Result {
    let config = TagSetConfig {
        queues: QueueCounts {
            default: 1,
            ..QueueCounts::default()
        },
        kinds: QueueKinds::Default,
        depth: 1,
        reserved_tags: 0,
        numa_node: TagSetConfig::NO_NODE,
        timeout: Msecs::from_secs(60),
    };
    let set = TagSet::<Driver>::new(config, ())?;
    let shared = Arc::pin_init(
        pin_init!(Shared {
            phase: Atomic::new(Phase::Refuse as u32),
            kept <- new_irq_lock!(None, "foreign_request::Shared"),
        }),
        GFP_KERNEL,
    )?;
    let _first = add_disk(c"rrdma_first", &set, &shared, module, stop)?;
    let _other = add_disk(c"rrdma_other", &set, &shared, module, stop)?;
    pr_info!("two disks\n");
    stop.wait();
    Ok(())
}

struct Handle {
    _thread: Thread,
}

impl kernel::Module for Handle {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let stop = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let stopped = stop.clone();
        let thread = Thread::spawn(
            fmt!("rrdma_foreign"),
            move || stop.complete_all(),
            move || {
                if let Err(error) = run(module, &stopped) {
                    pr_err!("failed: {error:?}\n");
                }
            },
        )?;
        Ok(Self { _thread: thread })
    }
}
