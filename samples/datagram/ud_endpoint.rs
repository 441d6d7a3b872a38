// SPDX-License-Identifier: GPL-2.0

//! A queue pair for datagrams, for samples that use the connection manager.

use crate::{
    common::{
        requirement::DeviceRequirement,
        step_error::{
            Step,
            StepError, //
        },
        task::{
            SampleTask,
            NAME, //
        },
    },
    rdma_cm::{
        event_sink::{
            EventData,
            EventSink, //
        },
        limit, //
    },
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    ah::{
        self,
        AddressHandle,
        Sender,
        GRH_BYTES, //
    },
    cq::{
        Completion,
        CompletionQueue,
        Poll, //
    },
    device::{
        DeviceRef,
        Port, //
    },
    dma::{
        Direction,
        DmaBuffer, //
    },
    pd::ProtectionDomain,
    qp::{
        self,
        ud::{
            self,
            Qkey, //
        },
        Psn,
        QpCap,
        QpInitAttr,
        Qpn,
        QueuePair,
        Rts,
        Ud, //
    },
    wr::{
        Complete,
        Operation,
        Receive,
        Sge, //
    },
};

/// The context of the queue pair.
pub(crate) type UdContext = EventSink<UdEvents>;

/// Received datagrams, and the completed send.
#[derive(Default)]
pub(crate) struct UdEvents {
    /// Number of received datagrams.
    received: u32,
    /// The first datagram, for the address to reply to.
    first: Option<Datagram>,
    sent: Option<Operation<SendBuf>>,
}

impl EventData for UdEvents {
    type QpType = Ud;
}

/// Source and immediate data of a datagram.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    pub(crate) sender: Sender,
    immediate: Option<u32>,
}

impl Datagram {
    /// Returns the queue pair number to reply to. The immediate data takes precedence over the
    /// source in the completion, because a sender may receive replies on another queue pair.
    pub(crate) fn number(&self) -> Qpn {
        let told = self.immediate.and_then(Qpn::new);
        told.unwrap_or(self.sender.number())
    }
}

/// A receive buffer for a datagram and the header that precedes it.
struct RecvBuf(DmaBuffer);

impl Receive<UdContext> for RecvBuf {
    fn buffer(&self) -> Sge<'_> {
        self.0.sge()
    }
}

impl Complete<UdContext> for RecvBuf {
    fn complete(
        mut operation: Operation<Self>,
        queue: &QueuePair<UdContext>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        let Some(received) = completion.received() else {
            let failure = completion.result().err();
            return failure.map_or((), |failure| ctx.failed("receive", failure));
        };
        let bytes = operation.0.read();
        let wanted = bytes.len().saturating_sub(GRH_BYTES);
        let payload = ah::payload(bytes, &received);
        match (payload, Sender::of(queue, &received, bytes)) {
            (Some(payload), Some(sender)) => {
                let (length, immediate) = (payload.len(), received.immediate());
                if length != wanted {
                    return ctx.fail(fmt!("got {length} bytes, expected {wanted}"));
                }
                ctx.update(|events| {
                    events.received = events.received.saturating_add(1);
                    events.first.get_or_insert(Datagram { sender, immediate });
                });
            }
            _ => ctx.fail(fmt!("datagram longer than its buffer")),
        }
    }
}

/// A datagram to send, with its destination.
struct SendBuf {
    buffer: DmaBuffer,
    address: Arc<AddressHandle>,
}

impl Complete<UdContext> for SendBuf {
    fn complete(
        operation: Operation<Self>,
        queue: &QueuePair<UdContext>,
        completion: &Completion<'_>,
    ) {
        let ctx = queue.context();
        match completion.result() {
            Ok(()) => ctx.update(|events| events.sent = Some(operation)),
            Err(failure) => ctx.failed("send", failure),
        }
    }
}

/// Parameters of an [`UdEndpoint`].
pub(crate) struct UdConfig {
    /// Q_Key that received datagrams must carry.
    pub(crate) key: Qkey,
    /// Number of receives to post.
    pub(crate) receives: u32,
    /// Size of a datagram in bytes.
    pub(crate) size: u32,
}

/// A queue pair that sends and receives datagrams.
pub(crate) struct UdEndpoint<'a> {
    task: &'a SampleTask,
    queue: Rts<UdContext>,
    size: usize,
}

impl<'a> UdEndpoint<'a> {
    /// Creates the queue pair on `port` and posts all receives. May sleep.
    pub(crate) fn new(
        task: &'a SampleTask,
        device: &DeviceRef,
        port: Option<Port<'_>>,
        config: &UdConfig,
    ) -> Result<Self, StepError> {
        DeviceRequirement::Datagrams.check(device)?;
        let step = "queue pair";
        let port = port.ok_or_else(|| StepError::new(step, fmt!("the device has no such port")))?;
        let capacity = QpCap {
            sends: 1,
            receives: config.receives,
            send_sges: 1,
        };
        let pd = ProtectionDomain::new(device.clone(), NAME).step("protection domain")?;
        // Handled in a workqueue, because dropping a receive buffer may sleep.
        let entries = capacity.completions();
        let cq = CompletionQueue::alloc(device.clone(), entries, 0, Poll::Workqueue, NAME)
            .step("completion queue")?;
        let size = config.size as usize;
        let attributes = ud::Init {
            port,
            pkey_index: 0,
            qkey: config.key,
        };
        let queue = qp::create(
            QpInitAttr::new(pd, cq, capacity),
            UdContext::new(task),
            NAME,
        )
        .step(step)?
        .into_init(attributes)
        .step(step)?;
        for _ in 0..config.receives {
            let room = size.saturating_add(GRH_BYTES);
            let buffer =
                DmaBuffer::new(device.clone(), room, Direction::FromDevice).step("buffer")?;
            let recv_buf = Operation::new(RecvBuf(buffer)).step("buffer")?;
            queue.post_receive(recv_buf).step("receive")?;
        }
        let queue = queue.into_rtr(ud::Rtr).step(step)?;
        let sq_psn = Psn::truncate(0);
        Ok(Self {
            task,
            queue: queue.into_rts(ud::Rts { sq_psn }).step(step)?,
            size,
        })
    }

    /// Returns the queue pair.
    pub(crate) fn queue(&self) -> &Arc<QueuePair<UdContext>> {
        self.queue.queue_pair()
    }

    /// Returns the queue pair number.
    pub(crate) fn number(&self) -> u32 {
        self.queue().number()
    }

    /// Returns the protection domain.
    pub(crate) fn domain(&self) -> Arc<ProtectionDomain> {
        self.queue().protection_domain().clone()
    }

    /// Waits until `take` returns a value. Sleeps.
    fn wait<R>(
        &self,
        step: &'static str,
        take: impl FnMut(&mut UdEvents) -> Option<R>,
    ) -> Result<R, StepError> {
        let ctx = self.queue().context();
        ctx.wait(self.task, step, limit(), take)
    }

    /// Waits until `count` datagrams were received, and returns the first one. Stops waiting when
    /// `ended` returns a failure. Sleeps.
    pub(crate) fn receive(
        &self,
        count: u32,
        ended: impl Fn() -> Option<StepError>,
    ) -> Result<Datagram, StepError> {
        let step = "datagrams";
        let ctx = self.queue().context();
        let mut received = 0;
        let waited = self.task.wait_for(step, limit(), || {
            let first = |events: &mut UdEvents| {
                received = events.received;
                events.first.filter(|_| received >= count)
            };
            ctx.poll(step, first).or_else(|| ended().map(Err))
        });
        // Report the number of datagrams, whatever ended the wait: it shows how many were lost.
        waited.unwrap_or_else(|_| {
            let limit = limit().get();
            Err(StepError::new(
                step,
                fmt!("received {received} of {count} within {limit} ms"),
            ))
        })
    }

    /// Sends `count` datagrams. Each has the number of this queue pair as immediate data, as in the
    /// programs of rdmacm-utils. Sleeps.
    pub(crate) fn send(
        &self,
        count: u32,
        address: AddressHandle,
        number: Qpn,
        key: Qkey,
    ) -> Result<(), StepError> {
        let step = "send";
        let address = Arc::new(address, GFP_KERNEL).step(step)?;
        let device = self.queue().device().clone();
        let buffer = DmaBuffer::new(device, self.size, Direction::ToDevice).step("buffer")?;
        let mut send_buf = Operation::new(SendBuf { buffer, address }).step(step)?;
        let own = self.number();
        for _ in 0..count {
            self.queue()
                .post_send(send_buf, |send_buf, chain| {
                    let pieces = [send_buf.buffer.sge()];
                    chain.send_datagram_with_immediate(&send_buf.address, number, key, pieces, own)
                })
                .step(step)?;
            send_buf = self.wait(step, |events| events.sent.take())?;
        }
        Ok(())
    }
}
