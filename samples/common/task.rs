// SPDX-License-Identifier: GPL-2.0

//! Runs a sample: a task that is executed once.
//!
//! ```ignore
//! module! {
//!     type: task::Handle,
//!     name: "rrdma_rc_pingpong",
//!     ...
//! }
//!
//! fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
//!     let device = task.device(&parameters::device.get())?;
//!     let pd = ProtectionDomain::new(device, task::NAME).step("protection domain")?;
//!     ...
//!     task.wait_for("last message", LIMIT, || counters.done())?;
//!     Ok(Summary::new(fmt!("{} iterations in {} us", iterations, time)))
//! }
//! ```
//!
//! The [`Handle`] is the module type. Loading the module starts the task and returns at once. The
//! task is the function `run` of the crate. It runs on a workqueue of its own, where it may sleep.
//! When it returns, one line is logged:
//!
//! - `rrdma_rc_pingpong: done: 1000 iterations in 52173 us`, or
//! - `rrdma_rc_pingpong: failed: protection domain: ENOMEM`, or
//! - `rrdma_rc_pingpong: stopped at last message: the module is unloaded`.
//!
//! A task that keeps its objects until it is stopped logs its success itself, by
//! [`SampleTask::report`].
//!
//! The module stays loaded afterwards. To run the task again, reload the module.
//!
//! Unloading the module, and removing a device that the task uses, stop the task and wait until it
//! returns. So the task may only wait in these functions:
//!
//! - [`SampleTask::wait_for`], which has a time limit. Callbacks of queue pairs and completion
//!   handlers run in other contexts: they store their results, and complete [`SampleTask::wake`].
//! - [`SampleTask::poll_for`], a busy loop with a time limit.
//! - Functions of the connection manager and of TCP that take [`SampleTask::wake`], and a
//!   `WaitLimits` whose `cancelled` is [`SampleTask::is_stopped`].
//!
//! A loop that does not wait must call [`SampleTask::is_stopped`] in each iteration.
//!
//! [`SampleTask::device`] returns a device by name, or the first one with an active port;
//! [`SampleTask::devices`] returns two. [`SampleTask::acquire`] takes a device that the connection
//! manager found. The removal of such a device stops the task. It then waits until the task has
//! returned, because the task's objects hold references to the device.

use super::step_error::StepError;
use kernel::{
    impl_has_work, new_mutex, new_work,
    prelude::*,
    str::CStr,
    sync::{
        Arc,
        Mutex,
        SetOnce, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};
use rrdma::{
    cpu,
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
        TimedCompletion,
        WorkKind, //
    },
    text::Message,
};

/// What a task reports at its end: the text after `done:`.
pub(crate) type Summary = Message<256>;

/// The name of the module, from `module!`. `rdma resource` shows it as the owner of objects.
pub(crate) const NAME: &CStr = match CStr::from_bytes_with_nul(crate::__LOG_PREFIX) {
    Ok(name) => name,
    // Unreachable: see the assertion.
    Err(_) => c"",
};

const _: () = assert!(
    !NAME.to_bytes().is_empty(),
    "the name of the module has a NUL in it"
);

/// State of a task, shared with the module and with callbacks.
#[pin_data]
pub(crate) struct SampleTask {
    namespace: Namespace,
    wake: Arc<TimedCompletion>,
    /// Why the task must end.
    stop: SetOnce<&'static str>,
    /// All RDMA devices, in the order in which they were added. The removal of a device starts by
    /// removing it from here.
    #[pin]
    devices: Mutex<KVec<TrackedDevice>>,
}

struct TrackedDevice {
    device: DeviceRef,
    /// The task has a reference to the device.
    used: bool,
}

/// A running task. Dropping it stops the task and waits until it returns.
pub(crate) struct Handle {
    task: Arc<SampleTask>,
    /// The workqueue of the task. Dropped before `_client`, so a task that still runs is stopped
    /// when a device is removed.
    queue: Option<OwnedQueue>,
    _client: Registration<Client>,
}

impl kernel::Module for Handle {
    /// Starts the task. The parameters were checked before. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the registration as a client of RDMA devices.
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let queue = OwnedQueue::new(NAME, WorkKind::Ordinary, 1)?;
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let namespace = Namespace::current().ok_or(ESRCH)?;
        let task = Arc::pin_init(
            pin_init!(SampleTask {
                namespace,
                wake,
                stop: SetOnce::new(),
                devices <- new_mutex!(KVec::new(), "samples::SampleTask"),
            }),
            GFP_KERNEL,
        )?;
        let client = Registration::new(task.clone())?;
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

/// The work item of a task.
///
/// It is not a closure on the workqueue. Closures of all workqueues are one lockdep class, so
/// lockdep would report a false deadlock when a task waits for a closure on a workqueue of its own.
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
        self.task.stop("the module is unloaded");
        drop(self.queue.take());
    }
}

impl SampleTask {
    /// Returns the network namespace of the process that loaded the module.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Returns the completion that wakes the task. It can be completed in any context, and given to
    /// the connection manager.
    pub(crate) fn wake(&self) -> &Arc<TimedCompletion> {
        &self.wake
    }

    /// Returns whether the task must end. Any context.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some()
    }

    /// Waits until `ready` returns a value. Each wakeup of the task calls `ready`. Sleeps.
    ///
    /// # Errors
    ///
    /// A failure of `step` if the task is stopped or if `limit` has passed.
    pub(crate) fn wait_for<R>(
        &self,
        step: &'static str,
        limit: Msecs,
        ready: impl FnMut() -> Option<R>,
    ) -> Result<R, StepError> {
        self.until(step, limit, ready, |left| {
            let _ = self.wake.wait_timeout(left);
        })
    }

    /// Calls `poll` in a busy loop until it returns a value. May sleep.
    ///
    /// # Errors
    ///
    /// Those of [`SampleTask::wait_for`].
    pub(crate) fn poll_for<R>(
        &self,
        step: &'static str,
        limit: Msecs,
        poll: impl FnMut() -> Option<R>,
    ) -> Result<R, StepError> {
        self.until(step, limit, poll, |_| cpu::cond_resched())
    }

    fn until<R>(
        &self,
        step: &'static str,
        limit: Msecs,
        mut ready: impl FnMut() -> Option<R>,
        pause: impl Fn(Msecs),
    ) -> Result<R, StepError> {
        let deadline = Deadline::after(limit);
        loop {
            // `ready` sees everything that was stored before this call. A later wakeup ends the
            // wait.
            self.wake.reinit();
            self.proceed(step)?;
            if let Some(answer) = ready() {
                return Ok(answer);
            }
            let left = deadline.left();
            if left == Msecs::ZERO {
                return Err(StepError::new(
                    step,
                    fmt!("timed out after {} ms", limit.get()),
                ));
            }
            pause(left);
        }
    }

    /// Fails if the task is stopped. Any context.
    pub(crate) fn proceed(&self, step: &'static str) -> Result<(), StepError> {
        if self.is_stopped() {
            return Err(StepError::new(step, fmt!("stopped")));
        }
        Ok(())
    }

    /// Returns the device with this name. If the name is empty, returns the first device with an
    /// active port. May sleep.
    ///
    /// # Errors
    ///
    /// A failure of `device` if there is no such device.
    pub(crate) fn device(&self, name: &str) -> Result<DeviceRef, StepError> {
        let wanted = |device: &DeviceRef| match name {
            "" => has_active_port(device),
            _ => device.name().as_str() == name,
        };
        self.take(wanted).ok_or_else(|| match name {
            "" => StepError::new("device", fmt!("no device has an active port")),
            _ => StepError::new("device", fmt!("{name} not found")),
        })
    }

    /// Returns the devices with these names, see [`SampleTask::device`]. If `other` is empty, both
    /// are the same device. May sleep.
    ///
    /// # Errors
    ///
    /// A failure of `device` if there is no such device.
    pub(crate) fn devices(
        &self,
        one: &str,
        other: &str,
    ) -> Result<(DeviceRef, DeviceRef), StepError> {
        let one = self.device(one)?;
        let other = match other {
            "" => one.clone(),
            name => self.device(name)?,
        };
        Ok((one, other))
    }

    /// Returns a reference to a device that the connection manager found. May sleep.
    ///
    /// # Errors
    ///
    /// A failure of `device` if the device is being removed.
    pub(crate) fn acquire(&self, device: &Device) -> Result<DeviceRef, StepError> {
        self.take(|tracked| **tracked == *device)
            .ok_or_else(|| StepError::new("device", fmt!("{} is being removed", device.name())))
    }

    fn take(&self, wanted: impl Fn(&DeviceRef) -> bool) -> Option<DeviceRef> {
        let mut devices = self.devices.lock();
        let tracked = devices.iter_mut().find(|tracked| wanted(&tracked.device))?;
        tracked.used = true;
        Some(tracked.device.clone())
    }

    /// Stops the task. Later calls do not change the reason.
    fn stop(&self, reason: &'static str) {
        self.stop.populate(reason);
        self.wake.complete_all();
    }

    /// Logs the result of the task. May sleep.
    pub(crate) fn report(&self, result: Result<Summary, StepError>) {
        match (result, self.stop.as_ref()) {
            (Ok(line), _) => pr_info!("done: {line}\n"),
            (Err(failure), None) => pr_err!("failed: {failure}\n"),
            (Err(failure), Some(reason)) => {
                pr_info!("stopped at {}: {reason}\n", failure.step());
            }
        }
    }
}

fn has_active_port(device: &DeviceRef) -> bool {
    device.ports().any(|port| port.state() == State::Active)
}

/// The RDMA client that tracks devices for the task.
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
            pr_warn!("{}: device not tracked: out of memory\n", device.name());
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
            task.stop("the device is removed");
        }
    }
}
