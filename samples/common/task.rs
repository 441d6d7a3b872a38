// SPDX-License-Identifier: GPL-2.0

//! The life of a sample: one task, done once in a thread of its own.
//!
//! ```ignore
//! module! {
//!     type: task::Handle,
//!     name: "rrdma_rc_pingpong",
//!     ...
//! }
//!
//! fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
//!     let device = task.device(&parameters::device.get())?;
//!     let pd = ProtectionDomain::new(device, OWNER).step("protection domain")?;
//!     ...
//!     task.wait_for("last message", LIMIT, || counters.done())?;
//!     Ok(Summary::new(fmt!("{} iterations in {} us", iterations, time)))
//! }
//! ```
//!
//! The module is the [`Handle`] of its task, and loading it returns at once. The task is
//! the `run` of the crate. It runs on a queue of the sample's own, where it may sleep,
//! and when it returns the log has one line of it:
//!
//! - `rrdma_rc_pingpong: done: 1000 iterations in 52173 us`, or
//! - `rrdma_rc_pingpong: failed: protection domain: ENOMEM`, or
//! - `rrdma_rc_pingpong: stopped at last message: the module is unloaded`.
//!
//! The module stays loaded until it is unloaded; a sample that is to run again is
//! loaded again.
//!
//! The task can be stopped at any moment, by `rmmod` and by the removal of a device
//! that it uses: both then wait for it to return. So every wait of it is one of
//! these, and no other:
//!
//! - [`SampleTask::wait_for`], with a limit. Callbacks of queue pairs and completions, which
//!   run in other contexts, leave what they have to say where the task looks, and
//!   complete [`SampleTask::wake`].
//! - Those of the connection manager and of TCP: they take [`SampleTask::wake`] too, and ask
//!   [`SampleTask::is_stopped`] by their `WaitLimits`.
//!
//! A loop that does not wait asks [`SampleTask::is_stopped`] in every round.
//!
//! Devices: [`SampleTask::device`] chooses one by name, or else the first one that has an
//! active port, and [`SampleTask::devices`] two; [`SampleTask::acquire`] is for the one that the
//! connection manager found. Each stops the task when the device is to go. What the task
//! made is dropped when it returns, which lets the device go.

use super::failure::Failure;
use kernel::{
    impl_has_work, new_mutex, new_work,
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            Atomic, //
        },
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};
use rrdma::{
    net::Namespace,
    rdma::{
        client::{
            self,
            Registration, //
        },
        device::{
            port::State,
            Device,
            DeviceRef, //
        },
    },
    sync::{
        Deadline,
        Msecs,
        OwnedQueue,
        QueueFlags,
        TimedCompletion, //
    },
    text::Message,
};

/// What a sample has to say at its end.
pub(crate) type Summary = Message<256>;

/// The name of the module, as `module!` has it.
const NAME: &CStr = match CStr::from_bytes_with_nul(crate::__LOG_PREFIX) {
    Ok(name) => name,
    Err(_) => panic!("the name of the module has a NUL in it"),
};

/// Why a task is to end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum StopReason {
    Not,
    Unload,
    DeviceRemoved,
}

/// A task, as it sees itself.
#[pin_data]
pub(crate) struct SampleTask {
    namespace: Namespace,
    wake: Arc<TimedCompletion>,
    stop: Atomic<u32>,
    /// The devices there are, in the order of their coming. Each goes from the list
    /// when it is to go.
    #[pin]
    devices: Mutex<KVec<TrackedDevice>>,
}

struct TrackedDevice {
    device: DeviceRef,
    /// The task has it.
    used: bool,
}

/// A task that was started; dropping it stops the task and waits for its end.
pub(crate) struct Handle {
    task: Arc<SampleTask>,
    /// The task runs here. It is dropped first: while the task runs, it is told when a
    /// device goes.
    queue: Option<OwnedQueue>,
    _client: Pin<KBox<Registration<Client>>>,
}

impl kernel::Module for Handle {
    /// Starts the task, once all parameters have been checked. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or what registering as a client of RDMA devices answers.
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let queue = OwnedQueue::new(NAME, QueueFlags::UNBOUND, 1)?;
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let namespace = Namespace::current().ok_or(ESRCH)?;
        let task = Arc::pin_init(
            pin_init!(SampleTask {
                namespace,
                wake,
                stop: Atomic::new(StopReason::Not as u32),
                devices <- new_mutex!(KVec::new(), "samples::SampleTask"),
            }),
            GFP_KERNEL,
        )?;
        let client = KBox::pin_init(Registration::new(task.clone()), GFP_KERNEL)?;
        let own = task.clone();
        let run = pin_init!(TaskWork {
            task: own,
            work <- new_work!("samples::TaskWork"),
        });
        queue.enqueue(KBox::pin_init(run, GFP_KERNEL)?);
        Ok(Self {
            task,
            queue: Some(queue),
            _client: client,
        })
    }
}

/// A task as work. It may have a queue of its own for closures, and wait for them; lockdep
/// takes all closures for one, so a task that were one would seem to wait for itself.
#[pin_data]
struct TaskWork {
    task: Arc<SampleTask>,
    #[pin]
    work: Work<TaskWork>,
}

impl_has_work! {
    impl HasWork<Self> for TaskWork { self.work }
}

impl WorkItem for TaskWork {
    type Pointer = Pin<KBox<Self>>;

    fn run(this: Pin<KBox<Self>>) {
        let result = crate::run(&this.task);
        this.task.report(result);
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.task.stop(StopReason::Unload);
        drop(self.queue.take());
    }
}

impl SampleTask {
    /// The network namespace of who loaded the module.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// What wakes the task: to be completed by whoever has something for it, in any
    /// context, and given to the connection manager.
    pub(crate) fn wake(&self) -> &Arc<TimedCompletion> {
        &self.wake
    }

    /// Whether the task is to end. Any context.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop_reason() != StopReason::Not
    }

    /// Waits until `ready` answers, which is asked whenever the task is woken. Sleeps.
    ///
    /// # Errors
    ///
    /// A failure of `step` if the task is stopped, or if `limit` has passed.
    pub(crate) fn wait_for<R>(
        &self,
        step: &'static str,
        limit: Msecs,
        mut ready: impl FnMut() -> Option<R>,
    ) -> Result<R, Failure> {
        let deadline = Deadline::after(limit);
        loop {
            // What happened before this is seen by `ready`, and what happens later
            // ends the wait.
            self.wake.reinit();
            self.proceed(step)?;
            if let Some(answer) = ready() {
                return Ok(answer);
            }
            let left = deadline.left();
            if left == Msecs::new(0) {
                return Err(Failure::new(step, fmt!("not within {} ms", limit.get())));
            }
            let _ = self.wake.wait_timeout(left);
        }
    }

    /// Fails if the task is stopped. Any context.
    pub(crate) fn proceed(&self, step: &'static str) -> Result<(), Failure> {
        if self.is_stopped() {
            return Err(Failure::new(step, fmt!("stopped")));
        }
        Ok(())
    }

    /// The device of this name, or the first one with an active port if the name is
    /// empty. May sleep.
    ///
    /// # Errors
    ///
    /// A failure of `device` if there is none.
    pub(crate) fn device(&self, name: &str) -> Result<DeviceRef, Failure> {
        let wanted = |device: &DeviceRef| match name {
            "" => has_active_port(device),
            _ => device.name().as_str() == name,
        };
        self.take(wanted).ok_or_else(|| match name {
            "" => Failure::new("device", fmt!("none with an active port")),
            _ => Failure::new("device", fmt!("no {name}")),
        })
    }

    /// The devices of these names, the second one the same as the first if its name is
    /// empty. May sleep.
    ///
    /// # Errors
    ///
    /// A failure of `device` if there is none.
    pub(crate) fn devices(
        &self,
        one: &str,
        other: &str,
    ) -> Result<(DeviceRef, DeviceRef), Failure> {
        let one = self.device(one)?;
        let other = match other {
            "" => one.clone(),
            name => self.device(name)?,
        };
        Ok((one, other))
    }

    /// A use of a device that the connection manager found. May sleep.
    ///
    /// # Errors
    ///
    /// A failure of `device` if it is going away.
    pub(crate) fn acquire(&self, device: &Device) -> Result<DeviceRef, Failure> {
        self.take(|tracked| **tracked == *device)
            .ok_or_else(|| Failure::new("device", fmt!("{} is going away", device.name())))
    }

    fn take(&self, wanted: impl Fn(&DeviceRef) -> bool) -> Option<DeviceRef> {
        let mut devices = self.devices.lock();
        let tracked = devices.iter_mut().find(|tracked| wanted(&tracked.device))?;
        tracked.used = true;
        Some(tracked.device.clone())
    }

    fn stop_reason(&self) -> StopReason {
        match self.stop.load(ordering::Acquire) {
            stop if stop == StopReason::Unload as u32 => StopReason::Unload,
            stop if stop == StopReason::DeviceRemoved as u32 => StopReason::DeviceRemoved,
            _ => StopReason::Not,
        }
    }

    /// The first reason stays.
    fn stop(&self, stop_reason: StopReason) {
        let _ = self
            .stop
            .cmpxchg(StopReason::Not as u32, stop_reason as u32, ordering::Full);
        self.wake.complete_all();
    }

    fn report(&self, result: Result<Summary, Failure>) {
        match (result, self.stop_reason()) {
            (Ok(line), _) => pr_info!("done: {line}\n"),
            (Err(failure), StopReason::Not) => pr_err!("failed: {failure}\n"),
            (Err(failure), StopReason::Unload) => {
                pr_info!("stopped at {}: the module is unloaded\n", failure.step());
            }
            (Err(failure), StopReason::DeviceRemoved) => {
                pr_info!("stopped at {}: the device is removed\n", failure.step());
            }
        }
    }
}

fn has_active_port(device: &DeviceRef) -> bool {
    device.ports().any(|port| port.state() == State::Active)
}

/// The task as a client of RDMA devices.
struct Client;

impl client::Client for Client {
    const NAME: &'static CStr = NAME;

    type Context = Arc<SampleTask>;

    fn added(task: &Arc<SampleTask>, device: &DeviceRef) {
        let tracked = TrackedDevice {
            device: device.clone(),
            used: false,
        };
        if task.devices.lock().push(tracked, GFP_KERNEL).is_err() {
            pr_warn!("no memory to know of {}\n", device.name());
        }
    }

    fn removing(task: &Arc<SampleTask>, device: &Device) {
        let mut used = false;
        task.devices.lock().retain(|tracked| {
            let going = *tracked.device == *device;
            used |= going && tracked.used;
            !going
        });
        if used {
            task.stop(StopReason::DeviceRemoved);
        }
    }
}
