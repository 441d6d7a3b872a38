// SPDX-License-Identifier: GPL-2.0

//! Connections: accepts a connection request, and ends the connection.
//!
//! ```text
//! listener ──▶ Requested ── accept ──▶ Connected ── end ──▶ (ended)
//! ```
//!
//! Each step is a work item that holds a lock, so the steps of a connection exclude each other. If the connection
//! is to end before it is accepted, `accept` fails or queues `end`. A connection is in the list of [`Connections`] until
//! it has ended. It refers to its queue pair, whose context refers to the connection; `end` breaks this cycle.

use crate::{
    devices::{
        DeviceEvents,
        DeviceUse,
        Devices,
        UsedDevices,
        OWNER, //
    },
    queue::{
        Addresses,
        QueueConnection,
        QueueParams,
        TargetQueue,
        PROBES, //
    },
    rdma::{
        Rdma,
        MAX_PAGES,
        MAX_TRANSFER, //
    },
    settings::parameters,
    shared_receives::{
        Share,
        SharedReceives, //
    },
};
use core::{
    mem,
    ops::{
        Deref,
        DerefMut, //
    },
    sync::atomic::{
        AtomicBool,
        AtomicU32,
        Ordering, //
    },
};
use kernel::{
    fmt, impl_has_work, new_mutex, new_work,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
    workqueue::{
        Work,
        WorkItem, //
    },
};
use nvme_proto::{
    format::private_data::{
        CmReply,
        CmStatus, //
    },
    policy::{
        accept::{
            AcceptedQueue,
            Offer,
            ReceiveSupport,
            Receives, //
        },
        command_data::DataLimits,
        connection_table::{
            Budgets,
            ConnectionId,
            ConnectionTable,
            Evictable,
            Newcomer,
            Refused,
            Slot,
            Source,
            SourceLoad, //
        },
        ns_table::Storage, //
    },
};
use nvmet::{
    ControllerId,
    HeldController,
    Port, //
};
use rrdma::{
    log::RateLimit,
    memory,
    net::Address,
    new_irq_lock,
    rdma::{
        client,
        cm::{
            self,
            Accepting,
            Connected,
            Incoming,
            Parameters,
            Unfinished, //
        },
        cq::{
            CompletionQueue,
            Poll, //
        },
        device::{
            Device,
            DeviceId, //
        },
        pd::ProtectionDomain,
        qp::{
            AckTimeout,
            QpCap,
            QpInitAttr,
            QueuePair,
            RdmaRwCap, //
        },
    },
    sync::{
        Deadline,
        IrqLock,
        Msecs,
        OwnedQueue,
        TimedCompletion,
        WaitLimits,
        WorkKind, //
    },
};

/// Time that a host has to complete the exchange of messages.
const ACCEPT_TIME: Msecs = Msecs::from_secs(15);

/// Maximum time-out of a packet that the host does not acknowledge: 2.1 seconds. A host may ask for hours.
const ACK_TIMEOUT: AckTimeout = AckTimeout::of::<19>();

/// Pause of a request until evicted connections have freed their memory.
const PAUSE: Msecs = Msecs::new(20);

/// The work item that accepts a request.
const ACCEPT: u64 = 1;

/// The work item that ends a connection.
const END: u64 = 2;

/// The connections of all ports.
#[pin_data]
pub(crate) struct Connections {
    #[pin]
    list: Mutex<Table>,
    /// Those of admin queues, by which others find controllers. A host has one for up to 128 I/O queues.
    #[pin]
    admin: Mutex<KVec<Arc<Connection>>>,
    devices: Arc<UsedDevices<SharedReceives>>,
    /// `None` until [`start`](Self::start), and once stopped.
    #[pin]
    client: Mutex<Option<Arc<client::Registration<Devices>>>>,
    #[pin]
    work: IrqLock<Option<Workqueues>>,
    /// Listeners that wait for a device.
    #[pin]
    listeners: Mutex<KVec<Arc<TimedCompletion>>>,
    /// Completed when a connection has ended.
    #[pin]
    ended: TimedCompletion,
    /// Receives of a shared receive queue; `None` if each queue has its own.
    shared_receives: Option<u32>,
    /// Completion vector of the next I/O queue.
    next_vector: AtomicU32,
    /// Limits the messages that hosts can cause.
    #[pin]
    log_limit: RateLimit,
}

impl Connections {
    /// Creates an empty list. `shared_receives` is the number of receives of a shared receive queue; with
    /// `None`, each queue has its own. May sleep.
    pub(crate) fn new(shared_receives: Option<u32>) -> Result<Arc<Self>> {
        let most = OwnedQueue::MAX_ACTIVE;
        let work = Workqueues {
            accept: OwnedQueue::new(OWNER, WorkKind::MemReclaim, most)?,
            end: OwnedQueue::new(c"nvmet_rdma_rust_end", WorkKind::MemReclaim, most)?,
        };
        let budgets = Budgets::of_memory(memory::total());
        let table = Table::new(budgets, Vector(KVec::new()), Vector(KVec::new()));
        Arc::pin_init(
            try_pin_init!(Self {
                list <- new_mutex!(table, "nvmet_rdma_rust::Connections"),
                admin <- new_mutex!(KVec::new(), "nvmet_rdma_rust::Connections::admin"),
                devices: UsedDevices::new()?,
                client <- new_mutex!(None, "nvmet_rdma_rust::Connections::client"),
                work <- new_irq_lock!(Some(work), "nvmet_rdma_rust::Connections::work"),
                listeners <- new_mutex!(KVec::new(), "nvmet_rdma_rust::Connections::listeners"),
                ended <- TimedCompletion::new(),
                shared_receives,
                next_vector: AtomicU32::new(0),
                log_limit <- RateLimit::new(),
            }? Error),
            GFP_KERNEL,
        )
    }

    /// Registers with the RDMA core. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`, or the error of the core.
    pub(crate) fn start(self: &Arc<Self>) -> Result {
        let client = client::Registration::new(self.clone() as Arc<_>)?;
        *self.client.lock() = Some(Arc::new(client, GFP_KERNEL)?);
        Ok(())
    }

    /// Waits for steps that run, and unregisters from the RDMA core. No connection is left. Sleeps.
    pub(crate) fn stop(&self) {
        let work = self.work.lock().take();
        drop(work);
        let client = self.client.lock().take();
        drop(client);
    }

    /// Completes `wake` whenever a device was added. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(crate) fn wake_for_devices(&self, wake: Arc<TimedCompletion>) -> Result {
        self.listeners.lock().push(wake, GFP_KERNEL)?;
        Ok(())
    }

    /// Ends what [`wake_for_devices`](Self::wake_for_devices) began. May sleep.
    pub(crate) fn forget_listener(&self, wake: &Arc<TimedCompletion>) {
        self.listeners
            .lock()
            .retain(|known| !Arc::ptr_eq(known, wake));
    }

    /// Accepts a connection request through `port` in another thread. May sleep.
    pub(crate) fn accept(
        self: &Arc<Self>,
        port: &Arc<Port<Rdma>>,
        incoming: Incoming<TargetQueue>,
    ) {
        match self.admit(port, &incoming) {
            Ok((connection, accepted)) => connection.begin(incoming, accepted),
            Err(reason) => {
                let host = incoming.peer_address();
                reject(incoming, reason);
                self.log(host, Refusal::Rejected(reason));
            }
        }
    }

    /// Adds the connection of a request to the list. Others may be evicted for it. May sleep.
    ///
    /// # Errors
    ///
    /// The reason to reject the request with.
    fn admit(
        self: &Arc<Self>,
        port: &Arc<Port<Rdma>>,
        incoming: &Incoming<TargetQueue>,
    ) -> Result<(Arc<Connection>, AcceptedQueue), CmStatus> {
        let accepted = AcceptedQueue::decide(Offer {
            private_data: incoming.peer().private_data(),
            reads_accepted: Some(incoming.peer().initiator_depth),
            max_queue_size: port.max_queue_size(),
        })?;
        let identity = Identity {
            port: port.clone(),
            device: incoming.device().id(),
            host: incoming.peer_address(),
            peer: incoming.reply_address(),
            queue_id: accepted.queue_id,
        };
        let newcomer = Newcomer {
            source: Source(identity.peer),
            bytes: accepted.memory(self.receives_on(incoming.device()), port.in_capsule()),
        };
        let mut connection = None;
        let listed = self
            .list
            .lock()
            .request(newcomer, Deadline::now_ms(), |id| {
                let new = Connection::new(self.clone(), identity, id).ok()?;
                connection = Some(new.clone());
                Some(Listed(new))
            });
        match (listed, connection) {
            (Ok(_), Some(connection)) => {
                self.list_admin(&connection)?;
                Ok((connection, accepted))
            }
            _ => Err(CmStatus::NoResources),
        }
    }

    /// Adds the connection to those of admin queues, if it is one. Forgets it on failure. May sleep.
    fn list_admin(&self, connection: &Arc<Connection>) -> Result<(), CmStatus> {
        if connection.identity.queue_id != 0 {
            return Ok(());
        }
        let pushed = self.admin.lock().push(connection.clone(), GFP_KERNEL);
        pushed.map_err(|_| {
            self.forget(connection);
            CmStatus::NoResources
        })
    }

    /// Returns which receives the queues on a device have. Any context.
    fn receives_on(&self, device: &Device) -> Receives {
        let support = ReceiveSupport {
            is_rnic: device.is_rnic(),
            has_shared: device.has_shared_receives(),
        };
        Receives::decide(self.shared_receives, support)
    }

    /// Counts the connection of a completed request among those that wait for a Connect command. May sleep.
    ///
    /// # Errors
    ///
    /// [`Refused`] if the connection must end.
    fn established(&self, connection: &Connection) -> Result<(), Refused> {
        let mut list = self.list.lock();
        list.establish(connection.id, Deadline::now_ms())
    }

    /// Returns whether another message that a host causes may be logged. Any context.
    fn may_log(&self) -> bool {
        self.log_limit.allows(c"nvmet_rdma_rust")
    }

    fn log(&self, host: Address, refusal: Refusal) {
        if !self.may_log() {
            return;
        }
        match refusal {
            Refusal::Rejected(reason) => {
                pr_warn!(
                    "host {host}: connection request rejected: {}\n",
                    Show(reason)
                );
            }
            Refusal::NoQueue(error) => pr_warn!(
                "host {host}: connection request rejected: cannot create its queue: error {}\n",
                error.to_errno()
            ),
            Refusal::Failed(error) => pr_warn!("host {host}: not connected: {error}\n"),
        }
    }

    /// Ends the connections that `test` selects, in other threads. May sleep.
    pub(crate) fn disconnect(&self, test: impl Fn(&Connection) -> bool) {
        for Listed(connection) in self.list.lock().iter() {
            if test(connection) {
                connection.clone().end();
            }
        }
    }

    /// Returns the host of a controller, if its admin queue is connected. May sleep.
    pub(crate) fn host_of(&self, controller: ControllerId) -> Option<Address> {
        let admin = self.admin.lock();
        let mut connections = admin.iter();
        connections.find_map(|connection| connection.host_of(controller))
    }

    /// Holds the controller that a connection joins. Its admin queue is connected through `port`, and not about to
    /// end. May sleep.
    fn hold_controller(
        &self,
        joining: &Connection,
        port: &Port<Rdma>,
        id: u16,
    ) -> Option<HeldController> {
        // Kept, so that this is before or after a call of `disconnect`, which sets `is_ending` of the admin queue and
        // of the others of its controller.
        let mut list = self.list.lock();
        // Called before and after the Connect command.
        list.look(joining.id);
        let admin = self.admin.lock();
        let mut connections = admin.iter();
        let peer = joining.identity.peer;
        connections.find_map(|connection| connection.hold_own_controller(port, id, peer))
    }

    /// Waits until all connections have ended, and stops. No listener is left. Sleeps.
    pub(crate) fn wait_until_ended(&self) {
        while !self.list.lock().is_empty() {
            self.ended.wait();
        }
        self.stop();
    }

    fn forget(&self, ended: &Arc<Connection>) {
        if ended.identity.queue_id == 0 {
            self.admin.lock().retain(|known| !Arc::ptr_eq(known, ended));
        }
        let removed = self.list.lock().remove(ended.id);
        self.ended.complete();
        drop(removed);
    }
}

impl DeviceEvents for Connections {
    fn added(&self) {
        for wake in self.listeners.lock().iter() {
            wake.complete();
        }
    }

    fn removing(&self, device: &Device) {
        self.disconnect(|connection| connection.identity.device == device.id());
    }
}

/// Workqueues of the connections. To end one, a work item waits until a disk has completed the commands of the
/// host. With a workqueue of their own, such items do not delay connection requests of other hosts.
struct Workqueues {
    accept: OwnedQueue,
    end: OwnedQueue,
}

/// The list of connections.
type Table = ConnectionTable<Vector<Slot<Listed>>, Vector<SourceLoad>>;

/// A connection in the list.
struct Listed(Arc<Connection>);

impl Evictable for Listed {
    fn is_in_use(&self) -> bool {
        self.0
            .with_queue(|queue| queue.sq().is_in_use())
            .unwrap_or(false)
    }

    fn evict(&self) {
        self.0.clone().end();
    }
}

/// Storage of the list.
struct Vector<T>(KVec<T>);

impl<T> Deref for Vector<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for Vector<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

impl<T> Storage<T> for Vector<T> {
    type Error = Error;

    fn reserve_one(&mut self) -> Result {
        Ok(self.0.reserve(1, GFP_KERNEL)?)
    }

    fn insert(&mut self, at: usize, item: T) {
        // The storage has room, so this does not fail.
        let _ = self.0.insert_within_capacity(at, item);
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        self.0.remove(at).ok()
    }
}

/// State of a connection.
enum State {
    Requested(Incoming<TargetQueue>, AcceptedQueue),
    /// Not requested yet, a step runs, or the connection has ended.
    Taken,
    Connected(ConnectedQueue),
}

impl State {
    /// Takes an established connection.
    fn take_connected(&mut self) -> Option<ConnectedQueue> {
        match mem::replace(self, State::Taken) {
            State::Connected(queue) => Some(queue),
            other => {
                *self = other;
                None
            }
        }
    }
}

/// An established connection. The device is released last.
struct ConnectedQueue {
    connected: Connected<TargetQueue>,
    _share: Option<Share>,
    _device: DeviceUse<SharedReceives>,
}

/// What a connection belongs to, from its request on. Connections are selected by this, whatever their state.
struct Identity {
    port: Arc<Port<Rdma>>,
    device: DeviceId,
    /// The address of the host, as it says.
    host: Address,
    /// The address that the reply to its request goes to: what the fabric proves of the host.
    peer: [u8; 16],
    /// 0 for an admin queue.
    queue_id: u16,
}

/// A connection of a host, or the request for one.
#[pin_data]
pub(crate) struct Connection {
    connections: Arc<Connections>,
    identity: Identity,
    /// Its place in the list.
    id: ConnectionId,
    #[pin]
    state: Mutex<State>,
    /// Held by the work item that makes a step.
    #[pin]
    step: Mutex<()>,
    is_ending: AtomicBool,
    /// Completed for the thread that accepts the request.
    wake: Arc<TimedCompletion>,
    #[pin]
    accept: Work<Connection, ACCEPT>,
    #[pin]
    end: Work<Connection, END>,
}

impl_has_work! {
    impl HasWork<Self, ACCEPT> for Connection { self.accept }
    impl HasWork<Self, END> for Connection { self.end }
}

impl WorkItem<ACCEPT> for Connection {
    type Pointer = Arc<Self>;

    // Queued once.
    fn run(this: Arc<Self>) {
        let _step = this.step.lock();
        let state = mem::replace(&mut *this.state.lock(), State::Taken);
        let State::Requested(incoming, accepted) = state else {
            return;
        };
        match Self::establish(&this, incoming, accepted) {
            Ok(queue) => Self::start(&this, queue),
            Err(refusal) => {
                this.connections.log(this.identity.host, refusal);
                this.connections.forget(&this);
            }
        }
    }
}

impl WorkItem<END> for Connection {
    type Pointer = Arc<Self>;

    fn run(this: Arc<Self>) {
        // The connection may be being accepted; `wake` ends its waits.
        let _step = this.step.lock();
        let connected = this.state.lock().take_connected();
        if let Some(queue) = connected {
            this.connections.list.lock().end(this.id);
            queue.release();
            this.connections.forget(&this);
        }
        // Otherwise it is accepted later, and then ended; or it has ended.
    }
}

/// Parts of a new queue.
struct Prepared {
    slots: u16,
    share: Option<Share>,
    device: DeviceUse<SharedReceives>,
    init_attr: QpInitAttr<TargetQueue>,
}

/// Rejects a connection request with a reason.
fn reject(incoming: Incoming<TargetQueue>, reason: CmStatus) {
    // If the host is gone, nobody needs the reason.
    let _ = incoming.reject(&reason.encode());
}

/// Error of accepting a connection request.
enum Refusal {
    /// Rejected for this reason.
    Rejected(CmStatus),
    /// Rejected because its queue could not be created.
    NoQueue(Error),
    /// The host gave up, or the connection manager failed.
    Failed(cm::Error),
}

impl QueueConnection for Connection {
    fn hold_controller(&self, port: &Port<Rdma>, id: u16) -> Option<HeldController> {
        self.connections.hold_controller(self, port, id)
    }

    fn may_log(&self) -> bool {
        self.connections.may_log()
    }

    fn end(self: Arc<Self>) {
        self.is_ending.store(true, Ordering::SeqCst);
        self.wake.complete();
        let connections = self.connections.clone();
        let work = connections.work.lock();
        if let Some(work) = &*work {
            // An error means that it is queued already.
            let _ = work.end.enqueue::<_, END>(self);
        }
    }
}

impl Connection {
    /// Accepts the request in a work item. May sleep.
    fn begin(self: Arc<Self>, incoming: Incoming<TargetQueue>, accepted: AcceptedQueue) {
        incoming.wait_on(self.wake.clone());
        *self.state.lock() = State::Requested(incoming, accepted);
        let connections = self.connections.clone();
        let work = connections.work.lock();
        if let Some(work) = &*work {
            // It is queued only here.
            let _ = work.accept.enqueue::<_, ACCEPT>(self);
        }
    }

    fn new(
        connections: Arc<Connections>,
        identity: Identity,
        id: ConnectionId,
    ) -> Result<Arc<Self>> {
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        Arc::pin_init(
            pin_init!(Self {
                connections,
                identity,
                id,
                state <- new_mutex!(State::Taken, "nvmet_rdma_rust::Connection"),
                step <- new_mutex!((), "nvmet_rdma_rust::Connection::step"),
                is_ending: AtomicBool::new(false),
                wake,
                accept <- new_work!("nvmet_rdma_rust::Connection::accept"),
                end <- new_work!("nvmet_rdma_rust::Connection::end"),
            }),
            GFP_KERNEL,
        )
    }

    /// Returns whether the host connected through `port`.
    pub(crate) fn is_of_port(&self, port: &Arc<Port<Rdma>>) -> bool {
        Arc::ptr_eq(&self.identity.port, port)
    }

    /// Returns whether this is a queue of a controller. May sleep.
    pub(crate) fn is_of_controller(&self, controller: ControllerId) -> bool {
        self.with_queue(|queue| queue.sq().controller() == Some(controller))
            .unwrap_or(false)
    }

    fn host_of(&self, controller: ControllerId) -> Option<Address> {
        let is_admin =
            |queue: &TargetQueue| queue.id() == 0 && queue.sq().controller() == Some(controller);
        self.with_queue(is_admin)?.then_some(self.identity.host)
    }

    /// Holds the controller for an I/O queue of `peer` if this is its admin queue, and not about to end. If a host
    /// had to authenticate here, no other peer gets the controller. May sleep.
    fn hold_own_controller(
        &self,
        port: &Port<Rdma>,
        id: u16,
        peer: [u8; 16],
    ) -> Option<HeldController> {
        if self.is_ending.load(Ordering::SeqCst) {
            return None;
        }
        let held = self.with_queue(|queue| match queue.id() {
            0 => queue.sq().hold_controller(port, id),
            _ => None,
        })??;
        if held.has_key() && peer != self.identity.peer && !parameters::auth_any_peer.get() {
            self.log_other_peer(id);
            return None;
        }
        Some(held)
    }

    #[cold]
    fn log_other_peer(&self, id: u16) {
        if self.connections.log_limit.allows(c"nvmet_rdma_rust") {
            let host = self.identity.host;
            pr_warn!("host {host}: controller {id}: I/O queue of another peer refused\n");
        }
    }

    fn with_queue<R>(&self, function: impl FnOnce(&TargetQueue) -> R) -> Option<R> {
        match &*self.state.lock() {
            State::Connected(queue) => Some(function(queue.connected.queue_pair().context())),
            _ => None,
        }
    }

    /// Returns whether the host answers neither RDMA READs nor probes. To be called by one thread, every
    /// [`ReadLimit::PERIOD`](crate::queue::ReadLimit::PERIOD). May sleep.
    pub(crate) fn is_silent(&self) -> bool {
        match &*self.state.lock() {
            State::Connected(queue) => TargetQueue::is_silent(queue.connected.queue_pair()),
            _ => false,
        }
    }

    fn is_ending(&self) -> bool {
        self.is_ending.load(Ordering::SeqCst)
    }

    /// Waits until evicted connections have freed their memory. Sleeps.
    ///
    /// # Errors
    ///
    /// The reason to reject the request with: it was evicted itself, or has waited too long.
    fn wait_for_memory(&self) -> Result<(), CmStatus> {
        let deadline = Deadline::after(ACCEPT_TIME);
        while !self.is_ending() && deadline.left() != Msecs::new(0) {
            if self.connections.list.lock().may_allocate() {
                return Ok(());
            }
            let _ = self.wake.wait_timeout(PAUSE);
        }
        Err(CmStatus::NoResources)
    }

    /// Accepts the request, and waits until the connection is established. Sleeps.
    // Not inlined, nor are its parts, to keep their locals out of the frame of the work item.
    #[inline(never)]
    fn establish(
        this: &Arc<Self>,
        incoming: Incoming<TargetQueue>,
        accepted: AcceptedQueue,
    ) -> Result<ConnectedQueue, Refusal> {
        if let Err(reason) = this.wait_for_memory() {
            reject(incoming, reason);
            return Err(Refusal::Rejected(reason));
        }
        let Prepared {
            slots,
            share,
            device,
            init_attr,
        } = match this.prepare(incoming.device(), accepted) {
            Ok(prepared) => prepared,
            Err(error) => {
                reject(incoming, CmStatus::NoResources);
                return Err(Refusal::NoQueue(error));
            }
        };
        incoming
            .limit_ack_timeout(ACK_TIMEOUT)
            .map_err(Refusal::NoQueue)?;
        let queue = TargetQueue::new(QueueParams {
            port: this.identity.port.clone(),
            accepted,
            slots,
            addresses: Addresses {
                local: incoming.local_address(),
                host: this.identity.host,
            },
            limits: DataLimits {
                in_capsule: match accepted.queue_id {
                    0 => 0,
                    _ => device.shared().in_capsule(),
                },
                transfer: MAX_TRANSFER,
            },
            kept_receives: share.as_ref().map_or(0, Share::receives),
            connection: this.clone(),
        });
        let accepting = match incoming.create_queue_pair(init_attr, queue, OWNER) {
            Ok(accepting) => accepting,
            Err(Unfinished { step, error }) => {
                reject(step, CmStatus::NoResources);
                return Err(Refusal::Failed(error));
            }
        };
        let queue_pair = accepting.queue_pair().clone();
        match this.complete(accepting, accepted) {
            Ok(connected) => Ok(ConnectedQueue {
                connected,
                _share: share,
                _device: device,
            }),
            Err(refusal) => {
                end_queue(queue_pair);
                Err(refusal)
            }
        }
    }

    /// Starts the commands of an established connection, or ends it. Sleeps.
    fn start(this: &Arc<Self>, queue: ConnectedQueue) {
        let queue_pair = queue.connected.queue_pair().clone();
        // From here on, whoever ends a controller finds the connection. No command was executed before, so there
        // is no controller to miss.
        *this.state.lock() = State::Connected(queue);
        match this.connections.established(this) {
            Ok(()) if !this.is_ending() => TargetQueue::start(&queue_pair),
            _ => this.clone().end(),
        }
    }

    /// Makes the receives that the queues on a device share, if they do. Sleeps.
    fn share(&self, pd: &Arc<ProtectionDomain>, in_capsule: u32) -> Result<SharedReceives> {
        let device = pd.device();
        match self.connections.receives_on(device) {
            Receives::Shared(receives) => SharedReceives::new(pd, receives, in_capsule),
            Receives::Own => Ok(SharedReceives::none(in_capsule)),
            Receives::Unsupported => {
                let device = device.name();
                pr_warn!(
                    "{device}: no shared receive queues: each queue has receives of its own\n"
                );
                Ok(SharedReceives::none(in_capsule))
            }
        }
    }

    /// Begins the use of a device, and returns the attributes of a queue pair for a queue. Sleeps.
    #[inline(never)]
    fn prepare(&self, device: &Device, accepted: AcceptedQueue) -> Result<Prepared> {
        let connections = &self.connections;
        let client = connections.client.lock().clone().ok_or(ENODEV)?;
        // Ports with other limits have other shared receives.
        let in_capsule = in_capsule(&self.identity.port, device, connections.receives_on(device));
        let fit = |shared: &SharedReceives| shared.in_capsule() == in_capsule;
        let share = |pd: &Arc<ProtectionDomain>| self.share(pd, in_capsule);
        // On iWARP, a host has keys for memory that the target reads into.
        let owner = device.is_rnic().then_some(self.identity.peer);
        let devices = &connections.devices;
        let device = devices.acquire(&client, device, owner, fit, share)?;
        let vector = match accepted.queue_id {
            0 => 0,
            _ => connections.next_vector.fetch_add(1, Ordering::Relaxed),
        };
        let vector = vector % device.device().attributes().completion_vectors.max(1);
        let shared = device.shared().of_vector(vector).cloned();
        // Each slot may have a SEND outstanding, for which the host has a receive. But a host must not
        // keep shared receives waiting for a slot.
        let slots = match shared {
            Some(_) => accepted.commands,
            None => accepted.responses,
        };
        let capacity = QpCap {
            sends: u32::from(slots).saturating_add(PROBES),
            receives: accepted.commands.into(),
            send_sges: 1,
        };
        let rdma_rw = RdmaRwCap {
            at_once: 1,
            small_at_once: slots.into(),
            pieces: MAX_PAGES,
        };
        let entries = capacity
            .completions()
            .saturating_add(rdma_rw.requests(device.device(), capacity));
        let share = match &shared {
            Some(shared) => Some(shared.share(accepted.commands, entries)?),
            None => None,
        };
        let cq = match &share {
            Some(share) => share.completion_queue().clone(),
            None => {
                let pool = device.device().clone();
                CompletionQueue::pool_get(pool, entries, vector, Poll::Workqueue)?
            }
        };
        let init_attr = QpInitAttr::new(device.pd().clone(), cq, capacity)
            .with_rdma_rw(rdma_rw)
            .with_receive_sges(device.device().attributes().max_recv_sge.min(2));
        let init_attr = match shared {
            Some(shared) => init_attr.with_shared_receives(shared.queue().clone()),
            None => init_attr,
        };
        Ok(Prepared {
            slots,
            share,
            device,
            init_attr,
        })
    }

    /// Posts the receives, and accepts the request, unless the connection ends. Sleeps.
    #[inline(never)]
    fn complete(
        &self,
        accepting: Accepting<TargetQueue>,
        accepted: AcceptedQueue,
    ) -> Result<Connected<TargetQueue>, Refusal> {
        if let Err(error) = TargetQueue::fill(accepting.queue_pair()) {
            // If the host is gone, nobody needs the reason.
            let _ = accepting.reject(&CmStatus::NoResources.encode());
            return Err(Refusal::NoQueue(error));
        }
        let reply = CmReply {
            receive_queue_size: accepted.commands,
        };
        let parameters = Parameters {
            private_data: &reply.encode(),
            initiator_depth: u8::MAX,
            ..Parameters::default()
        };
        let is_over = || self.is_ending();
        accepting
            .accept(parameters, WaitLimits::new(ACCEPT_TIME, &is_over))
            .map_err(Refusal::Failed)
    }
}

/// Returns how many bytes of data a capsule of an I/O queue may have. If the receives of a device have no room for
/// data, the hosts of the port are told so: nvmet has one limit for all devices of a port.
fn in_capsule(port: &Port<Rdma>, device: &Device, receives: Receives) -> u32 {
    let limits = device.attributes();
    let sges = match receives {
        Receives::Shared(_) => limits.max_recv_sge.min(limits.max_srq_sge),
        Receives::Own | Receives::Unsupported => limits.max_recv_sge,
    };
    match sges {
        // A receive with data has two pieces of memory.
        0..2 => {
            if port.stop_in_capsule() {
                let (number, device) = (port.number(), device.name());
                pr_warn!("port {number}: no in-capsule data: {device} has one SGE for a receive\n");
            }
            0
        }
        _ => port.in_capsule(),
    }
}

/// Ends a queue whose connection has ended, or was never established. Sleeps.
fn end_queue(queue_pair: Arc<QueuePair<TargetQueue>>) {
    queue_pair.drain();
    TargetQueue::end(&queue_pair);
}

impl ConnectedQueue {
    /// Disconnects, and ends the queue. Sleeps.
    fn release(self) {
        self.connected.disconnect();
        end_queue(self.connected.queue_pair().clone());
    }
}

/// Prints a reason as the kernel's formatter needs it.
struct Show(CmStatus);

impl fmt::Display for Show {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        core::fmt::Display::fmt(&self.0, f)
    }
}
