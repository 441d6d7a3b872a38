// SPDX-License-Identifier: GPL-2.0

//! Requests: commands on their way through nvmet.
//!
//! ```text
//!                 begin                     execute                      respond
//!   Request ───────────▶ Parsed ───────────────────▶ (nvmet) ────────────────▶ Request
//!                           │  fail(status) ─────────────▲
//!                           └─ abandon ──▶ Request
//! ```
//!
//! Each is the only owner of the request's memory. While nvmet has it, nobody else does. A request has
//! a reference to its submission queue all its life, so a command can begin without taking one.

use crate::{
    bindings,
    capsule::{
        Capsule,
        COMMAND_SIZE, //
    },
    data::Data,
    submission_queue::SubmissionQueue,
    types::TransportTypes, //
};
use core::{
    mem,
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    prelude::*,
    types::Opaque, //
};
use rrdma::{
    errno::ENOTCONN,
    rdma::{
        device::DeviceRef,
        qp::QueuePair,
        wr::{
            Message,
            Messages,
            Operation, //
        },
    },
    scatter::Scatterlist,
};

/// Size of a completion in bytes.
const COMPLETION_SIZE: usize = 16;

const _: () = assert!(size_of::<bindings::nvme_command>() == COMMAND_SIZE);
const _: () = assert!(size_of::<bindings::nvme_completion>() == COMPLETION_SIZE);

/// Allocates the completions of requests together.
pub struct Completions(Messages);

impl Completions {
    /// Returns an allocator for about `count` completions that `device` sends. Allocates nothing yet.
    pub fn with_capacity(device: DeviceRef, count: usize) -> Self {
        Self(Messages::with_capacity(device, count, COMPLETION_SIZE))
    }
}

/// Memory of a request. nvmet has pointers to the first fields while it has the request. `req` is
/// the first field, so both have the same address.
///
/// # Invariants
///
/// - `req` has the address of the buffer of `completion`, the port of its submission queue, and a reference
///   to this queue.
/// - While nvmet has the request, `req` has the address of `command`, or of the command in `capsule`.
#[repr(C)]
struct Memory<T: TransportTypes> {
    req: Opaque<bindings::nvmet_req>,
    /// A command whose receive is posted again before it is executed.
    command: Opaque<bindings::nvme_command>,
    completion: Message,
    /// The command, and the data behind it.
    capsule: Option<Operation<Capsule>>,
    data: Data<T>,
    private: T::Command,
}

impl<T: TransportTypes> Drop for Memory<T> {
    fn drop(&mut self) {
        // Before the fields are dropped, as the queue waits for the reference when it is dropped.
        //
        // SAFETY: By the type invariants.
        unsafe { bindings::sq_put((*self.req.get()).sq) };
    }
}

/// A request that nvmet does not know: before it begins, or after the response.
///
/// # Invariants
///
/// nvmet does not use the memory.
pub struct Request<T: TransportTypes>(KBox<Memory<T>>);

// SAFETY: The memory is owned, and not tied to a thread. The transport's part is `Send`.
unsafe impl<T: TransportTypes> Send for Request<T> {}

/// What became of a request that began.
pub enum Begun<T: TransportTypes> {
    /// The command is valid. It holds a reference to the submission queue.
    Parsed(Parsed<T>),
    /// nvmet refused the command, and has called [`respond`](crate::Transport::respond).
    Answered,
    /// The request is of another queue pair.
    Refused(Request<T>),
}

impl<T: TransportTypes> Request<T> {
    /// Allocates a request, with its completion and the transport's data. It must be dropped before `sq` is
    /// destroyed, or while that waits. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOTCONN` if the queue is being destroyed, or has no queue pair; `ENOMEM`.
    pub fn new(
        sq: &SubmissionQueue<T>,
        completions: &mut Completions,
        private: T::Command,
    ) -> Result<Self> {
        if sq.queue_pair().is_null() {
            return Err(ENOTCONN);
        }
        let mut completion = completions.0.alloc()?;
        // It stays at its address, and is aligned as memory of `kmalloc()` of this size.
        let cqe = completion.write().as_mut_ptr();
        let memory = KBox::new_uninit(GFP_KERNEL)?;
        let entered = sq.enter().ok_or(ENOTCONN)?;
        // INVARIANT: `Memory` owns the reference. The other fields are set below.
        let memory: KBox<Memory<T>> = KBox::write(
            memory,
            Memory {
                req: Opaque::zeroed(),
                command: Opaque::zeroed(),
                completion,
                capsule: None,
                data: Data::None,
                private,
            },
        );
        let req = memory.req.get();
        // SAFETY: The memory is owned, and stays at its address.
        unsafe {
            (*req).sq = entered.into_raw();
            (*req).port = sq.port().as_raw();
            (*req).cqe = cqe.cast();
        }
        // INVARIANT: nvmet does not know the new memory.
        Ok(Self(memory))
    }

    /// Returns the transport's data.
    #[inline]
    pub fn private_mut(&mut self) -> &mut T::Command {
        &mut self.0.private
    }

    /// Returns the data of the command that was executed.
    #[inline]
    pub fn data(&self) -> &Data<T> {
        &self.0.data
    }

    /// Takes the data of the command that was executed.
    #[inline(always)]
    pub fn take_data(&mut self) -> Data<T> {
        self.0.data.take()
    }

    /// Returns whether the command has succeeded, after the response.
    #[inline]
    pub fn has_succeeded(&self) -> bool {
        // SAFETY: The completion is initialised, and nvmet does not use it.
        let status = unsafe { (*(*self.0.req.get()).cqe).status };
        // Bit 0 is the phase tag.
        u16::from_le(status) >> 1 == 0
    }

    /// Passes the completion to the device, before it is posted.
    #[inline]
    pub fn give_completion(&mut self) {
        self.0.completion.give_back();
    }

    /// Returns the completion, to be sent.
    #[inline]
    pub fn completion(&self) -> &Message {
        &self.0.completion
    }

    /// Takes the capsule of the command, to be posted again.
    #[inline(always)]
    pub fn take_capsule(&mut self) -> Option<Operation<Capsule>> {
        let mut capsule = self.0.capsule.take()?;
        capsule.take_back();
        Some(capsule)
    }

    /// Passes the command in a capsule to nvmet (`nvmet_req_init`). The request keeps the capsule until
    /// [`take_capsule`](Self::take_capsule). `queue` must be the queue pair of the submission queue. If
    /// nvmet refuses the command, [`respond`](crate::Transport::respond) is called before this returns.
    /// Process context.
    #[inline(always)]
    pub fn begin(
        mut self,
        queue: &QueuePair<T::Endpoint>,
        mut capsule: Operation<Capsule>,
    ) -> Begun<T> {
        let command = capsule.lend();
        if self.0.capsule.is_some() {
            discard(self.0.capsule.take());
        }
        // There is nothing to drop.
        mem::forget(self.0.capsule.replace(capsule));
        // SAFETY: The command is in `capsule`.
        unsafe { self.begin_at(queue, command) }
    }

    /// Passes a copy of a command to nvmet, see [`begin`](Self::begin).
    pub fn begin_copy(
        self,
        queue: &QueuePair<T::Endpoint>,
        command: &[u8; COMMAND_SIZE],
    ) -> Begun<T> {
        let copy = self.0.command.get();
        // SAFETY: The memory is owned, and nvmet does not use it.
        unsafe {
            copy.cast::<[u8; COMMAND_SIZE]>().write(*command);
            self.begin_at(queue, copy)
        }
    }

    /// Passes a command to nvmet, see [`begin`](Self::begin).
    ///
    /// # Safety
    ///
    /// The command must be in `command` or in `capsule`.
    #[inline(always)]
    unsafe fn begin_at(
        mut self,
        queue: &QueuePair<T::Endpoint>,
        command: *mut bindings::nvme_command,
    ) -> Begun<T> {
        let req = self.0.req.get();
        // SAFETY: The request is owned, and has a reference to its submission queue, which is part of a
        // `SubmissionQueue` that waits for the reference when it is dropped.
        let sq = unsafe { &*(*req).sq.cast::<SubmissionQueue<T>>() };
        // `respond` may drop the request, and uses the queue pair afterwards.
        if !ptr::eq(queue, sq.queue_pair()) {
            return Begun::Refused(self);
        }
        // nvmet writes the completion.
        let _ = self.0.completion.read();
        // SAFETY: The request is owned.
        // INVARIANT: By the safety requirements.
        unsafe { (*req).cmd = command };
        let memory = NonNull::from(KBox::leak(self.0));
        // SAFETY: The memory is owned by this function until `nvmet_req_init()`, and stays at its
        // address. The request has a reference to its submission queue, which is initialised.
        let parsed = unsafe { bindings::nvmet_req_init(req, sq.as_raw(), sq.port().ops()) };
        match parsed {
            // INVARIANT: nvmet has parsed the command, and took a reference to the queue.
            true => Begun::Parsed(Parsed(memory)),
            false => Begun::Answered,
        }
    }

    /// Takes the request back from nvmet.
    ///
    /// # Safety
    ///
    /// `req` must be that of a [`Request`] of this transport, and nvmet must not use it any more.
    #[inline]
    pub(crate) unsafe fn from_raw(req: *mut bindings::nvmet_req) -> Self {
        // SAFETY: By the safety requirements. `req` is the first field of the memory, which `begin`
        // leaked.
        // INVARIANT: By the safety requirements.
        Self(unsafe { KBox::from_raw(req.cast::<Memory<T>>()) })
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
    #[inline]
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

    /// Returns the command.
    #[inline(always)]
    pub fn command(&self) -> [u8; COMMAND_SIZE] {
        // SAFETY: By the type invariants, this owns the memory, which has the command or its capsule.
        unsafe { (*self.req()).cmd.cast::<[u8; COMMAND_SIZE]>().read() }
    }

    /// Returns the opcode of the command.
    #[inline(always)]
    pub fn opcode(&self) -> u8 {
        self.command()[0]
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
    #[inline(always)]
    pub fn execute(mut self, data: Data<T>) {
        // SAFETY: By the type invariants, this owns the memory.
        let memory = unsafe { self.0.as_mut() };
        if !matches!(memory.data, Data::None) {
            discard(mem::replace(&mut memory.data, Data::None));
        }
        // There is nothing to drop.
        mem::forget(mem::replace(&mut memory.data, data));
        let list = memory.data.list();
        // SAFETY: The list is that of the data.
        unsafe { self.execute_with(list) }
    }

    /// Executes the command with `length` bytes of data in its capsule, from `offset` on, as
    /// [`execute`](Self::execute) does.
    ///
    /// # Errors
    ///
    /// Returns the command if its capsule does not have these bytes, or if `length` is 0.
    #[inline(always)]
    pub fn execute_in_capsule(mut self, offset: u32, length: u32) -> Result<(), Self> {
        // SAFETY: By the type invariants, this owns the memory.
        let capsule = unsafe { &mut self.0.as_mut().capsule };
        match capsule.as_mut().and_then(|kept| kept.list(offset, length)) {
            Some(list) => {
                // SAFETY: The list is that of the capsule.
                unsafe { self.execute_with(list) };
                Ok(())
            }
            None => Err(self),
        }
    }

    /// Executes the command.
    ///
    /// # Safety
    ///
    /// `list` must be that of the data or of the capsule.
    #[inline(always)]
    unsafe fn execute_with(self, list: Scatterlist) {
        let req = self.req();
        // SAFETY: By the type invariants, this owns the memory. Data and capsule are not changed before
        // nvmet returns the request.
        unsafe {
            (*req).sg = list.first();
            (*req).sg_cnt = list.entries() as c_int;
            (*req).transfer_len = list.length() as usize;
        }
        mem::forget(self);
        // SAFETY: `nvmet_req_init()` succeeded, and has set the function. The data is set.
        unsafe {
            if let Some(execute) = (*req).execute {
                execute(req);
            }
        }
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
            Request::from_raw(req)
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

/// Drops what is rarely there, out of the way of what is frequent.
#[cold]
fn discard<D>(_value: D) {}
