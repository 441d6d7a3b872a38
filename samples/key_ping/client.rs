// SPDX-License-Identifier: GPL-2.0

//! The client: advertises its memory, and lets the server read and write it.

use crate::{
    common::{
        failure::{
            Failure,
            Step, //
        },
        formats::ping::{
            self,
            Advert, //
        },
        task::{
            SampleTask,
            Summary, //
        },
    },
    connection::{
        self,
        AdvertisedRegion,
        Connection,
        RcContext, //
    },
    rdma_cm::{
        address,
        limit,
        patience, //
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
            Id,
            Parameters, //
        },
        dma::{
            Direction,
            DmaBuffer, //
        },
        mr::{
            self,
            MrGuard,
            Pool, //
        },
        wr::Operation,
    },
    scatter::Pages,
};

rrdma::parameters! {
    count: Number<1, 1000000> = 4, "pings, as the client";
    validate: Bool = true, "compare what comes back with what was read, as the client";
}

/// Regions of the pool: one for the memory that the server reaches, and one that is
/// retired.
const REGIONS: u32 = 2;

/// Connects to the server, and pings.
// The stack that this takes is not also the server's.
#[inline(never)]
pub(crate) fn run(task: &Arc<SampleTask>, server: &str) -> Result<Summary, Failure> {
    let cancelled = || task.is_stopped();
    let server = address(task, server, connection::parameters::port.get())?;
    let id = Id::<RcContext>::new(task.namespace(), task.wake().clone(), NAME).step("id")?;
    let id = id
        .resolve(None, &server, patience(&cancelled))
        .step("resolve")?;
    let device = task.acquire(id.device())?;

    let parts = connection::parts(&device, None)?;
    let prepared = id
        .create_queue_pair(parts, RcContext::new(task), NAME)
        .step("queue pair")?;
    let queue = prepared.queue_pair();
    let size = connection::parameters::size.get();
    let pages = size.div_ceil(mr::PAGE_SIZE);
    let regions = Pool::new(queue.protection_domain(), REGIONS, pages).step("regions")?;
    lends(&regions, REGIONS)?;
    connection::post_receive(queue)?;
    let asked = Parameters {
        // Without it the server's read would be refused.
        responder_resources: 1,
        initiator_depth: 1,
        private_data: connection::private_data(),
        ..Parameters::default()
    };
    let connected = prepared
        .connect(asked, patience(&cancelled))
        .step("connect")?;
    connection::check_private_data(connected.peer())?;

    let client = Client {
        connection: Connection::new(task, connected),
        regions,
    };
    client.pings(size as usize)
}

struct Client<'a> {
    connection: Connection<'a>,
    /// Dropped after the connection: the peer may reach them until it has ended.
    regions: Arc<Pool<Pages>>,
}

impl Client<'_> {
    fn pings(&self, size: usize) -> Result<Summary, Failure> {
        let count = parameters::count.get();
        let mut source = Pages::new(size).step("memory")?;
        let mut sink = Pages::new(size).step("memory")?;
        self.retire("source")?;
        for number in 0..count {
            ping::fill(source.bytes_mut(), number);
            sink.bytes_mut().fill(0);
            source = self.expose("source", source, Direction::ToDevice)?;
            sink = self.expose("sink", sink, Direction::FromDevice)?;
            if parameters::validate.get() {
                compare(number, source.bytes(), sink.bytes())?;
            }
        }
        Ok(Summary::new(fmt!("{count} pings of {size} bytes")))
    }

    /// Gives a region back that a peer with its key can still reach: the pool does not
    /// lend that one again.
    fn retire(&self, step: &'static str) -> Result<(), Failure> {
        let (connection, queue) = (&self.connection, self.connection.queue());
        let data = Pages::new(1).step("memory")?;
        let (region, message) = self.attach(step, data, Direction::ToDevice)?;
        let advertised = Operation::new(AdvertisedRegion { region, message }).step(step)?;
        queue
            .post_send(advertised, |advertised, chain| {
                chain.register(&advertised.region)
            })
            .step(step)?;
        drop(connection.wait(step, |events| events.advertised.take())?);
        lends(&self.regions, REGIONS - 1)
    }

    /// A region with `data`, and the message with its key.
    fn attach(
        &self,
        step: &'static str,
        data: Pages,
        direction: Direction,
    ) -> Result<(MrGuard<Pages>, DmaBuffer), Failure> {
        let queue = self.connection.queue();
        let none = || Failure::new(step, fmt!("no region left"));
        let mut region = self.regions.take().ok_or_else(none)?;
        region
            .attach(data, direction)
            .map_err(|(error, _)| error)
            .step(step)?;
        // The server learns the key, and no address of this kernel.
        let key = region.bind_zero_based().step(step)?;
        let mut message = connection::message(queue.device(), Direction::ToDevice)?;
        for (to, from) in message.write().iter_mut().zip(Advert::from(key).encode()) {
            *to = from;
        }
        Ok((region, message))
    }

    /// Lets the server reach `data` until it says that it is done, and gives it back
    /// when it cannot reach it any more.
    fn expose(
        &self,
        step: &'static str,
        data: Pages,
        direction: Direction,
    ) -> Result<Pages, Failure> {
        let (connection, queue) = (&self.connection, self.connection.queue());
        let (region, message) = self.attach(step, data, direction)?;
        let advertised = Operation::new(AdvertisedRegion { region, message }).step(step)?;
        queue
            .post_send(advertised, |advertised, chain| {
                chain.register(&advertised.region)?;
                chain.send([advertised.message.sge()])
            })
            .step(step)?;
        connection.next(step, limit())?;
        let advertised = connection.wait(step, |events| events.advertised.take())?;

        // The server has said that it is done; that it cannot go on is better proved.
        queue
            .post_send(advertised, |advertised, chain| {
                chain.invalidate(&advertised.region)
            })
            .step(step)?;
        let advertised = connection.wait(step, |events| events.advertised.take())?;
        let reached = || Failure::new(step, fmt!("the region is valid still"));
        let AdvertisedRegion { mut region, .. } = advertised.into_inner();
        region.release().ok_or_else(reached)
    }
}

/// A pool lends so many regions at once, and no more.
fn lends(regions: &Arc<Pool<Pages>>, wanted: u32) -> Result<(), Failure> {
    let mut lent = KVec::new();
    while let Some(region) = regions.take() {
        lent.push(region, GFP_KERNEL).step("regions")?;
    }
    match lent.len() == wanted as usize {
        true => Ok(()),
        false => {
            let lent = lent.len();
            Err(Failure::new("regions", fmt!("{lent} and not {wanted}")))
        }
    }
}

fn compare(number: u32, source: &[u8], sink: &[u8]) -> Result<(), Failure> {
    let mut pairs = (0..source.len()).zip(source.iter().zip(sink));
    match pairs.find(|(_, (read, written))| read != written) {
        None => Ok(()),
        Some((place, (read, written))) => Err(Failure::new(
            "compare",
            fmt!("ping {number}: {written:#04x} and not {read:#04x} at byte {place}"),
        )),
    }
}
