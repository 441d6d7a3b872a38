// SPDX-License-Identifier: GPL-2.0

//! Requests: commands on their way through nvmet.
//!
//! ```text
//!                 begin                     execute                      respond
//!   Request ───────────▶ Parsed ───────────────────▶ (nvmet) ────────────────▶ Request
//!      ▲                  ▲ │  fail(status) ─────────────▲                        │
//!      │   read, data_read└─┤                                                     │
//!      │                    └─ abandon ──▶ Request                                │
//!      └────────────────────────────────────────────────── responded ◀── send ◀───┘
//! ```
//!
//! `Request` and `Parsed` are the only owner of the request's memory; neither exists while nvmet or the device
//! has the memory. A request has a reference to its submission queue all its life, so a command can begin without
//! taking one. The memory is that of an [`Operation`], by which the data is read and the completion is sent. When
//! a request is dropped, the submission queue keeps the memory until it is destroyed.
//!
//! To abandon a command is to end it without executing it, and without a response (`nvmet_req_uninit()`).
//!
//! A command of a passthrough subsystem may be completed by a work item of nvmet that uses the request
//! afterwards. Its response is [`Deferred`] until the work item has ended.

mod connect;
mod deferred;
mod prepared;

pub(crate) use deferred::Deferred;

use crate::{
    bindings,
    capsule::{
        Capsule,
        COMMAND_SIZE, //
    },
    data::{
        Data,
        LongEntries,
        Sgl, //
    },
    retired::RetiredLink,
    submission_queue::{
        HeldController,
        SubmissionQueue, //
    },
    types::{
        NamespaceFormat,
        PassthroughCommand,
        PassthroughQueue,
        TransportTypes, //
    },
};
use core::{
    mem::{
        self,
        ManuallyDrop,
        MaybeUninit, //
    },
    ptr::{
        self,
        NonNull, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc,
    types::Opaque, //
};
use rrdma::{
    errno::ENOTCONN,
    rdma::{
        cq::Completion,
        qp::QueuePair,
        rw::{
            MessageOperation,
            RdmaRw,
            RwOperation, //
        },
        wr::{
            Complete,
            CreditedMessage,
            Messages,
            Operation, //
        },
    },
    scatter::Scatterlist,
    sync::RcuSection,
};

/// Size of a completion in bytes.
const COMPLETION_SIZE: usize = 16;

const _: () = assert!(size_of::<bindings::nvme_command>() == COMMAND_SIZE);
const _: () = assert!(size_of::<bindings::nvme_completion>() == COMPLETION_SIZE);

/// nvmet's function for a command.
type Execute = Option<unsafe extern "C" fn(*mut bindings::nvmet_req)>;

/// Allocates the completions of requests together.
pub struct Completions<T: TransportTypes> {
    messages: Messages,
    queue: Arc<QueuePair<T::Endpoint>>,
}

impl<T: TransportTypes> Completions<T> {
    /// Returns an allocator for about `count` completions that `queue` sends. Allocates nothing yet.
    pub fn with_capacity(queue: Arc<QueuePair<T::Endpoint>>, count: usize) -> Self {
        let device = queue.device().clone();
        Self {
            messages: Messages::with_capacity(device, count, COMPLETION_SIZE),
            queue,
        }
    }
}

/// The RDMA READ of a command's data, if there is one.
type Reading<T> = Option<RdmaRw<Sgl, <T as TransportTypes>::Endpoint>>;

/// Memory of a request. nvmet has pointers to the first fields while it has the request. `req` is
/// the first field, so both have the same address.
///
/// # Invariants
///
/// - `req` has the address of the buffer of `completion`, the port of its submission queue, and, unless the
///   request was dropped, a reference to this queue.
/// - While nvmet has the request, `req` has the address of `command`, or of the command in `capsule`.
/// - While `reading` is `Some`, nvmet has parsed the command and not executed it.
#[repr(C)]
struct Memory<T: TransportTypes> {
    req: Opaque<bindings::nvmet_req>,
    /// A command whose receive is posted again before it is executed.
    command: Opaque<bindings::nvme_command>,
    completion: CreditedMessage<T::Endpoint>,
    /// The command, and the data behind it.
    capsule: Option<Operation<Capsule>>,
    data: Data<T>,
    /// The RDMA READ of the data, while it is posted.
    reading: Reading<T>,
    private: T::Command,
    /// The function of a command that this crate executes in another way.
    execute: Execute,
    /// The list of a Zone Append; kept for the next one.
    long_list: Option<KBox<MaybeUninit<LongEntries>>>,
    /// Work item of a [`Deferred`] response.
    deferred: Opaque<bindings::work_struct>,
    /// Keeps the memory after the request was dropped.
    retired: RetiredLink,
}

// SAFETY: The memory is not tied to a thread. The transport's part is `Send`.
unsafe impl<T: TransportTypes> Send for Memory<T> {}

/// A request that nvmet does not know: before it begins, or after the response. Dropping it, in any context,
/// returns the reference to the submission queue, which frees the memory when it is
/// [destroyed](SubmissionQueue::destroy).
///
/// # Invariants
///
/// - nvmet does not use the memory, but for what it still has to undo after a response, see
///   `RetiredRequests`.
/// - The memory has a reference to its submission queue, which is that of a `SubmissionQueue<T>`.
pub struct Request<T: TransportTypes>(ManuallyDrop<Operation<Memory<T>>>);

impl<T: TransportTypes> Drop for Request<T> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        let sq = self.0.req.get();
        // SAFETY: By the type invariants.
        let sq = unsafe { (*sq).sq };
        // SAFETY: The operation is not used again.
        let memory = unsafe { ManuallyDrop::take(&mut self.0) };
        let memory = memory.into_raw();
        // SAFETY: By the type invariants, this is that of a `SubmissionQueue<T>`, which waits for the reference.
        // It may be gone when that was put. The memory is owned, can be sent, and `free` frees it.
        unsafe {
            let link = memory.byte_add(mem::offset_of!(Memory<T>, retired)).cast();
            (*sq.cast::<SubmissionQueue<T>>()).retire(link);
            bindings::sq_put(sq);
        }
    }
}

/// Frees the memory of a request that was dropped.
///
/// # Safety
///
/// `link` must be that of a [`Memory<T>`], a result of [`Operation::into_raw`], whose ownership the caller has.
unsafe fn free<T: TransportTypes>(link: NonNull<RetiredLink>) {
    // SAFETY: By the safety requirements, the link is a field of this memory.
    let memory = unsafe { link.byte_sub(mem::offset_of!(Memory<T>, retired)).cast() };
    // SAFETY: By the safety requirements.
    drop(unsafe { Operation::<Memory<T>>::from_raw(memory) });
}

/// Result of [`Request::begin`].
pub enum Begun<T: TransportTypes> {
    /// The command is valid. It holds a reference to the submission queue.
    Parsed(Parsed<T>),
    /// nvmet refused the command, and has called [`respond`](crate::Transport::respond).
    Answered,
    /// The request is of another queue pair.
    Refused(Request<T>),
}

impl<T: TransportTypes> Request<T> {
    /// Allocates a request, with its completion and the transport's data. It holds a credit of the send
    /// queue. It must be dropped before `sq` is destroyed, or while that waits. May sleep.
    ///
    /// # Errors
    ///
    /// - `ENOTCONN`: the queue is being destroyed, or its queue pair is not that of the completions.
    /// - `EAGAIN`: other requests hold all credits. A request that was dropped holds its credit until the
    ///   submission queue is destroyed.
    /// - `ENOMEM`.
    pub fn new(
        sq: &SubmissionQueue<T>,
        completions: &mut Completions<T>,
        private: T::Command,
    ) -> Result<Self> {
        if !ptr::eq(sq.queue_pair(), &*completions.queue) {
            return Err(ENOTCONN);
        }
        let message = completions.messages.alloc()?;
        let mut completion = CreditedMessage::new(message, completions.queue.clone())?;
        // It stays at its address, and is aligned as memory of `kmalloc()` of this size.
        let cqe = completion.write().as_mut_ptr();
        let entered = sq.enter().ok_or(ENOTCONN)?;
        // INVARIANT: The fields of `req` are set below.
        let memory = Operation::new(Memory {
            req: Opaque::zeroed(),
            command: Opaque::zeroed(),
            completion,
            capsule: None,
            data: Data::None,
            reading: None,
            private,
            execute: None,
            long_list: None,
            deferred: Opaque::zeroed(),
            retired: RetiredLink::new(free::<T>),
        })?;
        let req = memory.req.get();
        // SAFETY: The memory is owned, and stays at its address.
        unsafe {
            (*req).sq = entered.into_raw();
            (*req).port = sq.port().as_raw();
            (*req).cqe = cqe.cast();
        }
        // INVARIANT: nvmet does not know the new memory, which has a reference to `sq`.
        Ok(Self(ManuallyDrop::new(memory)))
    }

    /// Takes the memory, and with it the reference to the submission queue.
    #[inline(always)]
    fn into_operation(self) -> Operation<Memory<T>> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: The operation is not used again, as `self` is not dropped.
        unsafe { ManuallyDrop::take(&mut this.0) }
    }

    /// Returns the transport's data. Any context.
    #[inline]
    pub fn private_mut(&mut self) -> &mut T::Command {
        &mut self.0.private
    }

    /// Returns the data that the command was executed with. Any context.
    #[inline]
    pub fn data(&self) -> &Data<T> {
        &self.0.data
    }

    /// Takes the data that the command was executed with. Any context.
    #[inline(always)]
    pub fn take_data(&mut self) -> Data<T> {
        self.0.data.take()
    }

    /// Returns whether the command has succeeded, after [`respond`](crate::Transport::respond) was called. Any
    /// context.
    #[inline]
    pub fn has_succeeded(&self) -> bool {
        // SAFETY: The completion is initialised, and nvmet does not use it.
        let status = unsafe { (*(*self.0.req.get()).cqe).status };
        // Bit 0 is the phase tag.
        u16::from_le(status) >> 1 == 0
    }

    /// Takes the capsule of the command, to be posted again; `None` if the command was a copy. Any context.
    #[inline(always)]
    pub fn take_capsule(&mut self) -> Option<Operation<Capsule>> {
        self.0.capsule.take()
    }

    /// Keeps a capsule that could not be posted again. Any context.
    #[cold]
    pub fn keep_capsule(&mut self, capsule: Operation<Capsule>) {
        self.0.capsule = Some(capsule);
    }
}

impl<T: RequestHandler> Request<T> {
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

    /// Passes a copy of a command to nvmet, as [`begin`](Self::begin) does. Process context.
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
        let memory = self.into_operation().into_raw();
        // SAFETY: The memory is owned by this function until `nvmet_req_init()`, and stays at its
        // address. The request has a reference to its submission queue, which is initialised.
        let parsed = unsafe { bindings::nvmet_req_init(req, sq.as_raw(), sq.port().ops()) };
        match parsed {
            // INVARIANT: nvmet has parsed the command, and took a reference to the queue.
            true => Begun::Parsed(Parsed(memory).prepared()),
            false => Begun::Answered,
        }
    }
}

impl<T: TransportTypes> Request<T> {
    /// Takes the request back from nvmet.
    ///
    /// # Safety
    ///
    /// `req` must be that of a [`Request`] of this transport, and nvmet must not use it any more.
    #[inline]
    pub(crate) unsafe fn from_raw(req: *mut bindings::nvmet_req) -> Self {
        // SAFETY: By the safety requirements. `req` is the first field of the memory, which `begin`
        // passed on.
        // INVARIANT: By the safety requirements.
        let memory =
            unsafe { Operation::from_raw(NonNull::new_unchecked(req.cast::<Memory<T>>())) };
        Self(ManuallyDrop::new(memory))
    }
}

/// A transport that handles the completions of requests. The methods run in the context of completions,
/// or in the thread that drains the queue pair. The drain waits for them.
pub trait RequestHandler: TransportTypes {
    /// Handles the completion of a response that was [sent](Request::send).
    fn responded(
        queue: &QueuePair<Self::Endpoint>,
        request: Request<Self>,
        completion: &Completion<'_>,
    );

    /// Handles the completion of an RDMA READ of a command's data, which was [posted](Parsed::read).
    fn data_read(
        queue: &QueuePair<Self::Endpoint>,
        parsed: Parsed<Self>,
        read: RdmaRw<Sgl, Self::Endpoint>,
        completion: &Completion<'_>,
    );

    /// Holds the controller with the identifier `id` whose admin queue is connected through the port of `queue`;
    /// `None` if there is none, or its connection is about to end. Process context, during a command.
    fn hold_controller(queue: &QueuePair<Self::Endpoint>, id: u16) -> Option<HeldController>;

    /// Ends the connection of `queue` in another thread. Any context.
    fn end(queue: &QueuePair<Self::Endpoint>);
}

impl<T: RequestHandler> Request<T> {
    /// Sends the completion, after the RDMA WRITE of the data if there is one. The message invalidates the
    /// host's key `invalidate`. [`responded`](RequestHandler::responded) is called when the send has completed.
    /// Any context.
    ///
    /// # Errors
    ///
    /// Returns the request if the completion cannot be posted.
    #[inline(always)]
    pub fn send(
        mut self,
        section: &RcuSection,
        queue: &QueuePair<T::Endpoint>,
        invalidate: Option<u32>,
    ) -> Result<(), Self> {
        self.0.completion.give_back();
        let posted = queue.post_message_within(section, self.into_operation(), invalidate);
        posted.map_err(|unposted| Self(ManuallyDrop::new(unposted.operation)))
    }
}

impl<T: RequestHandler> RwOperation<T::Endpoint> for Memory<T> {
    type Data = Sgl;

    #[inline]
    fn rdma_rw(&mut self) -> Option<&mut RdmaRw<Sgl, T::Endpoint>> {
        self.reading.as_mut()
    }

    #[inline]
    fn moved(
        mut operation: Operation<Self>,
        queue: &QueuePair<T::Endpoint>,
        completion: &Completion<'_>,
    ) {
        // Never `None`: this was posted with it.
        if let Some(read) = operation.reading.take() {
            // INVARIANT: By the type invariants of `Memory`.
            let parsed = Parsed(operation.into_raw());
            T::data_read(queue, parsed, read, completion);
        }
    }
}

impl<T: RequestHandler> MessageOperation<T::Endpoint> for Memory<T> {
    type Data = Sgl;

    #[inline]
    fn message(&mut self) -> &mut CreditedMessage<T::Endpoint> {
        &mut self.completion
    }

    #[inline]
    fn rdma_write(&mut self) -> Option<&mut RdmaRw<Sgl, T::Endpoint>> {
        match &mut self.data {
            Data::Write(write) => Some(write),
            _ => None,
        }
    }
}

impl<T: RequestHandler> Complete<T::Endpoint> for Memory<T> {
    #[inline]
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<T::Endpoint>,
        completion: &Completion<'_>,
    ) {
        // INVARIANT: nvmet does not know the memory of a request that was sent.
        T::responded(queue, Request(ManuallyDrop::new(operation)), completion);
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

    /// Returns the transport's data. Any context.
    #[inline]
    pub fn private_mut(&mut self) -> &mut T::Command {
        // SAFETY: By the type invariants, this owns the memory, and nvmet does not use this field.
        unsafe { &mut self.0.as_mut().private }
    }

    /// Returns a copy of the command. Any context.
    #[inline(always)]
    pub fn command(&self) -> [u8; COMMAND_SIZE] {
        // SAFETY: By the type invariants, this owns the memory, which has the command or its capsule.
        unsafe { (*self.req()).cmd.cast::<[u8; COMMAND_SIZE]>().read() }
    }

    /// Returns the opcode of the command. Any context.
    #[inline(always)]
    pub fn opcode(&self) -> u8 {
        self.command()[0]
    }

    /// Returns the number of bytes of data that nvmet expects for the command; 0 if it cannot tell. Any
    /// context. C: `nvmet_req_transfer_len()`.
    #[inline]
    pub fn data_length(&self) -> usize {
        // SAFETY: `nvmet_req_init()` succeeded.
        unsafe { bindings::nvmet_req_transfer_len(self.req()) }
    }

    /// Returns whether the command is for a namespace in a file. nvmet may read less than all of the data of
    /// such a read, and report success nevertheless: beyond the end of a file that was truncated. Any context.
    #[inline]
    pub fn is_of_file(&self) -> bool {
        // SAFETY: `nvmet_req_init()` succeeded. The request has a reference to its namespace, if it has one.
        unsafe {
            let ns = (*self.req()).ns;
            !ns.is_null() && !(*ns).file.is_null()
        }
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
        // SAFETY: By the type invariants, this owns the memory.
        if unsafe { (*req).ns.is_null() } {
            // SAFETY: By the type invariants.
            if let Err(status) = unsafe { prepare_passthrough::<T>(req, list.length()) } {
                return self.fail(status);
            }
        }
        // SAFETY: By the type invariants, this owns the memory. Data and capsule are not changed before
        // nvmet returns the request.
        unsafe {
            (*req).sg = list.first();
            (*req).sg_cnt = list.entries() as c_int;
            (*req).transfer_len = list.length() as usize;
        }
        mem::forget(self);
        // SAFETY: `nvmet_req_init()` sets the function when it succeeds, as it did. The data is set.
        unsafe { (*req).execute.unwrap_unchecked()(req) };
    }

    /// Ends the command with a status, in the form of `include/linux/nvme.h`, without executing it.
    /// [`respond`](crate::Transport::respond) is called before this returns. Any context. C:
    /// `nvmet_req_complete()`.
    pub fn fail(self, status: u16) {
        let req = self.req();
        mem::forget(self);
        // SAFETY: `nvmet_req_init()` succeeded, and nvmet gets the request back.
        unsafe { bindings::nvmet_req_complete(req, status) };
    }

    /// Lets the command wait: nvmet forgets it, and keeps nothing for it, such as a reference to the namespace. Any
    /// context. C: `nvmet_req_uninit()`.
    pub fn suspend(self) -> Suspended<T> {
        Suspended(self.abandon())
    }

    /// Abandons the command, because the connection is lost: ends it without a response. Any context. C:
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

/// A command that waits before it is executed, and that nvmet does not know meanwhile. Dropping it abandons the
/// command.
///
/// # Invariants
///
/// The command was parsed before. `cmd` of the request has the address of `command` in its memory, or of the command
/// in its capsule.
pub struct Suspended<T: TransportTypes>(Request<T>);

impl<T: RequestHandler> Suspended<T> {
    /// Passes the command to nvmet again, as [`Request::begin`] does. nvmet may refuse it now: the namespace may be
    /// gone. Process context.
    pub fn resume(self, queue: &QueuePair<T::Endpoint>) -> Begun<T> {
        // SAFETY: The request is owned.
        let command = unsafe { (*self.0 .0.req.get()).cmd };
        // SAFETY: By the type invariants.
        unsafe { self.0.begin_at(queue, command) }
    }
}

/// Prepares a command that nvmet may pass to a controller of this machine. If it has no data, the driver of that
/// controller leaves the host's pointers in the command, and the controller would take them for addresses of this
/// machine's memory. nvmet-rdma leaves them, too.
///
/// # Errors
///
/// The status of a command that the transport refuses to pass on.
///
/// # Safety
///
/// `req` must be that of a [`Parsed<T>`] with no namespace, which the caller owns.
#[cold]
unsafe fn prepare_passthrough<T: TransportTypes>(
    req: *mut bindings::nvmet_req,
    length: u32,
) -> Result<(), u16> {
    // SAFETY: By the safety requirements. The request has a reference to the queue. No Fabrics command has other
    // fields in place of the pointers, and nvmet uses none of them.
    let (command, is_io) = unsafe {
        let common = &raw mut (*(*req).cmd).__bindgen_anon_1.common;
        (*common).metadata = 0;
        (*common).dptr = pin_init::zeroed();
        if !bindings::req_is_passthru(req) {
            return Ok(());
        }
        let command = (*req).cmd.cast::<[u8; COMMAND_SIZE]>().read();
        (command, (*(*req).sq).qid != 0)
    };
    let queue = match is_io {
        // SAFETY: By the safety requirements, and as checked above.
        true => PassthroughQueue::Io(unsafe { format_of(req) }),
        false => PassthroughQueue::Admin,
    };
    T::check_passthrough(&PassthroughCommand {
        command,
        queue,
        length,
    })
}

/// Returns the format of the namespace of a passthrough command; `None` if the controller has no such namespace.
///
/// # Safety
///
/// `req` must be that of a parsed command of a passthrough subsystem.
#[cold]
unsafe fn format_of(req: *mut bindings::nvmet_req) -> Option<NamespaceFormat> {
    let (mut block_size, mut metadata) = (0, 0);
    // SAFETY: By the safety requirements. Both numbers are writable.
    let found = unsafe { bindings::req_passthru_format(req, &mut block_size, &mut metadata) };
    found.then_some(NamespaceFormat {
        block_size,
        metadata,
    })
}

impl<T: RequestHandler> Parsed<T> {
    /// Posts the RDMA READ of the data. [`data_read`](RequestHandler::data_read) is called when it has
    /// completed. Any context.
    ///
    /// # Errors
    ///
    /// Returns the command and the read if the read cannot be posted.
    #[inline(always)]
    pub fn read(
        mut self,
        queue: &QueuePair<T::Endpoint>,
        read: RdmaRw<Sgl, T::Endpoint>,
    ) -> Result<(), (Self, Reading<T>)> {
        let memory = self.0;
        // There is nothing to drop.
        // INVARIANT: This is such a command.
        // SAFETY: By the type invariants, this owns the memory.
        mem::forget(unsafe { self.0.as_mut() }.reading.replace(read));
        mem::forget(self);
        // SAFETY: `begin` got the memory from an operation, and this has owned it since.
        let operation = unsafe { Operation::from_raw(memory) };
        let posted = queue.post_rdma_rw(operation);
        posted.map_err(|unposted| {
            let mut operation = unposted.operation;
            let read = operation.reading.take();
            (Self(operation.into_raw()), read)
        })
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

/// Drops a value that is rarely there. Not inlined, to keep its drop out of the hot path.
#[cold]
fn discard<D>(_value: D) {}
