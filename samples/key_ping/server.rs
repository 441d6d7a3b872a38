// SPDX-License-Identifier: GPL-2.0

//! The server: reads and writes the memory that its client advertises.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        formats::ping::Advert,
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
            RdmaRw,
            RdmaRwCap, //
        },
        wr::Operation,
    },
    scatter::Pages,
};

rrdma::parameters! {
    listen: Text<64> = "0.0.0.0", "address to listen at, as the server";
}

/// Waits for a client, and connects with it.
// The stack that this takes is free again for the pings.
#[inline(never)]
fn client(
    task: &SampleTask,
    listener: &Listener<RcContext>,
) -> Result<Connected<RcContext>, Failure> {
    let cancelled = || task.is_stopped();
    let incoming = task
        .wait_for("client", EVER, || listener.next().transpose())?
        .map_err(|lost| Failure::new("client", fmt!("{lost}")))?;
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
        return Err(Failure::new("accept", fmt!("the client lets nobody read")));
    }
    Ok(connected)
}

/// The transfers that there is to be room for.
fn transfers() -> RdmaRwCap {
    RdmaRwCap {
        at_once: 1,
        pieces: connection::parameters::size.get().div_ceil(mr::PAGE_SIZE),
    }
}

/// Makes the queue pair for a client, with a receive posted; rejects one that does not
/// tell what is demanded of it.
// What the client told is hundreds of bytes, which are free again afterwards.
#[inline(never)]
fn prepare(
    task: &SampleTask,
    incoming: Incoming<RcContext>,
) -> Result<Accepting<RcContext>, Failure> {
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

// The stack that this takes is not also that of `prepare`.
#[inline(never)]
fn create_queue_pair(
    task: &SampleTask,
    incoming: Incoming<RcContext>,
    parts: QpInitAttr<RcContext>,
) -> Result<Accepting<RcContext>, Failure> {
    incoming
        .create_queue_pair(parts, RcContext::new(task), NAME)
        .step("queue pair")
}

/// A server with its client.
pub(crate) struct Server<'a> {
    connection: Connection<'a>,
    /// The answer, while it is not on its way.
    send_buf: Option<Operation<SendBuf>>,
    /// What the last read took.
    requests: u32,
    /// Dropped after the connection: other clients wait meanwhile.
    _listener: Listener<RcContext>,
}

impl<'a> Server<'a> {
    /// Listens, and takes one client. Sleeps.
    // The stack that this takes is not also the client's.
    #[inline(never)]
    pub(crate) fn accept(task: &'a Arc<SampleTask>) -> Result<Self, Failure> {
        let at = address(
            task,
            &parameters::listen.get(),
            connection::parameters::port.get(),
        )?;
        let wake = task.wake().clone();
        let listener = Listener::<RcContext>::new(task.namespace(), &at, 1, wake, NAME);
        let listener = listener.step("listen")?;
        pr_info!("listens\n");
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

    /// Does what the client asks for until it goes. Sleeps.
    #[inline(never)]
    pub(crate) fn serve(mut self) -> Result<Summary, Failure> {
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

    /// The queue pair.
    pub(crate) fn queue(&self) -> &Arc<QueuePair<RcContext>> {
        self.connection.queue()
    }

    /// Prepares transfers until the queue pair has no room for more, which is told, and
    /// forgets them: then there is room again.
    fn fills_its_room(&self) -> Result<(), Failure> {
        let step = "room";
        let queue = self.queue();
        let most = transfers().requests(queue.device(), connection::CAPACITY);
        // Nobody is asked for it: the transfers are not posted.
        let nowhere = RemoteKey {
            address: 0,
            length: 1,
            rkey: 0,
        };
        for _ in 0..2 {
            let mut prepared = KVec::new();
            let mut requests = 0u32;
            let error = loop {
                let byte = Pages::new(1).step(step)?;
                match RdmaRw::read(queue, byte, &nowhere) {
                    Ok(transfer) => {
                        requests = requests.saturating_add(transfer.requests());
                        prepared.push(transfer, GFP_KERNEL).step(step)?;
                    }
                    Err((error, _)) => break error,
                }
                if requests > most {
                    return Err(Failure::new(step, fmt!("{requests} requests of {most}")));
                }
            };
            if error != EAGAIN || requests == 0 {
                return Err(Failure::new(
                    step,
                    fmt!("{error:?} after {requests} requests of {most}"),
                ));
            }
        }
        Ok(())
    }

    /// The source of the next ping; `None` if the client has had enough.
    fn next_ping(&self) -> Result<Option<Advert>, Failure> {
        match self.connection.next("source", EVER) {
            Ok(advert) => Ok(Some(advert)),
            Err(_) if self.connection.context().is_disconnected() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Reads the source, and writes it to the sink that is advertised then; answers
    /// its length.
    fn pong(&mut self, source: Advert) -> Result<u32, Failure> {
        let most = connection::parameters::size.get();
        if source.length == 0 || source.length > most {
            let length = source.length;
            return Err(Failure::new(
                "source",
                fmt!("{length} bytes and not 1 to {most}"),
            ));
        }
        let data = Pages::new(source.length as usize).step("memory")?;
        let read = RdmaRw::read(self.queue(), data, &source.into())
            .map_err(|(error, _)| error)
            .step("read")?;
        self.requests = read.requests();
        let data = self.carry_out("read", read)?;
        self.answer("read")?;

        let sink = self.connection.next("sink", limit())?;
        if sink.length < source.length {
            let (length, needed) = (sink.length, source.length);
            return Err(Failure::new("sink", fmt!("{length} bytes for {needed}")));
        }
        let write = RdmaRw::write(self.queue(), data, &sink.into())
            .map_err(|(error, _)| error)
            .step("write")?;
        self.carry_out("write", write)?;
        self.answer("write")?;
        Ok(source.length)
    }

    /// Posts a transfer, waits for it, and gives its data back.
    fn carry_out(
        &self,
        step: &'static str,
        transfer: RdmaRw<Pages, RcContext>,
    ) -> Result<Pages, Failure> {
        let transferred = Operation::new(RwTransfer(transfer)).step(step)?;
        self.queue().post_rdma_rw(transferred).step(step)?;
        let connection = &self.connection;
        let transferred = connection.wait(step, |events| events.transferred.take())?;
        let nothing = || Failure::new(step, fmt!("no data"));
        transferred.into_inner().0.finish().ok_or_else(nothing)
    }

    /// Tells the client that its memory is its own again.
    fn answer(&mut self, step: &'static str) -> Result<(), Failure> {
        let send_buf = match self.send_buf.take() {
            Some(send_buf) => send_buf,
            None => self.connection.wait(step, |events| events.sent.take())?,
        };
        self.queue()
            .post_send(send_buf, |send_buf, chain| chain.send([send_buf.sge()]))
            .step(step)
    }
}
