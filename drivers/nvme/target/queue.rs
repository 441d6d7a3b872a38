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
//! A request is the slot of a command. Without a free one, a capsule is parked and its receive is not
//! posted again, so that the host waits. Without credits of the send queue, a command waits.
//!
//! Completions of a queue run in one work of the core, one after the other. Parked capsules are also
//! started by the thread that accepts the connection, and responses come in any context.

use crate::{
    capsule::{
        Capsule,
        CapsuleReceiver, //
    },
    rdma::{
        Rdma,
        LIMITS, //
    },
};
use core::{
    mem,
    sync::atomic::{
        AtomicBool,
        Ordering, //
    },
};
use kernel::{
    alloc::kvec::PushError,
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
        sqe::{
            Command,
            Direction, //
        },
        status::Code, //
    },
    policy::{
        accept::AcceptedQueue,
        command_data::{
            CommandData,
            DataLimits, //
        },
    },
};
use nvmet::{
    Begun,
    Data,
    Parsed,
    Port,
    PortLimits,
    Request,
    Sgl,
    SubmissionQueue,
    TransportTypes,
    COMMAND_SIZE,
    COMPLETION_SIZE, //
};
use rrdma::{
    log::RateLimit,
    net::Address,
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
        device::DeviceRef,
        dma::{
            self,
            DmaBuffer, //
        },
        mr::RemoteKey,
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
        rw::{
            Message,
            RdmaRw,
            RwContext,
            RwOperation, //
        },
        srq::SharedReceiveQueue,
        wr::{
            Complete,
            Operation, //
        },
    },
    sync::IrqLock,
};

/// Do Not Retry, in the form of `include/linux/nvme.h`.
const DNR: u16 = 0x4000;

/// Ends the connection of a queue.
pub(crate) trait EndConnection: Send + Sync {
    /// Ends the connection in another thread. Any context.
    fn end(self: Arc<Self>);
}

/// Addresses of a connection.
#[derive(Clone, Copy)]
pub(crate) struct Addresses {
    /// The address that the host connected to.
    pub(crate) local: Address,
    /// The address of the host.
    pub(crate) host: Address,
}

/// The work requests of a command: the RDMA READ of its data, or its response.
pub(crate) struct Transfer {
    state: TransferState,
    completion: DmaBuffer,
    /// The key that the response invalidates.
    invalidate: Option<u32>,
}

enum TransferState {
    Idle,
    Read(Parsed<Rdma>, RdmaRw<Sgl, TargetQueue>),
    Respond(Request<Rdma>, Option<RdmaRw<Sgl, TargetQueue>>),
}

impl TransportTypes for Rdma {
    type Endpoint = TargetQueue;
    type Command = Slot;

    const LIMITS: PortLimits = LIMITS;
}

/// The transport's part of a command's request.
pub(crate) struct Slot {
    queue: Arc<QueuePair<TargetQueue>>,
    /// `None` while it is posted.
    transfer: Option<Operation<Transfer>>,
    /// `None` while data is transferred, and if the queue pair keeps it because a transfer failed.
    context: Option<RwContext<Sgl, TargetQueue>>,
    /// The capsule whose data the command is executed with.
    capsule: Option<Operation<Capsule>>,
}

impl Slot {
    /// Returns the queue of the command.
    pub(crate) fn queue(&self) -> &TargetQueue {
        self.queue.context()
    }

    /// Takes the memory of an RDMA READ or WRITE back, and returns the data.
    fn finish(&mut self, transferred: RdmaRw<Sgl, TargetQueue>) -> Option<Sgl> {
        let finished = transferred.finish()?;
        self.context = Some(finished.context);
        Some(finished.data)
    }
}

/// A capsule that arrived.
struct Arrived {
    capsule: Operation<Capsule>,
    /// Bytes of data that the host sent behind the command.
    data: u32,
}

/// A command whose data is in the host's memory.
struct Pending {
    parsed: Parsed<Rdma>,
    remote: RemoteKey,
    transfer: DataTransfer,
}

/// How the data of a command is transferred.
#[derive(Clone, Copy)]
enum DataTransfer {
    /// By RDMA READ, before the command is executed.
    FromHost,
    /// By RDMA WRITE, after nvmet has filled all of it.
    Filled,
    /// By RDMA WRITE, after nvmet may have filled only a part.
    MaybePartial,
}

impl DataTransfer {
    /// Returns how `length` bytes of a command are transferred.
    fn of(command: &Command, parsed: &Parsed<Rdma>, length: u32) -> Self {
        match command.direction() {
            Direction::ToTarget => Self::FromHost,
            Direction::FromTarget if parsed.data_length() == length as usize => Self::Filled,
            Direction::FromTarget => Self::MaybePartial,
        }
    }

    /// Allocates the memory of the target. Whatever is written to the host is not left over from
    /// others.
    fn allocate(self, length: u32) -> Result<Sgl> {
        match self {
            Self::FromHost | Self::Filled => Sgl::new(length),
            Self::MaybePartial => Sgl::zeroed(length),
        }
    }
}

/// Slots and capsules of a queue.
struct Slots {
    /// Commands may be started.
    is_live: bool,
    free: KVec<Request<Rdma>>,
    /// Capsules that wait for the connection to be established, or for a slot.
    parked: KVec<Arrived>,
}

impl Slots {
    /// Returns a capsule to start, and its slot.
    fn next(&mut self) -> Option<(Arrived, Request<Rdma>)> {
        if !self.is_live || self.parked.is_empty() {
            return None;
        }
        let request = self.free.pop()?;
        Some((self.parked.remove(0).ok()?, request))
    }
}

/// Receives that the queues on a device share: a queue for each completion vector; none if they are
/// not shared.
pub(crate) struct SharedReceives(KVec<Arc<SharedReceiveQueue<TargetQueue>>>);

impl SharedReceives {
    /// No shared receives.
    pub(crate) const NONE: Self = Self(KVec::new());

    /// Creates the queues with `receives` receives each, and posts these. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the device.
    pub(crate) fn new(pd: &Arc<ProtectionDomain>, receives: u32, in_capsule: u32) -> Result<Self> {
        let limits = pd.device().attributes();
        let vectors = limits.completion_vectors.min(limits.max_srq);
        let receives = receives.min(limits.max_srq_wr);
        let mut queues = KVec::new();
        for _ in 0..vectors {
            let queue = SharedReceiveQueue::with_sges(pd.clone(), receives, 2, |_event| {})?;
            for _ in 0..receives {
                let capsule = Capsule::new(pd.device(), in_capsule)?;
                queue.post(capsule).map_err(|unposted| unposted.error)?;
            }
            queues.push(queue, GFP_KERNEL)?;
        }
        Ok(Self(queues))
    }

    /// Returns the queue for a completion vector.
    pub(crate) fn of_vector(&self, vector: u32) -> Option<&Arc<SharedReceiveQueue<TargetQueue>>> {
        let place = (vector as usize).checked_rem(self.0.len())?;
        self.0.get(place)
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
    #[pin]
    slots: IrqLock<Slots>,
    /// Commands that wait for credits of the send queue. Held while they are tried again.
    #[pin]
    waiting: Mutex<KVec<Pending>>,
    is_waiting: AtomicBool,
    connection: Arc<dyn EndConnection>,
    #[pin]
    log_limit: RateLimit,
}

/// What a new queue is made of.
pub(crate) struct QueueParams {
    pub(crate) port: Arc<Port<Rdma>>,
    pub(crate) accepted: AcceptedQueue,
    /// Commands that are executed at a time, at most those of `accepted`.
    pub(crate) slots: u16,
    pub(crate) addresses: Addresses,
    pub(crate) limits: DataLimits,
    pub(crate) connection: Arc<dyn EndConnection>,
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
            slots <- new_irq_lock!(Slots {
                is_live: false,
                free: KVec::with_capacity(commands, GFP_KERNEL)?,
                parked: KVec::with_capacity(commands, GFP_KERNEL)?,
            }, "nvmet_rdma_rust::Slots"),
            waiting <- new_mutex!(KVec::with_capacity(commands, GFP_KERNEL)?),
            is_waiting: AtomicBool::new(false),
            connection: params.connection,
            log_limit <- RateLimit::new(),
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
        let device = queue.device();
        for _ in 0..this.nr_slots {
            let request = Request::new(Slot {
                queue: queue.clone(),
                transfer: Some(Transfer::new(device)?),
                context: Some(RwContext::new(queue)?),
                capsule: None,
            })?;
            let mut slots = this.slots.lock();
            slots
                .free
                .push_within_capacity(request)
                .map_err(|_| ENOMEM)?;
        }
        let own = match queue.shared_receives() {
            Some(_) => 0,
            None => this.accepted.commands,
        };
        for _ in 0..own {
            let capsule = Capsule::new(device, this.limits.in_capsule)?;
            queue
                .post_receive(capsule)
                .map_err(|unposted| unposted.error)?;
        }
        Ok(())
    }

    /// Starts the commands that arrived, and those that follow. May sleep.
    pub(crate) fn start(queue: &QueuePair<Self>) {
        let this = queue.context();
        this.slots.lock().is_live = true;
        loop {
            let next = this.slots.lock().next();
            let Some((arrived, request)) = next else {
                return;
            };
            this.begin(queue, arrived, request);
        }
    }

    /// Ends the commands, after the queue pair was drained. Sleeps.
    pub(crate) fn end(queue: &QueuePair<Self>) {
        let this = queue.context();
        this.stop();
        let waiting = mem::take(&mut *this.waiting.lock());
        drop(waiting);
        this.sq.destroy();
        // The slots hold references to the queue pair.
        let (free, parked) = {
            let mut slots = this.slots.lock();
            (mem::take(&mut slots.free), mem::take(&mut slots.parked))
        };
        drop(free);
        for arrived in parked {
            Self::give_back(queue, arrived.capsule);
        }
    }

    /// Starts no more commands. Any context.
    fn stop(&self) {
        self.slots.lock().is_live = false;
    }

    /// Ends the connection. Any context.
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
        if self.log_limit.allows(c"nvmet_rdma_rust") {
            let (host, queue) = (self.addresses.host, self.id());
            pr_err!("host {host}: queue {queue}: {cause}\n");
        }
    }

    /// Posts a receive again, after its command was taken.
    fn repost(&self, queue: &QueuePair<Self>, capsule: Operation<Capsule>) {
        let posted = match queue.shared_receives() {
            Some(shared) => shared.post(capsule),
            None => queue.post_receive(capsule),
        };
        if posted.is_err() {
            // The queue pair is closed, or broken.
            self.disconnect();
        }
    }

    /// Posts the receive of a queue that ends again, if it is shared.
    fn give_back(queue: &QueuePair<Self>, capsule: Operation<Capsule>) {
        if let Some(shared) = queue.shared_receives() {
            // If the device refuses it, the other queues have one less.
            let _ = shared.post(capsule);
        }
    }

    /// Passes a command to nvmet. Process context.
    fn begin(&self, queue: &QueuePair<Self>, mut arrived: Arrived, request: Request<Rdma>) {
        let command = arrived.capsule.command();
        match request.begin(&self.sq, &command) {
            Begun::Parsed(parsed) => self.take_data(queue, arrived, parsed, &command),
            Begun::Answered => self.repost(queue, arrived.capsule),
            Begun::Refused(request) => {
                Self::give_back(queue, arrived.capsule);
                self.release(queue, request);
            }
        }
    }

    /// Finds the data of a command, and executes the command once it has it.
    fn take_data(
        &self,
        queue: &QueuePair<Self>,
        mut arrived: Arrived,
        mut parsed: Parsed<Rdma>,
        command: &[u8; COMMAND_SIZE],
    ) {
        let command = Command::from_bytes(*command);
        let limits = DataLimits {
            in_capsule: arrived.data,
            ..self.limits
        };
        // Whether or not there is a controller: two Connect commands may have been parsed before.
        let checked = self.accepted.check_connect(&command);
        let data = checked.and_then(|()| CommandData::of(&command, limits));
        match data {
            Ok(CommandData::None) => {
                self.repost(queue, arrived.capsule);
                parsed.execute(Data::None);
            }
            Ok(CommandData::InCapsule { offset, length }) => {
                match arrived.capsule.take_data(offset, length) {
                    Some(data) => {
                        parsed.private_mut().capsule = Some(arrived.capsule);
                        parsed.execute(Data::Inline(data));
                    }
                    None => {
                        self.repost(queue, arrived.capsule);
                        parsed.fail(Code::INVALID_SGL_OFFSET.get() | DNR);
                    }
                }
            }
            Ok(CommandData::Keyed {
                address,
                length,
                key,
                invalidate,
            }) => {
                self.repost(queue, arrived.capsule);
                if let Some(transfer) = &mut parsed.private_mut().transfer {
                    transfer.invalidate = (invalidate == Invalidate::ByTarget).then_some(key);
                }
                let remote = RemoteKey {
                    address,
                    length,
                    rkey: key,
                };
                let pending = Pending {
                    transfer: DataTransfer::of(&command, &parsed, length),
                    parsed,
                    remote,
                };
                self.transfer(queue, pending);
            }
            Err(code) => {
                self.repost(queue, arrived.capsule);
                let opcode = command.opcode();
                self.log(fmt!("command {opcode:#04x} refused: {}", Name(code)));
                parsed.fail(code.get() | DNR);
            }
        }
    }

    /// Transfers the data of a command, or lets it wait for credits. Sleeps.
    fn transfer(&self, queue: &QueuePair<Self>, pending: Pending) {
        let pending = match self.is_waiting.load(Ordering::Relaxed) {
            true => Err(pending),
            false => pending.attempt(queue),
        };
        if let Err(pending) = pending {
            self.wait(queue, pending);
        }
    }

    /// Lets a command wait for credits. Sleeps.
    #[cold]
    fn wait(&self, queue: &QueuePair<Self>, pending: Pending) {
        let mut waiting = self.waiting.lock();
        // Set before it is tried again: who returns credits from here on tries again after that.
        self.is_waiting.store(true, Ordering::SeqCst);
        if let Err(error) = waiting.push_within_capacity(pending) {
            // Unreachable: there are not more commands than slots.
            drop(error);
        }
        self.retry(queue, &mut waiting);
    }

    /// Tries commands that wait for credits again, after some were returned. Sleeps.
    #[inline]
    fn credits_returned(&self, queue: &QueuePair<Self>) {
        if self.is_waiting.load(Ordering::SeqCst) {
            self.retry(queue, &mut self.waiting.lock());
        }
    }

    #[cold]
    fn retry(&self, queue: &QueuePair<Self>, waiting: &mut KVec<Pending>) {
        while let Ok(pending) = waiting.remove(0) {
            if let Err(pending) = pending.attempt(queue) {
                // There is room: it was removed above.
                let _ = waiting.insert_within_capacity(0, pending);
                return;
            }
        }
        self.is_waiting.store(false, Ordering::SeqCst);
    }

    /// Frees a slot, and starts the next capsule that waits for one. Any context if the queue was
    /// [stopped](Self::stop), process context otherwise.
    fn release(&self, queue: &QueuePair<Self>, request: Request<Rdma>) {
        let next = {
            let mut slots = self.slots.lock();
            // There is room: the slot was taken from here.
            let _ = slots.free.push_within_capacity(request);
            slots.next()
        };
        if let Some((arrived, request)) = next {
            self.begin(queue, arrived, request);
        }
    }

    /// Frees the slot of a command whose response, with its data, is not posted any more. Context as
    /// for [`release`](Self::release).
    fn responded(
        &self,
        queue: &QueuePair<Self>,
        mut request: Request<Rdma>,
        write: Option<RdmaRw<Sgl, Self>>,
    ) {
        if let Some(write) = write {
            request.private_mut().finish(write);
        }
        self.release(queue, request);
    }

    /// Sends the response of a command (`queue_response`). Any context.
    pub(crate) fn respond(mut request: Request<Rdma>, data: Data<Rdma>) {
        let slot = request.private_mut();
        let queue = slot.queue.clone();
        let this = queue.context();
        let write = match data {
            Data::Write(write) => Some(write),
            Data::Inline(data) => {
                if let Some(mut capsule) = slot.capsule.take() {
                    capsule.put_data(data);
                    this.repost(&queue, capsule);
                }
                None
            }
            Data::None | Data::List(_) => None,
        };
        let Some(mut transfer) = slot.transfer.take() else {
            return;
        };
        let completion = request.completion();
        if let Some(place) = transfer.completion.write().first_chunk_mut() {
            *place = completion;
        }
        // A command that failed has no data.
        let write = match is_success(&completion) {
            true => write,
            false => {
                write.and_then(|write| request.private_mut().finish(write));
                None
            }
        };
        let has_data = write.is_some();
        transfer.state = TransferState::Respond(request, write);
        let posted = match has_data {
            true => queue.post_rdma_write_and_send(transfer, |transfer| transfer.message()),
            false => queue.post_send(transfer, |transfer, chain| {
                let payload = [transfer.completion.sge()];
                match transfer.invalidate {
                    Some(rkey) => chain.send_with_invalidate(payload, rkey),
                    None => chain.send(payload),
                }
            }),
        };
        if let Err(unposted) = posted {
            // The queue pair is closed, or broken.
            this.disconnect();
            if let TransferState::Respond(request, write) = Transfer::end(unposted.operation) {
                this.responded(&queue, request, write);
            }
        }
    }
}

/// Returns whether the status field of a completion is 0.
fn is_success(completion: &[u8; COMPLETION_SIZE]) -> bool {
    matches!(completion, [.., low, high] if low & !1 == 0 && *high == 0)
}

/// Prints the name of a status code.
struct Name(Code);

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name().unwrap_or("unknown status"))
    }
}

impl Pending {
    /// Transfers the data if there are credits; returns itself otherwise. Sleeps.
    fn attempt(mut self, queue: &QueuePair<TargetQueue>) -> Result<(), Self> {
        let sgl = self.transfer.allocate(self.remote.length);
        let context = self.parsed.private_mut().context.take();
        let (Ok(sgl), Some(context)) = (sgl, context) else {
            self.parsed.fail(Code::INTERNAL_ERROR.get());
            return Ok(());
        };
        let prepared = match self.transfer {
            DataTransfer::FromHost => context.read(sgl, &self.remote),
            _ => context.write(sgl, &self.remote),
        };
        match (prepared, self.transfer) {
            (Ok(read), DataTransfer::FromHost) => read_data(queue, self.parsed, read),
            (Ok(write), _) => self.parsed.execute(Data::Write(write)),
            (Err(unprepared), _) => {
                self.parsed.private_mut().context = Some(unprepared.context);
                if unprepared.error == EAGAIN {
                    return Err(self);
                }
                self.parsed.fail(Code::INTERNAL_ERROR.get());
            }
        }
        Ok(())
    }
}

/// Posts the RDMA READ of a command's data.
fn read_data(
    queue: &QueuePair<TargetQueue>,
    mut parsed: Parsed<Rdma>,
    read: RdmaRw<Sgl, TargetQueue>,
) {
    let Some(mut transfer) = parsed.private_mut().transfer.take() else {
        return;
    };
    transfer.state = TransferState::Read(parsed, read);
    if let Err(unposted) = queue.post_rdma_rw(transfer) {
        if let TransferState::Read(mut parsed, read) = Transfer::end(unposted.operation) {
            parsed.private_mut().finish(read);
            parsed.fail(Code::DATA_TRANSFER_ERROR.get());
        }
    }
}

impl QpContext for TargetQueue {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, failure: WcError) {
        let this = queue.context();
        match failure.is_flush() {
            true => this.disconnect(),
            false => this.fail(fmt!("RDMA READ or WRITE: {}", failure.message())),
        }
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

impl CapsuleReceiver for TargetQueue {
    fn received(queue: &QueuePair<Self>, capsule: Operation<Capsule>, completion: &Completion<'_>) {
        let this = queue.context();
        let received = match completion.result() {
            Ok(()) => completion.received(),
            Err(failure) => {
                Self::give_back(queue, capsule);
                return match failure.is_flush() {
                    true => this.disconnect(),
                    false => this.fail(fmt!("RECV: {}", failure.message())),
                };
            }
        };
        let length = received.map_or(0, |received| match received.is_write() {
            true => 0,
            false => received.byte_len(),
        });
        let Some(data) = length.checked_sub(COMMAND_SIZE) else {
            Self::give_back(queue, capsule);
            return this.fail(fmt!(
                "a capsule of {length} bytes is shorter than a command"
            ));
        };
        let arrived = Arrived {
            capsule,
            // A receive has less memory than 4 GiB.
            data: data as u32,
        };
        let next = {
            let mut slots = this.slots.lock();
            match slots.parked.push_within_capacity(arrived) {
                Ok(()) => Ok(slots.next()),
                Err(PushError(arrived)) => Err(arrived),
            }
        };
        let next = match next {
            Ok(next) => next,
            Err(arrived) => {
                // Only with shared receives: otherwise there are not more receives than entries.
                Self::give_back(queue, arrived.capsule);
                return this.fail(fmt!("more commands than the queue has entries"));
            }
        };
        if let Some((arrived, request)) = next {
            this.begin(queue, arrived, request);
        }
    }
}

impl Transfer {
    /// Allocates the work requests of a slot. May sleep.
    fn new(device: &DeviceRef) -> Result<Operation<Self>> {
        Operation::new(Self {
            state: TransferState::Idle,
            completion: DmaBuffer::new(device.clone(), COMPLETION_SIZE, dma::Direction::ToDevice)?,
            invalidate: None,
        })
    }

    fn message(&self) -> Message<'_> {
        Message {
            sge: self.completion.sge(),
            invalidate: self.invalidate,
        }
    }

    /// Returns the name of the last work request.
    fn name(&self) -> &'static str {
        match self.state {
            TransferState::Read(..) => "RDMA READ",
            _ => "SEND",
        }
    }

    /// Takes the state of work requests that are not posted any more, and puts their memory back to
    /// the slot.
    fn end(mut transfer: Operation<Self>) -> TransferState {
        let mut state = mem::replace(&mut transfer.state, TransferState::Idle);
        match &mut state {
            TransferState::Read(parsed, _) => parsed.private_mut().transfer = Some(transfer),
            TransferState::Respond(request, _) => {
                transfer.invalidate = None;
                request.private_mut().transfer = Some(transfer);
            }
            TransferState::Idle => {}
        }
        state
    }
}

impl RwOperation<TargetQueue> for Transfer {
    type Data = Sgl;

    #[inline]
    fn rdma_rw(&self) -> Option<&RdmaRw<Sgl, TargetQueue>> {
        match &self.state {
            TransferState::Read(_, read) => Some(read),
            TransferState::Respond(_, write) => write.as_ref(),
            TransferState::Idle => None,
        }
    }
}

impl Complete<TargetQueue> for Transfer {
    fn complete(
        transfer: Operation<Self>,
        queue: &QueuePair<TargetQueue>,
        completion: &Completion<'_>,
    ) {
        let this = queue.context();
        if let Err(failure) = completion.result() {
            match failure.is_flush() {
                true => this.disconnect(),
                false => this.fail(fmt!("{}: {}", transfer.name(), failure.message())),
            }
        }
        match Transfer::end(transfer) {
            TransferState::Read(mut parsed, read) => {
                let data = parsed.private_mut().finish(read);
                match (completion.result(), data) {
                    (Ok(()), Some(data)) => parsed.execute(Data::List(data)),
                    _ => this.release(queue, parsed.abandon()),
                }
            }
            TransferState::Respond(request, write) => this.responded(queue, request, write),
            TransferState::Idle => {}
        }
        this.credits_returned(queue);
    }
}
