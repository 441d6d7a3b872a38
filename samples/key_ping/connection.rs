// SPDX-License-Identifier: GPL-2.0

//! The connection, its queue pair and its events.

use crate::{
    common::{
        formats::ping::{
            Advert,
            MESSAGE_BYTES, //
        },
        step_error::{
            Step,
            StepError, //
        },
        task::SampleTask, //
    },
    rdma_cm::{
        event_sink::{
            EventData,
            EventSink, //
        },
        limit, //
    },
    NAME, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    rdma::{
        cm::{
            Connected,
            Endpoint,
            Lost,
            PeerParameters, //
        },
        cq::{
            Completion,
            CompletionQueue,
            Poll, //
        },
        device::DeviceRef,
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::{
            MrGuard,
            RemoteKey, //
        },
        pd::ProtectionDomain,
        qp::{
            QpCap,
            QpInitAttr,
            QueuePair,
            Rc, //
        },
        rw::{
            RdmaRw,
            RdmaRwCap,
            RwOperation, //
        },
        wr::{
            Complete,
            Operation,
            Receive,
            Sge, //
        },
    },
    scatter::Pages,
    sync::Msecs,
};

rrdma::parameters! {
    port: Number<1, 65535> = 7174, "port number of the server; default 7174";
    size: Number<1, 1048576> = 64, "client: ping size in bytes; server: maximum; default 64";
    private_data: Number<0, 256> = 0, "bytes of private data to send when connecting; default 0";
    demanded: Number<0, 196> = 0, "bytes of private data required from the peer; default 0: any";
}

/// At most one receive, one send or invalidation, and a registration before it are outstanding.
pub(crate) const CAPACITY: QpCap = QpCap {
    sends: 4,
    receives: 1,
    send_sges: 1,
};

/// Private data of either end, up to the length in the parameter. No byte is 0, because the
/// connection manager pads shorter private data with zeroes.
static PRIVATE_DATA: [u8; 256] = [0xa5; 256];

/// The context of the queue pair.
pub(crate) type RcContext = EventSink<RcEvents>;

/// Completed operations.
#[derive(Default)]
pub(crate) struct RcEvents {
    pub(crate) received: Option<Operation<RecvBuf>>,
    pub(crate) sent: Option<Operation<SendBuf>>,
    pub(crate) advertised: Option<Operation<AdvertisedRegion>>,
    pub(crate) transferred: Option<Operation<RwTransfer>>,
}

impl EventData for RcEvents {
    type QpType = Rc;
}

impl Endpoint for RcContext {
    fn lost(queue: &QueuePair<Self>, cause: Lost) {
        match cause {
            Lost::Disconnected | Lost::Closed => queue.context().set_disconnected(),
            _ => queue.context().fail(fmt!("{cause}")),
        }
    }
}

/// A message from the peer.
pub(crate) struct RecvBuf {
    buffer: DmaBuffer,
    length: usize,
}

impl Receive<RcContext> for RecvBuf {
    fn buffer(&self) -> Sge<'_> {
        self.buffer.sge()
    }
}

impl Complete<RcContext> for RecvBuf {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<RcContext>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        if let Err(failure) = completion.result() {
            return ctx.failed("receive", failure);
        }
        operation.length = completion
            .received()
            .map_or(0, |message| message.byte_len());
        ctx.update(|events| events.received = Some(operation));
    }
}

/// A message to the peer.
pub(crate) struct SendBuf(DmaBuffer);

impl Complete<RcContext> for SendBuf {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<RcContext>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        match completion.result() {
            Ok(()) => ctx.update(|events| events.sent = Some(operation)),
            Err(failure) => ctx.failed("send", failure),
        }
    }
}

/// Memory that the peer may access, and the message that advertises it.
pub(crate) struct AdvertisedRegion {
    pub(crate) region: MrGuard<Pages>,
    pub(crate) message: DmaBuffer,
}

impl Complete<RcContext> for AdvertisedRegion {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<RcContext>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        // Has no effect unless this is the completion of the invalidation.
        operation.region.invalidated(completion);
        match completion.result() {
            Ok(()) => ctx.update(|events| events.advertised = Some(operation)),
            Err(failure) => ctx.failed("message or invalidation", failure),
        }
    }
}

/// An RDMA read or write of the peer's memory.
pub(crate) struct RwTransfer(pub(crate) RdmaRw<Pages, RcContext>);

impl RwOperation<RcContext> for RwTransfer {
    type Data = Pages;

    fn rdma_rw(&mut self) -> Option<&mut RdmaRw<Pages, RcContext>> {
        Some(&mut self.0)
    }
}

impl Complete<RcContext> for RwTransfer {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<RcContext>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        match completion.result() {
            Ok(()) => ctx.update(|events| events.transferred = Some(operation)),
            Err(failure) => ctx.failed("read or write", failure),
        }
    }
}

/// An established connection.
pub(crate) struct Connection<'a> {
    task: &'a SampleTask,
    connected: Connected<RcContext>,
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        self.connected.disconnect();
        // No more events are read. The stored operations hold references to the queue pair.
        self.context().clear();
    }
}

impl<'a> Connection<'a> {
    pub(crate) fn new(task: &'a SampleTask, connected: Connected<RcContext>) -> Self {
        Self { task, connected }
    }

    pub(crate) fn queue(&self) -> &Arc<QueuePair<RcContext>> {
        self.connected.queue_pair()
    }

    pub(crate) fn context(&self) -> &RcContext {
        self.queue().context()
    }

    /// Waits with the time limit of a step.
    pub(crate) fn wait<R>(
        &self,
        step: &'static str,
        take: impl FnMut(&mut RcEvents) -> Option<R>,
    ) -> Result<R, StepError> {
        self.context().wait(self.task, step, limit(), take)
    }

    /// Waits for the next message from the peer, for `limit` at most, and returns it. Posts the
    /// receive again first: the peer may send as soon as it gets the answer. Sleeps.
    pub(crate) fn next(&self, step: &'static str, limit: Msecs) -> Result<Advert, StepError> {
        let task = self.task;
        let mut recv_buf = self
            .context()
            .wait(task, step, limit, |events| events.received.take())?;
        let length = recv_buf.length;
        let bytes = recv_buf.buffer.read();
        let advert = bytes.get(..length).and_then(Advert::decode);
        recv_buf.buffer.give_back();
        self.queue().post_receive(recv_buf).step(step)?;
        let wrong = || StepError::new(step, fmt!("got {length} bytes, expected {MESSAGE_BYTES}"));
        advert.ok_or_else(wrong)
    }
}

/// Returns the attributes of the queue pair. Completions are handled in a workqueue, because
/// dropping operations may sleep.
// Not inlined: callers would have this stack frame for all of their run time.
#[inline(never)]
pub(crate) fn parts(
    device: &DeviceRef,
    transfers: Option<RdmaRwCap>,
) -> Result<QpInitAttr<RcContext>, StepError> {
    let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
    let needed = transfers.map_or(0, |transfers| transfers.requests(device, CAPACITY));
    let entries = CAPACITY.completions().saturating_add(needed);
    let cq = CompletionQueue::alloc(device.clone(), entries, 0, Poll::Workqueue, NAME)
        .step("completion queue")?;
    let parts = QpInitAttr::new(pd, cq, CAPACITY);
    Ok(match transfers {
        Some(transfers) => parts.with_rdma_rw(transfers),
        None => parts,
    })
}

/// Returns the private data of this end, in the length of the parameter.
pub(crate) fn private_data() -> &'static [u8] {
    PRIVATE_DATA
        .get(..parameters::private_data.get() as usize)
        .unwrap_or(&PRIVATE_DATA)
}

/// Fails if the private data of the peer is not as the parameter `demanded` requires.
pub(crate) fn check_private_data(peer: &PeerParameters) -> Result<(), StepError> {
    let wanted = parameters::demanded.get() as usize;
    if wanted == 0 {
        return Ok(());
    }
    let wrong = |cause| Err(StepError::new("private data", cause));
    let data = peer.private_data();
    let end = data.iter().rposition(|byte| *byte != 0);
    let length = end.map_or(0, |last| last.saturating_add(1));
    if length != wanted {
        return wrong(fmt!("got {length} bytes, expected {wanted}"));
    }
    // The rest is padding, added by the connection manager.
    if data.get(..length) != PRIVATE_DATA.get(..length) {
        return wrong(fmt!("unexpected content"));
    }
    Ok(())
}

/// Allocates a buffer for a message.
pub(crate) fn message(device: &DeviceRef, direction: Direction) -> Result<DmaBuffer, StepError> {
    DmaBuffer::new(device.clone(), MESSAGE_BYTES, direction).step("buffer")
}

/// Allocates the server's acknowledgement. Only its length matters.
pub(crate) fn send_buf(device: &DeviceRef) -> Result<Operation<SendBuf>, StepError> {
    Operation::new(SendBuf(message(device, Direction::ToDevice)?)).step("buffer")
}

impl SendBuf {
    pub(crate) fn sge(&self) -> Sge<'_> {
        self.0.sge()
    }
}

/// Posts the receive. To be called before the connection is established: the peer may send at once.
pub(crate) fn post_receive(queue: &QueuePair<RcContext>) -> Result<(), StepError> {
    let recv_buf = RecvBuf {
        // One byte more than a message, to detect a message that is too long.
        buffer: DmaBuffer::new(
            queue.device().clone(),
            MESSAGE_BYTES.saturating_add(1),
            Direction::FromDevice,
        )
        .step("buffer")?,
        length: 0,
    };
    let recv_buf = Operation::new(recv_buf).step("buffer")?;
    queue.post_receive(recv_buf).step("receive")
}

impl From<RemoteKey> for Advert {
    fn from(key: RemoteKey) -> Self {
        Self {
            address: key.address,
            rkey: key.rkey,
            length: key.length,
        }
    }
}

impl From<Advert> for RemoteKey {
    fn from(advert: Advert) -> Self {
        Self {
            address: advert.address,
            length: advert.length,
            rkey: advert.rkey,
        }
    }
}
