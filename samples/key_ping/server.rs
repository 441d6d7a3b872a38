// SPDX-License-Identifier: GPL-2.0

//! The server: reads and writes the memory that its client advertises.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        formats::ping::Advert,
        job::{
            Job,
            Line, //
        },
    },
    iwarp,
    link::{
        self,
        Link,
        Moved,
        Outbox,
        Session, //
    },
    manager::{
        address,
        limit,
        patience,
        EVER, //
    },
    parameters,
    parts,
    private,
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
            Transfer,
            Transfers, //
        },
        wr::Operation,
    },
    scatter::Pages,
};

/// Takes one client, and does what it asks for until it goes.
// The stack that this takes is not also the client's.
#[inline(never)]
pub(crate) fn run(job: &Arc<Job>) -> Result<Line, Failure> {
    let at = address(job, &parameters::listen.get(), parameters::port.get())?;
    let listener =
        Listener::<Link>::new(job.namespace(), &at, 1, job.wake().clone(), NAME).step("listen")?;
    pr_info!("listens\n");
    let connected = client(job, &listener)?;
    let queue = connected.queue_pair();
    let mut server = Server {
        outbox: Some(link::outbox(queue.device())?),
        session: Session::new(job, connected),
        requests: 0,
    };
    server.fills_its_room()?;
    iwarp::run(server.session.queue())?;
    let (mut pings, mut bytes) = (0u32, 0);
    while let Some(advert) = server.next_ping()? {
        bytes = server.pong(advert)?;
        pings = pings.saturating_add(1);
    }
    let requests = server.requests;
    Ok(Line::new(fmt!(
        "{pings} pings, the last of {bytes} bytes, read in {requests} requests"
    )))
}

/// Waits for a client, and connects with it.
// The stack that this takes is free again for the pings.
#[inline(never)]
fn client(job: &Job, listener: &Listener<Link>) -> Result<Connected<Link>, Failure> {
    let cancelled = || job.is_stopped();
    let incoming = job
        .wait_for("client", EVER, || listener.next().transpose())?
        .map_err(|lost| Failure::new("client", fmt!("{lost}")))?;
    let accepting = prepare(job, incoming)?;
    let accepted = Parameters {
        responder_resources: 1,
        initiator_depth: 1,
        private_data: private::told(),
        ..Parameters::default()
    };
    let connected = accepting
        .accept(accepted, patience(&cancelled))
        .step("accept")?;
    if connected.depths().initiator_depth == 0 {
        return Err(Failure::new("accept", fmt!("the client lets nobody read")));
    }
    Ok(connected)
}

/// The transfers that there is to be room for.
fn transfers() -> Transfers {
    Transfers {
        at_once: 1,
        pieces: parameters::size.get().div_ceil(mr::PAGE_SIZE),
    }
}

/// Makes the queue pair for a client, with a receive posted; rejects one that does not
/// tell what is demanded of it.
// What the client told is hundreds of bytes, which are free again afterwards.
#[inline(never)]
fn prepare(job: &Job, incoming: Incoming<Link>) -> Result<Accepting<Link>, Failure> {
    if let Err(failure) = private::check(incoming.peer()) {
        incoming.reject(private::told()).step("reject")?;
        return Err(failure);
    }
    let device = job.acquire(incoming.device())?;
    let parts = parts(&device, Some(transfers()))?;
    let accepting = incoming
        .create_queue_pair(parts, Link::new(job), NAME)
        .step("queue pair")?;
    link::post_receive(accepting.queue_pair())?;
    Ok(accepting)
}

struct Server<'a> {
    session: Session<'a>,
    /// The answer, while it is not on its way.
    outbox: Option<Operation<Outbox>>,
    /// What the last read took.
    requests: u32,
}

impl Server<'_> {
    /// Prepares transfers until the queue pair has no room for more, which is told, and
    /// forgets them: then there is room again.
    fn fills_its_room(&self) -> Result<(), Failure> {
        let step = "room";
        let queue = self.session.queue();
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
                match Transfer::read(queue, byte, &nowhere) {
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
        match self.session.next("source", EVER) {
            Ok(advert) => Ok(Some(advert)),
            Err(_) if self.session.link().is_gone() => Ok(None),
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
        let read = Transfer::read(self.session.queue(), data, &source.into())
            .map_err(|(error, _)| error)
            .step("read")?;
        self.requests = read.requests();
        let data = self.carry_out("read", read)?;
        self.answer("read")?;

        let sink = self.session.next("sink", limit())?;
        if sink.length < source.length {
            let (length, needed) = (sink.length, source.length);
            return Err(Failure::new("sink", fmt!("{length} bytes for {needed}")));
        }
        let write = Transfer::write(self.session.queue(), data, &sink.into())
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
        transfer: Transfer<Pages, Link>,
    ) -> Result<Pages, Failure> {
        let moved = Operation::new(Moved(transfer)).step(step)?;
        self.session.queue().post_transfer(moved).step(step)?;
        let moved = self.session.wait(step, |heard| heard.moved.take())?;
        let nothing = || Failure::new(step, fmt!("no data"));
        moved.into_inner().0.finish().ok_or_else(nothing)
    }

    /// Tells the client that its memory is its own again.
    fn answer(&mut self, step: &'static str) -> Result<(), Failure> {
        let session = &self.session;
        let outbox = match self.outbox.take() {
            Some(outbox) => outbox,
            None => session.wait(step, |heard| heard.sent.take())?,
        };
        session
            .queue()
            .post_send(outbox, |outbox, chain| chain.send([outbox.sge()]))
            .step(step)
    }
}
