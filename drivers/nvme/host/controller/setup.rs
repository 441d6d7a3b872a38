// SPDX-License-Identifier: GPL-2.0

//! Connecting a controller, from its address to connected queues.

use super::{
    association::Association,
    Controller,
    CtrlInfo, //
};
use crate::{
    admin::{
        self,
        Admin, //
    },
    ctrl_error::CtrlError,
    namespace::ScanContext,
    uapi::ErrorStage,
};
use kernel::{
    prelude::*,
    sync::{
        atomic::ordering,
        Arc, //
    },
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
        property::{
            Capabilities,
            Configuration, //
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
            queue::ADMIN_ENTRIES,
            queue_counts::{
                IoQueueCounts,
                QueueOptions, //
            },
        },
        retry::path_retry_ms,
    },
};
use nvme_rdma_transport::{
    connect::{
        ConnectPath,
        ControllerConfig,
        QueueSetup, //
    },
    params::{
        CompletionMode,
        IoQueueParams,
        QueueConfig,
        Smaller, //
    },
    queue::{
        CommandData,
        SentCommand, //
    },
};
use rnvmf_disk::{
    tag_set,
    Connector,
    Queue,
    QueueData, //
};
use rrdma::{
    rdma::{
        cm::{
            Connected,
            Connecting, //
        },
        dma::Direction, //
    },
    scatter::Buffer,
    sync::Deadline,
};

/// The Connect command, for messages.
const CONNECT: &str = "connect command";

/// A connect in progress.
struct Setup<'a> {
    controller: &'a Controller,
    deadline: Deadline,
    connector: Connector<'a>,
}

/// An enabled controller, with its admin queue.
struct Enabled {
    admin: Connected<Queue>,
    controller_id: u16,
    capabilities: Capabilities,
    configuration: Configuration,
}

/// Connects the controller for the first time, and publishes its queues. Sleeps.
#[inline(never)]
pub(super) fn connect(controller: &Controller) -> Result<KBox<Association>, CtrlError> {
    let deadline = Deadline::after(controller.settings().connect_timeout);
    let association = Setup::new(controller, deadline).establish(None)?;
    association.publish(controller);
    Ok(association)
}

/// Reconnects a controller that has disks. The disks cannot use the new queues before
/// [`Association::publish`]. Sleeps.
#[inline(never)]
pub(super) fn reconnect(
    controller: &Controller,
    before: &ScanContext,
    deadline: Deadline,
) -> Result<KBox<Association>, CtrlError> {
    Setup::new(controller, deadline).establish(Some(before))
}

/// Connects the admin queue only, and enables the controller. Sleeps.
#[inline(never)]
pub(super) fn connect_admin(
    controller: &Controller,
    deadline: Deadline,
) -> Result<(Connected<Queue>, Configuration), CtrlError> {
    let enabled = Setup::new(controller, deadline).enable()?;
    Ok((enabled.admin, enabled.configuration))
}

/// Connects the admin queue of a discovery controller, and enables events for changes of its log.
/// Sleeps.
///
/// # Errors
///
/// [`EOPNOTSUPP`](rrdma::errno::EOPNOTSUPP) if the controller does not support these events.
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
            format_args!("the target does not support events for discovery log changes"),
        ));
    }
    Ok(queue)
}

impl<'a> Setup<'a> {
    #[inline(never)]
    fn new(controller: &'a Controller, deadline: Deadline) -> Self {
        let options = &controller.options;
        Self {
            controller,
            deadline,
            connector: Connector::new(ControllerConfig {
                ctrl_id: controller.status.trace_id(),
                path: ConnectPath {
                    namespace: &options.namespace,
                    source: options.source_address(),
                    target: &options.target.address,
                    service_type: options.tos,
                },
                user: controller,
                wake: controller.wake.clone(),
                notifier: controller.notifier.clone(),
                deadline,
            }),
        }
    }

    /// Connects all queues. With `before`, their parameters are those of the first connection.
    #[inline(never)]
    fn establish(&mut self, before: Option<&ScanContext>) -> Result<KBox<Association>, CtrlError> {
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
            if let Err(error) = admin.keep_retry_delays()? {
                self.controller.log(format_args!("{}", error.message()));
            }
        }
        // Before the namespaces are scanned: any change after the scan raises an event.
        let events = self.enable_aen(&queue, AsyncEventConfig::for_io(identity.async_events))?;
        let mut params = self.negotiate(&queue, &identity, capabilities)?;
        if let Some(before) = before {
            params = params.with_sizes_of(&before.params).map_err(|smaller| {
                let why = match smaller {
                    Smaller::Queue => "the target no longer supports the queue size of the disks",
                    Smaller::Regions => {
                        "the device no longer supports regions as large as those of the disks"
                    }
                };
                CtrlError::target(ErrorStage::Queues, format_args!("{why}"))
            })?;
        }
        let requested_queues =
            before.map_or_else(|| self.requested_queues(), |before| before.requested_queues);
        let split = requested_queues.granted(admin.request_queues(requested_queues.total())?);
        let io = self.connect_io(&queue, split, &params, &identity)?;
        let tag_set = match before {
            Some(before) => before.tag_set.clone(),
            None => tag_set(requested_queues, split, params.size().zero_based())
                .map_err(|error| CtrlError::kernel(ErrorStage::Queues, error, "tag set"))?,
        };
        let requests = usize::from(params.size().zero_based())
            .saturating_mul(requested_queues.total().get().into());
        self.controller
            .held_writes
            .reserve(requests)
            .map_err(|error| CtrlError::kernel(ErrorStage::Queues, error, "held writes"))?;
        let device = queue.queue_pair().device();
        let retry_ms = path_retry_ms(identity.ana_transition_time());
        let info = CtrlInfo {
            device: device.name(),
            numa_node: device.attributes().numa_node,
            identity: identity.clone(),
            io_queues: split,
            queue_size: params.size().entries(),
            max_sectors: params.max_sectors(),
            inline_size: params.inline_bytes(),
        };
        self.controller
            .status
            .update(|status| status.info = Some(info));
        self.controller
            .target_retry_ms
            .store(retry_ms, ordering::Relaxed);
        let fail = |_| CtrlError::kernel(ErrorStage::Queues, ENOMEM, "controller");
        let scan_context = ScanContext {
            tag_set: tag_set.clone(),
            identity,
            version,
            min_page_shift: capabilities.min_page_shift(),
            io_permissions,
            params,
            requested_queues,
        };
        let association = Association {
            admin: queue,
            io,
            split,
            tag_set,
            scan_context: Arc::new(scan_context, GFP_KERNEL).map_err(fail)?,
            events,
            capabilities,
            configuration,
            flap: None,
        };
        KBox::new(association, GFP_KERNEL).map_err(fail)
    }

    /// Connects the admin queue and enables the controller.
    fn enable(&mut self) -> Result<Enabled, CtrlError> {
        let admin = self.connect_queue(QueueConfig::admin(), 0, [0; 3])?;
        let any = ConnectData::ANY_CONTROLLER;
        let granted = self.fabrics_connect(&admin, ADMIN_ENTRIES - 1, any)?;
        let (capabilities, configuration) = self.admin(&admin).enable()?;
        self.controller.keep_alive.restart();
        Ok(Enabled {
            admin,
            controller_id: granted.controller_id,
            capabilities,
            configuration,
        })
    }

    /// Enables `events` and submits an AER. Returns whether events are enabled.
    fn enable_aen(
        &self,
        queue: &Connected<Queue>,
        events: Option<AsyncEventConfig>,
    ) -> Result<bool, CtrlError> {
        let Some(events) = events else {
            return Ok(false);
        };
        if let Err(error) = self.admin(queue).enable_events(events)? {
            self.controller.log(format_args!("{}", error.message()));
            return Ok(false);
        }
        let (stage, what) = (ErrorStage::Enable, "submitting the first AER");
        Queue::submit_aer(queue.queue_pair())
            .map_err(|error| CtrlError::from_command(stage, error, what))?;
        Ok(true)
    }

    /// Returns the I/O queues to request.
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
        self.controller.admin(queue, self.deadline)
    }

    /// Connects a queue pair; the target then expects a Connect command. `retry_delays` are the
    /// controller's command retry delays, in units of 100 ms.
    fn connect_queue(
        &mut self,
        config: QueueConfig,
        controller_id: u16,
        retry_delays: [u16; 3],
    ) -> Result<Connected<Queue>, CtrlError> {
        let connecting = self.start_queue(config, controller_id, retry_delays)?;
        self.finish_queue(config.qid, connecting)
    }

    /// Creates a queue pair and sends its connection request. Arguments as for
    /// [`connect_queue`](Self::connect_queue).
    fn start_queue(
        &mut self,
        config: QueueConfig,
        controller_id: u16,
        retry_delays: [u16; 3],
    ) -> Result<Connecting<Queue>, CtrlError> {
        let controller = self.controller;
        let stats = controller.ctrl_stats.lock().of(config.qid);
        let stats = stats.map_err(|error| {
            CtrlError::kernel(ErrorStage::Device, error, "statistics").on_queue(config.qid)
        })?;
        let channels = controller.admin_channels();
        let setup = QueueSetup {
            config,
            controller_id,
            stats,
            data: QueueData { retry_delays },
            channels: (config.qid == 0).then(|| channels.map(|channel| &**channel)),
        };
        self.connector
            .start(setup)
            .map_err(|error| CtrlError::from(error).on_queue(config.qid))
    }

    /// Waits until a queue pair is connected.
    fn finish_queue(
        &self,
        qid: u16,
        connecting: Connecting<Queue>,
    ) -> Result<Connected<Queue>, CtrlError> {
        self.connector
            .finish(connecting)
            .map_err(|error| CtrlError::from(error).on_queue(qid))
    }

    /// Sends the Connect command, which creates the queue at the target.
    fn fabrics_connect(
        &self,
        queue: &Connected<Queue>,
        sq_size: u16,
        controller_id: u16,
    ) -> Result<ConnectResponse, CtrlError> {
        let sent = self.start_fabrics_connect(queue, sq_size, controller_id)?;
        self.finish_fabrics_connect(queue, sent)
    }

    /// Sends the Connect command without waiting for the response.
    fn start_fabrics_connect(
        &self,
        queue: &Connected<Queue>,
        sq_size: u16,
        controller_id: u16,
    ) -> Result<SentCommand, CtrlError> {
        let stage = ErrorStage::FabricsConnect;
        let options = &self.controller.options;
        let qid = queue.queue_pair().context().qid();
        let data = self
            .connect_data(controller_id)
            .map_err(|error| CtrlError::kernel(stage, error, CONNECT))?;
        let command = Command::connect(Connect {
            queue_id: qid,
            sq_size,
            keep_alive_ms: if qid == 0 { options.keep_alive_ms() } else { 0 },
            disable_sq_flow: options.disable_sq_flow,
        });
        let data = CommandData {
            buffer: data,
            direction: Direction::ToDevice,
        };
        let limit = self.deadline.left().min(admin::COMMAND);
        Queue::start(queue.queue_pair(), command, Some(data), limit)
            .map_err(|error| CtrlError::from_command(stage, error, CONNECT).on_queue(qid))
    }

    /// Waits for the response to the Connect command.
    fn finish_fabrics_connect(
        &self,
        queue: &Connected<Queue>,
        sent: SentCommand,
    ) -> Result<ConnectResponse, CtrlError> {
        let stage = ErrorStage::FabricsConnect;
        let options = &self.controller.options;
        let queue = queue.queue_pair();
        let qid = queue.context().qid();
        let reply = Queue::finish(queue, self.controller, sent)
            .map_err(|error| CtrlError::from_command(stage, error, CONNECT).on_queue(qid))?;
        let (status, result) = (reply.completion.status(), reply.completion.result32());
        if let Some(error) = ConnectError::from_completion(status, result) {
            let subsystem = options.subsystem();
            return Err(CtrlError::from_connect(error, status, subsystem).on_queue(qid));
        }
        let granted = ConnectResponse::from_result(result);
        if granted.authentication_required {
            let why = format_args!("the target requires authentication, which is not supported");
            return Err(CtrlError::target(stage, why));
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

    /// Returns the Identify Controller data.
    fn identity(admin: &Admin<'_>) -> Result<identify::Controller, CtrlError> {
        let what = "identify controller";
        let data = admin.identify(Identify::Controller, what)?;
        identify::Controller::parse(data.bytes())
            .map_err(CtrlError::unusable(ErrorStage::Identify, what))
    }

    #[inline(never)]
    fn identify(
        &self,
        admin: &Admin<'_>,
        controller_id: u16,
    ) -> Result<Arc<identify::Controller>, CtrlError> {
        let stage = ErrorStage::Identify;
        let identity = Self::identity(admin)?;
        limits::controller::check(&identity, controller_id)
            .map_err(CtrlError::unusable(stage, "unusable controller"))?;
        Arc::new(identity, GFP_KERNEL)
            .map_err(|_| CtrlError::kernel(stage, ENOMEM, "identify controller"))
    }

    /// Returns queue parameters that the options, the device and the target allow.
    fn negotiate(
        &self,
        queue: &Connected<Queue>,
        identity: &identify::Controller,
        capabilities: Capabilities,
    ) -> Result<IoQueueParams, CtrlError> {
        let device = queue.queue_pair().device().attributes();
        let entries = self.controller.options.queue_size;
        IoQueueParams::negotiate(entries, &device, identity, capabilities).map_err(CtrlError::from)
    }

    /// Connects the I/O queues in parallel: sends all connection requests, then all Connect
    /// commands, before it waits for the first reply.
    fn connect_io(
        &mut self,
        admin: &Connected<Queue>,
        split: IoQueueCounts,
        params: &IoQueueParams,
        identity: &identify::Controller,
    ) -> Result<KVec<Connected<Queue>>, CtrlError> {
        let (controller_id, delays) = (identity.controller_id, identity.retry_delays);
        let count = split.total().get();
        let mut connecting = list(count)?;
        for qid in 1..=count {
            // Connecting many queues may take longer than the keep-alive time-out.
            self.admin(admin).keep_alive_if_due()?;
            let completions = if split.is_polled(qid.saturating_sub(1)) {
                CompletionMode::Polled
            } else {
                CompletionMode::Interrupt
            };
            let config = params.queue_config(qid, completions);
            let started = self.start_queue(config, controller_id, delays)?;
            push(&mut connecting, (qid, started))?;
        }
        let mut queues = list(count)?;
        for (qid, started) in connecting {
            self.admin(admin).keep_alive_if_due()?;
            push(&mut queues, self.finish_queue(qid, started)?)?;
        }
        let mut sent = list(count)?;
        for queue in &queues {
            let sq_size = params.size().zero_based();
            let command = self.start_fabrics_connect(queue, sq_size, controller_id)?;
            push(&mut sent, command)?;
        }
        for (queue, command) in queues.iter().zip(sent) {
            self.admin(admin).keep_alive_if_due()?;
            self.finish_fabrics_connect(queue, command)?;
        }
        Ok(queues)
    }
}

/// Returns an empty list with room for an item for each of `count` I/O queues.
fn list<T>(count: u16) -> Result<KVec<T>, CtrlError> {
    KVec::with_capacity(count.into(), GFP_KERNEL).map_err(|_| no_memory())
}

fn push<T>(list: &mut KVec<T>, item: T) -> Result<(), CtrlError> {
    list.push(item, GFP_KERNEL).map_err(|_| no_memory())
}

fn no_memory() -> CtrlError {
    CtrlError::kernel(ErrorStage::Queues, ENOMEM, "I/O queues")
}
