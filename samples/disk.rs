// SPDX-License-Identifier: GPL-2.0

//! A disk whose sectors are memory of a peer: each request is one RDMA READ or WRITE.
//!
//! The peer sends address, length and key of its memory in the private data of its reply. It has no work
//! for the requests. When the connection ends, so does the disk.

use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use rrdma::{
    block::{
        Disk,
        DiskConfig,
        Limits,
        Op,
        Openers,
        Operations,
        QueueCounts,
        QueueKinds,
        Refused,
        Request,
        RequestPayload,
        RequestRef,
        Status,
        TagSet,
        TagSetConfig,
        TimeoutAction,
        SECTOR_SIZE, //
    },
    net::Namespace,
    new_irq_lock,
    rdma::{
        client::{
            Client,
            Registration, //
        },
        cm::{
            Address,
            Addressed,
            Connected,
            Endpoint,
            Id,
            Lost,
            Parameters,
            Prepared,
            WaitLimits, //
        },
        cq::{
            Completion,
            CompletionQueue,
            Poll,
            WcError, //
        },
        dma::{
            Direction,
            Mapped, //
        },
        mr::RemoteKey,
        pd::ProtectionDomain,
        qp::{
            Fault,
            QpCap,
            QpContext,
            QpInitAttr,
            QueuePair,
            Rc, //
        },
        wr::{
            Complete,
            Operation,
            Unposted,
            MAX_SGE, //
        },
    },
    sync::{
        IrqLock,
        Msecs,
        RcuSection,
        RelaxedBool,
        Thread,
        TimedCompletion, //
    },
};

module! {
    type: Module,
    name: "rrdma_disk",
    authors: ["The rnvmf developers"],
    description: "Sample: a disk in the memory of a peer",
    license: "GPL",
}

rrdma::parameters! {
    server: Text<64> = "", "IP address of the peer";
    port: Number<1, 65535> = 7471, "port of the peer; default 7471";
    timeout: Number<1, 600000> = 10000, "time-out of the connect in ms; default 10000";
}

/// Requests that may be outstanding.
const DEPTH: u32 = 32;

/// Time until a request that the peer does not answer ends the connection.
const REQUEST_TIMEOUT: Msecs = Msecs::from_secs(10);

/// RDMA READs that may be outstanding; the rest waits in the send queue.
const READS: u8 = 16;

const NAME: &CStr = c"rrdma_disk";

struct Module {
    // Stopped before the client is unregistered, which waits for the devices.
    _thread: Thread,
    _client: Arc<Registration<Devices>>,
}

impl kernel::Module for Module {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let client = Arc::new(Registration::new(())?, GFP_KERNEL)?;
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let is_over = RelaxedBool::new(false);
        let owner = Arc::new(DiskThread { wake, is_over }, GFP_KERNEL)?;
        let (stopped, devices) = (owner.clone(), client.clone());
        let thread = Thread::spawn(
            fmt!("rrdma_disk"),
            move || stopped.stop(),
            move || match owner.run(&devices, module) {
                Ok(()) => pr_info!("stopped\n"),
                Err(error) => pr_err!("failed: {error}\n"),
            },
        )?;
        Ok(Self {
            _thread: thread,
            _client: client,
        })
    }
}

/// The client of RDMA devices. It needs no `removing`: the removal of a device wakes the connection.
struct Devices;

impl Client for Devices {
    const NAME: &'static CStr = NAME;

    type Context = ();
}

/// Reason why the disk ended by itself.
type StepError = rrdma::text::Message<96>;

fn at(step: &str) -> impl FnOnce(Error) -> StepError + '_ {
    move |error| StepError::new(fmt!("{step}: {error:?}"))
}

/// What the thread waits for.
struct DiskThread {
    wake: Arc<TimedCompletion>,
    /// The disk must end: the module is unloaded, or the connection is lost.
    is_over: RelaxedBool,
}

impl DiskThread {
    /// Ends the disk. Any context.
    fn stop(&self) {
        self.is_over.set(true);
        self.wake.complete();
    }

    /// Connects, and adds the disk. Removes it when the connection or the module ends. Sleeps.
    fn run(
        self: &Arc<Self>,
        client: &Registration<Devices>,
        module: &'static ThisModule,
    ) -> Result<(), StepError> {
        let connection = self.connect(client)?;
        let queue = connection.queue_pair();
        let memory = memory(connection.peer().private_data()).map_err(at("private data"))?;
        let disk = add_disk(queue, memory, module).map_err(at("disk"))?;
        pr_info!("done: {} sectors\n", disk.capacity());
        while !self.is_over.get() && !queue.device().is_removing() {
            self.wake.wait();
        }
        if queue.context().is_lost.get() || queue.device().is_removing() {
            // No write-back: nothing can be written any more. The drain completes what was posted.
            disk.mark_dead();
            connection.disconnect();
            return Err(StepError::new(fmt!("the connection is lost")));
        }
        // Writes back, for which the connection is needed. Nobody has the disk open.
        drop(disk);
        Ok(())
    }

    /// Connects to the peer. Sleeps.
    fn connect(
        self: &Arc<Self>,
        client: &Registration<Devices>,
    ) -> Result<Connected<Lane>, StepError> {
        let namespace = Namespace::init();
        let peer = Address::parse(&namespace, &parameters::server.get(), port());
        let peer = peer.map_err(at("address"))?;
        let is_over = || self.is_over.get();
        let limits = WaitLimits::new(Msecs::new(parameters::timeout.get()), &is_over);
        let addressed = Id::new(&namespace, self.wake.clone(), NAME)
            .map_err(at("CM ID"))?
            .resolve(None, &peer, limits)
            .map_err(|error| StepError::new(fmt!("{error}")))?;
        let wanted = Parameters {
            initiator_depth: READS,
            ..Parameters::default()
        };
        self.prepare(client, addressed)
            .map_err(at("queue pair"))?
            .connect(wanted, limits)
            .map_err(|error| StepError::new(fmt!("{error}")))
    }

    /// Creates what the connection needs on the device that the address resolved to. Sleeps.
    fn prepare(
        self: &Arc<Self>,
        client: &Registration<Devices>,
        addressed: Addressed<Lane>,
    ) -> Result<Prepared<Lane>> {
        let device = client.acquire(addressed.device()).ok_or(ENODEV)?;
        let capacity = QpCap {
            sends: DEPTH,
            receives: 0,
            send_sges: MAX_SGE as u32,
        };
        let entries = capacity.completions();
        let pd = ProtectionDomain::new(device.clone(), NAME)?;
        let cq = CompletionQueue::alloc(device, entries, 0, Poll::SoftIrq, NAME)?;
        let lane = Lane::new(&pd, self.clone())?;
        addressed.create_queue_pair(QpInitAttr::new(pd, cq, capacity), lane, NAME)
    }
}

fn port() -> u16 {
    parameters::port.get() as u16
}

/// The memory of the peer. A [`RemoteKey`] has no room for the length of a disk.
#[derive(Clone, Copy)]
struct Memory {
    address: u64,
    length: u64,
    rkey: u32,
}

/// Returns the memory that the peer has named: address and length of 64 bits, key of 32 bits, in network
/// byte order. The rest of the private data is padding.
fn memory(private_data: &[u8]) -> Result<Memory> {
    let (address, rest) = private_data.split_first_chunk().ok_or(EINVAL)?;
    let (length, rest) = rest.split_first_chunk().ok_or(EINVAL)?;
    let (rkey, _padding) = rest.split_first_chunk().ok_or(EINVAL)?;
    let memory = Memory {
        address: u64::from_be_bytes(*address),
        length: u64::from_be_bytes(*length),
        rkey: u32::from_be_bytes(*rkey),
    };
    // So that the address of no sector wraps around.
    let end = memory.address.checked_add(memory.length);
    end.map(|_| memory).ok_or(EINVAL)
}

/// Adds a disk of the size of `memory`, with all requests on `queue`. Sleeps.
fn add_disk(
    queue: &Arc<QueuePair<Lane>>,
    memory: Memory,
    module: &'static ThisModule,
) -> Result<Disk<RemoteDisk>> {
    let config = TagSetConfig {
        queues: QueueCounts {
            default: 1,
            ..QueueCounts::default()
        },
        kinds: QueueKinds::Default,
        depth: DEPTH,
        reserved_tags: 0,
        numa_node: TagSetConfig::NO_NODE,
        timeout: REQUEST_TIMEOUT,
    };
    let queue = queue.clone();
    let set = TagSet::<RemoteDisk>::new(config, Remote { queue, memory })?;
    let config = DiskConfig {
        name: NAME,
        limits: Limits {
            max_segments: MAX_SGE as u16,
            ..Limits::default()
        },
        capacity_sectors: memory.length / u64::from(SECTOR_SIZE),
        read_only: false,
        module,
        parent: None,
        openers: &Openers::new()?,
    };
    Disk::new(config, set, ())
}

/// Where requests go.
#[derive(Clone)]
struct Remote {
    queue: Arc<QueuePair<Lane>>,
    memory: Memory,
}

impl Remote {
    /// Returns the memory of a request's sectors, which the block layer keeps within the disk.
    fn key(&self, request: &Request<RemoteDisk>) -> RemoteKey {
        let offset = request.sector().wrapping_mul(SECTOR_SIZE.into());
        RemoteKey {
            address: self.memory.address.wrapping_add(offset),
            length: request.bytes(),
            rkey: self.memory.rkey,
        }
    }
}

/// The driver of the disk.
struct RemoteDisk;

impl Operations for RemoteDisk {
    type SetData = Remote;
    type QueueData = Remote;
    type DiskData = ();
    type RequestData = ();

    fn new_queue(remote: &Remote, _index: u32) -> Result<Remote> {
        Ok(remote.clone())
    }

    fn new_request_data(_: &Remote, _queue: u32) -> impl PinInit<()> {}

    fn queue_rq(
        remote: &Remote,
        _disk: &(),
        request: Request<Self>,
        _last: bool,
        _section: &RcuSection,
    ) -> Result<(), Refused<Self>> {
        let direction = match request.op() {
            Op::Read => Direction::FromDevice,
            Op::Write => Direction::ToDevice,
            _ => return Err(request.refuse(Status::NotSupported)),
        };
        let lane = remote.queue.context();
        let Some(mut transfer) = lane.take() else {
            return Err(request.refuse(Status::Resource));
        };
        let key = remote.key(&request);
        // Before it is posted: it may complete at once.
        request.start();
        let payload = RequestPayload::new(request, None);
        if let Err((error, payload)) = transfer.0.dma_map(payload, direction) {
            lane.give_back(transfer);
            return Err(payload.into_request().refuse(error.into()));
        }
        let posted = remote
            .queue
            .post_send(transfer, |transfer, chain| match direction {
                Direction::ToDevice => chain.write(transfer.0.entries(), key),
                _ => chain.read(transfer.0.entries(), key),
            });
        match posted {
            Err(Unposted { operation, .. }) => match lane.release(operation) {
                Some(request) => Err(request.refuse(Status::Transport)),
                None => Ok(()),
            },
            Ok(()) => Ok(()),
        }
    }

    fn timeout(remote: &Remote, _request: &RequestRef<Self>) -> TimeoutAction {
        remote.queue.context().lose();
        // The drain completes it.
        TimeoutAction::ResetTimer
    }
}

/// The context of the queue pair.
#[pin_data]
struct Lane {
    /// Transfers that are not posted.
    #[pin]
    free: IrqLock<KVec<Operation<Transfer>>>,
    is_lost: RelaxedBool,
    owner: Arc<DiskThread>,
}

impl Lane {
    fn new(
        pd: &Arc<ProtectionDomain>,
        owner: Arc<DiskThread>,
    ) -> Result<impl PinInit<Self, Error>> {
        let mut free = KVec::with_capacity(DEPTH as usize, GFP_KERNEL)?;
        for _ in 0..DEPTH {
            let transfer = Operation::new(Transfer(Mapped::new(pd.clone())?))?;
            free.push(transfer, GFP_KERNEL)?;
        }
        Ok(try_pin_init!(Self {
            free <- new_irq_lock!(free, "rrdma_disk::Lane"),
            is_lost: RelaxedBool::new(false),
            owner,
        }? Error))
    }

    fn take(&self) -> Option<Operation<Transfer>> {
        self.free.lock().pop()
    }

    fn give_back(&self, transfer: Operation<Transfer>) {
        // There is room for all of them.
        let _ = self.free.lock().push_within_capacity(transfer);
    }

    /// Takes a request from its transfer, which may then be used again.
    fn release(&self, mut transfer: Operation<Transfer>) -> Option<Request<RemoteDisk>> {
        let payload = transfer.0.release();
        self.give_back(transfer);
        payload.map(RequestPayload::into_request)
    }

    /// Has the thread end the connection. Any context.
    fn lose(&self) {
        self.is_lost.set(true);
        self.owner.stop();
    }
}

impl QpContext for Lane {
    type QpType = Rc;

    fn failed(queue: &QueuePair<Self>, _failure: WcError) {
        queue.context().lose();
    }

    fn faulted(queue: &QueuePair<Self>, _fault: Fault) {
        queue.context().lose();
    }
}

impl Endpoint for Lane {
    fn lost(queue: &QueuePair<Self>, _cause: Lost) {
        queue.context().lose();
    }
}

/// An RDMA READ or WRITE with the pages of a request.
struct Transfer(Mapped<RequestPayload<RemoteDisk>>);

impl Complete<Lane> for Transfer {
    fn complete(transfer: Operation<Self>, queue: &QueuePair<Lane>, completion: &Completion<'_>) {
        let lane = queue.context();
        let status = match completion.result() {
            Ok(()) => Status::Ok,
            Err(failure) => {
                if !failure.is_flush() {
                    pr_err!("transfer: {failure}\n");
                }
                lane.lose();
                Status::Transport
            }
        };
        if let Some(request) = lane.release(transfer) {
            request.complete(status);
        }
    }
}
