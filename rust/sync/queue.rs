// SPDX-License-Identifier: GPL-2.0

//! Owned workqueues.
//!
//! C header: [`include/linux/workqueue.h`](srctree/include/linux/workqueue.h)

use super::{drop_later, DropsLater, ModuleUse, SleepingDrop, UseKind};
use crate::bindings;
use core::{panic::Location, ptr::NonNull};
use kernel::{
    alloc::{AllocError, Flags},
    impl_has_work, new_work,
    prelude::*,
    sync::atomic::{ordering, Atomic},
    workqueue::{Queue, RawWorkItem, Work, WorkItem},
};

/// Kind of the work of an [`OwnedQueue`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum WorkKind {
    /// Work that may wait for free memory.
    Ordinary = 0,

    /// Work that memory reclaim depends on: at least one work item makes progress under memory
    /// pressure. C: `WQ_MEM_RECLAIM`.
    MemReclaim = bindings::wq_flags_WQ_MEM_RECLAIM,
}

/// A workqueue that is drained and destroyed when dropped. It is unbound: work runs on any CPU, and
/// may run or sleep for long. C: `WQ_UNBOUND`.
///
/// Dropping it waits for all queued work, and for work that this work queues. The module that made
/// it is not unloaded before it is dropped. Work must not drop its own queue, as it would wait for itself. In atomic
/// context, a work item of the kernel's queue drops it.
///
/// It does not dereference to [`Queue`], because that offers delayed work, whose timer is not
/// stopped when a queue is destroyed. Work that starts later waits for a
/// [`TimedCompletion`](super::TimedCompletion) with a time limit, which can also be woken early.
///
pub struct OwnedQueue(SleepingDrop<RawQueue>);

/// A workqueue. Dropping this waits for its work.
///
/// # Invariants
///
/// `ptr` points to a valid workqueue that this owns. No delayed work is ever queued on it.
struct RawQueue {
    ptr: NonNull<bindings::workqueue_struct>,
    /// Dropped after the work has ended.
    _module: ModuleUse,
}

// SAFETY: Any thread may use and destroy a workqueue.
unsafe impl Send for RawQueue {}

// SAFETY: The workqueue code does the locking.
unsafe impl Sync for RawQueue {}

impl OwnedQueue {
    /// Maximum of `max_active`. C: `WQ_MAX_ACTIVE`.
    pub const MAX_ACTIVE: u32 = bindings::wq_consts_WQ_MAX_ACTIVE;

    /// Creates a workqueue. The kernel shows the first 31 bytes of the name. Sleeps. C:
    /// `alloc_workqueue()`.
    ///
    /// `max_active` is the maximum number of running work items; 0 selects the default. It is
    /// divided among NUMA nodes by their CPUs, with a minimum of 8 (`WQ_DFL_MIN_ACTIVE`) for each.
    /// So work on one node may wait earlier than expected, and a work item must not wait for one
    /// that is queued later. For work that lives as long as its owner, use a
    /// [`Thread`](super::Thread).
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `max_active` exceeds [`MAX_ACTIVE`](Self::MAX_ACTIVE).
    /// - `ENOMEM` if the kernel cannot create the queue.
    #[track_caller]
    pub fn new(name: &CStr, kind: WorkKind, max_active: u32) -> Result<Self> {
        if max_active > Self::MAX_ACTIVE {
            return Err(EINVAL);
        }
        let module = ModuleUse::new(UseKind::Workqueue, Location::caller())?;
        let flags = bindings::wq_flags_WQ_UNBOUND | kind as u32;
        // SAFETY: `name` is a C string, which the callee copies.
        let ptr =
            unsafe { bindings::alloc_workqueue(name.as_char_ptr(), flags, max_active as i32) };
        // INVARIANT: The queue was just created, and has no other owner.
        Ok(Self(SleepingDrop::new(RawQueue {
            ptr: NonNull::new(ptr).ok_or(ENOMEM)?,
            _module: module,
        })))
    }

    /// Returns the queue, for methods that are safe on a queue that will be destroyed.
    fn queue(&self) -> &Queue {
        // SAFETY: By the type invariants, the queue is valid until `self` is dropped.
        unsafe { Queue::from_raw(self.0.ptr.as_ptr()) }
    }

    /// Queues a work item. If it is already queued, fails like [`Queue::enqueue`]. Any context.
    #[inline]
    pub fn enqueue<W, const ID: u64>(&self, work: W) -> W::EnqueueOutput
    where
        W: RawWorkItem<ID> + Send + 'static,
    {
        self.queue().enqueue(work)
    }

    /// Allocates a work item for a function and queues it.
    ///
    /// All these functions share one lockdep class. If one of them waits for a queue on which
    /// others run, for example by dropping it, lockdep reports a deadlock. Use a
    /// [`WorkItem`] for it instead.
    pub fn try_spawn<T>(&self, flags: Flags, func: T) -> Result<(), AllocError>
    where
        T: FnOnce() + Send + 'static,
    {
        let mut func = Some(func);
        let call = move || {
            if let Some(func) = func.take() {
                func();
            }
        };
        self.enqueue(FunctionWork::new(flags, KBox::new(call, flags)?)?);
        Ok(())
    }

    /// Calls `act` for each item, on the calling thread and in up to `workers` work items, in no
    /// order. Returns when all calls have returned, and destroys the queue. Without memory for work
    /// items, the thread makes all calls. Sleeps.
    ///
    /// `act` must not wait for a call with another item.
    pub fn for_each<T, F>(self, workers: u32, items: &[T], act: F)
    where
        T: Sync,
        F: Fn(&T) + Sync,
    {
        let job = Job {
            items,
            next: Atomic::new(0),
            act,
        };
        for _ in 0..workers {
            let work = JobRef::new(&job);
            let run = move || {
                // SAFETY: `job` is valid until the queue is destroyed below, which waits for the
                // work item. Nothing between ends this function early.
                unsafe { work.run() };
            };
            if self.try_spawn(GFP_KERNEL, run).is_err() {
                break;
            }
        }
        job.run();
        drop(self);
    }

    /// Waits for all work that is queued now. Sleeps. Must not be called by work of this queue. C:
    /// `flush_workqueue()`.
    #[inline]
    pub fn flush(&self) {
        // SAFETY: By the type invariants, the queue is valid.
        unsafe { bindings::flush_workqueue(self.0.ptr.as_ptr()) };
    }
}

impl DropsLater for RawQueue {
    #[inline(never)]
    fn drop_later(self) {
        drop_later("workqueue", self);
    }
}

impl Drop for RawQueue {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, the queue is valid and owned. Nothing queues work from
        // outside, because that borrows `self`, and no timer does, because there is no delayed
        // work.
        unsafe { bindings::destroy_workqueue(self.ptr.as_ptr()) };
    }
}

/// Work item of a function.
///
/// That of [`Queue::try_spawn`] is generic. So each module that uses it initialises a work item of one
/// lockdep class, but with a name of its own, which lockdep reports.
#[pin_data]
struct FunctionWork {
    #[pin]
    work: Work<FunctionWork>,
    func: KBox<dyn FnMut() + Send>,
}

impl_has_work! {
    impl HasWork<Self> for FunctionWork { self.work }
}

impl FunctionWork {
    /// Allocates a work item. Not inlined into other modules, so its lockdep class has one name.
    #[inline(never)]
    fn new(flags: Flags, func: KBox<dyn FnMut() + Send>) -> Result<Pin<KBox<Self>>, AllocError> {
        let init = pin_init!(Self {
            work <- new_work!("rrdma::OwnedQueue::try_spawn"),
            func,
        });
        KBox::pin_init(init, flags).map_err(|_| AllocError)
    }
}

impl WorkItem for FunctionWork {
    type Pointer = Pin<KBox<Self>>;

    fn run(mut this: Pin<KBox<Self>>) {
        (this.as_mut().project().func)();
    }
}

/// Calls that several threads share.
struct Job<'a, T, F> {
    items: &'a [T],
    /// Index of the next item.
    next: Atomic<usize>,
    act: F,
}

impl<T, F: Fn(&T)> Job<'_, T, F> {
    /// Makes calls until each item has had its call, or another thread has begun it.
    fn run(&self) {
        while let Some(item) = self.items.get(self.next.fetch_add(1, ordering::Relaxed)) {
            (self.act)(item);
        }
    }
}

/// A reference to a [`Job`] without its lifetime and types.
///
/// # Invariants
///
/// `run` may be called with `job` while the job is valid.
struct JobRef {
    job: NonNull<c_void>,
    run: unsafe fn(NonNull<c_void>),
}

// SAFETY: Threads may share a job for which `new()` was called: its items and its function are
// `Sync`.
unsafe impl Send for JobRef {}

impl JobRef {
    fn new<T: Sync, F: Fn(&T) + Sync>(job: &Job<'_, T, F>) -> Self {
        // INVARIANT: The function has the types of the job.
        Self {
            job: NonNull::from(job).cast(),
            run: run_job::<T, F>,
        }
    }

    /// Makes the calls of the job that are left.
    ///
    /// # Safety
    ///
    /// The job is valid.
    unsafe fn run(self) {
        // SAFETY: By the type invariants and the safety requirements of this function.
        unsafe { (self.run)(self.job) };
    }
}

/// # Safety
///
/// `job` points to a valid `Job<T, F>`.
unsafe fn run_job<T, F: Fn(&T)>(job: NonNull<c_void>) {
    // SAFETY: By the safety requirements of this function.
    unsafe { job.cast::<Job<'_, T, F>>().as_ref() }.run();
}
