// SPDX-License-Identifier: GPL-2.0

//! Connecting a controller, from its address to its queues.

use super::{
    admin::{
        Admin,
        Sender, //
    },
    association::Association,
    serve,
    Controller,
    CtrlInfo,
    ScanContext, //
};
use crate::{
    ctrl_error::CtrlError,
    disk::{
        self,
        HctxQueue,
        HctxSetData,
        Io, //
    },
    namespace::NsContext,
    queue::{
        Queue,
        QueueConfig, //
    },
    trace::CmEvents,
    uapi::ErrorStage,
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use nvme_proto::{
    format::{
        async_event::AsyncEventConfig,
        connect::{
            ConnectData,
            ConnectError,
            ConnectResponse, //
        },
        identify,
        nqn::Nqn,
        private_data,
        property::{
            Capabilities,
            Configuration,
            Version, //
        },
        sqe::{
            Command,
            Connect,
            Identify, //
        },
    },
    policy::{
        limits::{
            self,
            queue::{
                QueueSize,
                SizeInputs,
                ADMIN_ENTRIES, //
            },
            queue_counts::{
                IoQueueCounts,
                QueueOptions, //
            },
            transfer::{
                self,
                InlineLimit, //
            },
        },
        permission::IoPermissions, //
    },
};
use nvme_rdma_transport::{conn_error::ConnError, trace::QueueId};
use rrdma::{
    block::{
        QueueKinds,
        TagSet,
        TagSetConfig, //
    },
    rdma::{
        cm::{
            Addressed,
            Connected,
            Id,
            Parameters,
            Prepared, //
        },
        cq::{
            CompletionQueue,
            DirectQueue,
            Poll, //
        },
        device::{
            self,
            Attributes,
            DeviceRef, //
        },
        dma::Direction,
        pd::ProtectionDomain,
        qp::QpInitAttr, //
    },
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// What `rdma res show` calls us.
const OWNER: &CStr = c"rnvmf";

/// How long a request of the block layer may take, as in the C host.
const REQUEST: Msecs = Msecs::from_secs(30);

/// Retransmissions, of either kind: the most, which the C host asks for, too.
const RETRIES: u8 = 7;

/// A setup under way.
struct Setup<'a> {
    controller: &'a Controller,
    deadline: Deadline,
    /// Made with the admin queue. Every controller has a domain of its own, so
    /// that no target can use a key that another was given.
    pd: Option<Arc<ProtectionDomain>>,
}

/// What the I/O queues are to be.
#[derive(Clone, Copy)]
pub(super) struct IoQueueParams {
    size: QueueSize,
    pages: u32,
    max_sectors: u32,
    inline: InlineLimit,
}

impl IoQueueParams {
    /// Whether queues as `other` says are possible, too.
    fn covers(&self, other: &Self) -> bool {
        self.size >= other.size
            && self.pages >= other.pages
            && self.max_sectors >= other.max_sectors
            && self.inline.covers(&other.inline)
    }
}

/// A controller that is enabled, with its admin queue.
struct Enabled {
    admin: Connected<Queue>,
    controller_id: u16,
    capabilities: Capabilities,
    configuration: Configuration,
}

/// Queues that are connected, and what was learnt on the way.
struct ConnectedQueues {
    admin: Connected<Queue>,
    io: KVec<Connected<Queue>>,
    capabilities: Capabilities,
    configuration: Configuration,
    version: Version,
    identity: Arc<identify::Controller>,
    io_permissions: IoPermissions,
    /// It tells of events.
    events: bool,
    params: IoQueueParams,
    /// The I/O queues that were asked for: the most that there can ever be.
    requested_queues: IoQueueCounts,
    /// What those are for that were granted.
    split: IoQueueCounts,
}

/// Connects the controller: its queues are ready, and what there is to know of
/// it for its disks is known. Sleeps.
#[inline(never)]
pub(super) fn connect(controller: &Controller) -> Result<KBox<Association>, CtrlError> {
    let deadline = Deadline::after(controller.settings().connect_timeout);
    let queues = Setup::new(controller, deadline).establish(None)?;
    let tag_set = tag_set(&queues)
        .map_err(|error| CtrlError::kernel(ErrorStage::Queues, error, "tag set"))?;
    let association = queues.into_association(controller, tag_set, deadline)?;
    association.publish();
    Ok(association)
}

/// Connects a controller again whose disks are there. They do not find its queues before
/// [`Association::publish`]. Sleeps.
#[inline(never)]
pub(super) fn reconnect(
    controller: &Controller,
    before: &ScanContext,
    deadline: Deadline,
) -> Result<KBox<Association>, CtrlError> {
    let queues = Setup::new(controller, deadline).establish(Some(before))?;
    queues.into_association(controller, before.namespaces.tag_set.clone(), deadline)
}

/// Connects the admin queue and enables the controller, and no more. Sleeps.
#[inline(never)]
pub(super) fn connect_admin(
    controller: &Controller,
    deadline: Deadline,
) -> Result<(Connected<Queue>, Configuration), CtrlError> {
    let enabled = Setup::new(controller, deadline).enable()?;
    Ok((enabled.admin, enabled.configuration))
}

/// Connects the admin queue of a discovery controller, which is asked to tell when its log changes.
/// Sleeps.
///
/// # Errors
///
/// [`EOPNOTSUPP`](rrdma::errno::EOPNOTSUPP) if it cannot.
#[inline(never)]
pub(super) fn connect_watched(
    controller: &Controller,
    deadline: Deadline,
) -> Result<Connected<Queue>, CtrlError> {
    let mut setup = Setup::new(controller, deadline);
    let queue = setup.enable()?.admin;
    let identity = Setup::identity(&setup.admin(&queue))?;
    if !setup.enable_aen(
        &queue,
        AsyncEventConfig::for_discovery(identity.async_events),
    )? {
        return Err(CtrlError::new(
            ErrorStage::Enable,
            rrdma::errno::EOPNOTSUPP,
            format_args!("the target does not tell when its discovery log changes"),
        ));
    }
    Ok(queue)
}

/// Makes the tag set that all disks share, with a place for each queue pair that there may be.
fn tag_set(queues: &ConnectedQueues) -> Result<Arc<TagSet<Io>>> {
    let requested_queues = queues.requested_queues;
    let most = requested_queues.total().get();
    let mut hctxs = KVec::with_capacity(most.into(), GFP_KERNEL)?;
    for _ in 0..most {
        hctxs.push(Arc::new(HctxQueue::default(), GFP_KERNEL)?, GFP_KERNEL)?;
    }
    let config = TagSetConfig {
        queues: disk::hctx_counts(queues.split),
        kinds: match (requested_queues.write(), requested_queues.poll()) {
            (0, 0) => QueueKinds::Default,
            (_, 0) => QueueKinds::Read,
            _ => QueueKinds::Poll,
        },
        depth: queues.params.size.zero_based().into(),
        reserved_tags: 0,
        numa_node: TagSetConfig::NO_NODE,
        timeout: REQUEST,
    };
    TagSet::new(config, HctxSetData { hctxs })
}

impl ConnectedQueues {
    /// What the controller and its disks have of it, off the stack.
    fn into_association(
        self: KBox<Self>,
        controller: &Controller,
        tag_set: Arc<TagSet<Io>>,
        deadline: Deadline,
    ) -> Result<KBox<Association>, CtrlError> {
        let this = KBox::into_inner(self);
        let (identity, params) = (this.identity, this.params);
        let info = CtrlInfo {
            device: this.admin.queue_pair().device().name(),
            identity: identity.clone(),
            io_queues: this.split,
            queue_size: params.size.entries(),
            max_sectors: params.max_sectors,
            inline_size: params.inline.bytes(),
        };
        controller.status.update(|status| status.info = Some(info));
        let fail = |_| CtrlError::kernel(ErrorStage::Queues, ENOMEM, "controller");
        let namespaces = NsContext {
            tag_set: tag_set.clone(),
            identity: identity.clone(),
            version: this.version,
            min_page_shift: this.capabilities.min_page_shift(),
            max_sectors: params.max_sectors,
            max_segments: transfer::max_segments(params.max_sectors, params.pages),
        };
        let scan_context = ScanContext {
            namespaces,
            io_permissions: this.io_permissions,
            params,
            requested_queues: this.requested_queues,
            deadline,
        };
        let association = Association {
            admin: this.admin,
            io: this.io,
            split: this.split,
            tag_set,
            scan_context: Arc::new(scan_context, GFP_KERNEL).map_err(fail)?,
            events: this.events,
            configuration: this.configuration,
            keep_alive_mode: identity.keep_alive_mode(),
            disable: Msecs::new(this.capabilities.disable_timeout_ms()),
            shutdown: Msecs::new(identity.shutdown_timeout_ms()),
            after_loss: None,
        };
        KBox::new(association, GFP_KERNEL).map_err(fail)
    }
}

impl QueueConfig {
    /// The admin queue has no requests of the block layer, and no data in capsules.
    fn admin() -> Self {
        Self {
            qid: 0,
            size: ADMIN_ENTRIES,
            requests: 0,
            polled: false,
            pages: 0,
            inline: InlineLimit::default(),
            retry_delays: [0; 3],
        }
    }
}

impl<'a> Setup<'a> {
    fn new(controller: &'a Controller, deadline: Deadline) -> Self {
        Self {
            controller,
            deadline,
            pd: None,
        }
    }

    /// Connects the queues, as large as they were `before` if they were.
    #[inline(never)]
    fn establish(
        &mut self,
        before: Option<&ScanContext>,
    ) -> Result<KBox<ConnectedQueues>, CtrlError> {
        let Enabled {
            admin: queue,
            controller_id,
            capabilities,
            configuration,
        } = self.enable()?;
        let admin = self.admin(&queue);
        let version = admin.version()?;
        let identity = self.identify(&admin, controller_id)?;
        let io_permissions = admin.io_permissions(&identity)?;
        if identity.has_retry_delays() {
            admin.keep_retry_delays()?;
        }
        // Before the namespaces are looked at: what changes after that is told.
        let events = self.enable_aen(&queue, AsyncEventConfig::for_io(identity.async_events))?;
        let mut params = self.agree(&queue, &identity, capabilities)?;
        if let Some(before) = before {
            if !params.covers(&before.params) {
                let why = "the target allows less than the disks were made for";
                return Err(CtrlError::target(ErrorStage::Queues, format_args!("{why}")));
            }
            params = before.params;
        }
        let requested_queues =
            before.map_or_else(|| self.requested_queues(), |before| before.requested_queues);
        let split = requested_queues.granted(admin.request_queues(requested_queues.total())?);
        let io = self.connect_io(&queue, split, &params, &identity)?;
        let queues = ConnectedQueues {
            admin: queue,
            io,
            capabilities,
            configuration,
            version,
            identity,
            io_permissions,
            events,
            params,
            requested_queues,
            split,
        };
        KBox::new(queues, GFP_KERNEL)
            .map_err(|_| CtrlError::kernel(ErrorStage::Queues, ENOMEM, "controller"))
    }

    /// Connects the admin queue, and enables the controller.
    fn enable(&mut self) -> Result<Enabled, CtrlError> {
        let admin = self.connect_queue(QueueConfig::admin(), 0)?;
        let any = ConnectData::ANY_CONTROLLER;
        let granted = self.fabrics_connect(&admin, ADMIN_ENTRIES - 1, any)?;
        let capabilities = self.admin(&admin).capabilities()?;
        let configuration = self.admin(&admin).enable(capabilities)?;
        self.controller.keep_alive.restart();
        Ok(Enabled {
            admin,
            controller_id: granted.controller_id,
            capabilities,
            configuration,
        })
    }

    /// Asks to be told of events, if there are some; whether the target will.
    fn enable_aen(
        &self,
        queue: &Connected<Queue>,
        events: Option<AsyncEventConfig>,
    ) -> Result<bool, CtrlError> {
        let tells = match events {
            Some(events) => self.admin(queue).enable_events(events)?,
            None => false,
        };
        if tells {
            let (stage, what) = (ErrorStage::Enable, "asking for the first event");
            Queue::submit_aer(queue.queue_pair())
                .map_err(|error| CtrlError::from_command(stage, error, what))?;
        }
        Ok(tells)
    }

    /// The I/O queues to ask for.
    fn requested_queues(&self) -> IoQueueCounts {
        let options = &self.controller.options;
        IoQueueCounts::requested(&QueueOptions {
            online_cpus: rrdma::cpu::online(),
            nr_io_queues: options.io_queues,
            nr_write_queues: options.write_queues,
            nr_poll_queues: options.poll_queues,
        })
    }

    fn admin<'b>(&self, queue: &'b Connected<Queue>) -> Admin<'b>
    where
        'a: 'b,
    {
        Admin {
            sender: Sender::Thread(queue),
            controller: self.controller,
            deadline: self.deadline,
        }
    }

    /// Connects a queue pair: the target then waits for a Connect command.
    fn connect_queue(
        &mut self,
        config: QueueConfig,
        controller_id: u16,
    ) -> Result<Connected<Queue>, CtrlError> {
        let qid = config.qid;
        self.try_connect_queue(config, controller_id)
            .map_err(|failure| failure.on_queue(qid))
    }

    fn try_connect_queue(
        &mut self,
        config: QueueConfig,
        controller_id: u16,
    ) -> Result<Connected<Queue>, CtrlError> {
        let controller = self.controller;
        let options = &controller.options;
        let cancelled = || controller.interruption().is_some();
        let patience = controller.patience(self.deadline, &cancelled);
        let origin = self.origin(&config);
        let id = Id::new(&options.namespace, controller.wake.clone(), OWNER)
            .and_then(|id| {
                id.observe(Arc::new(CmEvents(origin), GFP_KERNEL)?);
                Ok(id)
            })
            .map_err(|error| CtrlError::kernel(ErrorStage::Address, error, "connection id"))?;
        let source = options.source.as_ref().map(|source| &source.address);
        let addressed = id
            .resolve(source, &options.target.address, patience)
            .map_err(|error| self.cm_failure(error, None))?;
        if let Some(tos) = options.tos {
            addressed.set_service_type(tos);
        }
        let device = addressed.device().name();
        let reads = addressed.device().attributes().max_qp_rd_atom;
        let prepared = self
            .prepare(addressed, config)
            .map_err(|error| self.interrupted(error))?;
        let request = private_data::CmRequest {
            queue_id: config.qid,
            receive_queue_size: config.size,
            send_queue_size: config.size.saturating_sub(1),
            controller_id,
        };
        let parameters = Parameters {
            private_data: &request.encode(),
            responder_resources: u8::try_from(reads).unwrap_or(u8::MAX),
            initiator_depth: 0,
            retry_count: RETRIES,
            rnr_retry_count: RETRIES,
        };
        let connection = prepared
            .connect(parameters, patience)
            .map_err(|error| self.cm_failure(error, Some(device.as_str())))?;
        connection.queue_pair().context().set_connected();
        Ok(connection)
    }

    /// The queue in what is traced of it.
    fn origin(&self, config: &QueueConfig) -> QueueId {
        QueueId {
            ctrl_id: self.controller.status.trace_id(),
            qid: config.qid,
        }
    }

    /// A failed step; if it was interrupted, then by what.
    fn cm_failure(&self, error: rrdma::rdma::cm::Error, device: Option<&str>) -> CtrlError {
        self.interrupted(CtrlError::from_cm(error, device))
    }

    /// If there was trouble, it is the cause of `failure`.
    fn interrupted(&self, failure: CtrlError) -> CtrlError {
        match self.controller.notifier.error() {
            Some(trouble) => CtrlError::from(trouble),
            None => failure,
        }
    }

    /// Makes the objects of a queue on the device that its address led to.
    // What that takes of the stack is free again while the queue is connected.
    #[inline(never)]
    fn prepare(
        &mut self,
        addressed: Addressed<Queue>,
        config: QueueConfig,
    ) -> Result<Prepared<Queue>, CtrlError> {
        let fail = |error, what| CtrlError::kernel(ErrorStage::Device, error, what);
        let name = addressed.device().name();
        let Some(device) = self.controller.services.acquire(addressed.device()) else {
            return Err(ConnError::DeviceRemoved.into());
        };
        let capabilities = device.attributes().capabilities;
        if !capabilities.contains(device::Capabilities::MEM_MGT_EXTENSIONS) {
            return Err(CtrlError::new(
                ErrorStage::Device,
                rrdma::errno::EOPNOTSUPP,
                format_args!("{name} has no fast memory registration"),
            ));
        }
        let pd = match &self.pd {
            Some(pd) => pd.clone(),
            None => {
                self.controller.use_device(&device)?;
                let pd = ProtectionDomain::new(device.clone(), OWNER)
                    .map_err(|error| fail(error, "protection domain"))?;
                self.pd.insert(pd).clone()
            }
        };
        let capacity = config.capacity();
        let (cq, polled) = completion_queue(device, &config, capacity.completions())
            .map_err(|error| fail(error, "completion queue"))?;
        let admin_channels = [&self.controller.user_channel, &self.controller.scan_channel];
        let admin_channels = (config.qid == 0).then(|| admin_channels.map(Arc::clone));
        let stats = self.controller.ctrl_stats.lock().of(config.qid);
        let stats = stats.map_err(|error| fail(error, "statistics"))?;
        let notifier = self.controller.notifier.clone();
        let origin = self.origin(&config);
        let queue = Queue::new(
            config,
            origin,
            pd.clone(),
            notifier,
            stats,
            admin_channels,
            polled,
        );
        let prepared = addressed
            .create_queue_pair(QpInitAttr::new(pd, cq, capacity), queue, OWNER)
            .map_err(|error| fail(error, "queue pair"))?;
        Queue::post_receives(prepared.queue_pair(), config.size)
            .map_err(|error| fail(error, "receives"))?;
        Ok(prepared)
    }

    /// Makes the target's end of a queue.
    fn fabrics_connect(
        &self,
        queue: &Connected<Queue>,
        sq_size: u16,
        controller_id: u16,
    ) -> Result<ConnectResponse, CtrlError> {
        let stage = ErrorStage::FabricsConnect;
        let options = &self.controller.options;
        let qid = queue.queue_pair().context().qid();
        let what = "connect command";
        let data = self
            .connect_data(controller_id)
            .map_err(|error| CtrlError::kernel(stage, error, what))?;
        let command = Command::connect(Connect {
            queue_id: qid,
            sq_size,
            keep_alive_ms: if qid == 0 { options.keep_alive_ms() } else { 0 },
            disable_sq_flow: options.disable_sq_flow,
        });
        let reply = self
            .admin(queue)
            .send(command, Some((data, Direction::ToDevice)))
            .map_err(|error| CtrlError::from_command(stage, error, what).on_queue(qid))?;
        let (status, result) = (reply.completion.status(), reply.completion.result32());
        if let Some(error) = ConnectError::from_completion(status, result) {
            let subsystem = options.subsystem();
            return Err(CtrlError::from_connect(error, status, subsystem).on_queue(qid));
        }
        let granted = ConnectResponse::from_result(result);
        if granted.authentication_required {
            return Err(CtrlError::target(
                stage,
                format_args!("the target requires authentication, which is not supported"),
            ));
        }
        Ok(granted)
    }

    fn connect_data(&self, controller_id: u16) -> Result<Buffer> {
        let options = &self.controller.options;
        let mut buffer = Buffer::new(ConnectData::SIZE, GFP_KERNEL)?;
        let block: &mut [u8; ConnectData::SIZE] =
            buffer.bytes_mut().try_into().map_err(|_| EINVAL)?;
        ConnectData {
            host_id: options.host_id,
            controller_id,
            subsystem: Nqn::new(options.subsystem().as_bytes()).map_err(|_| EINVAL)?,
            host: Nqn::new(options.host().as_bytes()).map_err(|_| EINVAL)?,
        }
        .encode(block);
        Ok(buffer)
    }

    /// What the controller says of itself.
    fn identity(admin: &Admin<'_>) -> Result<identify::Controller, CtrlError> {
        let what = "identify controller";
        let data = admin.identify(Identify::Controller, what)?;
        identify::Controller::parse(data.bytes())
            .map_err(|why| CtrlError::target(ErrorStage::Identify, format_args!("{what}: {why}")))
    }

    fn identify(
        &self,
        admin: &Admin<'_>,
        controller_id: u16,
    ) -> Result<Arc<identify::Controller>, CtrlError> {
        let stage = ErrorStage::Identify;
        let identity = Self::identity(admin)?;
        limits::controller::check(&identity, controller_id)
            .map_err(|why| CtrlError::target(stage, format_args!("unusable controller: {why}")))?;
        Arc::new(identity, GFP_KERNEL)
            .map_err(|_| CtrlError::kernel(stage, ENOMEM, "identify controller"))
    }

    /// What we, the device and the target can do together.
    fn agree(
        &self,
        queue: &Connected<Queue>,
        identity: &identify::Controller,
        capabilities: Capabilities,
    ) -> Result<IoQueueParams, CtrlError> {
        let stage = ErrorStage::Queues;
        let device: Attributes = queue.queue_pair().device().attributes();
        let pages = transfer::region_pages(device.max_fast_reg_page_list_len).ok_or_else(|| {
            CtrlError::new(
                stage,
                rrdma::errno::EOPNOTSUPP,
                format_args!("the RDMA device cannot register memory"),
            )
        })?;
        let size = QueueSize::negotiate(&SizeInputs {
            requested: self.controller.options.queue_size,
            device: limits::queue::device_entries(device.max_qp_wr, device.max_cqe),
            max_entries_zero_based: capabilities.max_queue_entries_zero_based(),
            max_commands: identity.max_commands,
        })
        .map_err(|why| CtrlError::target(stage, format_args!("I/O queues: {why}")))?;
        Ok(IoQueueParams {
            size,
            pages,
            max_sectors: transfer::max_sectors(identity, capabilities.min_page_shift(), pages),
            inline: InlineLimit::negotiate(identity, device.max_send_sge),
        })
    }

    fn connect_io(
        &mut self,
        admin: &Connected<Queue>,
        split: IoQueueCounts,
        params: &IoQueueParams,
        identity: &identify::Controller,
    ) -> Result<KVec<Connected<Queue>>, CtrlError> {
        let count = split.total().get();
        let mut queues = KVec::with_capacity(count.into(), GFP_KERNEL)
            .map_err(|_| CtrlError::kernel(ErrorStage::Queues, ENOMEM, "I/O queues"))?;
        for qid in 1..=count {
            // There may be so many that it takes long.
            serve::send_if_due(self.controller, admin, self.deadline)?;
            let config = QueueConfig {
                qid,
                size: params.size.entries(),
                requests: params.size.zero_based(),
                polled: split.is_polled(qid.saturating_sub(1)),
                // A transfer that begins within a page reaches into one more.
                pages: params.pages.saturating_add(1),
                inline: params.inline,
                retry_delays: identity.retry_delays,
            };
            let queue = self.connect_queue(config, identity.controller_id)?;
            self.fabrics_connect(&queue, params.size.zero_based(), identity.controller_id)?;
            queues
                .push(queue, GFP_KERNEL)
                .map_err(|_| CtrlError::kernel(ErrorStage::Queues, ENOMEM, "I/O queues"))?;
        }
        Ok(queues)
    }
}

/// The completion queue of a queue, on a vector of its own as long as there are some; and the
/// same to poll it by, if nobody else does.
fn completion_queue(
    device: DeviceRef,
    config: &QueueConfig,
    entries: u32,
) -> Result<(Arc<CompletionQueue>, Option<DirectQueue>)> {
    let vector = u32::from(config.qid.saturating_sub(1));
    if config.polled {
        let polled = DirectQueue::new(device, entries, vector, OWNER)?;
        return Ok((polled.completion_queue().clone(), Some(polled)));
    }
    let cq = CompletionQueue::alloc(device, entries, vector, Poll::SoftIrq, OWNER)?;
    Ok((cq, None))
}
