// SPDX-License-Identifier: GPL-2.0

//! Connects one queue: from an address to a connected queue pair.
//!
//! The target then expects a Fabrics Connect command on the queue, which the ULP sends.

use crate::{
    admin_channel::AdminChannel,
    conn_error::{
        ConnError,
        ErrorNotifier, //
    },
    params::{
        CompletionMode,
        QueueConfig,
        ADMIN_CHANNELS, //
    },
    queue::{
        CoreParts,
        Queue,
        QueueParts, //
    },
    trace::QueueId,
    ulp::{
        Ulp,
        Waiter, //
    },
};
use core::marker::PhantomData;
use kernel::{
    prelude::*,
    sync::Arc, //
};
use nvme_proto::format::private_data::{
    CmQueue,
    CmRequest, //
};
use rrdma::{
    net::Namespace,
    rdma::{
        cm::{
            self,
            Address,
            Addressed,
            Connected,
            Connecting,
            Id,
            Observer,
            Parameters,
            Prepared,
            WaitLimits, //
        },
        cq::{
            CompletionQueue,
            DirectQueue,
            Poll, //
        },
        device::{
            Capabilities,
            Device,
            DeviceRef, //
        },
        pd::ProtectionDomain,
        qp::QpInitAttr,
    },
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};

/// Time limit of one step of the connection manager, as in the C host.
const STEP: Msecs = Msecs::new(3000);

/// Retry counts, for timeouts and for RNR NAKs: the maximum, as in the C host.
const RETRIES: u8 = 7;

/// Path of a controller's connections.
#[derive(Clone, Copy)]
pub struct ConnectPath<'a> {
    /// Network namespace of the connections.
    pub namespace: &'a Namespace,
    /// Source address; `None` to let routing choose it.
    pub source: Option<&'a Address>,
    /// Address of the target.
    pub target: &'a Address,
    /// IP type of service, or InfiniBand service level.
    pub service_type: Option<u8>,
}

/// A controller of the ULP, as a user of an RDMA device.
pub trait DeviceUser: Waiter {
    /// Acquires a device; `None` if it is being removed. May sleep.
    fn acquire(&self, device: &Device) -> Option<DeviceRef>;

    /// Records that the controller has objects on `device` until its connections end. From now on,
    /// removal of the device must end these connections. May sleep.
    ///
    /// # Errors
    ///
    /// [`ConnError::DeviceRemoved`] if the removal has already begun.
    fn use_device(&self, device: &DeviceRef) -> Result<(), ConnError>;
}

/// Configuration that all queues of a controller have in common.
pub struct ControllerConfig<'a, U: Ulp> {
    /// Number of the controller, as its ULP traces it.
    pub ctrl_id: i32,
    /// Path of the connections.
    pub path: ConnectPath<'a>,
    /// The controller.
    pub user: &'a dyn DeviceUser,
    /// Completed by the connection manager for the thread that connects. An interruption of the
    /// controller's waits must complete it, too.
    pub wake: Arc<TimedCompletion>,
    /// Keeps the errors of the connections.
    pub notifier: Arc<ErrorNotifier<U::Wake>>,
    /// Deadline for connecting all queues.
    pub deadline: Deadline,
}

/// Configuration of one queue.
pub struct QueueSetup<'a, U: Ulp> {
    /// Sizes of the queue.
    pub config: QueueConfig,
    /// Controller identifier of the association, which an I/O queue sends; see [`CmQueue`].
    pub controller_id: u16,
    /// Counters for this queue number.
    pub stats: U::Stats,
    /// Data that the ULP keeps with the queue.
    pub data: U::QueueData,
    /// Admin channels, for an admin queue.
    pub channels: Option<[&'a AdminChannel<U>; ADMIN_CHANNELS]>,
}

/// An object of a queue.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum QueueObject {
    /// The CM ID.
    ConnectionId,
    /// The protection domain of the controller.
    ProtectionDomain,
    /// The completion queue.
    CompletionQueue,
    /// The queue pair, with its [`Queue`].
    QueuePair,
    /// The receives for responses.
    Receives,
}

impl QueueObject {
    /// Returns the name of the object, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::ConnectionId => "connection id",
            Self::ProtectionDomain => "protection domain",
            Self::CompletionQueue => "completion queue",
            Self::QueuePair => "queue pair",
            Self::Receives => "receives",
        }
    }
}

/// Reason why a queue could not be connected.
pub enum QueueConnectError {
    /// An error was reported meanwhile, or the device is being removed.
    ConnError(ConnError),
    /// A step of the connection manager failed.
    Cm {
        /// The step, with its error.
        error: cm::Error,
        /// The device, if the address was resolved.
        device: Option<DeviceRef>,
    },
    /// The device does not support fast registration of memory (`IB_DEVICE_MEM_MGT_EXTENSIONS`).
    NoRegistration(DeviceRef),
    /// An object could not be created.
    Object {
        /// The object.
        object: QueueObject,
        /// Error of the kernel.
        error: Error,
    },
}

/// Connects the queues of one controller.
pub struct QueueConnector<'a, U: Ulp> {
    controller: ControllerConfig<'a, U>,
    /// Created with the first queue. Every controller has a domain of its own, so no target can use
    /// a key that another target was given.
    pd: Option<Arc<ProtectionDomain>>,
}

impl<'a, U: Ulp> QueueConnector<'a, U> {
    /// Returns a connector for a controller without queues.
    pub fn new(controller: ControllerConfig<'a, U>) -> Self {
        Self {
            controller,
            pd: None,
        }
    }

    /// Returns a connector for further queues of a controller, with the protection domain of its
    /// admin queue.
    pub fn with_domain(controller: ControllerConfig<'a, U>, pd: Arc<ProtectionDomain>) -> Self {
        Self {
            controller,
            pd: Some(pd),
        }
    }

    /// Connects a queue. Sleeps.
    ///
    /// # Errors
    ///
    /// [`QueueConnectError`]. All objects of the queue are released then.
    pub fn connect(
        &mut self,
        setup: QueueSetup<'_, U>,
    ) -> Result<Connected<Queue<U>>, QueueConnectError> {
        let connecting = self.start(setup)?;
        self.finish(connecting)
    }

    /// Creates the objects of a queue, and sends its connection request. Sleeps, but not for the
    /// reply: several queues connect in parallel.
    ///
    /// # Errors
    ///
    /// [`QueueConnectError`]. All objects of the queue are released then.
    // Steps are not inlined, so each releases its stack before the next.
    #[inline(never)]
    pub fn start(
        &mut self,
        setup: QueueSetup<'_, U>,
    ) -> Result<Connecting<Queue<U>>, QueueConnectError> {
        let user = self.controller.user;
        let cancelled = || user.interruption().is_some();
        let limits = self.limits(&cancelled);
        let addressed = self.resolve(self.queue_id(setup.config.qid), limits)?;
        let reads = addressed.device().attributes().max_qp_rd_atom;
        let request = CmRequest {
            queue: CmQueue::new(setup.config.qid, setup.controller_id),
            receive_queue_size: setup.config.entries,
            send_queue_size: setup.config.entries.saturating_sub(1),
        };
        let prepared = self
            .prepare(addressed, setup, limits)
            .map_err(|error| self.cause_of(error))?;
        let device = prepared.queue_pair().device().clone();
        let parameters = Parameters {
            private_data: &request.encode(),
            responder_resources: u8::try_from(reads).unwrap_or(u8::MAX),
            initiator_depth: 0,
            retry_count: RETRIES,
            rnr_retry_count: RETRIES,
        };
        prepared
            .start(parameters, limits)
            .map_err(|error| self.cm_failed(error, Some(device)))
    }

    /// Waits until a queue is connected. Sleeps.
    ///
    /// # Errors
    ///
    /// [`QueueConnectError`]. All objects of the queue are released then.
    #[inline(never)]
    pub fn finish(
        &self,
        connecting: Connecting<Queue<U>>,
    ) -> Result<Connected<Queue<U>>, QueueConnectError> {
        let user = self.controller.user;
        let cancelled = || user.interruption().is_some();
        let device = connecting.queue_pair().device().clone();
        let connection = connecting
            .finish(self.limits(&cancelled))
            .map_err(|error| self.cm_failed(error, Some(device)))?;
        connection.queue_pair().context().set_connected();
        Ok(connection)
    }

    fn limits<'b>(&self, cancelled: &'b dyn Fn() -> bool) -> WaitLimits<'b> {
        let deadline = self.controller.deadline;
        WaitLimits {
            limit: STEP.min(deadline.left()),
            deadline,
            cancelled,
        }
    }

    /// Creates the CM ID of a queue, and resolves the address to a device.
    #[inline(never)]
    fn resolve(
        &self,
        id: QueueId,
        limits: WaitLimits<'_>,
    ) -> Result<Addressed<Queue<U>>, QueueConnectError> {
        let path = &self.controller.path;
        let cm_id = self.cm_id(id).map_err(failed(QueueObject::ConnectionId))?;
        let addressed = cm_id
            .resolve(path.source, path.target, limits)
            .map_err(|error| self.cm_failed(error, None))?;
        if let Some(service_type) = path.service_type {
            addressed.set_service_type(service_type);
        }
        Ok(addressed)
    }

    fn cm_id(&self, queue: QueueId) -> Result<Id<Queue<U>>> {
        let wake = self.controller.wake.clone();
        let id = Id::new(self.controller.path.namespace, wake, U::OWNER)?;
        let observer = CmTrace::<U> {
            queue,
            _ulp: PhantomData,
        };
        id.observe(Arc::new(observer, GFP_KERNEL)?)?;
        Ok(id)
    }

    /// Creates the objects of a queue on the device of its address.
    #[inline(never)]
    fn prepare(
        &mut self,
        mut addressed: Addressed<Queue<U>>,
        setup: QueueSetup<'_, U>,
        limits: WaitLimits<'_>,
    ) -> Result<Prepared<Queue<U>>, QueueConnectError> {
        let Some(device) = self.controller.user.acquire(addressed.device()) else {
            return Err(QueueConnectError::ConnError(ConnError::DeviceRemoved));
        };
        // Found while the objects are created.
        if let Err(error) = addressed.begin_route(limits) {
            let device = Some(device);
            return Err(QueueConnectError::Cm { error, device });
        }
        let attributes = device.attributes();
        let capabilities = attributes.capabilities;
        let mut config = setup.config;
        config.pages = config.pages.min(attributes.max_fast_reg_page_list_len);
        if !capabilities.contains(Capabilities::MEM_MGT_EXTENSIONS) {
            return Err(QueueConnectError::NoRegistration(device));
        }
        let pd = self.protection_domain(&device)?;
        let cap = config.qp_cap();
        let (cq, polled) = completion_queue::<U>(device, &config, cap.completions())
            .map_err(failed(QueueObject::CompletionQueue))?;
        let core = CoreParts {
            id: self.queue_id(config.qid),
            stats: setup.stats,
            data: setup.data,
            notifier: self.controller.notifier.clone(),
            polled,
        };
        let queue = Queue::new(QueueParts {
            config,
            core,
            pd: pd.clone(),
            admin: setup.channels.map(|channels| channels.map(|c| c.pending())),
        });
        let prepared = addressed
            .create_queue_pair(QpInitAttr::new(pd, cq, cap), queue, U::OWNER)
            .map_err(failed(QueueObject::QueuePair))?;
        Queue::post_receives(prepared.queue_pair(), config.entries)
            .map_err(failed(QueueObject::Receives))?;
        Ok(prepared)
    }

    /// Returns the controller's protection domain, which is created with the first queue.
    fn protection_domain(
        &mut self,
        device: &DeviceRef,
    ) -> Result<Arc<ProtectionDomain>, QueueConnectError> {
        if let Some(pd) = &self.pd {
            return Ok(pd.clone());
        }
        let used = self.controller.user.use_device(device);
        used.map_err(QueueConnectError::ConnError)?;
        let pd = ProtectionDomain::new(device.clone(), U::OWNER)
            .map_err(failed(QueueObject::ProtectionDomain))?;
        Ok(self.pd.insert(pd).clone())
    }

    fn queue_id(&self, qid: u16) -> QueueId {
        QueueId {
            ctrl_id: self.controller.ctrl_id,
            qid,
        }
    }

    /// Returns the error for a failed step of the connection manager.
    #[cold]
    #[inline(never)]
    fn cm_failed(&self, error: cm::Error, device: Option<DeviceRef>) -> QueueConnectError {
        self.cause_of(QueueConnectError::Cm { error, device })
    }

    /// Returns the error that was reported first, or else `error`.
    fn cause_of(&self, error: QueueConnectError) -> QueueConnectError {
        match self.controller.notifier.error() {
            Some(reported) => QueueConnectError::ConnError(reported),
            None => error,
        }
    }
}

/// Traces the events of the connection manager for a queue.
struct CmTrace<U> {
    queue: QueueId,
    _ulp: PhantomData<fn(U)>,
}

impl<U: Ulp> Observer for CmTrace<U> {
    fn heard(&self, event: cm::Event) {
        U::trace_cm_event(self.queue, event);
    }
}

/// Returns the conversion of a kernel error for an object.
fn failed(object: QueueObject) -> impl FnOnce(Error) -> QueueConnectError {
    move |error| QueueConnectError::Object { object, error }
}

/// Allocates the completion queue of a queue. I/O queues have a completion vector each, as far as
/// there are enough. For a polled queue, the second value polls it.
fn completion_queue<U: Ulp>(
    device: DeviceRef,
    config: &QueueConfig,
    entries: u32,
) -> Result<(Arc<CompletionQueue>, Option<DirectQueue>)> {
    let vector = u32::from(config.qid.saturating_sub(1));
    match config.completions {
        CompletionMode::Polled => {
            let polled = DirectQueue::new(device, entries, vector, U::OWNER)?;
            Ok((polled.completion_queue().clone(), Some(polled)))
        }
        CompletionMode::Interrupt => {
            let cq = CompletionQueue::alloc(device, entries, vector, Poll::SoftIrq, U::OWNER)?;
            Ok((cq, None))
        }
    }
}
