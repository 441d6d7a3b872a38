// SPDX-License-Identifier: GPL-2.0

//! Two ends of reliable connections, both of one sample, on two devices or on one.

use crate::common::{
    failure::{
        Failure,
        Step, //
    },
    port_gid::PortGid,
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    str::CStr,
    sync::{
        atomic::{
            ordering,
            AtomicFlag, //
        },
        Arc, //
    },
};
use rrdma::{
    new_irq_lock,
    rdma::{
        cq::{
            self,
            Completion,
            CompletionQueue,
            Invalidation,
            Opcode,
            Poll, //
        },
        device::{
            DeviceRef,
            Mtu, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::{
            Region,
            RemoteKey, //
        },
        qp::{
            self,
            rc,
            Fault,
            Init,
            QpCap,
            QpContext,
            QpInitAttr,
            QueuePair,
            Rc,
            Rts, //
        },
        wr::{
            Chain,
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    scatter::Buffer,
    sync::{
        IrqLock,
        Msecs,
        TimedCompletion, //
    },
};

/// The longest that a request may take, with all that is sent again.
const LIMIT: Msecs = Msecs::new(10_000);

/// How long the answer to a request may be on its way.
const ANSWER: Msecs = Msecs::new(2_000);

/// Bytes that a request may hold itself.
pub(crate) const INLINE: u32 = 32;

const CAPACITY: QpCap = QpCap {
    sends: 32,
    receives: 4,
    send_sges: 2,
};

/// Reads and atomic operations at once.
const READS: u8 = 4;

/// Memory of an operation: a buffer to send from or to receive into, and perhaps a
/// region for the other end.
pub(crate) struct Work {
    /// Whose it is, if there are many.
    pub(crate) owner: usize,
    pub(crate) buffer: DmaBuffer,
    pub(crate) region: Option<Region<Buffer>>,
}

impl Work {
    /// An operation with a buffer of `length` bytes.
    pub(crate) fn new(
        device: &DeviceRef,
        length: usize,
        direction: Direction,
    ) -> Result<Operation<Self>, Failure> {
        let buffer = DmaBuffer::new(device.clone(), length, direction).step("buffer")?;
        Operation::new(Self {
            owner: 0,
            buffer,
            region: None,
        })
        .step("operation")
    }

    /// An operation with a region for data of `length` bytes.
    pub(crate) fn with_region(
        port_gid: &PortGid<'_>,
        length: usize,
    ) -> Result<Operation<Self>, Failure> {
        let mut work = Self::new(port_gid.device(), 1, Direction::FromDevice)?;
        // The data need not begin with a page.
        let pages = length.div_ceil(4096).saturating_add(1);
        let pages = pages.try_into().step("region")?;
        work.region = Some(Region::new(port_gid.pd.clone(), pages).step("region")?);
        Ok(work)
    }

    /// The region, which is there.
    pub(crate) fn region(&self) -> Result<&Region<Buffer>> {
        self.region.as_ref().ok_or(EINVAL)
    }
}

/// What has become of an operation.
pub(crate) struct CompletedWork {
    pub(crate) work: Operation<Work>,
    pub(crate) result: Result<WorkCompletion, cq::Failure>,
}

/// What a request did.
pub(crate) struct WorkCompletion {
    pub(crate) opcode: Option<Opcode>,
    pub(crate) received: Option<ReceiveInfo>,
}

/// What a receive tells.
pub(crate) struct ReceiveInfo {
    pub(crate) is_write: bool,
    pub(crate) length: usize,
    pub(crate) immediate: Option<u32>,
    pub(crate) invalidation: Option<Invalidation>,
}

/// Where completions leave what they bring: the context of a queue pair.
#[pin_data]
pub(crate) struct CompletionSink {
    #[pin]
    returned: IrqLock<KVec<CompletedWork>>,
    /// The other end was refused access to memory.
    refused: AtomicFlag,
    wake: Arc<TimedCompletion>,
}

impl QpContext for CompletionSink {
    type QpType = Rc;

    fn failed(_: &QueuePair<Self>, failure: cq::Failure) {
        if !failure.is_flush() {
            pr_err!("a request has failed: {failure}\n");
        }
    }

    fn faulted(queue: &QueuePair<Self>, fault: Fault) {
        pr_info!("queue pair: {fault}\n");
        if fault == Fault::Access {
            let sink = queue.context();
            sink.refused.store(true, ordering::Release);
            sink.wake.complete();
        }
    }
}

impl Complete<CompletionSink> for Work {
    /// Called in softirq: it does not sleep, nor free anything.
    fn complete(
        mut work: Operation<Self>,
        queue: &QueuePair<CompletionSink>,
        completion: &Completion<'_>,
    ) {
        if let Some(region) = work.region.as_mut() {
            // Says no of anything but the completion of an invalidation.
            region.invalidated(completion);
        }
        let received = completion.received().map(|received| ReceiveInfo {
            is_write: received.is_write(),
            length: received.byte_len(),
            immediate: received.immediate(),
            invalidation: received.invalidation(),
        });
        let opcode = completion.opcode();
        let result = completion
            .result()
            .map(|()| WorkCompletion { opcode, received });
        let sink = queue.context();
        // There is room for all that can be posted.
        let _ = sink
            .returned
            .lock()
            .push_within_capacity(CompletedWork { work, result });
        sink.wake.complete();
    }
}

impl Receive<CompletionSink> for Work {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

fn init_qp(port_gid: &PortGid<'_>, owner: &'static CStr) -> Result<Init<CompletionSink>, Failure> {
    let entries = CAPACITY.completions();
    let room = CAPACITY.sends.saturating_add(CAPACITY.receives) as usize;
    let cq = CompletionQueue::alloc(port_gid.device().clone(), entries, 0, Poll::SoftIrq, owner)
        .step("completion queue")?;
    let returned = KVec::with_capacity(room, GFP_KERNEL).step("sink")?;
    let wake = port_gid.task.wake().clone();
    let sink = try_pin_init!(CompletionSink {
        returned <- new_irq_lock!(returned, "samples::CompletionSink"),
        refused: AtomicFlag::new(false),
        wake,
    }? Error);
    let parts = QpInitAttr::new(port_gid.pd.clone(), cq, CAPACITY).with_inline(INLINE);
    let reset = qp::create(parts, sink, owner).step("queue pair")?;
    let access = rc::Access::WRITE | rc::Access::READ | rc::Access::ATOMIC;
    port_gid.init_qp(reset, access)
}

/// Connects two ends.
pub(crate) fn connect(
    near: &PortGid<'_>,
    far: &PortGid<'_>,
    mtu: Mtu,
    owner: &'static CStr,
) -> Result<(ConnectedQp, ConnectedQp), Failure> {
    let (one, other) = (init_qp(near, owner)?, init_qp(far, owner)?);
    let (here, there) = (one.number(), other.number());
    let one = near.connect(one, far, there, mtu, READS)?;
    let other = far.connect(other, near, here, mtu, READS)?;
    Ok((
        ConnectedQp(near.task.clone(), one),
        ConnectedQp(far.task.clone(), other),
    ))
}

/// One end of a connection.
pub(crate) struct ConnectedQp(Arc<SampleTask>, Rts<CompletionSink>);

impl ConnectedQp {
    pub(crate) fn queue(&self) -> &Arc<QueuePair<CompletionSink>> {
        self.1.queue_pair()
    }

    /// Posts the requests that `build` makes.
    pub(crate) fn post(
        &self,
        step: &'static str,
        work: Operation<Work>,
        build: impl for<'a> FnOnce(&'a Work, &mut Chain<'a, '_, CompletionSink>) -> Result,
    ) -> Result<(), Failure> {
        self.queue().post_send(work, build).step(step)
    }

    /// Lets the other end read the data or write to it, as the direction says, by a new
    /// key, and waits until it can.
    pub(crate) fn expose(
        &self,
        mut memory: Operation<Work>,
        data: Buffer,
        direction: Direction,
    ) -> Result<(Operation<Work>, RemoteKey), Failure> {
        let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
        let attached = region.attach(data, direction);
        attached.map_err(|(error, _)| error).step("region")?;
        let key = region.bind().step("region")?;
        Ok((self.register(memory)?, key))
    }

    /// Makes the key of a region valid, and waits until it is.
    pub(crate) fn register(&self, memory: Operation<Work>) -> Result<Operation<Work>, Failure> {
        self.post("registration", memory, |memory, chain| {
            chain.register(memory.region()?)
        })?;
        Ok(self.done("registration")?.0)
    }

    /// Ends the access of the other end to a region, and takes the data back.
    pub(crate) fn invalidate(
        &self,
        memory: Operation<Work>,
    ) -> Result<(Operation<Work>, Buffer), Failure> {
        self.post("invalidation", memory, |memory, chain| {
            chain.invalidate(memory.region()?)
        })?;
        let (mut memory, _) = self.done("invalidation")?;
        let data = memory.region.as_mut().and_then(|region| region.release());
        Ok((memory, data.ok_or(EBUSY).step("data")?))
    }

    /// Posts a receive.
    pub(crate) fn post_receive(&self, work: Operation<Work>) -> Result<(), Failure> {
        self.queue().post_receive(work).step("receive")
    }

    /// The requests that `build` makes have to be refused, with this error.
    pub(crate) fn refuses(
        &self,
        why: &'static str,
        work: Operation<Work>,
        error: Error,
        build: impl for<'a> FnOnce(&'a Work, &mut Chain<'a, '_, CompletionSink>) -> Result,
    ) -> Result<Operation<Work>, Failure> {
        match self.queue().post_send(work, build) {
            Err(unposted) if unposted.error == error => Ok(unposted.operation),
            Err(unposted) => Err(Failure::new(
                why,
                fmt!("{:?} and not {error:?}", unposted.error),
            )),
            Ok(()) => Err(Failure::new(why, fmt!("it was posted"))),
        }
    }

    /// An operation that is back, if there is one.
    pub(crate) fn try_take(&self) -> Option<CompletedWork> {
        self.queue().context().returned.lock().remove(0).ok()
    }

    /// Waits for an operation to come back, whatever became of it.
    pub(crate) fn take(&self, step: &'static str) -> Result<CompletedWork, Failure> {
        self.0.wait_for(step, LIMIT, || self.try_take())
    }

    /// Waits for an operation that the other end has [refused](Self::refused). It says so
    /// once: if that is lost, this end asks for ever, and gets no answer; then `None`.
    pub(crate) fn take_refused(&self, step: &'static str) -> Option<CompletedWork> {
        self.0.wait_for(step, ANSWER, || self.try_take()).ok()
    }

    /// Waits until the other end was refused access to memory of this one.
    pub(crate) fn refused(&self, step: &'static str) -> Result<(), Failure> {
        let sink = self.queue().context();
        let refused = || sink.refused.load(ordering::Acquire).then_some(());
        self.0.wait_for(step, LIMIT, refused)
    }

    /// Waits for an operation that has to succeed.
    pub(crate) fn done(
        &self,
        step: &'static str,
    ) -> Result<(Operation<Work>, WorkCompletion), Failure> {
        let returned = self.take(step)?;
        match returned.result {
            Ok(done) => Ok((returned.work, done)),
            Err(failure) => Err(Failure::new(step, fmt!("{failure}"))),
        }
    }
}
