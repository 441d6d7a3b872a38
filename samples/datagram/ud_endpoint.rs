// SPDX-License-Identifier: GPL-2.0

//! A queue pair for datagrams with what came in, as the samples that the connection
//! manager leads to one another need it.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        requirement::DeviceRequirement,
        task::SampleTask, //
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

/// What came in.
#[derive(Default)]
pub(crate) struct UdEvents {
    /// Datagrams.
    received: u32,
    /// The first datagram's, to whom to answer.
    first: Option<Datagram>,
    sent: Option<Operation<SendBuf>>,
}

impl EventData for UdEvents {
    type QpType = Ud;
}

/// What is to be known of a datagram beside its data.
#[derive(Clone, Copy)]
pub(crate) struct Datagram {
    pub(crate) sender: Sender,
    immediate: Option<u32>,
}

impl Datagram {
    /// The queue pair that wants the answer. The sender's own word goes before that of
    /// its device: it may want the answer at another one than it sent from.
    pub(crate) fn number(&self) -> Qpn {
        let told = self.immediate.and_then(Qpn::new);
        told.unwrap_or(self.sender.number())
    }
}

/// Room for a datagram, and for the header ahead of it.
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
                    return ctx.fail(fmt!("{length} bytes and not {wanted}"));
                }
                ctx.update(|events| {
                    events.received = events.received.saturating_add(1);
                    events.first.get_or_insert(Datagram { sender, immediate });
                });
            }
            _ => ctx.fail(fmt!("a datagram longer than its buffer")),
        }
    }
}

/// A datagram on its way, and where it goes.
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

/// What a queue pair is to be.
pub(crate) struct UdConfig {
    /// What `rdma res` names as the owner of what is made.
    pub(crate) owner: &'static CStr,
    /// What datagrams to it must bear.
    pub(crate) key: Qkey,
    /// Datagrams that are to come.
    pub(crate) receives: u32,
    /// Bytes of a datagram.
    pub(crate) size: u32,
}

/// Who sends and receives datagrams.
pub(crate) struct UdEndpoint<'a> {
    task: &'a SampleTask,
    queue: Rts<UdContext>,
    size: usize,
}

impl<'a> UdEndpoint<'a> {
    /// Makes the queue pair on `port`, with all receives posted.
    pub(crate) fn new(
        task: &'a SampleTask,
        device: &DeviceRef,
        port: Option<Port<'_>>,
        config: &UdConfig,
    ) -> Result<Self, Failure> {
        DeviceRequirement::Datagrams.check(device)?;
        let step = "queue pair";
        let port = port.ok_or_else(|| Failure::new(step, fmt!("the device has no such port")))?;
        let capacity = QpCap {
            sends: 1,
            receives: config.receives,
            send_sges: 1,
        };
        let pd = ProtectionDomain::new(device.clone(), config.owner).step("protection domain")?;
        // Completions drop what they bring, so they are handled where one may sleep.
        let entries = capacity.completions();
        let cq = CompletionQueue::alloc(device.clone(), entries, 0, Poll::Workqueue, config.owner)
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
            config.owner,
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

    /// The queue pair.
    pub(crate) fn queue(&self) -> &Arc<QueuePair<UdContext>> {
        self.queue.queue_pair()
    }

    /// Its number.
    pub(crate) fn number(&self) -> u32 {
        self.queue().number()
    }

    /// Its domain.
    pub(crate) fn domain(&self) -> Arc<ProtectionDomain> {
        self.queue().protection_domain().clone()
    }

    /// Waits until `take` finds what it wants.
    fn wait<R>(
        &self,
        step: &'static str,
        take: impl FnMut(&mut UdEvents) -> Option<R>,
    ) -> Result<R, Failure> {
        let ctx = self.queue().context();
        ctx.wait(self.task, step, limit(), take)
    }

    /// Waits until `count` datagrams have come, or `ended` says why they will not; the
    /// first one.
    pub(crate) fn receive(
        &self,
        count: u32,
        ended: impl Fn() -> Option<Failure>,
    ) -> Result<Datagram, Failure> {
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
        // Whatever ends the wait: how many were lost is what one wants to know.
        waited.unwrap_or_else(|_| {
            let limit = limit().get();
            Err(Failure::new(
                step,
                fmt!("{received} of {count} within {limit} ms"),
            ))
        })
    }

    /// Sends `count` datagrams, each with the number of the queue pair beside it, as
    /// the programs of rdmacm-utils do.
    pub(crate) fn send(
        &self,
        count: u32,
        address: AddressHandle,
        number: Qpn,
        key: Qkey,
    ) -> Result<(), Failure> {
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
