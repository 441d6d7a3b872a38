// SPDX-License-Identifier: GPL-2.0

//! The server: reads and writes the memory that its client advertises.

use crate::{
    common::{
        formats::ping::Advert,
        step_error::{
            Step,
            StepError, //
        },
        task::{
            SampleTask,
            Summary, //
        },
    },
    connection::{
        self,
        Connection,
        RcContext,
        RwTransfer,
        SendBuf, //
    },
    rdma_cm::{
        address,
        limit,
        patience,
        EVER, //
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
            Accepting,
            Connected,
            Incoming,
            ListenParams,
            Listener,
            Parameters, //
        },
        mr::{
            self,
            RemoteKey, //
        },
        qp::{
            QpInitAttr,
            QueuePair, //
        },
        rw::{
            Finished,
            RdmaRw,
            RdmaRwCap,
            Refusal,
            RwContext, //
        },
        wr::Operation,
    },
    scatter::Pages,
};

rrdma::parameters! {
    listen: Text<64> = "0.0.0.0", "server: address to listen on; default 0.0.0.0";
}

/// Waits for a client and connects with it.
// Not inlined, so that this stack frame is free while pings are served.
#[inline(never)]
fn client(
    task: &SampleTask,
    listener: &Listener<RcContext>,
) -> Result<Connected<RcContext>, StepError> {
    let cancelled = || task.is_stopped();
    let incoming = task
        .wait_for("client", EVER, || listener.next().transpose())?
        .map_err(|lost| StepError::new("client", fmt!("{lost}")))?;
    let accepting = prepare(task, incoming)?;
    let accepted = Parameters {
        responder_resources: 1,
        initiator_depth: 1,
        private_data: connection::private_data(),
        ..Parameters::default()
    };
    let connected = accepting
        .accept(accepted, patience(&cancelled))
        .step("accept")?;
    if connected.rd_atomic_limits().initiator_depth == 0 {
        return Err(StepError::new(
            "accept",
            fmt!("the client allows no RDMA reads"),
        ));
    }
    Ok(connected)
}

/// Returns the capacity of the queue pair for RDMA reads and writes.
fn transfers() -> RdmaRwCap {
    RdmaRwCap {
        small_at_once: 0,
        at_once: 1,
        pieces: connection::parameters::size.get().div_ceil(mr::PAGE_SIZE),
    }
}

/// Creates the queue pair for a client and posts the receive. Rejects a client with unexpected
/// private data.
// Not inlined: `incoming` takes hundreds of bytes of stack, which are free afterwards.
#[inline(never)]
fn prepare(
    task: &SampleTask,
    incoming: Incoming<RcContext>,
) -> Result<Accepting<RcContext>, StepError> {
    if let Err(failure) = connection::check_private_data(incoming.peer()) {
        incoming.reject(connection::private_data()).step("reject")?;
        return Err(failure);
    }
    let device = task.acquire(incoming.device())?;
    let parts = connection::parts(&device, Some(transfers()))?;
    let accepting = create_queue_pair(task, incoming, parts)?;
    connection::post_receive(accepting.queue_pair())?;
    Ok(accepting)
}

// Not inlined, so that `prepare` does not have this stack frame as well.
#[inline(never)]
fn create_queue_pair(
    task: &SampleTask,
    incoming: Incoming<RcContext>,
    parts: QpInitAttr<RcContext>,
) -> Result<Accepting<RcContext>, StepError> {
    incoming
        .create_queue_pair(parts, RcContext::new(task), NAME)
        .map_err(|failed| failed.error)
        .step("queue pair")
}

/// A server with a connected client.
pub(crate) struct Server<'a> {
    connection: Connection<'a>,
    /// The acknowledgement, while it is not posted.
    send_buf: Option<Operation<SendBuf>>,
    /// Number of work requests of the last RDMA read.
    requests: u32,
    /// Dropped after the connection. Meanwhile other clients wait.
    _listener: Listener<RcContext>,
}

impl<'a> Server<'a> {
    /// Listens and accepts one client. Sleeps.
    // Not inlined: `run` of the crate would have the stack frames of both roles.
    #[inline(never)]
    pub(crate) fn accept(task: &'a Arc<SampleTask>) -> Result<Self, StepError> {
        let at = address(
            task,
            &parameters::listen.get(),
            connection::parameters::port.get(),
        )?;
        let params = ListenParams {
            backlog: 1,
            refusal: &[],
            wake: task.wake().clone(),
            owner: NAME,
        };
        let listener = Listener::<RcContext>::new(task.namespace(), &at, params);
        let listener = listener.step("listen")?;
        pr_info!("listening\n");
        let connected = client(task, &listener)?;
        let server = Self {
            send_buf: Some(connection::send_buf(connected.queue_pair().device())?),
            connection: Connection::new(task, connected),
            requests: 0,
            _listener: listener,
        };
        server.fills_its_room()?;
        Ok(server)
    }

    /// Serves the client until it disconnects. Sleeps.
    #[inline(never)]
    pub(crate) fn serve(mut self) -> Result<Summary, StepError> {
        let (mut pings, mut bytes) = (0u32, 0);
        while let Some(advert) = self.next_ping()? {
            bytes = self.pong(advert)?;
            pings = pings.saturating_add(1);
        }
        let requests = self.requests;
        Ok(Summary::new(fmt!(
            "{pings} pings, the last of {bytes} bytes, read in {requests} requests"
        )))
    }

    /// Returns the queue pair.
    pub(crate) fn queue(&self) -> &Arc<QueuePair<RcContext>> {
        self.connection.queue()
    }

    /// Fills the send queue with prepared transfers. The next one must fail with `EAGAIN`. Drops
    /// them and repeats this, to check that dropping frees their room.
    fn fills_its_room(&self) -> Result<(), StepError> {
        let step = "room";
        let queue = self.queue();
        let most = transfers().requests(queue.device(), connection::CAPACITY);
        // Any address will do: the transfers are not posted.
        let nowhere = RemoteKey {
            address: 0,
            length: 1,
            rkey: 0,
        };
        for _ in 0..2 {
            let mut prepared = KVec::new();
            let mut requests = 0u32;
            let refusal = loop {
                let byte = Pages::new(1).step(step)?;
                match RwContext::new(queue).step(step)?.read(byte, &nowhere) {
                    Ok(transfer) => {
                        requests = requests.saturating_add(transfer.requests());
                        prepared.push(transfer, GFP_KERNEL).step(step)?;
                    }
                    Err(unprepared) => break unprepared.refusal,
                }
                if requests > most {
                    return Err(StepError::new(
                        step,
                        fmt!("{requests} requests, maximum {most}"),
                    ));
                }
            };
            if !matches!(refusal, Refusal::Busy) || requests == 0 {
                let error = Error::from(refusal);
                return Err(StepError::new(
                    step,
                    fmt!("{error:?} after {requests} requests, maximum {most}"),
                ));
            }
        }
        Ok(())
    }

    /// Returns the memory that the client advertises for the next ping. Returns `None` if the
    /// client has disconnected.
    fn next_ping(&self) -> Result<Option<Advert>, StepError> {
        match self.connection.next("source", EVER) {
            Ok(advert) => Ok(Some(advert)),
            Err(_) if self.connection.context().is_disconnected() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the source, and writes the data to the sink that the client advertises then. Returns
    /// the length of the data.
    fn pong(&mut self, source: Advert) -> Result<u32, StepError> {
        let most = connection::parameters::size.get();
        if source.length == 0 || source.length > most {
            let length = source.length;
            return Err(StepError::new(
                "source",
                fmt!("got {length} bytes, expected 1 to {most}"),
            ));
        }
        let data = Pages::new(source.length as usize).step("memory")?;
        let context = RwContext::new(self.queue()).step("read")?;
        let read = context.read(data, &source.into()).step("read")?;
        self.requests = read.requests();
        let Finished { data, context } = self.carry_out("read", read)?;
        self.answer("read")?;

        let sink = self.connection.next("sink", limit())?;
        if sink.length < source.length {
            let (length, needed) = (sink.length, source.length);
            return Err(StepError::new(
                "sink",
                fmt!("got {length} bytes, needs {needed}"),
            ));
        }
        let write = context.write(data, &sink.into()).step("write")?;
        self.carry_out("write", write)?;
        self.answer("write")?;
        Ok(source.length)
    }

    /// Posts a transfer, waits for its completion, and returns its data and context.
    fn carry_out(
        &self,
        step: &'static str,
        transfer: RdmaRw<Pages, RcContext>,
    ) -> Result<Finished<Pages, RcContext>, StepError> {
        let transferred = Operation::new(RwTransfer(transfer)).step(step)?;
        self.queue().post_rdma_rw(transferred).step(step)?;
        let connection = &self.connection;
        let transferred = connection.wait(step, |events| events.transferred.take())?;
        let nothing = || StepError::new(step, fmt!("no data"));
        transferred.into_inner().0.finish().ok_or_else(nothing)
    }

    /// Acknowledges a transfer: the memory belongs to the client again.
    fn answer(&mut self, step: &'static str) -> Result<(), StepError> {
        let send_buf = match self.send_buf.take() {
            Some(send_buf) => send_buf,
            None => self.connection.wait(step, |events| events.sent.take())?,
        };
        self.queue()
            .post_send(send_buf, |send_buf, chain| chain.send([send_buf.sge()]))
            .step(step)
    }
}
