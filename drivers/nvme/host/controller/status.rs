// SPDX-License-Identifier: GPL-2.0

//! The status of a controller: its state, and properties that user space sees.

use crate::{ctrl_error::CtrlError, namespace::NsRejections};
use kernel::{
    new_condvar, new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        Arc,
        CondVar,
        Mutex, //
    },
    time::{
        Instant,
        Monotonic, //
    },
};
use nvme_proto::{
    format::identify,
    policy::{
        ctrl_state::{
            CtrlState,
            ResetWait,
            Transition, //
        },
        limits::queue_counts::IoQueueCounts,
        reconnect_progress::ReconnectProgress,
        scan_requests::ScanRequests,
    },
};
use rnvmf_disk::trace::{
    self,
    StateChange, //
};
use rrdma::{
    errno,
    rdma::device,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// The status of a controller. Its lock is a leaf: no other lock is taken under it.
#[pin_data]
pub(crate) struct Status {
    /// The `ctrl_id` in trace records.
    trace_id: i32,
    #[pin]
    fields: Mutex<CtrlStatus>,
    /// Notified when `fields` change.
    #[pin]
    changed: CondVar,
    /// Removal is requested, for the controller's thread to carry out.
    removal_requested: AtomicFlag,
}

/// The status that user space sees.
pub(crate) struct CtrlStatus {
    pub(crate) state: CtrlState,
    /// The last error; cleared when a reset or rescan is requested.
    pub(crate) error: Option<CtrlError>,
    /// `None` before the first connection.
    pub(crate) info: Option<CtrlInfo>,
    /// Namespaces without a disk.
    pub(crate) rejections: NsRejections,
    /// Progress of a reconnect; `None` if none is in progress.
    pub(crate) reconnect: Option<ReconnectStatus>,
    pub(crate) scans: ScanRequests,
    /// Completed resets; wraps around.
    pub(crate) resets: u32,
    /// Completed reconnects after a lost connection; wraps around.
    pub(crate) reconnects: u32,
}

/// Properties of a controller, known once it is connected.
pub(crate) struct CtrlInfo {
    pub(crate) device: device::Name,
    /// NUMA node of the RDMA device, or -1.
    pub(crate) numa_node: i32,
    pub(crate) identity: Arc<identify::Controller>,
    pub(crate) io_queues: IoQueueCounts,
    /// Entries of an I/O queue.
    pub(crate) queue_size: u16,
    pub(crate) max_sectors: u32,
    /// In-capsule data, in bytes.
    pub(crate) inline_size: u32,
}

/// Progress of a reconnect.
#[derive(Clone, Copy)]
pub(crate) struct ReconnectStatus {
    /// When the connection was lost.
    pub(super) began: Instant<Monotonic>,
    pub(super) progress: ReconnectProgress,
    /// When the next attempt begins, if none is in progress.
    pub(crate) next: Option<Deadline>,
}

impl ReconnectStatus {
    /// Attempts so far, one in progress included.
    pub(crate) fn attempts(&self) -> u32 {
        self.progress.attempts()
    }

    /// Milliseconds since the connection was lost.
    pub(super) fn since_loss_ms(&self) -> u32 {
        Msecs::from(self.began.elapsed()).get()
    }

    /// The outage in milliseconds that time limits apply to. Includes earlier outages if the last
    /// connection dropped early.
    pub(crate) fn outage_ms(&self) -> u32 {
        self.progress.outage_ms(self.since_loss_ms())
    }
}

/// The origin of a scan request.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanRequester {
    /// User space: an earlier error is cleared.
    User,
    /// The target, by an event or by a command that changes namespaces: an earlier error is kept.
    Target,
}

impl Status {
    /// Returns the status of a controller in [`CtrlState::New`]. `trace_id` is its `ctrl_id` in
    /// trace records.
    pub(super) fn new(trace_id: i32) -> impl PinInit<Self> {
        pin_init!(Self {
            trace_id,
            fields <- new_mutex!(CtrlStatus {
                state: CtrlState::New,
                error: None,
                info: None,
                rejections: NsRejections::new(),
                reconnect: None,
                scans: ScanRequests::default(),
                resets: 0,
                reconnects: 0,
            }, "rnvmf::Status::fields"),
            changed <- new_condvar!("rnvmf::Status::changed"),
            removal_requested: AtomicFlag::new(false),
        })
    }

    /// Returns the `ctrl_id` in trace records.
    pub(super) fn trace_id(&self) -> i32 {
        self.trace_id
    }

    /// Requests removal. Any context.
    pub(super) fn request_removal(&self) {
        self.removal_requested.store(true, ordering::Relaxed);
    }

    /// Whether removal is requested. Any context.
    pub(crate) fn is_removal_requested(&self) -> bool {
        self.removal_requested.load(ordering::Relaxed)
    }

    /// Reads the fields. May sleep.
    pub(crate) fn with<R>(&self, read: impl FnOnce(&CtrlStatus) -> R) -> R {
        read(&self.fields.lock())
    }

    /// Changes fields other than the state; the caller then calls [`notify`](Self::notify). May
    /// sleep.
    pub(super) fn update<R>(&self, change: impl FnOnce(&mut CtrlStatus) -> R) -> R {
        change(&mut self.fields.lock())
    }

    /// Wakes threads that wait for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// Returns the state. May sleep.
    #[inline(never)]
    pub(crate) fn state(&self) -> CtrlState {
        self.fields.lock().state
    }

    fn trace_change(&self, from: CtrlState, to: CtrlState, error: Option<&CtrlError>) {
        trace::controller_state(StateChange {
            ctrl_id: self.trace_id,
            from,
            to,
            error: error.map(|error| error.error),
            reason: error.map_or("", CtrlError::message),
        });
    }

    /// Enters `state` and keeps `error`. Refuses a transition that is not allowed, and one to the
    /// same state without an error. Returns whether the status changed: then the caller calls
    /// [`notify`](Self::notify). May sleep.
    #[must_use]
    pub(super) fn enter(&self, state: CtrlState, error: Option<&CtrlError>) -> bool {
        let mut fields = self.fields.lock();
        match fields.state.transition(state, error.is_some()) {
            Transition::Refuse => return false,
            Transition::Enter => {
                self.trace_change(fields.state, state, error);
                fields.state = state;
                if let (CtrlState::Live, Some(error)) = (state, &mut fields.error) {
                    error.over = true;
                }
            }
            Transition::KeepError => {}
        }
        if let Some(error) = error {
            fields.error = Some(error.clone());
        }
        true
    }

    /// Changes the state from live to resetting, and clears the error. May sleep.
    ///
    /// # Errors
    ///
    /// The current state, if it is not live.
    pub(super) fn request_reset(&self) -> Result<(), CtrlState> {
        let mut fields = self.fields.lock();
        self.check_live(&fields)?;
        self.trace_change(CtrlState::Live, CtrlState::Resetting, None);
        fields.state = CtrlState::Resetting;
        fields.error = None;
        Ok(())
    }

    /// Checks that the controller is live and not about to be removed; otherwise returns the state.
    fn check_live(&self, fields: &CtrlStatus) -> Result<(), CtrlState> {
        match fields.state {
            CtrlState::Live if self.is_removal_requested() => Err(CtrlState::Deleting),
            CtrlState::Live => Ok(()),
            state => Err(state),
        }
    }

    /// Requests a scan of a live controller, and returns the number of the request. May sleep.
    ///
    /// # Errors
    ///
    /// The current state, if it is not live.
    pub(super) fn request_scan(&self, requester: ScanRequester) -> Result<u32, CtrlState> {
        let mut fields = self.fields.lock();
        self.check_live(&fields)?;
        if requester == ScanRequester::User {
            fields.error = None;
        }
        Ok(fields.scans.request())
    }

    /// Stores the result of a scan; `begun` is a copy of the requests from before the scan.
    /// Requests made during the scan are completed by the next one. Returns whether the status
    /// changed, as [`enter`](Self::enter) does. May sleep.
    #[must_use]
    pub(super) fn scan_done(&self, begun: ScanRequests, result: &Result<(), CtrlError>) -> bool {
        let mut fields = self.fields.lock();
        if !fields.scans.end(begun, result.is_ok()) {
            return false;
        }
        if let Err(error) = result {
            fields.error = Some(error.clone());
        }
        true
    }

    /// Waits until the controller is live again after a reset. Sleeps.
    ///
    /// # Errors
    ///
    /// - [`ENETRESET`](errno::ENETRESET) if an attempt to connect failed, or the controller is
    ///   removed. Further attempts may follow.
    /// - `EINTR` if a signal is pending.
    pub(super) fn wait_reset(&self) -> Result {
        let mut fields = self.fields.lock();
        loop {
            match fields.state.reset_wait(fields.error.is_some()) {
                ResetWait::Done => return Ok(()),
                ResetWait::Failed => return Err(errno::ENETRESET),
                ResetWait::Wait => {}
            }
            if self.changed.wait_interruptible(&mut fields) {
                return Err(EINTR);
            }
        }
    }

    /// Waits for the scan of request `number`, while the controller is live and no signal is
    /// pending. Sleeps.
    pub(super) fn wait_scan(&self, number: u32) {
        let mut fields = self.fields.lock();
        while fields.state == CtrlState::Live && !fields.scans.is_done(number) {
            if self.changed.wait_interruptible(&mut fields) {
                return;
            }
        }
    }
}
