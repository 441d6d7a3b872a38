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
use null_driver::Driver;
use pair::{
    CompletionSink,
    ConnectedQp,
    ONE_MESSAGE, //
};
use rrdma::{
    chrdev::Numbers,
    net::{
        tcp,
        Address, //
    },
    netlink,
    rdma::{
        client,
        cm::{
            Event,
            Id,
            ListenParams,
            Observer,
            ServiceListener, //
        },
        cq::{
            Completion,
            CompletionQueue,
            Poll, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::Region,
        multicast::{
            Membership,
            Role, //
        },
        pd::ProtectionDomain,
        qp::QueuePair,
        srq::SharedReceiveQueue,
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    scatter::Buffer,
    sync::{
        Msecs,
        OwnedQueue,
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
mod null_driver;
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

const NAME: &CStr = c"rrdma_drops";

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
        "numbers" => drop_in_softirq(&port_gid, Numbers::new(NAME, 1).step("numbers")?)?,
        "node" => drop_in_softirq(&port_gid, when_loaded(task, null_driver::node)?)?,
        "class" => drop_in_softirq(&port_gid, Class::new(NAME).step("class")?)?,
        "device" => drop_in_softirq(&port_gid, sysfs_device().step("device")?)?,
        "thread" => drop_in_softirq(&port_gid, thread().step("thread")?)?,
        "workqueue" => drop_in_softirq(&port_gid, workqueue().step("workqueue")?)?,
        "socket" => drop_in_softirq(&port_gid, socket(task)?)?,
        "tag_set" => drop_in_softirq(&port_gid, null_driver::tag_set().step("tag set")?)?,
        "disk" => drop_in_softirq(&port_gid, when_loaded(task, null_driver::disk)?)?,
        "rdma" => drop_in_softirq(&port_gid, rdma_objects(&port_gid)?)?,
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
    let end = ConnectedQp::loopback(port_gid, queue(port_gid)?, ONE_MESSAGE)?;
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

fn queue(port_gid: &PortGid<'_>) -> Result<Arc<CompletionQueue>, StepError> {
    let device = port_gid.device().clone();
    CompletionQueue::alloc(device, ONE_MESSAGE.completions(), 0, Poll::SoftIrq, NAME)
        .step("completion queue")
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

impl Attributes for Driver {
    const ATTRIBUTES: &'static [Attribute<Self>] = &[Attribute::action(c"nothing", |_| Ok(()))];
}

fn sysfs_device() -> Result<Arc<Device>> {
    let data = Arc::new(Driver, GFP_KERNEL)?;
    Device::new(Class::new(NAME)?, c"dropped", data, None)
}

fn netlink_family() -> Result<netlink::Registration<Driver>, StepError> {
    netlink::Registration::new(Ok(()), module()?).step("netlink family")
}

/// An observer of a CM ID whose drop sleeps, as the end of its event handler may.
#[pin_data(PinnedDrop)]
struct SleepingObserver {
    #[pin]
    never: TimedCompletion,
}

impl Observer for SleepingObserver {
    fn heard(&self, _event: Event) {}
}

#[pinned_drop]
impl PinnedDrop for SleepingObserver {
    fn drop(self: Pin<&mut Self>) {
        let _never = self.never.wait_timeout(Msecs::new(1));
    }
}

/// A CM ID that is never connected.
fn id(task: &SampleTask) -> Result<Id<Driver>> {
    let id = Id::new(task.namespace(), task.wake().clone(), NAME)?;
    let observer = pin_init!(SleepingObserver { never <- TimedCompletion::new() });
    id.observe(Arc::pin_init(observer, GFP_KERNEL)?)?;
    Ok(id)
}

/// Objects of a device.
struct RdmaObjects {
    _region: Region<Buffer>,
    _pd: Arc<ProtectionDomain>,
    _queue: Arc<CompletionQueue>,
    _queue_pair: Arc<QueuePair<CompletionSink>>,
}

/// The last references to objects of the device. The queue pair was drained before.
fn rdma_objects(port_gid: &PortGid<'_>) -> Result<RdmaObjects, StepError> {
    let device = port_gid.device();
    let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
    let mut region = Region::new(pd.clone(), 2).step("region")?;
    let data = Buffer::new(64, GFP_KERNEL).step("data")?;
    region.dma_map(data, Direction::ToDevice).step("data")?;
    let drained = ConnectedQp::loopback(port_gid, queue(port_gid)?, ONE_MESSAGE)?;
    Ok(RdmaObjects {
        _region: region,
        _pd: pd,
        _queue: queue(port_gid)?,
        _queue_pair: drained.queue().clone(),
    })
}

/// Listens at all addresses.
fn listener(task: &SampleTask) -> Result<ServiceListener, StepError> {
    let namespace = task.namespace();
    let address = Address::parse(namespace, "0.0.0.0", 0).step("address")?;
    let params = ListenParams {
        backlog: 1,
        refusal: &[],
        wake: task.wake().clone(),
        owner: NAME,
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
        NAME,
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
    let queue = OwnedQueue::new(NAME, WorkKind::Ordinary, 1)?;
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
