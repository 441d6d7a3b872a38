// SPDX-License-Identifier: GPL-2.0

//! Connecting a controller, from its address to its queues.

use super::{
    admin::Admin,
    session::Session,
    Controller,
    Facts,
    Inventory, //
};
use crate::{
    failure::Failure,
    io::{
        Io,
        Place,
        Places,
        Queues, //
    },
    netlink::uapi::ErrorStage,
    queue::{
        Plan,
        Queue, //
    },
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::Arc, //
};
use nvme_wire::{
    connect::{
        ConnectData,
        ConnectError,
        Connected as Granted, //
    },
    identify,
    limits::{
        self,
        queue::{
            QueueSize,
            SizeInputs,
            ADMIN_ENTRIES, //
        },
        transfer::{
            self,
            InlineLimit, //
        },
    },
    nqn::Nqn,
    private_data,
    property::Capabilities,
    sqe::{
        Command,
        Connect,
        Identify, //
    },
};
use rrdma::{
    block::{
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
            Poll, //
        },
        device::Attributes,
        dma::Direction,
        mr::Buffer,
        pd::ProtectionDomain, //
    },
    sync::{
        Deadline,
        Msecs,
        Published, //
    },
};

/// What `rdma res show` calls us.
const OWNER: &CStr = c"rnvme";

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
struct Agreement {
    size: QueueSize,
    pages: u32,
    max_sectors: u32,
    inline: InlineLimit,
}

/// Connects the controller: its queues are ready, and what there is to know of
/// it for its disks is known. Sleeps.
pub(super) fn connect(controller: &Controller) -> Result<(Session, Inventory), Failure> {
    let mut setup = Setup {
        controller,
        deadline: Deadline::after(controller.options.connect_timeout),
        pd: None,
    };
    let queue = setup.connect_queue(Plan::admin(), 0)?;
    let granted = setup.fabrics_connect(&queue, ADMIN_ENTRIES - 1, ConnectData::ANY_CONTROLLER)?;
    let admin = setup.admin(&queue);
    let capabilities = admin.capabilities()?;
    let configuration = admin.enable(capabilities)?;
    let version = admin.version()?;
    let identity = setup.identify(&admin, granted.controller_id)?;
    let agreement = setup.agree(&queue, &identity, capabilities)?;
    let io = setup.connect_io(&admin, &agreement, &identity)?;
    let (places, tag_set) = setup.tag_set(&io, &agreement)?;
    controller.shown.lock().facts = Some(Facts {
        device: queue.queue_pair().device().name(),
        identity,
        io_queues: u16::try_from(io.len()).unwrap_or(u16::MAX),
        queue_size: agreement.size.entries(),
        max_sectors: agreement.max_sectors,
        inline_size: agreement.inline.bytes(),
    });
    let inventory = Inventory {
        tag_set,
        identity,
        version,
        min_page_shift: capabilities.min_page_shift(),
        max_sectors: agreement.max_sectors,
        max_segments: transfer::max_segments(agreement.max_sectors, agreement.pages),
        deadline: setup.deadline,
    };
    let session = Session {
        traffic_keeps_alive: identity.traffic_based_keep_alive(),
        shutdown: Msecs::new(identity.shutdown_timeout_ms()),
        admin: queue,
        io,
        places,
        configuration,
    };
    Ok((session, inventory))
}

impl Plan {
    /// The admin queue has no requests of the block layer, and no data in capsules.
    fn admin() -> Self {
        Self {
            qid: 0,
            size: ADMIN_ENTRIES,
            requests: 0,
            pages: 0,
            inline: InlineLimit::default(),
            retry_delays: [0; 3],
        }
    }
}

impl<'a> Setup<'a> {
    fn admin<'b>(&self, queue: &'b Connected<Queue>) -> Admin<'b>
    where
        'a: 'b,
    {
        Admin {
            queue,
            controller: self.controller,
            deadline: self.deadline,
        }
    }

    /// Connects a queue pair: the target then waits for a Connect command.
    fn connect_queue(
        &mut self,
        plan: Plan,
        controller_id: u16,
    ) -> Result<Connected<Queue>, Failure> {
        let qid = plan.qid;
        self.try_connect_queue(plan, controller_id)
            .map_err(|failure| failure.on_queue(qid))
    }

    fn try_connect_queue(
        &mut self,
        plan: Plan,
        controller_id: u16,
    ) -> Result<Connected<Queue>, Failure> {
        let controller = self.controller;
        let options = &controller.options;
        let cancelled = || controller.interruption().is_some();
        let patience = controller.patience(self.deadline, &cancelled);
        let id = Id::new(&options.namespace, controller.wake.clone(), OWNER)
            .map_err(|error| Failure::kernel(ErrorStage::Address, error, "connection id"))?;
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
            .prepare(addressed, plan)
            .map_err(|error| self.interrupted(error))?;
        let request = private_data::Request {
            queue_id: plan.qid,
            receive_queue_size: plan.size,
            send_queue_size: plan.size.saturating_sub(1),
            controller_id,
        };
        let parameters = Parameters {
            private_data: &request.encode(),
            responder_resources: u8::try_from(reads).unwrap_or(u8::MAX),
            retry_count: RETRIES,
            rnr_retry_count: RETRIES,
        };
        prepared
            .connect(parameters, patience)
            .map_err(|error| self.cm_failure(error, Some(device.as_str())))
    }

    /// A failed step; if it was interrupted, then by what.
    fn cm_failure(&self, error: rrdma::rdma::cm::Error, device: Option<&str>) -> Failure {
        self.interrupted(Failure::from_cm(error, device))
    }

    /// If there was trouble, it is the cause of `failure`.
    fn interrupted(&self, failure: Failure) -> Failure {
        match self.controller.alarm.trouble() {
            Some(trouble) => Failure::from(trouble),
            None => failure,
        }
    }

    /// Makes the objects of a queue on the device that its address led to.
    fn prepare(
        &mut self,
        addressed: Addressed<Queue>,
        plan: Plan,
    ) -> Result<Prepared<Queue>, Failure> {
        let fail = |error, what| Failure::kernel(ErrorStage::Device, error, what);
        let name = addressed.device().name();
        let Some(device) = self.controller.host.acquire(addressed.device()) else {
            return Err(crate::alarm::Trouble::DeviceRemoved.into());
        };
        if !device.attributes().memory_management_extensions {
            return Err(Failure::new(
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
        let capacity = plan.capacity();
        let vector = u32::from(plan.qid.saturating_sub(1));
        let entries = capacity.completions();
        let cq = CompletionQueue::private(device, entries, vector, Poll::SoftIrq, OWNER)
            .map_err(|error| fail(error, "completion queue"))?;
        let queue = Queue::new(plan, pd.clone(), self.controller.alarm.clone());
        let prepared = addressed
            .create_queue_pair(pd, cq, capacity, queue, OWNER)
            .map_err(|error| fail(error, "queue pair"))?;
        Queue::post_receives(prepared.queue_pair(), plan.size)
            .map_err(|error| fail(error, "receives"))?;
        Ok(prepared)
    }

    /// Makes the target's end of a queue.
    fn fabrics_connect(
        &self,
        queue: &Connected<Queue>,
        sq_size: u16,
        controller_id: u16,
    ) -> Result<Granted, Failure> {
        let stage = ErrorStage::FabricsConnect;
        let options = &self.controller.options;
        let qid = queue.queue_pair().context().qid();
        let what = "connect command";
        let data = self
            .connect_data(controller_id)
            .map_err(|error| Failure::kernel(stage, error, what))?;
        let command = Command::connect(Connect {
            queue_id: qid,
            sq_size,
            keep_alive_ms: if qid == 0 { options.keep_alive_ms() } else { 0 },
            disable_sq_flow: false,
        });
        let reply = self
            .admin(queue)
            .send(command, Some((data, Direction::ToDevice)))
            .map_err(|error| Failure::from_command(stage, error, what).on_queue(qid))?;
        let (status, result) = (reply.completion.status, reply.completion.result32());
        if let Some(error) = ConnectError::from_completion(status, result) {
            let subsystem = options.subsystem();
            return Err(Failure::from_connect(error, status, subsystem).on_queue(qid));
        }
        let granted = Granted::from_result(result);
        if granted.authentication_required {
            return Err(Failure::target(
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

    fn identify(
        &self,
        admin: &Admin<'_>,
        controller_id: u16,
    ) -> Result<identify::Controller, Failure> {
        let stage = ErrorStage::Identify;
        let data = admin.identify(Identify::Controller, "identify controller")?;
        let identity = identify::Controller::parse(data.bytes())
            .map_err(|why| Failure::target(stage, format_args!("identify controller: {why}")))?;
        limits::controller::check(&identity, controller_id)
            .map_err(|why| Failure::target(stage, format_args!("unusable controller: {why}")))?;
        Ok(identity)
    }

    /// What we, the device and the target can do together.
    fn agree(
        &self,
        queue: &Connected<Queue>,
        identity: &identify::Controller,
        capabilities: Capabilities,
    ) -> Result<Agreement, Failure> {
        let stage = ErrorStage::Queues;
        let device: Attributes = queue.queue_pair().device().attributes();
        let pages = transfer::region_pages(device.max_fast_reg_page_list_len).ok_or_else(|| {
            Failure::new(
                stage,
                rrdma::errno::EOPNOTSUPP,
                format_args!("the RDMA device cannot register memory"),
            )
        })?;
        let size = QueueSize::agree(&SizeInputs {
            requested: self.controller.options.queue_size,
            device: limits::queue::device_entries(device.max_qp_wr, device.max_cqe),
            max_entries_zero_based: capabilities.max_queue_entries_zero_based(),
            max_commands: identity.max_commands,
        })
        .map_err(|why| Failure::target(stage, format_args!("I/O queues: {why}")))?;
        Ok(Agreement {
            size,
            pages,
            max_sectors: transfer::max_sectors(identity, capabilities.min_page_shift(), pages),
            inline: InlineLimit::agree(identity, device.max_send_sge),
        })
    }

    fn connect_io(
        &mut self,
        admin: &Admin<'_>,
        agreement: &Agreement,
        identity: &identify::Controller,
    ) -> Result<KVec<Connected<Queue>>, Failure> {
        let cpus = rrdma::cpu::online();
        let wanted = limits::queue::to_request(cpus, self.controller.options.io_queues);
        let count = admin.request_queues(wanted)?.get();
        let mut queues = KVec::with_capacity(count.into(), GFP_KERNEL)
            .map_err(|_| Failure::kernel(ErrorStage::Queues, ENOMEM, "I/O queues"))?;
        for qid in 1..=count {
            let plan = Plan {
                qid,
                size: agreement.size.entries(),
                requests: agreement.size.zero_based(),
                // A transfer that begins within a page reaches into one more.
                pages: agreement.pages.saturating_add(1),
                inline: agreement.inline,
                retry_delays: identity.retry_delays,
            };
            let queue = self.connect_queue(plan, identity.controller_id)?;
            self.fabrics_connect(&queue, agreement.size.zero_based(), identity.controller_id)?;
            queues
                .push(queue, GFP_KERNEL)
                .map_err(|_| Failure::kernel(ErrorStage::Queues, ENOMEM, "I/O queues"))?;
        }
        Ok(queues)
    }

    /// Makes the tag set that all disks share, with a hardware queue for each
    /// queue pair.
    fn tag_set(
        &self,
        io: &[Connected<Queue>],
        agreement: &Agreement,
    ) -> Result<(Places, Arc<TagSet<Io>>), Failure> {
        let make = || -> Result<_> {
            let mut places = KVec::with_capacity(io.len(), GFP_KERNEL)?;
            let mut shared = KVec::with_capacity(io.len(), GFP_KERNEL)?;
            for connection in io {
                let place = Arc::new(
                    Place {
                        queue: Published::new(),
                        alarm: self.controller.alarm.clone(),
                    },
                    GFP_KERNEL,
                )?;
                place.queue.publish(connection.queue_pair().clone());
                places.push(place.clone(), GFP_KERNEL)?;
                shared.push(place, GFP_KERNEL)?;
            }
            let config = TagSetConfig {
                queues: io.len().try_into()?,
                depth: agreement.size.zero_based().into(),
                reserved_tags: 0,
                numa_node: TagSetConfig::NO_NODE,
                timeout: REQUEST,
            };
            Ok((places, TagSet::new(config, Queues { places: shared })?))
        };
        make().map_err(|error| Failure::kernel(ErrorStage::Queues, error, "tag set"))
    }
}
