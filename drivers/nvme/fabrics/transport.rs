// SPDX-License-Identifier: GPL-2.0

//! The RDMA transport under nvme-core: addresses and connections of a controller, and submission of requests.

use crate::{
    association::Association,
    devices::{
        DeviceRemoval,
        Devices, //
    },
    queue::{
        Queue,
        RdmaQueue, //
    },
    ulp::{
        CoreCommand,
        CoreRequests,
        QueueData, //
    }, //
};
use kernel::{alloc::AllocError, prelude::*, str::CStr, sync::Arc};
use nvme_core::{
    AssociationNumber,
    ConnectParams,
    Controllers,
    CtrlLossTmo,
    Options,
    Refusal,
    Refused,
    Request,
    TransferLimits,
    Transport,
    WeakController, //
};
use nvme_proto::policy::{
    connect_time::ConnectTime,
    limits::transfer::{
        self,
        CapsuleLimits,
        InlineLimit, //
    },
};
use nvme_rdma_transport::{
    conn_error::ConnError,
    connect::{
        ConnectPath,
        ControllerConfig,
        DeviceUser,
        QueueConnectError,
        QueueConnector,
        QueueObject,
        QueueSetup, //
    },
    params::{
        CompletionMode,
        QueueConfig, //
    },
    queue::{
        Doorbell,
        Submission, //
    },
    ulp::{
        Interruption,
        Waiter, //
    },
};
use rrdma::{
    errno,
    net::{
        Address,
        Namespace, //
    },
    rdma::{
        client, cm,
        device::{
            Device,
            DeviceRef, //
        },
    },
    sync::{
        rcu_read,
        Deadline,
        Msecs, //
        RcuSection,
    },
};

/// SGLs may specify an offset (SGLS). C: `NVME_CTRL_SGLS_SAOS`.
const SGL_OFFSET: u32 = 1 << 20;

/// Data that all controllers share.
pub(crate) struct Shared {
    pub(crate) devices: Arc<client::Registration<Devices>>,
    /// See [`Association`].
    pub(crate) quiesce_time: Msecs,
}

/// Waits for the steps of connecting queues, until `ctrl_loss_tmo` is over.
struct ConnectWaiter<'a> {
    association: &'a Association,
    ctrl_loss_tmo: CtrlLossTmo<'a>,
    time: ConnectTime,
}

impl ConnectWaiter<'_> {
    /// Returns whether the time for connecting is over. `ctrl_loss_tmo` may have changed since the last call.
    fn is_over(&self) -> bool {
        let end_ms = self.ctrl_loss_tmo.end_ms();
        self.time.is_over(end_ms, Deadline::now_ms())
    }

    /// Returns what an error of a step means. A step that was cancelled when the time was over has timed out.
    fn cause_of(&self, error: QueueConnectError) -> QueueConnectError {
        match error {
            QueueConnectError::Cm {
                error:
                    cm::Error {
                        stage,
                        cause: cm::Cause::Cancelled,
                    },
                device,
            } if self.is_over() => {
                let took = Deadline::now_ms().saturating_sub(self.time.began_ms());
                let took = Msecs::new(u32::try_from(took).unwrap_or(u32::MAX));
                let cause = cm::Cause::TimedOut(took);
                let error = cm::Error { stage, cause };
                QueueConnectError::Cm { error, device }
            }
            error => error,
        }
    }
}

impl Waiter for ConnectWaiter<'_> {
    fn interruption(&self) -> Option<Interruption> {
        let over = || self.is_over().then_some(Interruption::Cancelled);
        self.association.interruption().or_else(over)
    }

    fn wait(&self, limit: Msecs) {
        self.association.wait(limit);
    }
}

impl DeviceUser for ConnectWaiter<'_> {
    fn acquire(&self, device: &Device) -> Option<DeviceRef> {
        self.association.acquire(device)
    }

    fn use_device(&self, device: &DeviceRef) -> Result<(), ConnError> {
        self.association.use_device(device)
    }
}

/// The RDMA transport of a controller.
pub(crate) struct Rdma {
    association: Arc<Association>,
    namespace: Namespace,
    target: Address,
    source: Option<Address>,
    service_type: Option<u8>,
}

impl Rdma {
    /// Returns the configuration of queue `qid`.
    fn config(&self, qid: u16, params: &ConnectParams<'_>, max_send_entries: u32) -> QueueConfig {
        let capsule = CapsuleLimits {
            size: params.capsule_size,
            data_offset: params.in_capsule_data_offset,
            has_sgl_offset: params.sgl_support & SGL_OFFSET != 0,
        };
        QueueConfig {
            qid,
            entries: params.entries,
            requests: params.requests,
            // The Asynchronous Event Request of the admin queue.
            commands: u16::from(qid == 0),
            completions: match qid != 0 && qid >= params.first_polled {
                true => CompletionMode::Polled,
                false => CompletionMode::Interrupt,
            },
            // Data that begins within a page reaches into one more page.
            pages: transfer::MAX_REGION_PAGES.saturating_add(1),
            inline: match qid {
                0 => InlineLimit::default(),
                _ => InlineLimit::new(capsule, max_send_entries),
            },
        }
    }

    /// Returns a connector for queues of the controller.
    fn connector<'a>(
        &'a self,
        instance: i32,
        waiter: &'a ConnectWaiter<'a>,
    ) -> QueueConnector<'a, CoreRequests> {
        let association = &self.association;
        let controller = ControllerConfig {
            ctrl_id: instance,
            path: ConnectPath {
                namespace: &self.namespace,
                source: self.source.as_ref(),
                target: &self.target,
                service_type: self.service_type,
            },
            user: waiter,
            wake: association.wake.clone(),
            notifier: association.notifier.clone(),
            deadline: Deadline::after(Msecs::new(waiter.time.most_ms())),
        };
        match association.domain() {
            Some(pd) => QueueConnector::with_domain(controller, pd),
            None => QueueConnector::new(controller),
        }
    }

    // Not generic: nvme-core connects its queues in two places, by different iterators.
    fn connect_all<'a>(
        &self,
        params: &ConnectParams<'_>,
        waiter: &ConnectWaiter<'_>,
        queues: &mut dyn Iterator<Item = &'a Pin<KBox<RdmaQueue>>>,
    ) -> Result<(), (u16, QueueConnectError)> {
        let mut connector = self.connector(params.instance, waiter);
        let max_send_entries = self
            .association
            .device()
            .map_or(0, |device| device.attributes().max_send_sge);
        let mut connecting = KVec::new();
        for queue in queues {
            let setup = QueueSetup {
                config: self.config(queue.qid, params, max_send_entries),
                controller_id: params.controller_id,
                stats: (),
                data: QueueData {
                    controller: self.association.controller.clone(),
                    quiesce_time: self.association.quiesce_time,
                },
                channels: None,
            };
            let started = connector.start(setup).map_err(|error| (queue.qid, error))?;
            let pushed = connecting.push((queue, started), GFP_KERNEL);
            pushed.map_err(|error| (queue.qid, out_of_memory(error)))?;
        }
        for (queue, started) in connecting {
            let connection = connector
                .finish(started)
                .map_err(|error| (queue.qid, error))?;
            if queue.qid == 0 {
                self.association
                    .keep_domain(connection.queue_pair().protection_domain());
            }
            queue.publish(connection, params.association);
        }
        Ok(())
    }
}

impl DeviceRemoval for Controllers<Rdma> {
    fn removing(&self, device: &Device) {
        self.delete(|transport| transport.association.uses(device));
    }
}

impl Transport for Rdma {
    type Context = Shared;
    type Queue = Pin<KBox<RdmaQueue>>;

    const DEFAULT_PORT: &'static CStr = c"4420";

    fn new(shared: &Shared, options: &Options, controller: Arc<WeakController>) -> Result<Self> {
        let namespace = Namespace::init();
        let parse = |what: &str, address: Option<&CStr>, port: Result<u16>| {
            let address = address
                .and_then(|text| text.to_str().ok())
                .unwrap_or_default();
            port.and_then(|port| Address::parse(&namespace, address, port))
                .inspect_err(|_| {
                    let service = options.trsvcid().and_then(|text| text.to_str().ok());
                    let service = service.unwrap_or_default();
                    pr_err!("malformed {what}address passed: {address}:{service}\n");
                })
        };
        let target = parse("", options.traddr(), options.port())?;
        let source = options.host_traddr();
        let source = source.map(|source| parse("src ", Some(source), Ok(0)));
        let source = source.transpose()?;
        Ok(Self {
            association: Association::new(shared.devices.clone(), controller, shared.quiesce_time)?,
            target,
            source,
            service_type: options.tos(),
            namespace,
        })
    }

    fn new_queue(&self, qid: u16) -> Result<Self::Queue> {
        RdmaQueue::new(qid, self.association.clone())
    }

    fn connect<'a>(
        &self,
        params: &ConnectParams<'_>,
        mut queues: impl Iterator<Item = &'a Self::Queue> + Clone,
    ) -> Result {
        if queues.clone().any(|queue| queue.qid == 0) {
            self.association.begin(params.association);
        }
        let count = queues
            .clone()
            .fold(0, |count: u32, _| count.saturating_add(1));
        let waiter = ConnectWaiter {
            association: &self.association,
            ctrl_loss_tmo: params.ctrl_loss_tmo,
            time: ConnectTime::new(Deadline::now_ms(), count),
        };
        let connected = self.connect_all(params, &waiter, &mut queues);
        connected.map_err(|(qid, error)| {
            let error = waiter.cause_of(error);
            log(params.instance, qid, &error);
            errno_of(&error)
        })
    }

    fn interrupt(&self) {
        self.association.wake.complete();
    }

    fn retract(queue: &Self::Queue, association: AssociationNumber) {
        queue.retract(association);
    }

    fn stop(queue: &Self::Queue, association: AssociationNumber) {
        queue.stop(association);
    }

    fn disconnect(queue: &Self::Queue, association: AssociationNumber) {
        queue.disconnect(association);
    }

    fn holds_writes(&self) -> bool {
        self.association.quiesce_time > Msecs::new(0)
    }

    fn transfer_limits(&self) -> TransferLimits {
        let device = self.association.device();
        let list = device.map_or(0, |device| device.attributes().max_fast_reg_page_list_len);
        TransferLimits {
            pages: transfer::region_pages(list).unwrap_or(1),
        }
    }

    fn numa_node(&self) -> i32 {
        let device = self.association.device();
        device.map_or(-1, |device| device.attributes().numa_node)
    }

    fn supports_pci_p2pdma(&self) -> bool {
        let device = self.association.device();
        device.is_some_and(|device| device.supports_pci_p2pdma())
    }

    #[inline(always)]
    fn queue_rq(
        queue: &Self::Queue,
        request: Request,
        last: bool,
        section: &RcuSection,
    ) -> Result<(), Refused> {
        let Some(queue_pair) = queue.queue_pair.read(section) else {
            return Err(request.refuse(Refusal::NoPath));
        };
        let submission = Submission {
            tag: request.tag(),
            command: CoreCommand,
            payload: request,
        };
        Queue::submit(&queue_pair, section, submission, Doorbell::from_last(last))
    }

    #[inline(always)]
    fn queue_rqs(
        queue: &Self::Queue,
        requests: impl Iterator<Item = Request>,
        section: &RcuSection,
    ) {
        let Some(queue_pair) = queue.queue_pair.read(section) else {
            return;
        };
        let submissions = requests.map(|request| Submission {
            tag: request.tag(),
            command: CoreCommand,
            payload: request,
        });
        Queue::submit_all(&queue_pair, section, submissions);
    }

    #[inline]
    fn commit_rqs(queue: &Self::Queue, section: &RcuSection) {
        if let Some(queue_pair) = queue.queue_pair.read(section) {
            Queue::ring(&queue_pair, section);
        }
    }

    fn is_kept(queue: &Self::Queue, tag: u32) -> bool {
        queue.is_kept(tag)
    }

    #[inline]
    fn poll(queue: &Self::Queue) -> u32 {
        rcu_read(|section| {
            let queue_pair = queue.queue_pair.read(section);
            queue_pair.map_or(0, |queue_pair| queue_pair.context().poll())
        })
    }

    fn submit_async_event(admin: &Self::Queue) {
        admin.submit_async_event();
    }
}

/// Converts the error of an allocation for a connection.
fn out_of_memory(error: AllocError) -> QueueConnectError {
    QueueConnectError::Object {
        object: QueueObject::ConnectionId,
        error: error.into(),
    }
}

/// Logs why a queue could not be connected.
fn log(instance: i32, qid: u16, error: &QueueConnectError) {
    match error {
        QueueConnectError::ConnError(error) => {
            pr_err!("nvme{instance}: queue {qid}: {}\n", format_args!("{error}"))
        }
        QueueConnectError::Cm { error, .. } => {
            pr_err!(
                "nvme{instance}: queue {qid}: {} failed: {}\n",
                error.stage,
                error.cause
            )
        }
        QueueConnectError::NoRegistration(device) => pr_err!(
            "nvme{instance}: {} does not support fast memory registration\n",
            device.name()
        ),
        QueueConnectError::Object { object, error } => pr_err!(
            "nvme{instance}: queue {qid}: {}: failed with error {}\n",
            object.name(),
            error.to_errno()
        ),
    }
}

/// Returns the `errno` for user space.
fn errno_of(error: &QueueConnectError) -> Error {
    match error {
        QueueConnectError::ConnError(_) => errno::ECONNRESET,
        QueueConnectError::Cm { error, .. } => error.cause.errno(),
        QueueConnectError::NoRegistration(_) => errno::EOPNOTSUPP,
        QueueConnectError::Object { error, .. } => *error,
    }
}
