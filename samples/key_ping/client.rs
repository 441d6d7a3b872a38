// SPDX-License-Identifier: GPL-2.0

//! The client: advertises memory and lets the server read and write it.

use crate::{
    common::{
        formats::ping::{
            self,
            Advert, //
        },
        step_error::{
            expect_equal,
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
    count: Number<1, 1000000> = 4, "client: number of pings; default 4";
    validate: Bool = true, "client: compare the returned data with the data sent";
}

/// Regions of the pool: one for the advertised memory, and one that is retired.
const REGIONS: u32 = 2;

/// Connects to the server and sends pings.
// Not inlined: `run` of the crate would have the stack frames of both roles.
#[inline(never)]
pub(crate) fn run(task: &Arc<SampleTask>, server: &str) -> Result<Summary, StepError> {
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
        // Without it, the server's RDMA read would be refused.
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
    /// Dropped after the connection: until then, the peer may access the regions.
    regions: Arc<Pool<Pages>>,
}

impl Client<'_> {
    fn pings(&self, size: usize) -> Result<Summary, StepError> {
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

    /// Returns a region to the pool that the peer may still access. The pool must not lend it
    /// again.
    fn retire(&self, step: &'static str) -> Result<(), StepError> {
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

    /// Returns a region for `data`, and the message that advertises it.
    fn attach(
        &self,
        step: &'static str,
        data: Pages,
        direction: Direction,
    ) -> Result<(MrGuard<Pages>, DmaBuffer), StepError> {
        let queue = self.connection.queue();
        let none = || StepError::new(step, fmt!("no region left"));
        let mut region = self.regions.take().ok_or_else(none)?;
        region.dma_map(data, direction).step(step)?;
        // The server gets the key, but not the kernel address of the data.
        let key = region.map_sg_zero_based().step(step)?;
        let mut message = connection::message(queue.device(), Direction::ToDevice)?;
        for (to, from) in message.write().iter_mut().zip(Advert::from(key).encode()) {
            *to = from;
        }
        Ok((region, message))
    }

    /// Lets the server access `data` until it acknowledges. Returns the data when the server can no
    /// longer access it.
    fn expose(
        &self,
        step: &'static str,
        data: Pages,
        direction: Direction,
    ) -> Result<Pages, StepError> {
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

        // Do not rely on the acknowledgement: a faulty server could still access the memory. The
        // completion of the invalidation proves that it cannot.
        queue
            .post_send(advertised, |advertised, chain| {
                chain.invalidate(&advertised.region)
            })
            .step(step)?;
        let advertised = connection.wait(step, |events| events.advertised.take())?;
        let reached = || StepError::new(step, fmt!("the region is still valid"));
        let AdvertisedRegion { mut region, .. } = advertised.into_inner();
        region.release().ok_or_else(reached)
    }
}

/// Checks that the pool lends exactly `wanted` regions at once.
fn lends(regions: &Arc<Pool<Pages>>, wanted: u32) -> Result<(), StepError> {
    let mut lent = KVec::new();
    while let Some(region) = regions.take() {
        lent.push(region, GFP_KERNEL).step("regions")?;
    }
    expect_equal("regions", lent.len(), wanted as usize)
}

fn compare(number: u32, source: &[u8], sink: &[u8]) -> Result<(), StepError> {
    let mut pairs = (0..source.len()).zip(source.iter().zip(sink));
    match pairs.find(|(_, (read, written))| read != written) {
        None => Ok(()),
        Some((place, (read, written))) => Err(StepError::new(
            "compare",
            fmt!("ping {number}: got {written:#04x}, expected {read:#04x} at byte {place}"),
        )),
    }
}
