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
    iwarp,
    parameters,
    parts,
    private,
    rdma_cm::{
        address,
        limit,
        patience,
        EVER, //
    },
    CAPACITY,
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
        rw::{
            RdmaRw,
            RdmaRwCap, //
        },
        wr::Operation,
    },
    scatter::Pages,
};

/// Takes one client, and does what it asks for until it goes.
// The stack that this takes is not also the client's.
#[inline(never)]
pub(crate) fn run(task: &Arc<SampleTask>) -> Result<Summary, Failure> {
    let at = address(task, &parameters::listen.get(), parameters::port.get())?;
    let listener = Listener::<RcContext>::new(task.namespace(), &at, 1, task.wake().clone(), NAME)
        .step("listen")?;
    pr_info!("listens\n");
    let connected = client(task, &listener)?;
    let queue = connected.queue_pair();
    let mut server = Server {
        send_buf: Some(connection::send_buf(queue.device())?),
        connection: Connection::new(task, connected),
        requests: 0,
    };
    server.fills_its_room()?;
    iwarp::run(server.connection.queue())?;
    let (mut pings, mut bytes) = (0u32, 0);
    while let Some(advert) = server.next_ping()? {
        bytes = server.pong(advert)?;
        pings = pings.saturating_add(1);
    }
    let requests = server.requests;
    Ok(Summary::new(fmt!(
        "{pings} pings, the last of {bytes} bytes, read in {requests} requests"
    )))
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
        private_data: private::told(),
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
        pieces: parameters::size.get().div_ceil(mr::PAGE_SIZE),
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
    if let Err(failure) = private::check(incoming.peer()) {
        incoming.reject(private::told()).step("reject")?;
        return Err(failure);
    }
    let device = task.acquire(incoming.device())?;
    let parts = parts(&device, Some(transfers()))?;
    let accepting = incoming
        .create_queue_pair(parts, RcContext::new(task), NAME)
        .step("queue pair")?;
    connection::post_receive(accepting.queue_pair())?;
    Ok(accepting)
}

struct Server<'a> {
    connection: Connection<'a>,
    /// The answer, while it is not on its way.
    send_buf: Option<Operation<SendBuf>>,
    /// What the last read took.
    requests: u32,
}

impl Server<'_> {
    /// Prepares transfers until the queue pair has no room for more, which is told, and
    /// forgets them: then there is room again.
    fn fills_its_room(&self) -> Result<(), Failure> {
        let step = "room";
        let queue = self.connection.queue();
        let most = transfers().requests(queue.device(), CAPACITY);
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
        let most = parameters::size.get();
        if source.length == 0 || source.length > most {
            let length = source.length;
            return Err(Failure::new(
                "source",
                fmt!("{length} bytes and not 1 to {most}"),
            ));
        }
        let data = Pages::new(source.length as usize).step("memory")?;
        let read = RdmaRw::read(self.connection.queue(), data, &source.into())
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
        let write = RdmaRw::write(self.connection.queue(), data, &sink.into())
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
        self.connection
            .queue()
            .post_rdma_rw(transferred)
            .step(step)?;
        let transferred = self
            .connection
            .wait(step, |events| events.transferred.take())?;
        let nothing = || Failure::new(step, fmt!("no data"));
        transferred.into_inner().0.finish().ok_or_else(nothing)
    }

    /// Tells the client that its memory is its own again.
    fn answer(&mut self, step: &'static str) -> Result<(), Failure> {
        let connection = &self.connection;
        let send_buf = match self.send_buf.take() {
            Some(send_buf) => send_buf,
            None => connection.wait(step, |events| events.sent.take())?,
        };
        connection
            .queue()
            .post_send(send_buf, |send_buf, chain| chain.send([send_buf.sge()]))
            .step(step)
    }
}
