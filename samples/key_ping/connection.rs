// SPDX-License-Identifier: GPL-2.0

//! The connection and its events.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        formats::ping::{
            Advert,
            MESSAGE_BYTES, //
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
    port: Number<1, 65535> = 7174, "port of the connection manager";
    size: Number<1, 1048576> = 64, "bytes of a ping; as the server, of the longest that is taken";
    private_data: Number<0, 256> = 0, "bytes of private data to tell the peer when connecting";
    demanded: Number<0, 196> = 0, "bytes of private data that the peer must tell; 0: whatever it likes";
}

/// The work requests that are ever posted at once: one receive, one message or
/// invalidation, and the registration before it.
pub(crate) const CAPACITY: QpCap = QpCap {
    sends: 4,
    receives: 1,
    send_sges: 1,
};

/// Private data that either end tells, as far as it is to tell. No byte is 0: zeroes fill
/// up what is shorter than the message has room for.
static PRIVATE_DATA: [u8; 256] = [0xa5; 256];

/// The context of the queue pair.
pub(crate) type RcContext = EventSink<RcEvents>;

/// Operations that are back.
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
            Lost::Disconnected => queue.context().set_disconnected(),
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

/// Memory that the peer may reach, and the message that tells it so.
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
        // The message that was sent proves nothing; the invalidation does.
        operation.region.invalidated(completion);
        match completion.result() {
            Ok(()) => ctx.update(|events| events.advertised = Some(operation)),
            Err(failure) => ctx.failed("message or invalidation", failure),
        }
    }
}

/// Data on its way from or to the peer's memory.
pub(crate) struct RwTransfer(pub(crate) RdmaRw<Pages, RcContext>);

impl RwOperation<RcContext> for RwTransfer {
    type Data = Pages;

    fn rdma_rw(&self) -> &RdmaRw<Pages, RcContext> {
        &self.0
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
        // No more events are read.
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

    /// Waits as long as a step may take.
    pub(crate) fn wait<R>(
        &self,
        step: &'static str,
        take: impl FnMut(&mut RcEvents) -> Option<R>,
    ) -> Result<R, Failure> {
        self.context().wait(self.task, step, limit(), take)
    }

    /// What the peer says next, within `limit`; the receive is posted again, so that
    /// it can go on once it is answered.
    pub(crate) fn next(&self, step: &'static str, limit: Msecs) -> Result<Advert, Failure> {
        let task = self.task;
        let mut recv_buf = self
            .context()
            .wait(task, step, limit, |events| events.received.take())?;
        let length = recv_buf.length;
        let bytes = recv_buf.buffer.read();
        let advert = bytes.get(..length).and_then(Advert::decode);
        recv_buf.buffer.give_back();
        self.queue().post_receive(recv_buf).step(step)?;
        let wrong = || Failure::new(step, fmt!("{length} bytes and not {MESSAGE_BYTES}"));
        advert.ok_or_else(wrong)
    }
}

/// What the queue pair is made of. Completions are handled where one may sleep, so
/// that what they drop may be anything.
// The stack that this takes is not also its caller's.
#[inline(never)]
pub(crate) fn parts(
    device: &DeviceRef,
    transfers: Option<RdmaRwCap>,
) -> Result<QpInitAttr<RcContext>, Failure> {
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

/// The private data of this end.
pub(crate) fn private_data() -> &'static [u8] {
    PRIVATE_DATA
        .get(..parameters::private_data.get() as usize)
        .unwrap_or(&PRIVATE_DATA)
}

/// Fails if the peer has told other private data than is demanded of it.
pub(crate) fn check_private_data(peer: &PeerParameters) -> Result<(), Failure> {
    let wanted = parameters::demanded.get() as usize;
    if wanted == 0 {
        return Ok(());
    }
    let wrong = |cause| Err(Failure::new("private data", cause));
    let data = peer.private_data();
    let end = data.iter().rposition(|byte| *byte != 0);
    let length = end.map_or(0, |last| last.saturating_add(1));
    if length != wanted {
        return wrong(fmt!("{length} bytes and not {wanted}"));
    }
    // What follows it is the zeroes that the connection manager adds.
    if data.get(..length) != PRIVATE_DATA.get(..length) {
        return wrong(fmt!("other bytes than the sample's"));
    }
    Ok(())
}

/// A buffer for a message.
pub(crate) fn message(device: &DeviceRef, direction: Direction) -> Result<DmaBuffer, Failure> {
    DmaBuffer::new(device.clone(), MESSAGE_BYTES, direction).step("buffer")
}

/// A buffer for the server's answer, of which only the length means something.
pub(crate) fn send_buf(device: &DeviceRef) -> Result<Operation<SendBuf>, Failure> {
    Operation::new(SendBuf(message(device, Direction::ToDevice)?)).step("buffer")
}

impl SendBuf {
    pub(crate) fn sge(&self) -> Sge<'_> {
        self.0.sge()
    }
}

/// Posts the one receive. Before the peer knows of the connection, so that none of
/// its messages can come too early.
pub(crate) fn post_receive(queue: &QueuePair<RcContext>) -> Result<(), Failure> {
    let recv_buf = RecvBuf {
        // One byte more than a message shows one that is too long as such.
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
