// SPDX-License-Identifier: GPL-2.0

//! Connected queue pairs (RC) of one sample: two, on one or two devices, or one that is connected
//! with itself.

use crate::common::{
    port_gid::PortGid,
    step_error::{
        expect_unposted,
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask, //
    }, //
};
use kernel::{
    prelude::*,
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
            Qpn,
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

/// Time limit of an operation, including retransmissions.
pub(crate) const LIMIT: Msecs = Msecs::new(10_000);

/// Time limit for the response to a request.
const ANSWER: Msecs = Msecs::new(2_000);

/// Maximum length of inline data in bytes.
pub(crate) const INLINE: u32 = 32;

const CAPACITY: QpCap = QpCap {
    sends: 32,
    receives: 4,
    send_sges: 2,
};

/// Capacity of a queue pair for one message at a time that is connected with itself.
pub(crate) const ONE_MESSAGE: QpCap = QpCap {
    sends: 1,
    receives: 1,
    send_sges: 1,
};

/// Maximum number of operations in flight on a queue pair.
const OPERATIONS: usize = CAPACITY.sends as usize + CAPACITY.receives as usize;

/// Maximum number of RDMA reads and atomic operations in flight.
const READS: u8 = 4;

/// Memory of an operation: a buffer to send from or receive into, and optionally a region that the
/// other end may access.
pub(crate) struct Work {
    /// Index of the owner, for samples with several operations in flight.
    pub(crate) owner: usize,
    pub(crate) buffer: DmaBuffer,
    pub(crate) region: Option<Region<Buffer>>,
}

impl Work {
    /// Allocates an operation with a buffer of `length` bytes. May sleep.
    pub(crate) fn new(
        device: &DeviceRef,
        length: usize,
        direction: Direction,
    ) -> Result<Operation<Self>, StepError> {
        let buffer = DmaBuffer::new(device.clone(), length, direction).step("buffer")?;
        Operation::new(Self {
            owner: 0,
            buffer,
            region: None,
        })
        .step("operation")
    }

    /// Allocates an operation with a region for data of `length` bytes. May sleep.
    pub(crate) fn with_region(
        port_gid: &PortGid<'_>,
        length: usize,
    ) -> Result<Operation<Self>, StepError> {
        let mut work = Self::new(port_gid.device(), 1, Direction::FromDevice)?;
        // One more page, because the data may start in the middle of a page.
        let pages = length.div_ceil(4096).saturating_add(1);
        let pages = pages.try_into().step("region")?;
        work.region = Some(Region::new(port_gid.pd.clone(), pages).step("region")?);
        Ok(work)
    }

    /// Returns the region. Fails if there is none.
    pub(crate) fn region(&self) -> Result<&Region<Buffer>> {
        self.region.as_ref().ok_or(EINVAL)
    }
}

/// A completed operation with its result.
pub(crate) struct CompletedWork {
    pub(crate) work: Operation<Work>,
    pub(crate) result: Result<WorkCompletion, cq::WcError>,
}

/// Information from a successful completion.
pub(crate) struct WorkCompletion {
    pub(crate) opcode: Option<Opcode>,
    pub(crate) received: Option<ReceiveInfo>,
}

/// Information from the completion of a receive.
pub(crate) struct ReceiveInfo {
    pub(crate) is_write: bool,
    pub(crate) length: usize,
    pub(crate) immediate: Option<u32>,
    pub(crate) invalidation: Option<Invalidation>,
}

/// The context of a queue pair: completion handlers store completed operations here.
#[pin_data]
pub(crate) struct CompletionSink {
    #[pin]
    returned: IrqLock<KVec<CompletedWork>>,
    /// This end has refused an access of the other end to its memory.
    refused: AtomicFlag,
    wake: Arc<TimedCompletion>,
}

impl QpContext for CompletionSink {
    type QpType = Rc;

    fn failed(_: &QueuePair<Self>, failure: cq::WcError) {
        if !failure.is_flush() {
            pr_err!("request failed: {failure}\n");
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
    /// Runs in softirq, so it must not sleep or free memory.
    fn complete(
        mut work: Operation<Self>,
        queue: &QueuePair<CompletionSink>,
        completion: &Completion<'_>,
    ) {
        if let Some(region) = work.region.as_mut() {
            // Returns false, and has no effect, unless this is the completion of an invalidation.
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
        // Has capacity for `OPERATIONS`.
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

/// Creates a queue pair in the INIT state. May sleep.
pub(crate) fn init_qp(
    port_gid: &PortGid<'_>,
    parts: QpInitAttr<CompletionSink>,
) -> Result<Init<CompletionSink>, StepError> {
    let returned = KVec::with_capacity(OPERATIONS, GFP_KERNEL).step("sink")?;
    let wake = port_gid.task.wake().clone();
    let sink = try_pin_init!(CompletionSink {
        returned <- new_irq_lock!(returned, "samples::CompletionSink"),
        refused: AtomicFlag::new(false),
        wake,
    }? Error);
    let reset = qp::create(parts, sink, task::NAME).step("queue pair")?;
    let access = rc::Access::WRITE | rc::Access::READ | rc::Access::ATOMIC;
    port_gid.init_qp(reset, access)
}

/// Creates two queue pairs and connects them. May sleep.
pub(crate) fn connect(
    near: &PortGid<'_>,
    far: &PortGid<'_>,
    mtu: Mtu,
) -> Result<(ConnectedQp, ConnectedQp), StepError> {
    let init = |end: &PortGid<'_>| {
        let (device, entries) = (end.device().clone(), CAPACITY.completions());
        let cq = CompletionQueue::alloc(device, entries, 0, Poll::SoftIrq, task::NAME);
        let cq = cq.step("completion queue")?;
        let parts = QpInitAttr::new(end.pd.clone(), cq, CAPACITY).with_inline(INLINE);
        init_qp(end, parts)
    };
    join((near, init(near)?), (far, init(far)?), mtu)
}

/// Connects two queue pairs with each other. May sleep.
pub(crate) fn join(
    (near, one): (&PortGid<'_>, Init<CompletionSink>),
    (far, other): (&PortGid<'_>, Init<CompletionSink>),
    mtu: Mtu,
) -> Result<(ConnectedQp, ConnectedQp), StepError> {
    let (here, there) = (one.number(), other.number());
    Ok((
        ConnectedQp::new(near, one, far, there, mtu)?,
        ConnectedQp::new(far, other, near, here, mtu)?,
    ))
}

/// A connected queue pair.
pub(crate) struct ConnectedQp(Arc<SampleTask>, Rts<CompletionSink>);

impl ConnectedQp {
    fn new(
        port_gid: &PortGid<'_>,
        init: Init<CompletionSink>,
        peer: &PortGid<'_>,
        number: Qpn,
        mtu: Mtu,
    ) -> Result<Self, StepError> {
        let ready = port_gid.connect(init, peer, number, mtu, READS)?;
        Ok(Self(port_gid.task.clone(), ready))
    }

    /// Creates a queue pair that is connected with itself. May sleep.
    pub(crate) fn loopback(
        port_gid: &PortGid<'_>,
        cq: Arc<CompletionQueue>,
        capacity: QpCap,
    ) -> Result<Self, StepError> {
        let parts = QpInitAttr::new(port_gid.pd.clone(), cq, capacity);
        Self::loopback_with(port_gid, parts)
    }

    /// Creates a queue pair with these attributes that is connected with itself. May sleep.
    pub(crate) fn loopback_with(
        port_gid: &PortGid<'_>,
        parts: QpInitAttr<CompletionSink>,
    ) -> Result<Self, StepError> {
        let init = init_qp(port_gid, parts)?;
        let number = init.number();
        Self::new(port_gid, init, port_gid, number, Mtu::Bytes256)
    }

    pub(crate) fn queue(&self) -> &Arc<QueuePair<CompletionSink>> {
        self.1.queue_pair()
    }

    /// Posts the work requests that `build` adds to the chain.
    pub(crate) fn post(
        &self,
        step: &'static str,
        work: Operation<Work>,
        build: impl for<'a> FnOnce(&'a mut Work, &mut Chain<'a, '_, CompletionSink>) -> Result,
    ) -> Result<(), StepError> {
        self.queue().post_send(work, build).step(step)
    }

    /// Registers `data` with a new key, so that the other end may access it. `direction` decides
    /// whether the other end may read or write. Waits until the registration has completed.
    pub(crate) fn expose(
        &self,
        mut memory: Operation<Work>,
        data: Buffer,
        direction: Direction,
    ) -> Result<(Operation<Work>, RemoteKey), StepError> {
        let region = memory.region.as_mut().ok_or(EINVAL).step("region")?;
        region.dma_map(data, direction).step("region")?;
        let key = region.map_sg().step("region")?;
        Ok((self.register(memory)?, key))
    }

    /// Registers the region of `memory`, and waits until it is valid.
    pub(crate) fn register(&self, memory: Operation<Work>) -> Result<Operation<Work>, StepError> {
        self.post("registration", memory, |memory, chain| {
            chain.register(memory.region()?)
        })?;
        Ok(self.done("registration")?.0)
    }

    /// Invalidates the region, and takes its data back when the other end can no longer access it.
    pub(crate) fn invalidate(
        &self,
        memory: Operation<Work>,
    ) -> Result<(Operation<Work>, Buffer), StepError> {
        self.post("invalidation", memory, |memory, chain| {
            chain.invalidate(memory.region()?)
        })?;
        let (mut memory, _) = self.done("invalidation")?;
        let data = memory.region.as_mut().and_then(|region| region.release());
        Ok((memory, data.ok_or(EBUSY).step("data")?))
    }

    /// Posts a receive.
    pub(crate) fn post_receive(&self, work: Operation<Work>) -> Result<(), StepError> {
        self.queue().post_receive(work).step("receive")
    }

    /// Checks that posting the work requests of `build` fails with `error`.
    pub(crate) fn refuses(
        &self,
        why: &'static str,
        work: Operation<Work>,
        error: Error,
        build: impl for<'a> FnOnce(&'a mut Work, &mut Chain<'a, '_, CompletionSink>) -> Result,
    ) -> Result<Operation<Work>, StepError> {
        expect_unposted(why, self.queue().post_send(work, build), error)
    }

    /// Returns the number of completed operations that were not taken yet.
    pub(crate) fn returned(&self) -> usize {
        self.queue().context().returned.lock().len()
    }

    /// Takes a completed operation, if there is one.
    pub(crate) fn try_take(&self) -> Option<CompletedWork> {
        self.queue().context().returned.lock().remove(0).ok()
    }

    /// Waits for an operation to complete, successfully or not.
    pub(crate) fn take(&self, step: &'static str) -> Result<CompletedWork, StepError> {
        self.0.wait_for(step, LIMIT, || self.try_take())
    }

    /// Waits for an operation whose access the other end has [refused](Self::refused).
    ///
    /// Returns `None` after a timeout. The other end sends its NAK once. If the NAK is lost, this
    /// end retries, and gets no response.
    pub(crate) fn take_refused(&self, step: &'static str) -> Option<CompletedWork> {
        self.0.wait_for(step, ANSWER, || self.try_take()).ok()
    }

    /// Waits until this end has refused an access to its memory.
    pub(crate) fn refused(&self, step: &'static str) -> Result<(), StepError> {
        let sink = self.queue().context();
        let refused = || sink.refused.load(ordering::Acquire).then_some(());
        self.0.wait_for(step, LIMIT, refused)
    }

    /// Waits for an operation, which must succeed.
    pub(crate) fn done(
        &self,
        step: &'static str,
    ) -> Result<(Operation<Work>, WorkCompletion), StepError> {
        let returned = self.take(step)?;
        match returned.result {
            Ok(done) => Ok((returned.work, done)),
            Err(failure) => Err(StepError::new(step, fmt!("{failure}"))),
        }
    }
}

/// Fails if a poll has handled completions after the queue pair was destroyed.
pub(crate) fn nothing_left(step: &'static str, handled: u32) -> Result<(), StepError> {
    match handled {
        0 => Ok(()),
        more => Err(StepError::new(step, fmt!("{more} unexpected completions"))),
    }
}
