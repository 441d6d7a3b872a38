// SPDX-License-Identifier: GPL-2.0

//! Tables of block operations: calls from blk-mq to a [`Transport`].
//!
//! C header: [`include/linux/blk-mq.h`](srctree/include/linux/blk-mq.h)

use crate::{
    bindings,
    controller::Controller,
    hw_queue::{
        Admits,
        HwQueue, //
    },
    request::{
        Refusal,
        Refused,
        Request, //
    },
    transport::Transport,
    weak_controller::{
        AssociationNumber,
        TimedOut, //
    }, //
};
use core::{
    iter,
    marker::PhantomData,
    ptr::{
        self,
        NonNull, //
    },
    slice, //
};
use kernel::prelude::*;
use rrdma::{
    block::poll_timed_out,
    memory,
    sync::RcuSection, //
};

/// Tables of operations for C.
///
/// Only blk-mq calls their functions, and only with objects of the tag sets that nvme-core
/// allocates for a [`Controller<T>`]:
///
/// - The `driver_data` of a tag set is the `nvme_ctrl` of a `Controller<T>`.
/// - The `driver_data` of a hardware queue is a `HwQueue<T>` of that controller.
/// - A request has private data of `nvme_core_const_PDU_SIZE` bytes, which `init_request`
///   initialises.
///
/// A controller is freed after its tag sets, and after the disks of its namespaces: each namespace
/// holds a reference to it.
pub(crate) struct BlkOps<T>(PhantomData<T>);

impl<T: Transport> BlkOps<T> {
    /// Operations of the I/O queues.
    pub(crate) const IO: &'static bindings::blk_mq_ops = &bindings::blk_mq_ops {
        init_hctx: Some(Self::init_hctx::<1>),
        map_queues: Some(Self::map_queues),
        poll: Some(Self::poll),
        ..Self::COMMON
    };

    /// Operations of the admin queue.
    pub(crate) const ADMIN: &'static bindings::blk_mq_ops = &bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_admin_rq),
        init_hctx: Some(Self::init_hctx::<0>),
        ..Self::COMMON
    };

    const COMMON: bindings::blk_mq_ops = bindings::blk_mq_ops {
        queue_rq: Some(Self::queue_rq),
        queue_rqs: Some(Self::queue_rqs),
        commit_rqs: Some(Self::commit_rqs),
        complete: Some(bindings::nvme_complete_rq),
        timeout: Some(Self::timeout),
        init_request: Some(Self::init_request),
        ..pin_init::zeroed()
    };

    /// Returns the queue that a hardware queue maps to.
    ///
    /// # Safety
    ///
    /// `hctx` is valid and initialised, and its tag set or disk is not freed for `'a`.
    #[inline]
    unsafe fn queue<'a>(hctx: *mut bindings::blk_mq_hw_ctx) -> &'a HwQueue<T> {
        // SAFETY: By the safety requirements of this function, `init_hctx` set the pointer. The
        // controller is freed after its tag sets and disks.
        unsafe { &*(*hctx).driver_data.cast() }
    }

    /// Passes an admin command on by [`queue_rq`](Self::queue_rq). After a Keep Alive that is sent while the controller
    /// is deleted, schedules the next one, which nvme-core does not: the deletion may wait long for I/O. Without it, the
    /// target would end the association, and nobody would notice that the target is silent.
    ///
    /// # Safety
    ///
    /// Those of [`queue_rq`](Self::queue_rq).
    unsafe extern "C" fn queue_admin_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: By the safety requirements of this function, all are valid. The request has a command: nvme-core
        // alone sends admin commands.
        let is_keep_alive = unsafe { bindings::is_keep_alive((*bd).rq) };
        // SAFETY: By the safety requirements of this function.
        let status = unsafe { Self::queue_rq(hctx, bd) };
        if is_keep_alive && status == bindings::nvme_core_const_STS_OK {
            // SAFETY: By the safety requirements of this function, `hctx` is valid. The removal of the tag set waits for
            // this function, so the controller is valid, and nvme-core cancels the work item afterwards.
            unsafe {
                let controller = Controller::<T>::from_raw(Self::queue(hctx).ctrl.as_ptr());
                if controller.is_deleted() {
                    bindings::queue_keep_alive(controller.as_raw());
                }
            }
        }
        status
    }

    /// Passes a request to [`Transport::queue_rq`], if the controller and nvme-core allow that.
    ///
    /// # Safety
    ///
    /// `hctx` and `bd` are valid. The driver owns the request of `bd` from here on, unless an error
    /// is returned. Called in an RCU read-side critical section.
    #[inline(never)]
    unsafe extern "C" fn queue_rq(
        hctx: *mut bindings::blk_mq_hw_ctx,
        bd: *const bindings::blk_mq_queue_data,
    ) -> bindings::blk_status_t {
        // SAFETY: By the safety requirements of this function, all are valid. The `queuedata` of a
        // queue on these tag sets is a `struct nvme_ns` or null.
        let (queue, rq, last, started) = unsafe {
            let (queue, rq) = (Self::queue(hctx), (*bd).rq);
            if !Self::is_ready(queue, rq) {
                let status = bindings::nvme_fail_nonready_command(queue.ctrl.as_ptr(), rq);
                return Self::not_passed(queue, status, (*bd).last);
            }
            let ns = (*(*hctx).queue).queuedata.cast();
            (queue, rq, (*bd).last, Self::start(ns, rq))
        };
        if let Err(status) = started {
            return Self::not_passed(queue, status, last);
        }
        // SAFETY: The request is started and owned, and is not null. By the safety requirements of
        // this function, the critical section lasts until this function returns.
        let (request, section) = unsafe {
            (
                Request::from_raw(NonNull::new_unchecked(rq)),
                RcuSection::of_caller(),
            )
        };

        match T::queue_rq(&queue.data, request, last, section) {
            Ok(()) => bindings::nvme_core_const_STS_OK,
            Err(refused) => {
                Self::not_passed(queue, Self::give_back(queue, refused, rq, hctx), last)
            }
        }
    }

    /// Returns `status`, the result of `queue_rq` for a request that the transport did not take. `last` is
    /// that of the call.
    ///
    /// blk-mq calls `commit_rqs` if `queue_rq` fails, but not if nvme-core has ended the request and it
    /// succeeds. If that was the last request of a batch, this sends the others.
    #[cold]
    fn not_passed(
        queue: &HwQueue<T>,
        status: bindings::blk_status_t,
        last: bool,
    ) -> bindings::blk_status_t {
        if last && status == bindings::nvme_core_const_STS_OK {
            // SAFETY: The caller is `queue_rq`, which is called in an RCU read-side critical section.
            let section = unsafe { RcuSection::of_caller() };
            T::commit_rqs(&queue.data, section);
        }
        status
    }

    /// Sends a list of requests. Those that stay in the list are passed to `queue_rq`.
    ///
    /// The list may be that of the thread's plug. The end of a request may then add requests of other
    /// disks to it.
    ///
    /// # Safety
    ///
    /// `list` and its requests are valid. The first one belongs to one of these tag sets, and the
    /// driver owns what it takes from the list of this disk. Called in an RCU read-side critical
    /// section.
    unsafe extern "C" fn queue_rqs(list: *mut bindings::rq_list) {
        // SAFETY: By the safety requirements of this function.
        let (disk, section) = unsafe { ((*(*list).head).q, RcuSection::of_caller()) };
        let mut before = ptr::null_mut();

        loop {
            // SAFETY: By the safety requirements of this function, the list and its requests are valid.
            let Some(first) = (unsafe { (*list).head.as_ref() }) else {
                return;
            };
            let hctx = first.mq_hctx;
            if hctx == before || first.q != disk {
                return;
            }
            // SAFETY: A request has an initialised hardware queue of its disk. The `queuedata` of a
            // queue on these tag sets is a `struct nvme_ns` or null.
            let (queue, ns) = unsafe { (Self::queue(hctx), (*disk).queuedata.cast()) };
            // SAFETY: By the safety requirements of this function.
            let requests = iter::from_fn(|| unsafe { Self::take_first(queue, ns, hctx, list) });

            T::queue_rqs(&queue.data, requests, section);
            before = hctx;
        }
    }

    /// Takes the first request out of a list, and starts it. Returns `None`, and leaves the list as it
    /// is, if the request is for another hardware queue or cannot be started.
    ///
    /// # Safety
    ///
    /// `hctx` has this queue, and `ns` is that of its disk. The list is that of a call of `queue_rqs`.
    #[inline(always)]
    unsafe fn take_first(
        queue: &HwQueue<T>,
        ns: *mut bindings::nvme_ns,
        hctx: *mut bindings::blk_mq_hw_ctx,
        list: *mut bindings::rq_list,
    ) -> Option<Request> {
        // SAFETY: By the safety requirements of this function, the list and its requests are valid.
        unsafe {
            let first = NonNull::new((*list).head)?;
            let rq = first.as_ptr();
            if (*rq).mq_hctx != hctx || !Self::is_ready(queue, rq) {
                return None;
            }
            // nvme-core may set up a command again that it could not set up.
            Self::start(ns, rq).ok()?;
            (*list).head = (*rq).__bindgen_anon_1.rq_next;
            if (*list).head.is_null() {
                (*list).tail = ptr::null_mut();
            }
            Some(Request::from_raw(first))
        }
    }

    /// Gives a refused request back to blk-mq, and returns the result of `queue_rq`.
    ///
    /// After a firmware activation, nvme-core makes a controller live without a set-up. If a connection was
    /// lost meanwhile, the first refused request starts error recovery.
    #[cold]
    fn give_back(
        queue: &HwQueue<T>,
        refused: Refused,
        rq: *mut bindings::request,
        hctx: *mut bindings::blk_mq_hw_ctx,
    ) -> bindings::blk_status_t {
        if refused.refusal() == Refusal::NoPath {
            // SAFETY: The queue is part of a controller of this transport.
            let controller = unsafe { Controller::<T>::from_raw(queue.ctrl.as_ptr()) };
            controller.weak.recover_if_lost();
        }
        refused.give_back(rq, hctx)
    }

    /// Returns whether the state of the controller allows the request. The common case calls no C
    /// helper. C: `nvme_check_ready()`.
    ///
    /// # Safety
    ///
    /// `rq` is valid, and is for this queue.
    #[inline(always)]
    unsafe fn is_ready(queue: &HwQueue<T>, rq: *mut bindings::request) -> bool {
        let ctrl = queue.ctrl.as_ptr();

        // SAFETY: By the safety requirements of this function, all are valid. Other threads write
        // the state with `WRITE_ONCE()`.
        unsafe {
            (&raw const (*ctrl).state).read_volatile() == bindings::nvme_ctrl_state_NVME_CTRL_LIVE
                || Self::is_admitted(queue, rq)
        }
    }

    /// Returns whether a controller that is not live allows the request. Without this function, the
    /// compiler computes the argument of the helper for each request: 8 instructions.
    ///
    /// # Safety
    ///
    /// `rq` is valid, and is for this queue.
    #[cold]
    #[inline(never)]
    unsafe fn is_admitted(queue: &HwQueue<T>, rq: *mut bindings::request) -> bool {
        let ctrl = queue.ctrl.as_ptr();

        // SAFETY: By the safety requirements of this function, all are valid. The Fabrics commands of the
        // admin queue have a queue of their own.
        unsafe { bindings::check_ready(ctrl, rq, queue.admits((*rq).q == (*ctrl).fabrics_q)) }
    }

    /// Sets up the command of a request, and starts the request. The common case calls no C helper. C:
    /// `nvme_setup_cmd()`, `nvme_start_request()`.
    ///
    /// # Errors
    ///
    /// The result of `queue_rq`. The request is not started.
    ///
    /// # Safety
    ///
    /// `rq` is a request that the driver is asked to send, and `ns` that of its disk.
    #[inline(always)]
    unsafe fn start(
        ns: *mut bindings::nvme_ns,
        rq: *mut bindings::request,
    ) -> Result<(), bindings::blk_status_t> {
        // SAFETY: By the safety requirements of this function.
        unsafe {
            match bindings::nvme_setup_cmd(ns, rq) {
                bindings::nvme_core_const_STS_OK => {}
                status => return Err(status),
            }
            match (*rq).cmd_flags & bindings::nvme_core_const_MULTIPATH {
                0 => bindings::blk_mq_start_request(rq),
                _ => bindings::start_request(rq),
            }
        }
        Ok(())
    }

    /// Passes the end of a batch to [`Transport::commit_rqs`].
    ///
    /// # Safety
    ///
    /// `hctx` is valid. Called within an RCU read-side critical section.
    unsafe extern "C" fn commit_rqs(hctx: *mut bindings::blk_mq_hw_ctx) {
        // SAFETY: By the safety requirements of this function.
        let (queue, section) = unsafe { (Self::queue(hctx), RcuSection::of_caller()) };

        T::commit_rqs(&queue.data, section);
    }

    /// Polls a hardware queue by [`Transport::poll`].
    ///
    /// # Safety
    ///
    /// `hctx` is valid, and the poller holds a reference to its queue or has a request on it.
    unsafe extern "C" fn poll(
        hctx: *mut bindings::blk_mq_hw_ctx,
        _batch: *mut bindings::io_comp_batch,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function.
        let completed = T::poll(unsafe { &Self::queue(hctx).data });

        c_int::try_from(completed).unwrap_or(c_int::MAX)
    }

    /// Starts error recovery if the controller is live. Otherwise a sequence of this crate or of
    /// nvme-core waits for the request, so its queue is disconnected, which cancels it. Does neither for a
    /// request that a device keeps since an earlier connection.
    ///
    /// # Safety
    ///
    /// `rq` is valid, was in flight a moment ago, and is not reused before this returns. Called in
    /// process context, by one thread for each queue of blk-mq.
    unsafe extern "C" fn timeout(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: By the safety requirements of this function, `rq` is valid. blk-mq holds a
        // reference to its queue.
        let queue = unsafe { Self::queue((*rq).mq_hctx) };
        // SAFETY: By the safety requirements of this function.
        if unsafe { Self::ends_by_polling(queue, rq) } {
            return bindings::blk_eh_timer_return_BLK_EH_DONE;
        }
        // SAFETY: The queue is part of a controller of this transport.
        let controller = unsafe { Controller::<T>::from_raw(queue.ctrl.as_ptr()) };
        // SAFETY: By the safety requirements of this function, `rq` is valid.
        let tag = unsafe { (&raw const (*rq).tag).read_volatile() };
        if u32::try_from(tag).is_ok_and(|tag| T::is_kept(&queue.data, tag)) {
            // The end of its connection has logged it.
            return bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER;
        }
        let association = controller.weak.association();
        // SAFETY: By the safety requirements of this function, `rq` is valid.
        if unsafe { !bindings::is_expired(rq) } {
            // SAFETY: As above.
            return unsafe { Self::timer_of(rq) };
        }
        // The request was in flight after `association` was read. An association begins when all requests of the
        // last one were cancelled. So this one is not later than that of the request.
        //
        // SAFETY: As above. The controller has a device.
        unsafe { bindings::log_timeout(controller.as_raw(), rq, queue.qid) };
        // I/O may wait for this request.
        memory::without_io(|| Self::time_out(controller, queue, association));
        // SAFETY: As above.
        unsafe { Self::timer_of(rq) }
    }

    /// Starts error recovery, or disconnects the queue, because a command of `association` timed out. Does nothing
    /// if the controller has been set up again since. Sleeps.
    fn time_out(controller: &Controller<T>, queue: &HwQueue<T>, association: AssociationNumber) {
        let stopped = Self::stopped_with(controller, queue);
        let refuse = || {
            for queue in stopped {
                queue.admit(Admits::Nothing);
            }
        };
        match controller.weak.time_out(association, queue.qid, refuse) {
            TimedOut::Disconnect => {
                for queue in stopped {
                    T::retract(&queue.data, association);
                }
                for queue in stopped {
                    T::stop(&queue.data, association);
                }
                T::disconnect(&queue.data, association);
                if queue.qid == 0 && controller.is_deleted() {
                    // A Keep Alive, or another admin command, timed out. The deletion waits for I/O, whose own
                    // time-outs may be long. nvme-rdma waits for them. No association follows.
                    let queues = controller.queues.iter();
                    queues.clone().for_each(|queue| queue.stop(association));
                    queues.for_each(|queue| queue.disconnect(association));
                }
                controller.weak.recover_if_lost();
            }
            TimedOut::Recovers | TimedOut::Ended => {}
        }
    }

    /// Returns the queues that a time-out of `queue` stops. If writes are held, these are all I/O queues, so that
    /// the holds run at once: the target is silent, and the commands of the others time out next.
    fn stopped_with<'a>(controller: &'a Controller<T>, queue: &'a HwQueue<T>) -> &'a [HwQueue<T>] {
        match queue.qid != 0 && controller.transport.holds_writes() {
            true => controller.queues.get(1..).unwrap_or_default(),
            false => slice::from_ref(queue),
        }
    }

    /// Returns the result of [`timeout`](Self::timeout) for a request that has ended, or is still in flight:
    /// recovery has not come to it yet, the device has not returned the memory of its command, or it was sent
    /// again.
    ///
    /// # Safety
    ///
    /// Those of [`timeout`](Self::timeout).
    unsafe fn timer_of(rq: *mut bindings::request) -> bindings::blk_eh_timer_return {
        // SAFETY: By the safety requirements of this function, `rq` is valid.
        match unsafe { bindings::is_in_flight(rq) } {
            true => bindings::blk_eh_timer_return_BLK_EH_RESET_TIMER,
            false => bindings::blk_eh_timer_return_BLK_EH_DONE,
        }
    }

    /// Polls for a request that timed out, if its queue is polled. The C driver takes the request for lost.
    /// Returns whether the request has ended. Sleeps.
    ///
    /// # Safety
    ///
    /// Those of [`timeout`](Self::timeout), and `queue` is that of `rq`.
    unsafe fn ends_by_polling(queue: &HwQueue<T>, rq: *mut bindings::request) -> bool {
        // SAFETY: By the safety requirements of this function, `rq` is valid. A request has an initialised
        // hardware queue.
        let kind = unsafe { (*(*rq).mq_hctx).type_ };
        // SAFETY: By the safety requirements of this function, `rq` is valid.
        let has_ended = || unsafe { !bindings::is_in_flight(rq) };
        let poll = || {
            T::poll(&queue.data);
        };
        u32::from(kind) == bindings::hctx_type_HCTX_TYPE_POLL && poll_timed_out(poll, has_ended)
    }

    /// Assigns a queue of the controller to a hardware queue. `FIRST` is the QID of hardware queue 0.
    ///
    /// # Safety
    ///
    /// `hctx` is valid, and becomes hardware queue `index`. `data` is the `driver_data` of its tag
    /// set.
    unsafe extern "C" fn init_hctx<const FIRST: u32>(
        hctx: *mut bindings::blk_mq_hw_ctx,
        data: *mut c_void,
        index: c_uint,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function, and see `BlkOps`.
        let controller = unsafe { Controller::<T>::from_raw(data.cast()) };
        let Some(queue) = controller.queues.get(index.saturating_add(FIRST) as usize) else {
            return EINVAL.to_errno();
        };

        // SAFETY: By the safety requirements of this function, `hctx` is valid.
        unsafe { (*hctx).driver_data = core::ptr::from_ref(queue).cast_mut().cast() };
        0
    }

    /// Initialises the private data of a request, for nvme-core.
    ///
    /// # Safety
    ///
    /// `set` is valid, and `rq` has private data that nobody else uses.
    unsafe extern "C" fn init_request(
        set: *mut bindings::blk_mq_tag_set,
        rq: *mut bindings::request,
        _index: c_uint,
        _node: c_int,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function, and see `BlkOps`.
        unsafe { bindings::init_request(rq, (*set).driver_data.cast()) };
        0
    }

    /// Maps CPUs to the hardware queues of each kind. C: `nvmf_map_queues()`.
    ///
    /// The numbers of each kind are computed for the hardware queues that there are: if blk-mq cannot add those
    /// that the target grants, it calls this again with the old number. [`Controller::io_queues`] has the numbers for
    /// those that are granted, and CPUs would be mapped to queues that do not exist. nvme-rdma does that.
    ///
    /// # Safety
    ///
    /// `set` is valid, and nobody else uses its maps.
    unsafe extern "C" fn map_queues(set: *mut bindings::blk_mq_tag_set) {
        // SAFETY: By the safety requirements of this function, and see `BlkOps`. The thread that changes the number of
        // hardware queues is that which sets the requested numbers.
        unsafe {
            // If there are no polled queues, nvme-fabrics leaves their map as it is.
            for map in &mut (*set).map {
                map.nr_queues = 0;
            }
            let ctrl = (*set).driver_data.cast();
            let requested = *Controller::<T>::from_raw(ctrl).requested_queues.get();
            let mut kinds = requested.divide((*set).nr_hw_queues);
            bindings::nvmf_map_queues(set, ctrl, kinds.as_mut_ptr());
        }
    }
}
