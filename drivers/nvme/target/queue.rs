// SPDX-License-Identifier: GPL-2.0

//! One queue: commands from their capsule to their response.
//!
//! ```text
//!            free slot                        RDMA READ of the data
//! capsule ─────────────▶ Parsed ─┬─ write ───────────────────────────▶ execute ─┐
//!    ▲                           ├─ read: prepare the RDMA WRITE ────▶ execute ─┤ nvmet
//!    │                           └─ in-capsule data, or none ────────▶ execute ─┘
//!    │                                                                          │ respond
//!    └── posted again               free slot ◀── completion ◀── [RDMA WRITE,] SEND
//! ```
//!
//! A free slot is a `Request`. With a command, it owns the capsule, unless that is a shared receive without
//! data. Without a free slot, a capsule is parked: it is in `Slots::parked` until a slot is free. Its receive
//! is not posted again meanwhile, so the host waits. A shared receive is posted again, and a copy of its
//! capsule is parked. A queue without a controller executes one command at a time; others are parked.
//!
//! Without credits of the send queue, a command waits. nvmet does not know it meanwhile: a host that returns no
//! credits must not keep a namespace from being disabled. For the same reason, [`read_limit`] limits the time of RDMA
//! READs.
//!
//! Completions of a queue run in one work item of the core, one after the other. Parked capsules are also
//! started by the thread that accepts the connection. `respond` is called in any context.

mod data_transfer;
mod params;
mod pending;
mod probe;
mod read_limit;
mod slots;

pub(crate) use params::{
    Addresses,
    QueueConnection,
    QueueParams, //
};
use pending::{
    Pending,
    TransferState,
    Waiting, //
};
use probe::Probes;
pub(crate) use probe::PROBES;
pub(crate) use read_limit::ReadLimit;
use slots::{
    discard,
    Arrived,
    CapsuleCopy,
    FreeSlots,
    Link,
    Parked,
    Phase,
    Slot,
    Slots,
    MAX_PARKED_BEFORE_CONNECT, //
};

use crate::{
    rdma::{
        Rdma,
        DNR,
        LIMITS, //
    },
    settings::parameters,
};
use core::{
    mem,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
};
use kernel::{
    alloc::kvec::{
        InsertError,
        PushError, //
    },
    fmt, new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_proto::{
    format::{
        sgl::Invalidate,
        sqe::Command,
        status::Code, //
    },
    policy::{
        accept::AcceptedQueue,
        command_data::{
            CommandData,
            DataLimits, //
        },
        probe::ProbeStep,
    },
};
use nvmet::{
    Begun,
    Capsule,
    CapsuleReceiver,
    Completions,
    Data,
    HeldController,
    Parsed,
    PassthroughCommand,
    PortLimits,
    Request,
    RequestHandler,
    Sgl,
    SubmissionQueue,
    TransportTypes,
    COMMAND_SIZE, //
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cm::{
            Endpoint,
            Lost, //
        },
        cq::{
            Completion,
            WcError, //
        },
        mr::RemoteKey,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
        rw::{
            RdmaRw,
            RwContext, //
        },
        srq::SharedReceiveQueue,
        wr::{
            Operation,
            Refusal,
            Unposted, //
        },
    },
    sync::{rcu_read, Deadline, IrqLock, RcuSection},
};

impl TransportTypes for Rdma {
    type Endpoint = TargetQueue;
    type Command = Slot<TargetQueue>;

    const LIMITS: PortLimits = LIMITS;

    fn check_passthrough(command: &PassthroughCommand) -> Result<(), u16> {
        data_transfer::check_passthrough(command)
    }
}

impl Link for Request<Rdma> {
    #[inline(always)]
    fn next(&mut self) -> &mut Option<Self> {
        &mut self.private_mut().next
    }
}

/// A queue of a host: the context of its queue pair.
#[pin_data]
pub(crate) struct TargetQueue {
    #[pin]
    sq: SubmissionQueue<Rdma>,
    accepted: AcceptedQueue,
    /// Commands that are executed at a time.
    nr_slots: u16,
    addresses: Addresses,
    limits: DataLimits,
    kept_receives: u16,
    #[pin]
    slots: IrqLock<Slots<Request<Rdma>>>,
    /// Commands that wait for credits of the send queue. The lock is held while they are tried again.
    #[pin]
    waiting: Mutex<KVec<Waiting>>,
    is_waiting: AtomicBool,
    reads: ReadLimit,
    #[pin]
    probes: Probes,
    connection: Arc<dyn QueueConnection>,
}

impl TargetQueue {
    /// Creates a queue without slots. May sleep.
    pub(crate) fn new(params: QueueParams) -> impl PinInit<Self, Error> {
        let commands = usize::from(params.accepted.commands);
        try_pin_init!(Self {
            sq <- SubmissionQueue::new(params.port),
            accepted: params.accepted,
            nr_slots: params.slots,
            addresses: params.addresses,
            limits: params.limits,
            kept_receives: params.kept_receives,
            slots <- new_irq_lock!(Slots {
                phase: Phase::Waiting,
                free: FreeSlots::EMPTY,
                parked: KVec::with_capacity(commands, GFP_KERNEL)?,
            }, "nvmet_rdma_rust::Slots"),
            waiting <- new_mutex!(KVec::with_capacity(commands, GFP_KERNEL)?),
            is_waiting: AtomicBool::new(false),
            reads: ReadLimit::new(),
            probes <- Probes::new(),
            connection: params.connection,
        }? Error)
    }

    /// Returns nvmet's part of the queue.
    pub(crate) fn sq(&self) -> &SubmissionQueue<Rdma> {
        &self.sq
    }

    /// Returns the addresses of the connection.
    pub(crate) fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Returns the identifier of the queue.
    pub(crate) fn id(&self) -> u16 {
        self.accepted.queue_id
    }

    /// Allocates the slots, and posts the receives. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the device.
    pub(crate) fn fill(queue: &Arc<QueuePair<Self>>) -> Result {
        let this = queue.context();
        let pd = queue.protection_domain();
        let mut completions = Completions::with_capacity(queue.clone(), this.nr_slots.into());
        this.sq.attach(queue.clone());
        for left in (0..this.nr_slots).rev() {
            let slot = Slot {
                context: Some(RwContext::new(queue)?),
                // The free slots that were added last are taken first.
                keeps_receive: left < this.kept_receives,
                invalidate: None,
                next: None,
            };
            let request = Request::new(&this.sq, &mut completions, slot)?;
            this.slots.lock().free.push(request);
        }
        let own = match queue.shared_receives() {
            Some(_) => 0,
            None => this.accepted.commands,
        };
        for _ in 0..own {
            let capsule = Capsule::new(pd, this.limits.in_capsule)?;
            queue
                .post_receive(capsule)
                .map_err(|unposted| unposted.error)?;
        }
        Ok(())
    }

    /// Starts the parked commands, and lets later ones start as they arrive. May sleep.
    pub(crate) fn start(queue: &QueuePair<Self>) {
        let this = queue.context();
        let parked = {
            let mut slots = this.slots.lock();
            if slots.phase != Phase::Waiting {
                return;
            }
            slots.phase = Phase::Unconnected;
            slots.parked.len()
        };
        Self::begin_all_parked(queue, parked);
    }

    /// Starts at most `count` parked commands, as far as they may start. Those that arrive from now on are started by
    /// their completion, or by `release`. Process context.
    fn begin_all_parked(queue: &QueuePair<Self>, count: usize) {
        for _ in 0..count {
            let next = queue.context().slots.lock().next();
            let Some((parked, request)) = next else {
                return;
            };
            Self::begin_parked(queue, parked, request);
        }
    }

    /// Returns whether the host answers neither RDMA READs nor probes, and logs that. To be called by one thread,
    /// every [`ReadLimit::PERIOD`]. Any context.
    pub(crate) fn is_silent(queue: &QueuePair<Self>) -> bool {
        queue.context().has_overdue_read() || Self::has_overdue_probe(queue)
    }

    /// Probes the host of a queue without keep-alive. Returns whether the last probe is overdue.
    fn has_overdue_probe(queue: &QueuePair<Self>) -> bool {
        let this = queue.context();
        let seconds = parameters::probe_time.get();
        if seconds == 0 || this.sq.has_keep_alive() {
            this.probes.reset();
            return false;
        }
        match this
            .probes
            .step(Deadline::now_ms(), u64::from(seconds).saturating_mul(1000))
        {
            ProbeStep::Wait => false,
            ProbeStep::Send => {
                this.probes.send(queue);
                false
            }
            ProbeStep::End => {
                this.log(fmt!("probe not acknowledged in {seconds} s"));
                true
            }
        }
    }

    fn has_overdue_read(&self) -> bool {
        let is_overdue = self.reads.is_overdue();
        if is_overdue {
            let limit = ReadLimit::TIME.get();
            self.log(fmt!("RDMA READ not answered in {limit} ms"));
        }
        is_overdue
    }

    /// Ends the commands, after the queue pair was drained. Sleeps.
    pub(crate) fn end(queue: &QueuePair<Self>) {
        let this = queue.context();
        // The slots refer to the queue pair, and `destroy` waits until they are dropped. Those of
        // commands in nvmet are dropped by `release`. `destroy` frees their memory at the end: nvmet may
        // still use it for a moment when it has called `respond`.
        let (free, parked) = {
            let mut slots = this.slots.lock();
            slots.phase = Phase::Ended;
            let free = mem::replace(&mut slots.free, FreeSlots::EMPTY);
            (free, mem::take(&mut slots.parked))
        };
        drop(free);
        let waiting = mem::take(&mut *this.waiting.lock());
        drop(waiting);
        drop(parked);
        this.sq.destroy();
    }

    /// Lets no further command start. Any context.
    fn stop(&self) {
        let mut slots = self.slots.lock();
        if slots.phase != Phase::Ended {
            slots.phase = Phase::Stopped;
        }
    }

    /// Ends the connection. Any context.
    #[cold]
    fn disconnect(&self) {
        self.stop();
        self.connection.clone().end();
    }

    /// Ends the connection and, because of an error of the host, all others of the controller.
    /// Sleeps.
    fn fail(&self, cause: fmt::Arguments<'_>) {
        self.log(cause);
        self.disconnect();
        self.sq.fail_controller();
    }

    /// Logs a failure, with the host. Any context.
    #[cold]
    fn log(&self, cause: fmt::Arguments<'_>) {
        if self.connection.may_log() {
            let (host, queue) = (self.addresses.host, self.id());
            pr_err!("host {host}: queue {queue}: {cause}\n");
        }
    }

    /// Posts a receive again, after its command was executed.
    ///
    /// # Errors
    ///
    /// Returns a receive of the queue's own that could not be posted.
    #[inline(always)]
    fn repost(
        queue: &QueuePair<Self>,
        capsule: Operation<Capsule>,
        section: &RcuSection,
    ) -> Result<(), Unposted<Capsule>> {
        match queue.shared_receives() {
            Some(shared) => {
                Self::share(queue, shared, capsule);
                Ok(())
            }
            None => queue.post_receive_within(section, capsule),
        }
    }

    /// Posts a receive to a shared queue again.
    // Not inlined, because it saves more registers than its callers.
    #[inline(never)]
    fn share(
        queue: &QueuePair<Self>,
        shared: &SharedReceiveQueue<Self>,
        capsule: Operation<Capsule>,
    ) {
        queue.context().posted(shared.post(capsule));
    }

    /// Ends the connection if a receive could not be posted: the queue pair is closed, or broken.
    #[inline(always)]
    fn posted(&self, posted: Result<(), Unposted<Capsule>>) {
        if let Err(unposted) = posted {
            self.not_posted(unposted);
        }
    }

    #[cold]
    fn not_posted(&self, unposted: Unposted<Capsule>) {
        self.cannot_receive(unposted.refusal());
        self.disconnect();
    }

    /// Logs why a receive could not be posted, unless the queue pair is closed.
    fn cannot_receive(&self, refusal: Refusal) {
        match refusal {
            Refusal::Closed => {}
            Refusal::Failed(error) => {
                self.log(fmt!("RECV not posted: error {}", error.to_errno()));
            }
        }
    }

    /// Posts a shared receive again, though this queue ends: others need it. Drops any other receive.
    fn give_back(queue: &QueuePair<Self>, capsule: Operation<Capsule>) {
        if let Some(shared) = queue.shared_receives() {
            // If the device refuses it, the other queues have one less.
            if let Err(unposted) = shared.post(capsule) {
                queue.context().cannot_receive(unposted.refusal());
            }
        }
    }

    /// Starts a parked command. Process context.
    #[cold]
    fn begin_parked(queue: &QueuePair<Self>, parked: Parked, request: Request<Rdma>) {
        let this = queue.context();
        let CapsuleCopy {
            command,
            behind,
            data,
        } = match parked {
            Parked::Own(arrived) => return Self::begin(queue, arrived, request),
            Parked::Copy(copy) => copy,
        };
        match (request.begin_copy(queue, &command), data) {
            (Begun::Parsed(parsed), Some(data)) => {
                match this.accepted.check_connect(&Command::from_bytes(command)) {
                    Ok(()) => parsed.execute(Data::List(data)),
                    Err(code) => Self::refuse(queue, parsed, command[0], code),
                }
            }
            (begun, _) => this.begun(queue, behind, begun),
        }
    }

    /// Passes a command to nvmet, and executes it once it has its data. Process context.
    #[inline(always)]
    fn begin(queue: &QueuePair<Self>, arrived: Arrived, request: Request<Rdma>) {
        match queue.shared_receives() {
            Some(shared) => Self::begin_shared(queue, shared, arrived, request),
            None => {
                let begun = request.begin(queue, arrived.capsule);
                queue.context().begun(queue, arrived.data, begun);
            }
        }
    }

    /// Passes a command that took a shared receive to nvmet. The receive is posted again at once, unless
    /// the data of the command is in it, and the queue has not kept its share yet: a command may take long, because
    /// its host must answer RDMA READs, or a disk is stuck. Other hosts need the receive meanwhile.
    // Not inlined, because it saves more registers than its callers.
    #[inline(never)]
    fn begin_shared(
        queue: &QueuePair<Self>,
        shared: &SharedReceiveQueue<Self>,
        arrived: Arrived,
        mut request: Request<Rdma>,
    ) {
        let this = queue.context();
        let Arrived { mut capsule, data } = arrived;
        let command = *capsule.command();
        let begun = match CommandData::is_in_capsule(&Command::from_bytes(command)) {
            true if request.private_mut().keeps_receive => request.begin(queue, capsule),
            true => {
                return Self::begin_copied(queue, shared, Arrived { capsule, data }, request);
            }
            false => {
                this.posted(shared.post(capsule));
                request.begin_copy(queue, &command)
            }
        };
        // Shared receives have more room than an admin queue.
        this.begun(queue, data.min(this.limits.in_capsule), begun);
    }

    /// Passes a copy of a command and its data to nvmet, after its shared receive was posted again.
    fn begin_copied(
        queue: &QueuePair<Self>,
        shared: &SharedReceiveQueue<Self>,
        arrived: Arrived,
        request: Request<Rdma>,
    ) {
        let this = queue.context();
        match this.copy(shared, arrived) {
            Ok(copy) => Self::begin_parked(queue, Parked::Copy(copy), request),
            Err(error) => {
                this.cannot_copy(error);
                this.release(queue, request);
            }
        }
    }

    /// Ends the connection, as there is no memory for a copy of a capsule.
    fn cannot_copy(&self, error: Error) {
        self.log(fmt!("no memory for data in a capsule: {error:?}"));
        self.disconnect();
    }

    /// Executes a command that was passed to nvmet, once it has its data. `behind` bytes of data came
    /// behind the command.
    #[inline(always)]
    fn begun(&self, queue: &QueuePair<Self>, behind: u32, begun: Begun<Rdma>) {
        match begun {
            Begun::Parsed(parsed) => match parsed.opcode() {
                Command::FABRICS => Self::take_data_of_fabrics(queue, behind, parsed),
                _ => self.take_data(queue, behind, parsed),
            },
            Begun::Answered => {}
            Begun::Refused(request) => discard(request),
        }
    }

    /// Takes the data of a Fabrics command. A host without a controller gets no memory for more data than a
    /// Connect command has.
    #[cold]
    fn take_data_of_fabrics(queue: &QueuePair<Self>, behind: u32, parsed: Parsed<Rdma>) {
        let this = queue.context();
        let command = Command::from_bytes(parsed.command());
        if let Ok(CommandData::Keyed { length, .. }) = CommandData::of(&command, this.limits) {
            // As `nvmet_check_transfer_len()`, which comes after the RDMA READ.
            if parsed.data_length() != length as usize {
                let code = Code::INVALID_DATA_SGL_LENGTH;
                return Self::refuse(queue, parsed, command.opcode(), code);
            }
        }
        this.take_data(queue, behind, parsed);
    }

    /// Takes the data of a command, and executes the command once it has it. `behind` bytes of data came
    /// behind the command.
    #[inline(always)]
    fn take_data(&self, queue: &QueuePair<Self>, behind: u32, mut parsed: Parsed<Rdma>) {
        // Used only until the next call, so that the compiler need not copy it to the stack.
        let command = Command::from_bytes(parsed.command());
        let limits = DataLimits {
            // A receive of this queue has room for no more than the limit.
            in_capsule: behind,
            ..self.limits
        };
        let checked = self.accepted.check_connect(&command);
        let data = checked.and_then(|()| CommandData::of(&command, limits));
        let opcode = command.opcode();
        match data {
            Ok(CommandData::None) => parsed.execute(Data::None),
            Ok(CommandData::InCapsule { offset, length }) => {
                if let Err(parsed) = parsed.execute_in_capsule(offset, length) {
                    lacks_data(parsed);
                }
            }
            Ok(CommandData::Keyed {
                address,
                length,
                key,
                invalidate,
            }) => {
                parsed.private_mut().invalidate =
                    (invalidate == Invalidate::ByTarget).then_some(key);
                let remote = RemoteKey {
                    address,
                    length,
                    rkey: key,
                };
                let pending = Pending::new(&command, self.accepted.queue_id, parsed, remote);
                self.transfer(queue, pending);
            }
            Err(code) => Self::refuse(queue, parsed, opcode, code),
        }
    }

    /// Ends a command with the status `code`, and logs that.
    #[cold]
    fn refuse(queue: &QueuePair<Self>, parsed: Parsed<Rdma>, opcode: u8, code: Code) {
        let this = queue.context();
        match code {
            // The same number has another name for commands that write.
            Code::CONNECT_INVALID_PARAMETER => this.log(fmt!("Connect refused: not as requested")),
            _ => this.log(fmt!(
                "command {opcode:#04x} refused: {}",
                format_args!("{code}")
            )),
        }
        parsed.fail(code.get() | DNR);
    }

    /// Transfers the data of a command, or lets it wait for credits. Sleeps.
    #[inline(always)]
    fn transfer(&self, queue: &QueuePair<Self>, pending: Pending) {
        let state = match self.is_waiting.load(Ordering::Relaxed) {
            true => TransferState::Waits(pending),
            false => pending.begin(queue, &self.reads),
        };
        match state {
            TransferState::Begun => {}
            TransferState::Waits(pending) => Self::wait(queue, pending),
        }
    }

    /// Lets a command wait for credits. Sleeps.
    #[cold]
    fn wait(queue: &QueuePair<Self>, pending: Pending) {
        let this = queue.context();
        let mut waiting = this.waiting.lock();
        // Set before the retry: a completion that returns credits later sees it, and retries.
        this.is_waiting.store(true, Ordering::SeqCst);
        if let Err(PushError(waiting)) = waiting.push_within_capacity(pending.suspend()) {
            // Unreachable: there are not more commands than slots.
            return discard(waiting);
        }
        this.retry(queue, &mut waiting);
    }

    /// Tries commands that wait for credits again, after some were returned. Sleeps.
    #[inline]
    fn credits_returned(&self, queue: &QueuePair<Self>) {
        if self.is_waiting.load(Ordering::SeqCst) {
            self.retry(queue, &mut self.waiting.lock());
        }
    }

    #[cold]
    fn retry(&self, queue: &QueuePair<Self>, waiting: &mut KVec<Waiting>) {
        while let Ok(first) = waiting.remove(0) {
            let Some(pending) = first.resume(queue, self.accepted.queue_id) else {
                continue;
            };
            if let TransferState::Waits(pending) = pending.begin(queue, &self.reads) {
                if let Err(
                    InsertError::OutOfCapacity(first) | InsertError::IndexOutOfBounds(first),
                ) = waiting.insert_within_capacity(0, pending.suspend())
                {
                    // Unreachable: it was removed above.
                    discard(first);
                }
                return;
            }
        }
        self.is_waiting.store(false, Ordering::SeqCst);
    }

    /// Frees a slot, and starts the next capsule that waits for one. Any context if the queue was
    /// [stopped](Self::stop), process context otherwise.
    #[inline(always)]
    fn release(&self, queue: &QueuePair<Self>, request: Request<Rdma>) {
        let mut slots = self.slots.lock();
        if slots.phase != Phase::Live {
            drop(slots);
            return Self::release_unless_live(queue, request);
        }
        slots.free.push(request);
    }

    /// As [`release`](Self::release), for a queue that has parked capsules, had no controller, or was stopped.
    #[cold]
    fn release_unless_live(queue: &QueuePair<Self>, request: Request<Rdma>) {
        let this = queue.context();
        let parked = {
            let mut slots = this.slots.lock();
            if slots.phase == Phase::Ended {
                drop(slots);
                // Not the last reference to the queue pair: the caller is `respond`, so that `destroy`
                // still waits.
                return discard(request);
            }
            if slots.phase == Phase::Connecting {
                slots.phase = match this.sq.controller() {
                    Some(_) => slots.live(),
                    None => Phase::Unconnected,
                };
            }
            slots.free.push(request);
            slots.parked.len()
        };
        Self::begin_all_parked(queue, parked);
    }

    /// Frees the slot and the data of a command whose response has completed, or cannot be posted. Context
    /// as for [`release`](Self::release).
    #[inline(always)]
    fn responded(&self, queue: &QueuePair<Self>, mut request: Request<Rdma>) {
        match request.take_data() {
            Data::None => {}
            Data::Write(write) => drop(request.private_mut().finish(write)),
            Data::List(data) => drop(data),
        }
        self.release(queue, request);
    }

    /// Sends the response of a command (`queue_response`). Any context.
    #[inline]
    pub(crate) fn respond(queue: &QueuePair<Self>, mut request: Request<Rdma>) {
        // A command that failed has no data.
        if matches!(request.data(), Data::Write(_)) && !request.has_succeeded() {
            request = Self::drop_data(request);
        }
        let posted = rcu_read(|section| {
            // A receive is posted before any response to its command. A host that uses all its credits
            // would otherwise find none.
            if let Some(capsule) = request.take_capsule() {
                if let Err(unposted) = Self::repost(queue, capsule, section) {
                    request = Self::cannot_repost(queue, request, unposted);
                }
            }
            let invalidate = request.private_mut().invalidate.take();
            request.send(section, queue, invalidate)
        });
        if let Err(request) = posted {
            Self::cannot_respond(queue, request);
        }
    }

    /// Ends the connection of a command whose receive cannot be posted again, and keeps the receive.
    #[cold]
    fn cannot_repost(
        queue: &QueuePair<Self>,
        mut request: Request<Rdma>,
        unposted: Unposted<Capsule>,
    ) -> Request<Rdma> {
        queue.context().cannot_receive(unposted.refusal());
        queue.context().disconnect();
        request.keep_capsule(unposted.operation);
        request
    }

    /// Drops the data of a command that failed.
    #[cold]
    fn drop_data(mut request: Request<Rdma>) -> Request<Rdma> {
        if let Data::Write(write) = request.take_data() {
            request.private_mut().give_up(write);
        }
        request
    }

    /// Frees the slot of a command whose response cannot be posted: the queue pair is closed, or
    /// broken.
    #[cold]
    fn cannot_respond(queue: &QueuePair<Self>, request: Request<Rdma>) {
        let this = queue.context();
        this.disconnect();
        this.responded(queue, request);
    }

    /// Ends the connection because of a receive without a command. Takes values, so that the compiler need
    /// not copy the completion of other receives to the stack.
    #[cold]
    fn refuse_capsule(
        queue: &QueuePair<Self>,
        capsule: Operation<Capsule>,
        length: usize,
        result: Result<(), WcError>,
    ) {
        let this = queue.context();
        Self::give_back(queue, capsule);
        match result {
            Ok(()) => this.fail(fmt!(
                "a capsule of {length} bytes is shorter than a command"
            )),
            Err(failure) if failure.is_flush() => this.disconnect(),
            Err(failure) => this.fail(fmt!("RECV: {}", failure.message())),
        }
    }

    /// Parks a capsule. Starts the first parked one if a slot was freed meanwhile. May sleep.
    #[cold]
    fn park(queue: &QueuePair<Self>, arrived: Arrived) {
        let this = queue.context();
        let parked = match queue.shared_receives() {
            Some(shared) => this.copy(shared, arrived).map(Parked::Copy),
            None => Ok(Parked::Own(arrived)),
        };
        let parked = match parked {
            Ok(parked) => parked,
            Err(error) => return this.cannot_copy(error),
        };
        let (most, cause) = match this.sq.controller() {
            Some(_) => (usize::MAX, "more commands than the queue has entries"),
            None => (
                MAX_PARKED_BEFORE_CONNECT,
                "more commands than a Connect, before its response",
            ),
        };
        let (next, phase) = {
            let mut slots = this.slots.lock();
            (slots.park(parked, most), slots.phase)
        };
        match next {
            Ok(Some((parked, request))) => Self::begin_parked(queue, parked, request),
            Ok(None) => {}
            // A host may have sent them before it learned that the connection ends.
            Err(_) if phase == Phase::Stopped => {}
            Err(_) => this.fail(fmt!("{cause}")),
        }
    }

    /// Copies a capsule, and posts its shared receive again. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    #[cold]
    fn copy(&self, shared: &SharedReceiveQueue<Self>, arrived: Arrived) -> Result<CapsuleCopy> {
        let Arrived { mut capsule, data } = arrived;
        let command = *capsule.command();
        let behind = data.min(self.limits.in_capsule);
        let limits = DataLimits {
            in_capsule: behind,
            ..self.limits
        };
        let data = match CommandData::of(&Command::from_bytes(command), limits) {
            Ok(CommandData::InCapsule { offset, length }) => {
                Sgl::copy_of(&mut capsule, offset, length).map(Some)
            }
            // It is somewhere else, or the command is refused when it begins.
            _ => Ok(None),
        };
        self.posted(shared.post(capsule));
        Ok(CapsuleCopy {
            command,
            behind,
            data: data?,
        })
    }

    /// Abandons a command whose data could not be read, and ends the connection.
    #[cold]
    fn read_failed(
        &self,
        queue: &QueuePair<Self>,
        mut parsed: Parsed<Rdma>,
        read: RdmaRw<Sgl, Self>,
        failure: WcError,
    ) {
        parsed.private_mut().give_up(read);
        self.transfer_failed("RDMA READ", failure);
        let mut request = parsed.abandon();
        if let Some(capsule) = request.take_capsule() {
            Self::give_back(queue, capsule);
        }
        self.release(queue, request);
    }

    /// Ends the connection, as a work request has failed.
    #[cold]
    fn transfer_failed(&self, name: &str, failure: WcError) {
        match failure.is_flush() {
            true => self.disconnect(),
            false => self.fail(fmt!("{name}: {}", failure.message())),
        }
    }
}

/// Ends a command whose data is not in its capsule. Unreachable: it was checked against the length.
#[cold]
fn lacks_data(parsed: Parsed<Rdma>) {
    parsed.fail(Code::INVALID_SGL_OFFSET.get() | DNR);
}

impl QpContext for TargetQueue {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: WcError) {
        queue
            .context()
            .transfer_failed("RDMA READ or WRITE", failure);
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        let this = queue.context();
        this.log(fmt!("{fault}"));
        this.disconnect();
    }
}

impl Endpoint for TargetQueue {
    fn lost(queue: &QueuePair<Self>, _cause: Lost) {
        queue.context().disconnect();
    }
}

impl RequestHandler for Rdma {
    #[inline]
    fn responded(
        queue: &QueuePair<TargetQueue>,
        request: Request<Self>,
        completion: &Completion<'_>,
    ) {
        let this = queue.context();
        if let Err(failure) = completion.result() {
            this.transfer_failed("SEND", failure);
        }
        this.responded(queue, request);
        this.credits_returned(queue);
    }

    #[inline]
    fn data_read(
        queue: &QueuePair<TargetQueue>,
        mut parsed: Parsed<Self>,
        read: RdmaRw<Sgl, TargetQueue>,
        completion: &Completion<'_>,
    ) {
        let this = queue.context();
        this.reads.ended();
        match completion.result() {
            Ok(()) => match parsed.private_mut().finish(read) {
                Some(data) => parsed.execute(Data::List(data)),
                None => discard(parsed),
            },
            Err(failure) => this.read_failed(queue, parsed, read, failure),
        }
        this.credits_returned(queue);
    }

    fn hold_controller(queue: &QueuePair<TargetQueue>, id: u16) -> Option<HeldController> {
        let this = queue.context();
        this.connection.hold_controller(this.sq.port(), id)
    }

    fn end(queue: &QueuePair<TargetQueue>) {
        queue.context().connection.clone().end();
    }
}

impl CapsuleReceiver for TargetQueue {
    #[inline(always)]
    fn received(queue: &QueuePair<Self>, capsule: Operation<Capsule>, completion: &Completion<'_>) {
        let this = queue.context();
        // 0 if there is no capsule.
        let length = completion.message_len().unwrap_or(0);
        let Some(data) = length.checked_sub(COMMAND_SIZE) else {
            return Self::refuse_capsule(queue, capsule, length, completion.result());
        };
        let arrived = Arrived {
            capsule,
            // A receive has less memory than 4 GiB.
            data: data as u32,
        };
        let request = this.slots.lock().take();
        match request {
            Some(request) => Self::begin(queue, arrived, request),
            None => Self::park(queue, arrived),
        }
    }
}
