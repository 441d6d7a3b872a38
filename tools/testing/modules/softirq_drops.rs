// SPDX-License-Identifier: GPL-2.0

//! Lets a completion handler in a softirq drop the last reference to an object of the kernel whose drop sleeps.

use common::{
    port_gid::PortGid,
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask,
        Summary, //
    },
};
use kernel::{
    prelude::*,
    sync::{
        Arc,
        SetOnce, //
    },
};
use pair::{
    CompletionSink,
    ConnectedQp,
    ONE_MESSAGE, //
};
use rrdma::{
    block::{
        Disk,
        DiskConfig,
        Limits,
        Openers,
        Operations,
        QueueCounts,
        QueueKinds,
        Refused,
        Request,
        RequestRef,
        Status,
        TagSet,
        TagSetConfig,
        TimeoutAction, //
    },
    chrdev::{
        self,
        Node,
        Numbers, //
    },
    ioctl::Call,
    net::{
        tcp,
        Address, //
    },
    netlink,
    rdma::{
        client::{
            self,
            Client, //
        },
        cm::{
            Endpoint,
            Id,
            ListenParams,
            Lost,
            ServiceListener, //
        },
        cq::{
            Completion,
            CompletionQueue,
            Poll,
            WcError, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        multicast::{
            Membership,
            Role, //
        },
        qp::{
            Fault,
            QpContext,
            QueuePair,
            Rc, //
        },
        srq::SharedReceiveQueue,
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    sync::{
        Msecs,
        OwnedQueue,
        RcuSection,
        RcuSlot,
        Retracted,
        Thread,
        TimedCompletion,
        WorkKind, //
    },
    sysfs::{
        Attribute,
        Attributes,
        Class,
        Device, //
    },
};

use ud_endpoint::{
    UdConfig,
    UdEndpoint, //
};

#[path = "../../../samples/common/common.rs"]
mod common;
#[path = "../../../samples/pair/pair.rs"]
#[allow(dead_code)]
mod pair;
#[path = "../../../samples/rdma_cm/rdma_cm.rs"]
mod rdma_cm;
#[path = "../../../samples/datagram/ud_endpoint.rs"]
#[allow(dead_code)]
mod ud_endpoint;

module! {
    type: Drops,
    name: "rrdma_test_softirq_drops",
    authors: ["The rnvmf developers"],
    description: "Test: objects that a completion handler in a softirq drops",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 255> = 0, "GID index of port 1; default 0";
    source: Text<64> = "", "local address to join a multicast group from";
    object: Text<15> = "", "what to drop: a function of this module; empty: nothing";
}

/// The module, for objects that hold a reference to it.
static MODULE: SetOnce<&'static ThisModule> = SetOnce::new();

struct Drops {
    _task: task::Handle,
}

impl kernel::Module for Drops {
    fn init(module: &'static ThisModule) -> Result<Self> {
        MODULE.populate(module);
        Ok(Self {
            _task: task::Handle::init(module)?,
        })
    }
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    let port_gid = PortGid::new(task, &device, parameters::gid_index.get())?;
    let object = parameters::object.get();
    match &*object {
        "" => (),
        "numbers" => drop_in_softirq(&port_gid, Numbers::new(task::NAME, 1).step("numbers")?)?,
        "node" => drop_in_softirq(&port_gid, when_loaded(task, node)?)?,
        "class" => drop_in_softirq(&port_gid, Class::new(task::NAME).step("class")?)?,
        "device" => drop_in_softirq(&port_gid, sysfs_device().step("device")?)?,
        "thread" => drop_in_softirq(&port_gid, thread().step("thread")?)?,
        "workqueue" => drop_in_softirq(&port_gid, workqueue().step("workqueue")?)?,
        "socket" => drop_in_softirq(&port_gid, socket(task)?)?,
        "tag_set" => drop_in_softirq(&port_gid, tag_set().step("tag set")?)?,
        "disk" => drop_in_softirq(&port_gid, when_loaded(task, disk)?)?,
        "srq" => drop_in_softirq(&port_gid, shared_receives(&port_gid)?)?,
        "group" => drop_in_softirq(&port_gid, group(task)?)?,
        "id" => drop_in_softirq(&port_gid, id(task).step("CM ID")?)?,
        "listener" => drop_in_softirq(&port_gid, listener(task)?)?,
        "netlink" => drop_in_softirq(&port_gid, netlink_family()?)?,
        "client" => drop_in_softirq(
            &port_gid,
            client::Registration::<Driver>::new(()).step("client")?,
        )?,
        "rcu" => drop_in_softirq(&port_gid, retracted().step("RCU")?)?,
        _ => return Err(StepError::new("object", fmt!("unknown"))),
    }
    Ok(Summary::new(fmt!("{}", &*object)))
}

/// A receive that owns a value. Its handler drops it.
struct Holder<T> {
    buffer: DmaBuffer,
    _value: T,
}

impl<T: Send + 'static> Complete<CompletionSink> for Holder<T> {
    fn complete(receive: Operation<Self>, _: &QueuePair<CompletionSink>, _: &Completion<'_>) {
        drop(receive);
    }
}

impl<T: Send + 'static> Receive<CompletionSink> for Holder<T> {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

/// Lets a flushed receive drop `value`.
fn drop_in_softirq<T: Send + 'static>(port_gid: &PortGid<'_>, value: T) -> Result<(), StepError> {
    let device = port_gid.device();
    let entries = ONE_MESSAGE.completions();
    let queue = CompletionQueue::alloc(device.clone(), entries, 0, Poll::SoftIrq, task::NAME)
        .step("completion queue")?;
    let end = ConnectedQp::loopback(port_gid, queue, ONE_MESSAGE)?;
    let buffer =
        DmaBuffer::new(device.clone(), size_of::<u64>(), Direction::FromDevice).step("buffer")?;
    let receive = Operation::new(Holder {
        buffer,
        _value: value,
    });
    end.queue()
        .post_receive(receive.step("operation")?)
        .step("receive")?;
    end.queue().drain();
    Ok(())
}

fn module() -> Result<&'static ThisModule, StepError> {
    MODULE.as_ref().copied().ok_or(EINVAL).step("module")
}

/// Creates an object that exists only while the module is loaded.
fn when_loaded<T>(
    task: &SampleTask,
    create: impl Fn(&'static ThisModule) -> Result<T>,
) -> Result<T, StepError> {
    let module = module()?;
    let loaded = || match create(module) {
        Err(EBUSY) => None,
        created => Some(created),
    };
    task.poll_for("loaded module", Msecs::from_secs(10), loaded)?
        .step("object")
}

/// Data, operations and driver of the objects.
struct Driver;

impl Attributes for Driver {
    const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::action(c"nothing", |_| Ok(()))];
}

impl chrdev::Operations for Driver {
    fn ioctl(&self, _call: &Call) -> Result<c_int> {
        Err(ENOTTY)
    }
}

impl Operations for Driver {
    type SetData = ();
    type QueueData = ();
    type DiskData = ();
    type RequestData = ();

    fn new_queue(_set: &(), _index: u32) -> Result {
        Ok(())
    }

    fn new_request_data(_set: &(), _queue: u32) -> impl PinInit<()> {}

    fn queue_rq(
        _queue: &(),
        _disk: &(),
        request: Request<Self>,
        _last: bool,
        _section: &RcuSection,
    ) -> Result<(), Refused<Self>> {
        request.complete(Status::Ok);
        Ok(())
    }

    fn timeout(_queue: &(), _request: &RequestRef<Self>) -> TimeoutAction {
        TimeoutAction::ResetTimer
    }
}

fn node(module: &'static ThisModule) -> Result<Node> {
    Node::new(
        Numbers::new(task::NAME, 1)?,
        0,
        module,
        Arc::new(Driver, GFP_KERNEL)?,
    )
}

fn sysfs_device() -> Result<Arc<Device>> {
    let data = Arc::new(Driver, GFP_KERNEL)?;
    Device::new(Class::new(task::NAME)?, c"dropped", data, None)
}

impl netlink::Family for Driver {
    const NAME: &'static CStr = c"rrdma_drops";
    const VERSION: u8 = 1;
    const OPERATIONS: &'static [netlink::Operation<Self>] = &[netlink::Operation {
        command: 1,
        admin: false,
        attributes: &[],
        doit: Some(|(), _| Ok(())),
        dumpit: None,
    }];
    const GROUPS: &'static [&'static CStr] = &[];

    type Context = ();
}

fn netlink_family() -> Result<netlink::Registration<Driver>, StepError> {
    netlink::Registration::new(Ok(()), module()?).step("netlink family")
}

impl Client for Driver {
    const NAME: &'static CStr = c"rrdma_drops";

    type Context = ();
}

impl QpContext for Driver {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, _failure: WcError) {}

    fn faulted(_queue: &QueuePair<Self>, _fault: Fault) {}
}

impl Endpoint for Driver {
    fn lost(_queue: &QueuePair<Self>, _cause: Lost) {}
}

/// A CM ID that is never connected.
fn id(task: &SampleTask) -> Result<Id<Driver>> {
    Id::new(task.namespace(), task.wake().clone(), task::NAME)
}

/// Listens at all addresses.
fn listener(task: &SampleTask) -> Result<ServiceListener, StepError> {
    let namespace = task.namespace();
    let address = Address::parse(namespace, "0.0.0.0", 0).step("address")?;
    let params = ListenParams {
        backlog: 1,
        refusal: &[],
        wake: task.wake().clone(),
        owner: task::NAME,
    };
    ServiceListener::new(namespace, &address, params).step("listen")
}

fn shared_receives(
    port_gid: &PortGid<'_>,
) -> Result<Arc<SharedReceiveQueue<CompletionSink>>, StepError> {
    SharedReceiveQueue::new(port_gid.pd.clone(), 4, |_| ()).step("shared receive queue")
}

/// The membership in a multicast group, with the last reference to a queue pair.
fn group(task: &Arc<SampleTask>) -> Result<Membership, StepError> {
    let (namespace, cancelled) = (task.namespace(), || task.is_stopped());
    let source = Address::parse(namespace, &parameters::source.get(), 0).step("source")?;
    let group = Address::parse(namespace, "239.1.2.9", 0).step("address")?;
    let mut membership = Membership::join(
        namespace,
        Some(&source),
        &group,
        Role::Full,
        task.wake().clone(),
        task::NAME,
        rdma_cm::patience(&cancelled),
    )
    .step("group")?;
    let device = task.acquire(membership.device())?;
    let config = UdConfig {
        key: membership.qkey(),
        receives: 1,
        size: 64,
    };
    let endpoint = UdEndpoint::new(task, &device, membership.port(), &config)?;
    membership.attach(endpoint.queue().clone()).step("attach")?;
    Ok(membership)
}

/// A thread that ends when it is told to.
fn thread() -> Result<Thread> {
    let told = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
    let stop = told.clone();
    Thread::spawn(
        fmt!("rrdma_drops"),
        move || stop.complete(),
        move || told.wait(),
    )
}

/// A workqueue with a work item that takes its time.
fn workqueue() -> Result<OwnedQueue> {
    let queue = OwnedQueue::new(task::NAME, WorkKind::Ordinary, 1)?;
    let never = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
    queue.try_spawn(GFP_KERNEL, move || {
        let _never = never.wait_timeout(Msecs::new(100));
    })?;
    Ok(queue)
}

fn socket(task: &SampleTask) -> Result<tcp::Listener, StepError> {
    let address = Address::parse(task.namespace(), "127.0.0.1", 0).step("address")?;
    tcp::Listener::new(task.namespace(), &address, 1, task.wake().clone()).step("listen")
}

/// An object that was removed from its slot, and whose readers were not waited for.
fn retracted() -> Result<Retracted<()>> {
    let slot = RcuSlot::new();
    let before = slot.publish(Arc::new((), GFP_KERNEL)?);
    match before {
        None => slot.retract().ok_or(EINVAL),
        Some(_) => Err(EEXIST),
    }
}

fn tag_set() -> Result<Arc<TagSet<Driver>>> {
    let queues = QueueCounts {
        default: 1,
        ..QueueCounts::default()
    };
    let config = TagSetConfig {
        queues,
        kinds: QueueKinds::Default,
        depth: 1,
        reserved_tags: 0,
        numa_node: TagSetConfig::NO_NODE,
        timeout: Msecs::from_secs(30),
    };
    TagSet::new(config, ())
}

fn disk(module: &'static ThisModule) -> Result<Disk<Driver>> {
    let config = DiskConfig {
        name: c"rrdma_dropped",
        limits: Limits::default(),
        capacity_sectors: 8,
        read_only: false,
        module,
        parent: None,
        openers: &Openers::new()?,
    };
    Disk::new(config, tag_set()?, ())
}
