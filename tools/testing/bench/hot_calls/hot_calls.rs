// SPDX-License-Identifier: GPL-2.0

//! Measures the calls of a Rust consumer on the I/O path. `hot_calls_c.c` measures the same calls
//! in C. Both connect a queue pair with itself on one device, so they differ only in the layer
//! above the driver.
//!
//! Counts nanoseconds. In a VM that executes one instruction per nanosecond of its clock
//! (`tools/testing/vm/run --icount`), these are instructions.

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
    sync::Arc,
    time::{
        delay::fsleep,
        Delta,
        Instant,
        Monotonic, //
    },
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::{
            Completion,
            DirectQueue,
            WcError, //
        },
        device::{
            DeviceRef,
            Mtu, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::Region,
        pd::ProtectionDomain,
        qp::{
            self,
            rc,
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
            Receive,
            Sge,
            Unposted, //
        },
    },
    scatter::Buffer,
    sync::IrqLock,
};

#[path = "../../../../samples/common/common.rs"]
mod common;

module! {
    type: task::Handle,
    name: "bench_hot_calls",
    authors: ["The rnvmf developers"],
    description: "Benchmark: calls of verbs on the I/O path, in Rust",
    license: "GPL",
}

rrdma::parameters! {
    device: Text<64> = "", "RDMA device name; empty: first device with an active port";
    gid_index: Number<0, 255> = 0, "GID index of port 1; default 0";
}

/// Number of operations of a kind that are posted back to back.
const OPERATIONS: usize = 64;
const ROUNDS: u32 = 8;
/// Size of a message in bytes.
const MESSAGE: usize = 64;
/// Size of a region in bytes and in pages.
const REGION: usize = 65536;
const PAGES: u32 = 16;
/// Longer than the device needs to complete what is posted.
const SETTLE: Delta = Delta::from_millis(200);

/// The context of the queue pair: completed operations.
#[pin_data]
struct QpCtx {
    #[pin]
    sends: IrqLock<KVec<Operation<Outgoing>>>,
    #[pin]
    receives: IrqLock<KVec<Operation<Incoming>>>,
}

struct Outgoing {
    buffer: DmaBuffer,
    region: Region<Buffer>,
}

struct Incoming {
    buffer: DmaBuffer,
}

impl QpContext for QpCtx {
    type QpType = Rc;

    fn failed(_queue: &QueuePair<Self>, failure: WcError) {
        pr_err!("registration: {}\n", failure.message());
    }

    fn faulted(_queue: &QueuePair<Self>, fault: Fault) {
        pr_err!("fault {fault:?}\n");
    }
}

// Failed operations are dropped. `settle()` then finds too few and fails.

impl Complete<QpCtx> for Outgoing {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<QpCtx>,
        completion: &Completion<'_>,
    ) {
        if operation.region.peer_may_access() {
            operation.region.invalidated(completion);
        }
        if completion.result().is_ok() {
            let _ = queue.context().sends.lock().push_within_capacity(operation);
        }
    }
}

impl Complete<QpCtx> for Incoming {
    fn complete(operation: Operation<Self>, queue: &QueuePair<QpCtx>, completion: &Completion<'_>) {
        if completion.result().is_ok() {
            let _ = queue
                .context()
                .receives
                .lock()
                .push_within_capacity(operation);
        }
    }
}

impl Receive<QpCtx> for Incoming {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl QpCtx {
    fn new() -> impl PinInit<Self, Error> {
        try_pin_init!(Self {
            sends <- new_irq_lock!(KVec::with_capacity(OPERATIONS, GFP_KERNEL)?, "hot_calls::sends"),
            receives <- new_irq_lock!(
                KVec::with_capacity(OPERATIONS, GFP_KERNEL)?,
                "hot_calls::receives"
            ),
        }? Error)
    }
}

/// Nanoseconds of all calls of a kind.
#[derive(Default)]
struct Counts {
    post_receive: i64,
    post_send: i64,
    poll: i64,
    register: i64,
    invalidate: i64,
}

fn run(task: &Arc<SampleTask>) -> Result<Summary, StepError> {
    let device = task.device(&parameters::device.get())?;
    let port_gid = PortGid::new(task, &device, parameters::gid_index.get())?;
    let capacity = QpCap {
        sends: 2 * OPERATIONS as u32,
        receives: OPERATIONS as u32,
        send_sges: 1,
    };
    let cq = DirectQueue::new(device.clone(), 4 * OPERATIONS as u32, 0, task::NAME)
        .step("completion queue")?;
    let parts = QpInitAttr::new(port_gid.pd.clone(), cq.completion_queue().clone(), capacity);
    let reset = qp::create(parts, QpCtx::new(), task::NAME).step("queue pair")?;
    let number = reset.number();
    let init = port_gid.init_qp(reset, rc::Access::READ | rc::Access::WRITE)?;
    let rts = port_gid.connect(init, &port_gid, number, Mtu::Bytes1024, 1)?;
    let queue = rts.queue_pair();
    fill(queue, &port_gid.pd, &device).step("memory")?;
    // Not counted: the first round fills memory pools.
    round(queue, &cq, &mut Counts::default())?;
    let mut counts = Counts::default();
    for _ in 0..ROUNDS {
        task.proceed("round")?;
        round(queue, &cq, &mut counts)?;
    }
    report(&counts);
    Ok(Summary::new(fmt!("{ROUNDS} rounds")))
}

/// Allocates the operations.
fn fill(queue: &QueuePair<QpCtx>, pd: &Arc<ProtectionDomain>, device: &DeviceRef) -> Result {
    for _ in 0..OPERATIONS {
        let mut region = Region::new(pd.clone(), PAGES)?;
        let data = Buffer::new(REGION, GFP_KERNEL)?;
        region
            .dma_map(data, Direction::ToDevice)
            .map_err(|(error, _)| error)?;
        let buffer = DmaBuffer::new(device.clone(), MESSAGE, Direction::ToDevice)?;
        let send = Operation::new(Outgoing { buffer, region })?;
        let buffer = DmaBuffer::new(device.clone(), MESSAGE, Direction::FromDevice)?;
        let receive = Operation::new(Incoming { buffer })?;
        let ctx = queue.context();
        let kept = ctx.sends.lock().push_within_capacity(send).is_ok()
            && ctx.receives.lock().push_within_capacity(receive).is_ok();
        if !kept {
            return Err(ENOMEM);
        }
    }
    Ok(())
}

fn round(queue: &QueuePair<QpCtx>, cq: &DirectQueue, counts: &mut Counts) -> Result<(), StepError> {
    let ctx = queue.context();
    let receive = |operation| queue.post_receive(operation);

    post_all(&ctx.receives, receive, &mut counts.post_receive)?;
    let send = |operation: Operation<Outgoing>| {
        queue.post_send(operation, |o, chain| chain.send([o.buffer.sge()]))
    };
    post_all(&ctx.sends, send, &mut counts.post_send)?;
    settle(queue, cq, &mut counts.poll)?;

    post_all(&ctx.receives, receive, &mut 0)?;
    let register = |mut operation: Operation<Outgoing>| {
        if let Err(error) = operation.region.map_sg() {
            return Err(Unposted { error, operation });
        }
        queue.post_send(operation, |o, chain| {
            chain.register(&o.region)?;
            chain.send([o.buffer.sge()])
        })
    };
    post_all(&ctx.sends, register, &mut counts.register)?;
    settle(queue, cq, &mut 0)?;
    let invalidate = |operation: Operation<Outgoing>| {
        queue.post_send(operation, |o, chain| chain.invalidate(&o.region))
    };
    post_all(&ctx.sends, invalidate, &mut counts.invalidate)?;
    settle(queue, cq, &mut 0)
}

/// Posts all operations in the list. Interrupts are off, so that only posting is counted.
fn post_all<T>(
    operations: &IrqLock<KVec<Operation<T>>>,
    post: impl Fn(Operation<T>) -> Result<(), Unposted<T>>,
    nanoseconds: &mut i64,
) -> Result<(), StepError> {
    let mut operations = operations.lock();
    let start = Instant::<Monotonic>::now();
    let mut result = Ok(());
    while let Some(operation) = operations.pop() {
        result = post(operation).map_err(|unposted| unposted.error);
        if result.is_err() {
            break;
        }
    }
    *nanoseconds = nanoseconds.saturating_add(start.elapsed().as_nanos());
    drop(operations);
    result.step("post")
}

/// Handles completions. All operations must have completed.
fn settle(
    queue: &QueuePair<QpCtx>,
    cq: &DirectQueue,
    nanoseconds: &mut i64,
) -> Result<(), StepError> {
    fsleep(SETTLE);
    let start = Instant::<Monotonic>::now();
    cq.poll(u32::MAX);
    *nanoseconds = nanoseconds.saturating_add(start.elapsed().as_nanos());
    let ctx = queue.context();
    let (sends, receives) = (ctx.sends.lock().len(), ctx.receives.lock().len());
    if (sends, receives) != (OPERATIONS, OPERATIONS) {
        return Err(StepError::new(
            "completion",
            fmt!("{sends} sends and {receives} receives of {OPERATIONS} each"),
        ));
    }
    Ok(())
}

fn report(counts: &Counts) {
    let calls = i64::from(ROUNDS).saturating_mul(OPERATIONS as i64);
    let each = |nanoseconds: i64, calls: i64| nanoseconds.checked_div(calls).unwrap_or(0);
    pr_info!("post-receive {}\n", each(counts.post_receive, calls));
    pr_info!("post-send {}\n", each(counts.post_send, calls));
    // A poll is counted as two: one for the send and one for the receive.
    let polled = calls.saturating_mul(2);
    pr_info!("poll {}\n", each(counts.poll, polled));
    pr_info!("register {}\n", each(counts.register, calls));
    pr_info!("invalidate {}\n", each(counts.invalidate, calls));
}
