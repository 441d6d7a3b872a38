// SPDX-License-Identifier: GPL-2.0

//! Requests: commands on their way through nvmet.
//!
//! ```text
//!              begin                      execute                      respond
//!   Request ───────────▶ Parsed ───────────────────▶ (nvmet) ────────────────▶ Request, Data
//!              (capsule)    │  fail(status) ─────────────▲
//!                           └─ abandon ──▶ Request
//! ```
//!
//! Each is the only owner of the request's memory. While nvmet has it, nobody else does.

use crate::{
    bindings,
    data::Data,
    submission_queue::SubmissionQueue,
    types::TransportTypes, //
};
use core::{
    mem,
    ptr::NonNull, //
};
use kernel::{
    prelude::*,
    types::Opaque, //
};

/// Size of a command in bytes.
pub const COMMAND_SIZE: usize = 64;

/// Size of a completion in bytes.
pub const COMPLETION_SIZE: usize = 16;

const _: () = assert!(size_of::<bindings::nvme_command>() == COMMAND_SIZE);
const _: () = assert!(size_of::<bindings::nvme_completion>() == COMPLETION_SIZE);

/// Memory of a request. nvmet has pointers to the first fields while it has the request. `req` is
/// the first field, so both have the same address.
#[repr(C)]
struct Memory<T: TransportTypes> {
    req: Opaque<bindings::nvmet_req>,
    command: Opaque<bindings::nvme_command>,
    completion: Opaque<bindings::nvme_completion>,
    /// Lists in-capsule data.
    entry: Opaque<bindings::scatterlist>,
    data: Data<T>,
    private: T::Command,
}

/// A request that nvmet does not know: before it begins, or after the response.
///
/// # Invariants
///
/// nvmet does not use the memory, and `data` is [`Data::None`].
pub struct Request<T: TransportTypes>(KBox<Memory<T>>);

// SAFETY: The memory is owned, and not tied to a thread. The transport's part is `Send`.
unsafe impl<T: TransportTypes> Send for Request<T> {}

/// What became of a request that began.
pub enum Begun<T: TransportTypes> {
    /// The command is valid. It holds a reference to the submission queue.
    Parsed(Parsed<T>),
    /// nvmet refused the command, and has called [`respond`](crate::Transport::respond).
    Answered,
    /// The submission queue is being destroyed.
    Refused(Request<T>),
}

impl<T: TransportTypes> Request<T> {
    /// Allocates a request, with the transport's data. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub fn new(private: T::Command) -> Result<Self> {
        let memory = Memory {
            req: Opaque::zeroed(),
            command: Opaque::zeroed(),
            completion: Opaque::zeroed(),
            entry: Opaque::zeroed(),
            data: Data::None,
            private,
        };
        // INVARIANT: nvmet does not know the new memory.
        Ok(Self(KBox::new(memory, GFP_KERNEL)?))
    }

    /// Returns the transport's data.
    #[inline]
    pub fn private_mut(&mut self) -> &mut T::Command {
        &mut self.0.private
    }

    /// Returns the completion, after the response.
    #[inline]
    pub fn completion(&self) -> [u8; COMPLETION_SIZE] {
        // SAFETY: The bytes are initialised, and nvmet does not use them.
        unsafe {
            self.0
                .completion
                .get()
                .cast::<[u8; COMPLETION_SIZE]>()
                .read()
        }
    }

    /// Passes a command to nvmet (`nvmet_req_init`). Process context.
    pub fn begin(self, sq: &SubmissionQueue<T>, command: &[u8; COMMAND_SIZE]) -> Begun<T> {
        let Some(entered) = sq.enter() else {
            return Begun::Refused(self);
        };
        let memory = NonNull::from(KBox::leak(self.0));
        // SAFETY: The memory is owned by this function until `nvmet_req_init()`, and stays at its
        // address. The submission queue is initialised, and not destroyed while `entered` lives.
        let parsed = unsafe {
            let memory = memory.as_ref();
            memory
                .command
                .get()
                .cast::<[u8; COMMAND_SIZE]>()
                .write(*command);
            let req = memory.req.get();
            (*req).cmd = memory.command.get();
            (*req).cqe = memory.completion.get();
            (*req).port = sq.port().as_raw();
            bindings::nvmet_req_init(req, entered.as_raw(), sq.port().ops())
        };
        match parsed {
            // INVARIANT: nvmet has parsed the command, and took a reference to the queue.
            true => Begun::Parsed(Parsed(memory)),
            false => Begun::Answered,
        }
    }

    /// Takes the request and its data back from nvmet.
    ///
    /// # Safety
    ///
    /// `req` must be that of a [`Request`] of this transport, and nvmet must not use it any more.
    pub(crate) unsafe fn from_raw(req: *mut bindings::nvmet_req) -> (Self, Data<T>) {
        // SAFETY: By the safety requirements. `req` is the first field of the memory, which `begin`
        // leaked.
        let mut memory = unsafe { KBox::from_raw(req.cast::<Memory<T>>()) };
        let data = mem::replace(&mut memory.data, Data::None);
        // INVARIANT: By the safety requirements; the data was taken.
        (Self(memory), data)
    }

    /// Returns the transport's data of a request that nvmet has.
    ///
    /// # Safety
    ///
    /// `req` must be that of a [`Request`] of this transport, which nvmet has for `'a`.
    pub(crate) unsafe fn private_of<'a>(req: *mut bindings::nvmet_req) -> &'a T::Command {
        // SAFETY: By the safety requirements. Nobody changes the transport's data meanwhile.
        unsafe { &(*req.cast::<Memory<T>>()).private }
    }
}

/// A request whose command nvmet has parsed. Dropping it abandons the command.
///
/// # Invariants
///
/// `nvmet_req_init()` succeeded for the memory, which this owns. It has a reference to the
/// submission queue.
pub struct Parsed<T: TransportTypes>(NonNull<Memory<T>>);

// SAFETY: As for `Request`.
unsafe impl<T: TransportTypes> Send for Parsed<T> {}

impl<T: TransportTypes> Parsed<T> {
    fn req(&self) -> *mut bindings::nvmet_req {
        // SAFETY: By the type invariants, the memory is valid.
        unsafe { self.0.as_ref().req.get() }
    }

    /// Returns the transport's data.
    #[inline]
    pub fn private_mut(&mut self) -> &mut T::Command {
        // SAFETY: By the type invariants, this owns the memory, and nvmet does not use this field.
        unsafe { &mut self.0.as_mut().private }
    }

    /// Returns how many bytes of data the command has, if nvmet can tell; 0 otherwise. C:
    /// `nvmet_req_transfer_len()`.
    #[inline]
    pub fn data_length(&self) -> usize {
        // SAFETY: `nvmet_req_init()` succeeded.
        unsafe { bindings::nvmet_req_transfer_len(self.req()) }
    }

    /// Executes the command with its data. [`respond`](crate::Transport::respond) is called with the
    /// result, perhaps before this returns. Process context; may sleep.
    pub fn execute(mut self, data: Data<T>) {
        let req = self.req();
        // SAFETY: By the type invariants, this owns the memory. The data is not changed before
        // nvmet returns the request.
        unsafe {
            let memory = self.0.as_mut();
            memory.data = data;
            let list = memory.data.list(memory.entry.get());
            (*req).sg = list.first();
            (*req).sg_cnt = list.entries() as c_int;
            (*req).transfer_len = list.length() as usize;
        }
        mem::forget(self);
        // SAFETY: `nvmet_req_init()` succeeded, and the data is set.
        unsafe { bindings::req_execute(req) };
    }

    /// Ends the command with a status, in the form of `include/linux/nvme.h`.
    /// [`respond`](crate::Transport::respond) is called before this returns. C:
    /// `nvmet_req_complete()`.
    pub fn fail(self, status: u16) {
        let req = self.req();
        mem::forget(self);
        // SAFETY: `nvmet_req_init()` succeeded, and nvmet gets the request back.
        unsafe { bindings::nvmet_req_complete(req, status) };
    }

    /// Gives the command up without a response, because the connection is lost. Any context. C:
    /// `nvmet_req_uninit()`.
    pub fn abandon(self) -> Request<T> {
        let req = self.req();
        mem::forget(self);
        // SAFETY: `nvmet_req_init()` succeeded, and the command was not executed. nvmet does not use
        // the request afterwards.
        unsafe {
            bindings::nvmet_req_uninit(req);
            Request::from_raw(req).0
        }
    }
}

impl<T: TransportTypes> Drop for Parsed<T> {
    fn drop(&mut self) {
        // SAFETY: As in `abandon`.
        unsafe {
            bindings::nvmet_req_uninit(self.req());
            drop(Request::<T>::from_raw(self.req()));
        }
    }
}
