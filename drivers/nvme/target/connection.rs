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
    parameters,
    queue::{
        Addresses,
        QueueConnection,
        QueueParams,
        TargetQueue, //
    },
    rdma::{
        Rdma,
        MAX_PAGES,
        MAX_TRANSFER, //
    },
    shared_receives::SharedReceives,
};
use core::{
    mem,
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
            HostLoad,
            Offer, //
        },
        command_data::DataLimits, //
    },
};
use nvmet::{
    ControllerId,
    HeldController,
    Port, //
};
use rrdma::{
    log::RateLimit,
    net::Address,
    new_irq_lock,
    rdma::{
        client,
        cm::{
            self,
            Accepting,
            Connected,
            Incoming,
            Parameters, //
        },
        cq::{
            CompletionQueue,
            Poll, //
        },
        device::{
            Device,
            DeviceRef, //
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

/// Time that a host has to send a Connect command on a connection. After that, the connection ends if the host
/// has too many such connections: the host may have lost it unnoticed.
const CONNECT_TIME: Msecs = Msecs::from_secs(30);

/// Maximum time-out of a packet that the host does not acknowledge: 2.1 seconds. A host may ask for hours.
const ACK_TIMEOUT: AckTimeout = AckTimeout::of::<19>();

/// Maximum number of requests of all hosts that wait for their step, or for the host. More are rejected.
const MAX_REQUESTS: u32 = 256;

/// The work item that accepts a request.
const ACCEPT: u64 = 1;

/// The work item that ends a connection.
const END: u64 = 2;

/// The connections of all ports.
#[pin_data]
pub(crate) struct Connections {
    #[pin]
    list: Mutex<KVec<Arc<Connection>>>,
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
    /// Requests that were not accepted yet.
    requests: AtomicU32,
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
        Arc::pin_init(
            try_pin_init!(Self {
                list <- new_mutex!(KVec::new(), "nvmet_rdma_rust::Connections"),
                devices: UsedDevices::new()?,
                client <- new_mutex!(None, "nvmet_rdma_rust::Connections::client"),
                work <- new_irq_lock!(Some(work), "nvmet_rdma_rust::Connections::work"),
                listeners <- new_mutex!(KVec::new(), "nvmet_rdma_rust::Connections::listeners"),
                ended <- TimedCompletion::new(),
                shared_receives,
                requests: AtomicU32::new(0),
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
        let client = client::Registration::new(self.clone() as Arc<_>);
        *self.client.lock() = Some(Arc::pin_init(client, GFP_KERNEL)?);
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
        let host = incoming.peer_address();
        let load = self.load_of(host);
        let admitted = Permit::new(self).ok_or(CmStatus::NoResources);
        let admitted = admitted.and_then(|permit| load.admit().map(|()| permit));
        let permit = match admitted {
            Ok(permit) => permit,
            Err(reason) => {
                reject(incoming, reason);
                if load.has_too_many_without_controller() {
                    self.disconnect(|known| known.host.ip() == host.ip() && known.is_overdue());
                }
                return self.log(host, Refusal::Rejected(reason));
            }
        };
        let listed = Connection::new(port.clone(), incoming, permit).and_then(|connection| {
            self.list.lock().push(connection.clone(), GFP_KERNEL)?;
            Ok(connection)
        });
        match listed {
            Ok(connection) => connection.begin(),
            Err(error) => self.log(host, Refusal::NoQueue(error)),
        }
    }

    /// Counts the connections of `host` that are not established, have no controller, or are ending. May sleep.
    fn load_of(&self, host: Address) -> HostLoad {
        let list = self.list.lock();
        let of_host = list.iter().filter(|known| known.host.ip() == host.ip());
        of_host.fold(HostLoad::default(), |mut load, connection| {
            if connection.is_ending.load(Ordering::Relaxed) {
                load.ending = load.ending.saturating_add(1);
            } else if !connection.is_established.load(Ordering::Relaxed) {
                load.requests = load.requests.saturating_add(1);
            } else if !connection.has_controller() {
                load.without_controller = load.without_controller.saturating_add(1);
            }
            load
        })
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
        for connection in self.list.lock().iter() {
            if test(connection) {
                connection.clone().end();
            }
        }
    }

    /// Returns the host of a controller, if its admin queue is connected. May sleep.
    pub(crate) fn host_of(&self, controller: ControllerId) -> Option<Address> {
        let list = self.list.lock();
        list.iter()
            .find_map(|connection| connection.host_of(controller))
    }

    /// Holds a controller for an I/O queue of `peer`. Its admin queue is connected through `port`, and not about to
    /// end. May sleep.
    fn hold_controller(&self, port: &Port<Rdma>, id: u16, peer: [u8; 16]) -> Option<HeldController> {
        let list = self.list.lock();
        let find = |known: &Arc<Connection>| known.hold_own_controller(port, id, peer);
        list.iter().find_map(find)
    }

    /// Waits until all connections have ended, and stops. No listener is left. Sleeps.
    pub(crate) fn wait_until_ended(&self) {
        while !self.list.lock().is_empty() {
            self.ended.wait();
        }
        self.stop();
    }

    fn forget(&self, ended: &Arc<Connection>) {
        self.list
            .lock()
            .retain(|connection| !Arc::ptr_eq(connection, ended));
        self.ended.complete();
    }
}

impl DeviceEvents for Connections {
    fn added(&self) {
        for wake in self.listeners.lock().iter() {
            wake.complete();
        }
    }

    fn removing(&self, device: &Device) {
        self.disconnect(|connection| connection.uses(device));
        // Connections that are being accepted stop waiting for their hosts, if they are on the device.
        for connection in self.list.lock().iter() {
            if !connection.is_established.load(Ordering::Relaxed) {
                connection.wake.complete();
            }
        }
    }
}

/// Workqueues of the connections. To end one, a work item waits until a disk has completed the commands of the
/// host. With a workqueue of their own, such items do not delay connection requests of other hosts.
struct Workqueues {
    accept: OwnedQueue,
    end: OwnedQueue,
}

/// One of [`MAX_REQUESTS`] requests that wait for their step, or for the host.
struct Permit(Arc<Connections>);

impl Permit {
    /// Returns a permit; `None` if there are too many requests.
    fn new(connections: &Arc<Connections>) -> Option<Self> {
        let permit = Self(connections.clone());
        let before = connections.requests.fetch_add(1, Ordering::Relaxed);
        (before < MAX_REQUESTS).then_some(permit)
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.requests.fetch_sub(1, Ordering::Relaxed);
    }
}

/// State of a connection.
enum State {
    Requested(Incoming<TargetQueue>, Permit),
    /// A step runs, or the connection has ended.
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
    /// When the host must have sent a Connect command.
    connect_by: Deadline,
    device: DeviceUse<SharedReceives>,
}

/// A connection of a host, or the request for one.
#[pin_data]
pub(crate) struct Connection {
    connections: Arc<Connections>,
    port: Arc<Port<Rdma>>,
    /// The address of the host.
    host: Address,
    /// The address that the reply to its request goes to: what the fabric proves of the host.
    peer: [u8; 16],
    #[pin]
    state: Mutex<State>,
    /// Held by the work item that makes a step.
    #[pin]
    step: Mutex<()>,
    is_established: AtomicBool,
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
        let State::Requested(incoming, permit) = state else {
            return;
        };
        let established = Self::establish(&this, incoming);
        // The host has completed its request. Its first commands may wait for a disk.
        drop(permit);
        match established {
            Ok(queue) => Self::start(&this, queue),
            Err(refusal) => {
                this.connections.log(this.host, refusal);
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
            queue.release();
            this.connections.forget(&this);
        }
        // Otherwise it is accepted later, and then ended; or it has ended.
    }
}

/// Parts of a new queue.
struct Prepared {
    slots: u16,
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
        self.connections.hold_controller(port, id, self.peer)
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
    /// Accepts the request in a work item. Any context.
    fn begin(self: Arc<Self>) {
        let connections = self.connections.clone();
        let work = connections.work.lock();
        if let Some(work) = &*work {
            // It is queued only here.
            let _ = work.accept.enqueue::<_, ACCEPT>(self);
        }
    }

    fn new(
        port: Arc<Port<Rdma>>,
        incoming: Incoming<TargetQueue>,
        permit: Permit,
    ) -> Result<Arc<Self>> {
        let wake = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        incoming.wait_on(wake.clone());
        Arc::pin_init(
            pin_init!(Self {
                connections: permit.0.clone(),
                port,
                host: incoming.peer_address(),
                peer: incoming.reply_address(),
                state <- new_mutex!(
                    State::Requested(incoming, permit),
                    "nvmet_rdma_rust::Connection"
                ),
                step <- new_mutex!((), "nvmet_rdma_rust::Connection::step"),
                is_established: AtomicBool::new(false),
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
        Arc::ptr_eq(&self.port, port)
    }

    /// Returns whether this is a queue of a controller. May sleep.
    pub(crate) fn is_of_controller(&self, controller: ControllerId) -> bool {
        self.with_queue(|queue| queue.sq().controller() == Some(controller))
            .unwrap_or(false)
    }

    /// Returns whether a Connect command has succeeded. May sleep.
    fn has_controller(&self) -> bool {
        self.with_queue(|queue| queue.sq().controller().is_some())
            .unwrap_or(false)
    }

    /// Returns whether the time for a Connect command is over, and none has succeeded. May sleep.
    fn is_overdue(&self) -> bool {
        let is_late = match &*self.state.lock() {
            State::Connected(queue) => queue.connect_by.left() == Msecs::new(0),
            _ => false,
        };
        is_late && !self.has_controller()
    }

    fn host_of(&self, controller: ControllerId) -> Option<Address> {
        let is_admin =
            |queue: &TargetQueue| queue.id() == 0 && queue.sq().controller() == Some(controller);
        self.with_queue(is_admin)?.then_some(self.host)
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
        if held.has_key() && peer != self.peer && !parameters::auth_any_peer.get() {
            self.log_other_peer(id);
            return None;
        }
        Some(held)
    }

    #[cold]
    fn log_other_peer(&self, id: u16) {
        if self.connections.log_limit.allows(c"nvmet_rdma_rust") {
            let host = self.host;
            pr_warn!("host {host}: controller {id}: I/O queue of another peer refused\n");
        }
    }

    fn with_queue<R>(&self, function: impl FnOnce(&TargetQueue) -> R) -> Option<R> {
        match &*self.state.lock() {
            State::Connected(queue) => Some(function(queue.connected.queue_pair().context())),
            _ => None,
        }
    }

    /// Returns whether the host has not answered an RDMA READ in time. To be called by one thread, every
    /// [`ReadLimit::PERIOD`](crate::queue::ReadLimit::PERIOD). May sleep.
    pub(crate) fn has_overdue_read(&self) -> bool {
        self.with_queue(TargetQueue::has_overdue_read)
            .unwrap_or(false)
    }

    fn uses(&self, device: &Device) -> bool {
        match &*self.state.lock() {
            State::Connected(queue) => queue.device.is_of(device),
            _ => false,
        }
    }

    /// Accepts the request, and waits until the connection is established. Sleeps.
    // Not inlined, nor are its parts, to keep their locals out of the frame of the work item.
    #[inline(never)]
    fn establish(
        this: &Arc<Self>,
        incoming: Incoming<TargetQueue>,
    ) -> Result<ConnectedQueue, Refusal> {
        let decided = AcceptedQueue::decide(Offer {
            private_data: incoming.peer().private_data(),
            reads_accepted: Some(incoming.peer().initiator_depth),
            max_queue_size: this.port.max_queue_size(),
        });
        let accepted = match decided {
            Ok(accepted) => accepted,
            Err(reason) => {
                reject(incoming, reason);
                return Err(Refusal::Rejected(reason));
            }
        };
        let Prepared {
            slots,
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
            port: this.port.clone(),
            accepted,
            slots,
            addresses: Addresses {
                local: incoming.local_address(),
                host: this.host,
            },
            limits: DataLimits {
                in_capsule: match accepted.queue_id {
                    0 => 0,
                    _ => device.shared().in_capsule(),
                },
                transfer: MAX_TRANSFER,
            },
            connection: this.clone(),
        });
        let accepting = incoming
            .create_queue_pair(init_attr, queue, OWNER)
            .map_err(|failed| Refusal::Failed(failed.error))?;
        let queue_pair = accepting.queue_pair().clone();
        match this.complete(accepting, accepted, device.device()) {
            Ok(connected) => Ok(ConnectedQueue {
                connected,
                connect_by: Deadline::after(CONNECT_TIME),
                device,
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
        let device = queue.device.device().clone();
        this.is_established.store(true, Ordering::Relaxed);
        // From here on, whoever ends a controller or a device finds the connection. No command was
        // executed before, so there is no controller to miss.
        *this.state.lock() = State::Connected(queue);
        match this.is_ending.load(Ordering::SeqCst) || device.is_removing() {
            true => this.clone().end(),
            false => TargetQueue::start(&queue_pair),
        }
    }

    /// Makes the receives that the queues on a device share, if they do. Sleeps.
    fn share(&self, pd: &Arc<ProtectionDomain>, in_capsule: u32) -> Result<SharedReceives> {
        let device = pd.device();
        let Some(receives) = self.connections.shared_receives else {
            return Ok(SharedReceives::none(in_capsule));
        };
        if device.attributes().max_srq == 0 {
            pr_warn!("{}: has no shared receive queues\n", device.name());
            return Ok(SharedReceives::none(in_capsule));
        }
        SharedReceives::new(pd, receives, in_capsule)
    }

    /// Begins the use of a device, and returns the attributes of a queue pair for a queue. Sleeps.
    #[inline(never)]
    fn prepare(&self, device: &Device, accepted: AcceptedQueue) -> Result<Prepared> {
        let connections = &self.connections;
        let client = connections.client.lock().clone().ok_or(ENODEV)?;
        // Ports with other limits have other shared receives.
        let in_capsule = in_capsule(&self.port, device, self.connections.shared_receives);
        let fit = |shared: &SharedReceives| shared.in_capsule() == in_capsule;
        let share = |pd: &Arc<ProtectionDomain>| self.share(pd, in_capsule);
        let device = connections.devices.acquire(&client, device, fit, share)?;
        let vector = match accepted.queue_id {
            0 => 0,
            _ => connections.next_vector.fetch_add(1, Ordering::Relaxed),
        };
        let vector = vector % device.device().attributes().completion_vectors.max(1);
        let shared = device.shared().of_vector(vector);
        // Each slot may have a SEND outstanding, for which the host has a receive. But a host must not
        // keep shared receives waiting for a slot.
        let slots = match shared {
            Some(_) => accepted.commands,
            None => accepted.responses,
        };
        let capacity = QpCap {
            sends: slots.into(),
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
            .saturating_add(rdma_rw.requests(device.device(), capacity))
            // All shared receives may complete on one queue pair.
            .saturating_add(shared.map_or(0, |shared| shared.receives()));
        let pool = device.device().clone();
        let cq = CompletionQueue::pool_get(pool, entries, vector, Poll::Workqueue)?;
        let init_attr = QpInitAttr::new(device.pd().clone(), cq, capacity)
            .with_rdma_rw(rdma_rw)
            .with_receive_sges(device.device().attributes().max_recv_sge.min(2));
        let init_attr = match shared {
            Some(shared) => init_attr.with_shared_receives(shared.clone()),
            None => init_attr,
        };
        Ok(Prepared {
            slots,
            device,
            init_attr,
        })
    }

    /// Posts the receives, and accepts the request, unless the connection ends or the device is removed. Sleeps.
    #[inline(never)]
    fn complete(
        &self,
        accepting: Accepting<TargetQueue>,
        accepted: AcceptedQueue,
        device: &DeviceRef,
    ) -> Result<Connected<TargetQueue>, Refusal> {
        TargetQueue::fill(accepting.queue_pair()).map_err(Refusal::NoQueue)?;
        let reply = CmReply {
            receive_queue_size: accepted.commands,
        };
        let parameters = Parameters {
            private_data: &reply.encode(),
            initiator_depth: u8::MAX,
            ..Parameters::default()
        };
        let is_over = || self.is_ending.load(Ordering::SeqCst) || device.is_removing();
        accepting
            .accept(parameters, WaitLimits::new(ACCEPT_TIME, &is_over))
            .map_err(Refusal::Failed)
    }
}

/// Returns how many bytes of data a capsule of an I/O queue may have. If the receives of a device have no room for
/// data, the hosts of the port are told so: nvmet has one limit for all devices of a port.
fn in_capsule(port: &Port<Rdma>, device: &Device, shared_receives: Option<u32>) -> u32 {
    let limits = device.attributes();
    let sges = match shared_receives {
        Some(_) if limits.max_srq != 0 => limits.max_recv_sge.min(limits.max_srq_sge),
        _ => limits.max_recv_sge,
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
