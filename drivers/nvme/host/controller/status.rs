// SPDX-License-Identifier: GPL-2.0

//! The state of a controller, and what is shown of it.

use crate::{
    ctrl_error::CtrlError,
    namespace::NsRejections,
    trace, //
};
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
        ctrl_state::CtrlState,
        limits::queue_counts::IoQueueCounts,
        reconnect_policy::FlapHistory, //
    },
};
use rrdma::{
    errno,
    rdma::device,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// The state of a controller, with its lock. A leaf: no other lock is taken under it.
#[pin_data]
pub(crate) struct Status {
    /// The number of the controller in traces.
    trace_id: i32,
    #[pin]
    fields: Mutex<CtrlStatus>,
    /// Notified whenever `fields` change.
    #[pin]
    changed: CondVar,
    /// Removal is requested: it follows as soon as the controller's thread sees it.
    removal_requested: AtomicFlag,
    /// The disks of a live controller are being removed.
    removal_begun: AtomicFlag,
}

/// What is shown of a controller.
pub(crate) struct CtrlStatus {
    pub(crate) state: CtrlState,
    /// The last error; cleared when a reset or rescan is requested.
    pub(crate) error: Option<CtrlError>,
    /// `None` before the first connection.
    pub(crate) info: Option<CtrlInfo>,
    /// Namespaces without a disk.
    pub(crate) rejections: NsRejections,
    /// Progress of reconnecting, while that is under way.
    pub(crate) reconnect: Option<ReconnectStatus>,
    pub(crate) scans: Scans,
    /// Completed resets; wraps around.
    pub(crate) resets: u32,
    /// Completed reconnects after a lost connection; wraps around.
    pub(crate) reconnects: u32,
}

/// What is known of a controller once it is connected.
pub(crate) struct CtrlInfo {
    pub(crate) device: device::Name,
    pub(crate) identity: Arc<identify::Controller>,
    pub(crate) io_queues: IoQueueCounts,
    /// Entries of an I/O queue.
    pub(crate) queue_size: u16,
    pub(crate) max_sectors: u32,
    /// In-capsule data, in bytes.
    pub(crate) inline_size: u32,
}

/// Progress of reconnecting.
#[derive(Clone, Copy)]
pub(crate) struct ReconnectStatus {
    /// When the connection was lost.
    pub(super) began: Instant<Monotonic>,
    /// What counts besides.
    pub(super) earlier: FlapHistory,
    /// Attempts so far, the one under way included.
    pub(crate) attempts: u32,
    /// When the next one begins, if none is under way.
    pub(crate) next: Option<Deadline>,
}

impl ReconnectStatus {
    /// For how long the connection is lost, in milliseconds.
    pub(crate) fn lasts_ms(&self) -> u32 {
        Msecs::from(self.began.elapsed())
            .get()
            .saturating_add(self.earlier.outage_ms)
    }
}

/// Requests to scan the namespaces, by serial number.
#[derive(Clone, Copy, Default)]
pub(crate) struct Scans {
    /// The last request.
    requested: u32,
    /// The last completed scan. It began no earlier than the request of this number.
    pub(crate) done: u32,
}

impl Scans {
    /// Whether the scan of request `number` is completed.
    fn is_done(self, number: u32) -> bool {
        // Serial-number comparison; valid within 2^31.
        self.done.wrapping_sub(number) <= u32::MAX / 2
    }

    /// Whether a request waits for a scan.
    pub(super) fn is_due(self) -> bool {
        self.requested != self.done
    }
}

/// Who requests a scan.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ScanRequester {
    /// A user, who wants to see the error of this scan only.
    User,
    /// The target, by an event: an earlier error stays.
    Target,
}

/// Whether a transition took place.
#[must_use]
pub(super) enum Transition {
    /// Everybody is to be told.
    Done,
    /// Removal came first, or nothing is new.
    Refused,
}

impl Status {
    /// The state [`CtrlState::New`] of a controller that traces show as `trace_id`.
    pub(super) fn new(trace_id: i32) -> impl PinInit<Self> {
        pin_init!(Self {
            trace_id,
            fields <- new_mutex!(CtrlStatus {
                state: CtrlState::New,
                error: None,
                info: None,
                rejections: NsRejections::new(),
                reconnect: None,
                scans: Scans::default(),
                resets: 0,
                reconnects: 0,
            }, "rnvmf::Status::fields"),
            changed <- new_condvar!("rnvmf::Status::changed"),
            removal_requested: AtomicFlag::new(false),
            removal_begun: AtomicFlag::new(false),
        })
    }

    /// The number of the controller in traces.
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

    /// The removal of a live controller begins: its own commands are not cancelled by it.
    pub(super) fn begin_removal(&self) {
        self.removal_begun.store(true, ordering::Relaxed);
    }

    /// Whether the removal of a live controller began. Any context.
    pub(super) fn is_removal_begun(&self) -> bool {
        self.removal_begun.load(ordering::Relaxed)
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

    /// Wakes those who wait for a change.
    pub(super) fn notify(&self) {
        self.changed.notify_all();
    }

    /// The state. May sleep.
    pub(crate) fn state(&self) -> CtrlState {
        self.fields.lock().state
    }

    /// Enters `state` and keeps `error`. Refuses a transition that is not allowed, and one to the
    /// same state without an error. May sleep.
    pub(super) fn enter(&self, state: CtrlState, error: Option<&CtrlError>) -> Transition {
        let mut fields = self.fields.lock();
        let allowed = if fields.state == state {
            error.is_some()
        } else {
            fields.state.may_become(state)
        };
        if !allowed {
            return Transition::Refused;
        }
        if fields.state != state {
            trace::controller_state(self.trace_id, fields.state, state, error);
        }
        fields.state = state;
        if let Some(error) = error {
            fields.error = Some(error.clone());
        }
        Transition::Done
    }

    /// Goes from live to resetting. May sleep.
    ///
    /// # Errors
    ///
    /// The state, if that is another one.
    pub(super) fn request_reset(&self) -> Result<(), CtrlState> {
        let mut fields = self.fields.lock();
        self.check_live(&fields)?;
        trace::controller_state(self.trace_id, CtrlState::Live, CtrlState::Resetting, None);
        fields.state = CtrlState::Resetting;
        fields.error = None;
        Ok(())
    }

    /// Whether the controller is live, and is to stay so; the state if not.
    fn check_live(&self, fields: &CtrlStatus) -> Result<(), CtrlState> {
        match fields.state {
            CtrlState::Live if self.is_removal_requested() => Err(CtrlState::Deleting),
            CtrlState::Live => Ok(()),
            state => Err(state),
        }
    }

    /// Numbers a request to scan a live controller. May sleep.
    ///
    /// # Errors
    ///
    /// The state, if that is another one.
    pub(super) fn request_scan(&self, requester: ScanRequester) -> Result<u32, CtrlState> {
        let mut fields = self.fields.lock();
        self.check_live(&fields)?;
        if requester == ScanRequester::User {
            fields.error = None;
        }
        fields.scans.requested = fields.scans.requested.wrapping_add(1);
        Ok(fields.scans.requested)
    }

    /// Keeps how the scan that began after `requested` ended. What was requested meanwhile is told
    /// how the next one ends. May sleep.
    pub(super) fn scan_done(&self, begun: Scans, result: &Result<(), CtrlError>) -> Transition {
        let mut fields = self.fields.lock();
        if result.is_err() && fields.scans.requested != begun.requested {
            return Transition::Refused;
        }
        fields.scans.done = begun.requested;
        if let Err(error) = result {
            fields.error = Some(error.clone());
        }
        Transition::Done
    }

    /// Waits until the controller is live again after a reset. Sleeps.
    ///
    /// # Errors
    ///
    /// - [`ENETRESET`](errno::ENETRESET) if one attempt failed, after which there may be others,
    ///   or the controller is removed.
    /// - `EINTR` if the process has a signal.
    pub(super) fn wait_reset(&self) -> Result {
        let mut fields = self.fields.lock();
        loop {
            match (fields.state, &fields.error) {
                (CtrlState::Live, _) => return Ok(()),
                (CtrlState::Dead | CtrlState::Deleting, _) | (_, Some(_)) => {
                    return Err(errno::ENETRESET)
                }
                (_, None) => {}
            }
            if self.changed.wait_interruptible(&mut fields) {
                return Err(EINTR);
            }
        }
    }

    /// Waits for the scan of request `number`, as long as the controller is live and the process
    /// has no signal. Sleeps.
    pub(super) fn wait_scan(&self, number: u32) {
        let mut fields = self.fields.lock();
        while fields.state == CtrlState::Live && !fields.scans.is_done(number) {
            if self.changed.wait_interruptible(&mut fields) {
                return;
            }
        }
    }
}
