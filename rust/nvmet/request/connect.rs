// SPDX-License-Identifier: GPL-2.0

//! Connect commands.
//!
//! nvmet finds the controller of an I/O queue by its identifier and the names of subsystem and host, not by port or
//! transport. It would pass the queue to `install_queue` of another transport, which takes it for one of its own. So
//! a queue may only join a controller of its own port, as the specification demands («Connect command»: the same NVM
//! subsystem port). The controller is held while nvmet executes the command, so no other one gets its identifier.

use super::{
    Execute,
    Memory,
    Parsed,
    RequestHandler, //
};
use crate::{
    bindings,
    capsule::COMMAND_SIZE,
    connecting::ConnectingQueues,
    submission_queue::{
        HeldController,
        HeldQueue,
        SubmissionQueue, //
    },
};
use core::{
    mem,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::qp::QueuePair;

/// Offset of the type in a Fabrics command.
const FCTYPE: usize = 4;

/// The type of a Connect command.
const CONNECT: u8 = 1;

/// Offset of the queue identifier in a Connect command.
const QUEUE_ID: usize = 42;

/// Offset of the zero-based queue size in a Connect command.
const QUEUE_SIZE: usize = 44;

/// Identifier that no controller has.
const NO_CONTROLLER: u16 = 0xffff;

/// Replaces nvmet's function for a Connect command by one that checks it first.
pub(super) fn prepare<T: RequestHandler>(mut parsed: Parsed<T>) -> Parsed<T> {
    if parsed.command()[FCTYPE] == CONNECT {
        let req = parsed.req();
        // SAFETY: By the type invariants of `Parsed`, this owns the memory. `execute` calls the function that it
        // replaces.
        unsafe { parsed.0.as_mut().execute = (*req).execute.replace(execute::<T>) };
    }
    parsed
}

/// Executes a Connect command, or refuses it.
///
/// # Safety
///
/// The caller is `Parsed::execute_with`, with the request of a command that [`prepare`] has prepared.
unsafe extern "C" fn execute<T: RequestHandler>(req: *mut bindings::nvmet_req) {
    // SAFETY: By the safety requirements. `req` is the first field of the memory.
    let execute: Execute = unsafe { (*req.cast::<Memory<T>>()).execute };
    // SAFETY: By the safety requirements. nvmet has parsed the command, and gets the request back. `prepare` has
    // set the function.
    unsafe {
        match Admission::of::<T>(req) {
            Ok(admission) => {
                execute.unwrap_unchecked()(req);
                admission.confirm::<T>();
            }
            Err(refusal) => {
                (*(*req).cqe).result.u32_ = refusal.result().to_le();
                bindings::nvmet_req_complete(req, refusal.status());
            }
        }
    }
}

/// Reason to refuse a Connect command.
enum Refusal {
    /// The port of the queue has no such controller.
    Controller,
    /// The queue has no entries. `nvmet_install_queue()` refuses that, too, but sets `sq->ctrl` to null.
    QueueSize,
    NoMemory,
}

impl Refusal {
    fn status(&self) -> u16 {
        let status = match self {
            Self::Controller | Self::QueueSize => {
                bindings::NVME_SC_CONNECT_INVALID_PARAM | bindings::NVME_STATUS_DNR
            }
            Self::NoMemory => bindings::NVME_SC_INTERNAL,
        };
        status as u16
    }

    /// Returns what is invalid, as `IPO_IATTR_CONNECT_DATA()` and `IPO_IATTR_CONNECT_SQE()`.
    fn result(&self) -> u32 {
        let offset = mem::offset_of!(bindings::nvmf_connect_data, cntlid);
        match self {
            Self::Controller => (1 << 16) | offset as u32,
            Self::QueueSize => QUEUE_SIZE as u32,
            Self::NoMemory => 0,
        }
    }
}

/// The controller that an I/O queue joins.
struct Joined {
    id: u16,
    _held: HeldController,
}

/// References that are kept while nvmet executes a Connect command.
struct Admission {
    /// The controller that an I/O queue joins.
    controller: Option<Joined>,
    /// The submission queue of a `SubmissionQueue<T>` with a queue pair. In the list of `queues`.
    queue: HeldQueue,
    queues: Arc<ConnectingQueues>,
}

impl Admission {
    /// Decides on a Connect command. May sleep.
    ///
    /// # Safety
    ///
    /// `req` must be that of a [`Parsed<T>`] with a Connect command, and have its data.
    unsafe fn of<T: RequestHandler>(req: *mut bindings::nvmet_req) -> Result<Self, Refusal> {
        // SAFETY: By the safety requirements. The request has a reference to the submission queue, which is part of
        // a `SubmissionQueue`, and not null. Such a queue has a queue pair.
        let (sq, queue_pair, queue) = unsafe {
            let sq = (*req).sq;
            (
                &*sq.cast::<SubmissionQueue<T>>(),
                SubmissionQueue::<T>::queue_pair_of(sq),
                HeldQueue::get(NonNull::new_unchecked(sq)),
            )
        };
        // SAFETY: By the safety requirements.
        let command = unsafe { (*req).cmd.cast::<[u8; COMMAND_SIZE]>().read() };
        if command[QUEUE_SIZE..][..2] == [0; 2] {
            return Err(Refusal::QueueSize);
        }
        // SAFETY: By the safety requirements.
        let controller = match unsafe { controller_id(req) } {
            Some(id) => Some(Joined {
                id,
                _held: hold::<T>(sq, queue_pair, id).ok_or(Refusal::Controller)?,
            }),
            None => None,
        };
        let queues = sq.port().connecting().clone();
        queues.add(queue.as_raw()).map_err(|_| Refusal::NoMemory)?;
        Ok(Self {
            controller,
            queue,
            queues,
        })
    }

    /// Ends the connection of an I/O queue if its controller is being deleted. Whoever deletes a controller ends
    /// the queues that it has, and may have looked before this queue joined it. May sleep.
    ///
    /// # Safety
    ///
    /// `T` must be that of [`of`](Self::of).
    unsafe fn confirm<T: RequestHandler>(self) {
        let Some(Joined { id, .. }) = self.controller else {
            return;
        };
        let sq = self.queue.as_raw();
        // SAFETY: By the safety requirements, and the reference to the queue.
        let (sq, queue_pair) = unsafe {
            (
                &*sq.cast::<SubmissionQueue<T>>(),
                SubmissionQueue::<T>::queue_pair_of(sq),
            )
        };
        if hold::<T>(sq, queue_pair, id).is_none() {
            T::end(queue_pair);
        }
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.queues.remove(self.queue.as_raw());
    }
}

/// Holds the controller of the port with this identifier. The transport finds it, but is not trusted.
fn hold<T: RequestHandler>(
    sq: &SubmissionQueue<T>,
    queue_pair: &QueuePair<T::Endpoint>,
    id: u16,
) -> Option<HeldController> {
    T::hold_controller(queue_pair, id).filter(|held| held.is(id, sq.port()))
}

/// Returns the identifier of the controller that an I/O queue is to join; `None` for an admin queue, and if nvmet
/// refuses the command for the length of its data.
///
/// # Safety
///
/// As for [`Admission::of`].
unsafe fn controller_id(req: *mut bindings::nvmet_req) -> Option<u16> {
    let mut id = [0; 2];
    // SAFETY: By the safety requirements. The data is only read.
    let read = unsafe {
        let command = (*req).cmd.cast::<[u8; COMMAND_SIZE]>().read();
        let is_admin = command[QUEUE_ID..][..2] == [0; 2];
        if is_admin || (*req).transfer_len != size_of::<bindings::nvmf_connect_data>() {
            return None;
        }
        let offset = mem::offset_of!(bindings::nvmf_connect_data, cntlid);
        let entries = (*req).sg_cnt.unsigned_abs();
        bindings::sg_pcopy_to_buffer(
            (*req).sg,
            entries,
            id.as_mut_ptr().cast(),
            id.len(),
            offset as bindings::off_t,
        )
    };
    match read == id.len() {
        true => Some(u16::from_le_bytes(id)),
        false => Some(NO_CONTROLLER),
    }
}
