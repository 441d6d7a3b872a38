// SPDX-License-Identifier: GPL-2.0

//! Connections of a target, and which of them make room for a newcomer.
//!
//! A host costs the target memory before it has proved anything: with a request that it never completes, and with
//! connections on which it sends no Connect command. So these have budgets in bytes. When a budget is used up, a
//! newcomer is not refused in favour of a connection that has waited longer: the oldest connection of the source
//! that has most is evicted. A good host completes its request in milliseconds, and then sends Connect.
//!
//! ```text
//! request ──▶ half-open ── establish ──▶ idle ── has a controller ──▶ in use ──▶ ending ──▶ (removed)
//!                 └──────── evicted ◀──────┘
//! ```
//!
//! There are two budgets because a source can be forged in a request, but not in an established connection:
//! the reply goes to the source. So a flood of forged requests evicts no established connection.

use crate::policy::ns_table::Storage;
use core::{
    cmp::Reverse,
    ops::DerefMut, //
};

/// Half-open connections, at most: each keeps a thread waiting. The budget is what counts, so that each
/// takes at least this fraction of it.
const MAX_HALF_OPEN: u64 = 1024;

/// The age after which a half-open connection may be evicted for a newcomer of the source that has most. A host
/// completes its request within the time that two messages take.
const HALF_OPEN_PATIENCE_MS: u64 = 500;

/// The same for an idle connection. A Linux host sends Connect when all queues of a controller are
/// established.
const IDLE_PATIENCE_MS: u64 = 5000;

/// A host as the fabric knows it: the GID that replies go to, or an IPv6 or mapped IPv4 address.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Source(pub [u8; 16]);

/// Budgets in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Budgets {
    /// Of the half-open connections.
    pub half_open: u64,
    /// Of the idle connections.
    pub idle: u64,
}

impl Budgets {
    /// Returns the budgets of a machine with this much memory in bytes.
    pub const fn of_memory(total: u64) -> Self {
        Self {
            half_open: total / 32,
            idle: total / 8,
        }
    }

    const fn of(self, pool: Pool) -> u64 {
        match pool {
            Pool::HalfOpen => self.half_open,
            Pool::Idle => self.idle,
        }
    }

    const fn total(self) -> u64 {
        self.half_open.saturating_add(self.idle)
    }

    /// Returns what a connection takes of the budget of a pool. The first of a source always fits.
    fn cost(self, pool: Pool, bytes: u64) -> u64 {
        let least = match pool {
            Pool::HalfOpen => self.half_open / MAX_HALF_OPEN,
            Pool::Idle => 0,
        };
        bytes.max(least).min(self.of(pool))
    }
}

/// Connections with a common budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Pool {
    HalfOpen,
    Idle,
}

impl Pool {
    const fn patience_ms(self) -> u64 {
        match self {
            Self::HalfOpen => HALF_OPEN_PATIENCE_MS,
            Self::Idle => IDLE_PATIENCE_MS,
        }
    }
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// In a pool, from which it may be evicted.
    Waiting(Pool),
    /// It has a controller.
    InUse,
    /// It was evicted, and still has its memory.
    Evicted,
    /// It ends for another reason.
    Ending,
}

/// A connection of the driver.
pub trait Evictable {
    /// Returns whether it has a controller, for which a host needs to be authorised.
    fn is_in_use(&self) -> bool;

    /// Begins to end it, as its memory is needed.
    fn evict(&self);
}

/// Reason why a connection is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// Its source would have more than any other, and nothing is old enough to be evicted for it; or
    /// too many connections of its source have not ended yet.
    Full,
    /// The table did not grow.
    NoMemory,
}

/// Place of a connection in the table, until it is removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ConnectionId(usize);

/// A place of the table. `T` is a connection of the driver.
#[derive(Debug)]
pub struct Slot<T> {
    /// `None` if the place is free.
    connection: Option<T>,
    source: Source,
    stage: Stage,
    bytes: u64,
    /// When it entered its pool.
    since_ms: u64,
    /// The next older one of its source in the pool.
    older: Option<usize>,
    /// The next newer one; the next free place of a free one.
    newer: Option<usize>,
}

/// The connections of a source in a pool, in the order of their age.
#[derive(Clone, Copy, Default, Debug)]
struct Fifo {
    cost: u64,
    oldest: Option<usize>,
    newest: Option<usize>,
}

/// What a source has.
#[derive(Clone, Copy, Debug)]
pub struct SourceLoad {
    source: Source,
    connections: usize,
    half_open: Fifo,
    idle: Fifo,
    /// Bytes of those that were evicted or end.
    ending: u64,
}

impl SourceLoad {
    const fn new(source: Source) -> Self {
        const NONE: Fifo = Fifo {
            cost: 0,
            oldest: None,
            newest: None,
        };
        Self {
            source,
            connections: 0,
            half_open: NONE,
            idle: NONE,
            ending: 0,
        }
    }

    const fn fifo(&self, pool: Pool) -> &Fifo {
        match pool {
            Pool::HalfOpen => &self.half_open,
            Pool::Idle => &self.idle,
        }
    }

    fn fifo_mut(&mut self, pool: Pool) -> &mut Fifo {
        match pool {
            Pool::HalfOpen => &mut self.half_open,
            Pool::Idle => &mut self.idle,
        }
    }
}

/// A connection request.
#[derive(Clone, Copy, Debug)]
pub struct Newcomer {
    /// Where its host is.
    pub source: Source,
    /// Memory of its queue.
    pub bytes: u64,
}

/// All connections of a target. `C` stores the connections, and `S` the sources.
///
/// Each method takes a constant time, but for a search among the sources when one is new or gone, and when a
/// budget is used up.
#[derive(Debug)]
pub struct ConnectionTable<C, S> {
    budgets: Budgets,
    slots: C,
    /// Sorted.
    sources: S,
    free: Option<usize>,
    connections: usize,
    /// Cost of the half-open connections.
    half_open: u64,
    /// Cost of the idle connections.
    idle: u64,
    /// Bytes of those that were evicted or end.
    ending: u64,
    /// Bytes of those that were evicted.
    evicted: u64,
}

/// The oldest connection of a source in a pool.
#[derive(Clone, Copy)]
struct Head {
    place: usize,
    since_ms: u64,
    /// Cost of all connections of the source in the pool.
    cost: u64,
}

impl<C, S> ConnectionTable<C, S> {
    /// Returns an empty table.
    pub const fn new(budgets: Budgets, slots: C, sources: S) -> Self {
        Self {
            budgets,
            slots,
            sources,
            free: None,
            connections: 0,
            half_open: 0,
            idle: 0,
            ending: 0,
            evicted: 0,
        }
    }

    /// Returns whether there are no connections.
    pub const fn is_empty(&self) -> bool {
        self.connections == 0
    }

    /// Returns whether a queue may be created. Those that were evicted have their memory for a moment.
    pub const fn may_allocate(&self) -> bool {
        self.evicted <= self.budgets.total() / 2
    }

    fn used(&mut self, pool: Pool) -> &mut u64 {
        match pool {
            Pool::HalfOpen => &mut self.half_open,
            Pool::Idle => &mut self.idle,
        }
    }
}

impl<T: Evictable + 'static, C, S> ConnectionTable<C, S>
where
    C: Storage<Slot<T>> + DerefMut<Target = [Slot<T>]>,
    S: Storage<SourceLoad> + DerefMut<Target = [SourceLoad]>,
{
    /// Adds a half-open connection. `make` makes it; it returns `None` if there is no memory.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] only if the source would have more than any other, and no half-open connection is older
    /// than 500 ms; or if its share of those that end is used up.
    pub fn request(
        &mut self,
        newcomer: Newcomer,
        now_ms: u64,
        make: impl FnOnce(ConnectionId) -> Option<T>,
    ) -> Result<ConnectionId, Refused> {
        let Newcomer { source, bytes } = newcomer;
        let load = self.load(source).copied();
        if self.has_too_many_ending(load) {
            return Err(Refused::Full);
        }
        let pool = Pool::HalfOpen;
        self.slots.reserve_one().map_err(|_| Refused::NoMemory)?;
        if load.is_none() {
            self.sources.reserve_one().map_err(|_| Refused::NoMemory)?;
        }
        self.make_room(pool, source, bytes, now_ms)?;
        let place = self.free.unwrap_or(self.slots.len());
        let connection = make(ConnectionId(place)).ok_or(Refused::NoMemory)?;
        if let Err(at) = self.find(source) {
            self.sources.insert(at, SourceLoad::new(source));
        }
        self.insert(Slot {
            connection: Some(connection),
            source,
            stage: Stage::InUse,
            bytes,
            since_ms: now_ms,
            older: None,
            newer: None,
        });
        self.with_load(source, |load| {
            load.connections = load.connections.saturating_add(1);
        });
        self.enter(place, Stage::Waiting(pool), now_ms);
        Ok(ConnectionId(place))
    }

    /// Makes a half-open connection an idle one. Does nothing with one that was evicted or ends.
    ///
    /// # Errors
    ///
    /// [`Refused::Full`] only if the source would have more than any other, and no idle connection is older than
    /// 5 s. It is as if evicted then.
    pub fn establish(&mut self, id: ConnectionId, now_ms: u64) -> Result<(), Refused> {
        let Some(slot) = self.slots.get(id.0) else {
            return Ok(());
        };
        if slot.stage != Stage::Waiting(Pool::HalfOpen) {
            return Ok(());
        }
        let (source, bytes) = (slot.source, slot.bytes);
        self.leave(id.0);
        let made = self.make_room(Pool::Idle, source, bytes, now_ms);
        let stage = match made {
            Ok(()) => Stage::Waiting(Pool::Idle),
            Err(_) => Stage::Evicted,
        };
        self.enter(id.0, stage, now_ms);
        made
    }

    /// Asks whether a connection is in use, and takes it out of its pool then. Otherwise the table asks only when
    /// it needs room.
    pub fn look(&mut self, id: ConnectionId) {
        let is_waiting = |slot: &Slot<T>| matches!(slot.stage, Stage::Waiting(_));
        if self.slots.get(id.0).is_some_and(is_waiting) && self.is_in_use(id.0) {
            self.leave(id.0);
        }
    }

    /// Counts a connection among those that end, until it is removed.
    pub fn end(&mut self, id: ConnectionId) {
        let is_evicted = |slot: &Slot<T>| slot.stage == Stage::Evicted;
        if !self.slots.get(id.0).is_some_and(is_evicted) {
            self.leave(id.0);
            self.enter(id.0, Stage::Ending, 0);
        }
    }

    /// Removes a connection that has ended, and returns it.
    pub fn remove(&mut self, id: ConnectionId) -> Option<T> {
        self.leave(id.0);
        let slot = self.slots.get_mut(id.0)?;
        let connection = slot.connection.take()?;
        let source = slot.source;
        slot.newer = self.free.replace(id.0);
        self.connections = self.connections.saturating_sub(1);
        if let Ok(at) = self.find(source) {
            if let Some(load) = self.sources.get_mut(at) {
                load.connections = load.connections.saturating_sub(1);
                if load.connections == 0 {
                    self.sources.remove(at);
                }
            }
        }
        Some(connection)
    }

    /// Returns all connections.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots
            .iter()
            .filter_map(|slot| slot.connection.as_ref())
    }

    /// Evicts connections of a pool until it has room.
    fn make_room(
        &mut self,
        pool: Pool,
        source: Source,
        bytes: u64,
        now_ms: u64,
    ) -> Result<(), Refused> {
        let cost = self.budgets.cost(pool, bytes);
        while self.used(pool).saturating_add(cost) > self.budgets.of(pool) {
            // The host may have got a controller since the table last asked.
            let own = self.load(source).and_then(|load| load.fifo(pool).oldest);
            let own = own.filter(|place| self.is_in_use(*place));
            let victim = own.or_else(|| self.victim(pool, source, cost, now_ms));
            let victim = victim.ok_or(Refused::Full)?;
            let stage = match self.is_in_use(victim) {
                true => Stage::InUse,
                false => Stage::Evicted,
            };
            self.leave(victim);
            self.enter(victim, stage, now_ms);
            if let (Stage::Evicted, Some(connection)) = (stage, self.connection(victim)) {
                connection.evict();
            }
        }
        Ok(())
    }

    fn connection(&self, place: usize) -> Option<&T> {
        self.slots.get(place)?.connection.as_ref()
    }

    fn is_in_use(&self, place: usize) -> bool {
        self.connection(place).is_some_and(T::is_in_use)
    }

    /// Returns which connection makes room for one of `source`.
    fn victim(&self, pool: Pool, source: Source, cost: u64, now_ms: u64) -> Option<usize> {
        let mut own = None;
        let mut largest: Option<Head> = None;
        let mut oldest: Option<Head> = None;
        for load in self.sources.iter() {
            let Some(head) = self.head(load, pool) else {
                continue;
            };
            let rank = |head: Head| (head.cost, Reverse(head.since_ms));
            match load.source == source {
                true => own = Some(head),
                false if largest.is_none_or(|known| rank(known) < rank(head)) => {
                    largest = Some(head);
                }
                false => {}
            }
            if oldest.is_none_or(|known| head.since_ms < known.since_ms) {
                oldest = Some(head);
            }
        }
        let has = own.map_or(0, |own| own.cost);
        let has_less = |other: &Head| has == 0 || other.cost >= has.saturating_add(cost);
        let is_old = |head: &Head| now_ms.saturating_sub(head.since_ms) >= pool.patience_ms();
        largest
            .filter(has_less)
            .or(own.filter(is_old))
            .or(oldest.filter(is_old))
            .map(|head| head.place)
    }

    fn head(&self, load: &SourceLoad, pool: Pool) -> Option<Head> {
        let fifo = load.fifo(pool);
        let place = fifo.oldest?;
        Some(Head {
            place,
            since_ms: self.slots.get(place)?.since_ms,
            cost: fifo.cost,
        })
    }

    /// Returns whether a source has its share of the connections that end. They end late if a disk does not
    /// complete their commands; until then the source gets no more memory. Others do.
    fn has_too_many_ending(&self, load: Option<SourceLoad>) -> bool {
        let sources = u64::try_from(self.sources.len()).unwrap_or(u64::MAX);
        let share = self.budgets.total().checked_div(sources).unwrap_or(0);
        self.ending > self.budgets.total() && load.is_some_and(|load| load.ending >= share)
    }

    fn find(&self, source: Source) -> Result<usize, usize> {
        self.sources
            .binary_search_by_key(&source, |load| load.source)
    }

    fn load(&self, source: Source) -> Option<&SourceLoad> {
        self.sources.get(self.find(source).ok()?)
    }

    fn with_load(&mut self, source: Source, change: impl FnOnce(&mut SourceLoad)) {
        if let Ok(at) = self.find(source) {
            if let Some(load) = self.sources.get_mut(at) {
                change(load);
            }
        }
    }

    /// Puts a connection into the first free place, or behind the last. Room for one more is reserved.
    fn insert(&mut self, slot: Slot<T>) {
        self.connections = self.connections.saturating_add(1);
        match self.free.and_then(|place| self.slots.get_mut(place)) {
            Some(free) => {
                self.free = free.newer;
                *free = slot;
            }
            None => self.slots.insert(self.slots.len(), slot),
        }
    }

    /// Puts a connection that is in use into a stage.
    fn enter(&mut self, place: usize, stage: Stage, now_ms: u64) {
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        slot.stage = stage;
        let (source, bytes) = (slot.source, slot.bytes);
        match stage {
            Stage::Waiting(pool) => {
                slot.since_ms = now_ms;
                self.append(place, pool);
            }
            Stage::InUse => {}
            Stage::Evicted | Stage::Ending => {
                self.ending = self.ending.saturating_add(bytes);
                if stage == Stage::Evicted {
                    self.evicted = self.evicted.saturating_add(bytes);
                }
                self.with_load(source, |load| {
                    load.ending = load.ending.saturating_add(bytes)
                });
            }
        }
    }

    /// Takes a connection out of its stage. It counts as one in use then.
    fn leave(&mut self, place: usize) {
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        let (source, stage, bytes) = (slot.source, slot.stage, slot.bytes);
        slot.stage = Stage::InUse;
        match stage {
            Stage::Waiting(pool) => self.unlink(place, pool),
            Stage::InUse => {}
            Stage::Evicted | Stage::Ending => {
                self.ending = self.ending.saturating_sub(bytes);
                if stage == Stage::Evicted {
                    self.evicted = self.evicted.saturating_sub(bytes);
                }
                self.with_load(source, |load| {
                    load.ending = load.ending.saturating_sub(bytes)
                });
            }
        }
    }

    /// Makes a connection the newest one of its source in a pool.
    fn append(&mut self, place: usize, pool: Pool) {
        let Some((source, bytes)) = self.slots.get(place).map(|s| (s.source, s.bytes)) else {
            return;
        };
        let cost = self.budgets.cost(pool, bytes);
        let mut older = None;
        self.with_load(source, |load| {
            let fifo = load.fifo_mut(pool);
            fifo.cost = fifo.cost.saturating_add(cost);
            older = fifo.newest.replace(place);
            fifo.oldest.get_or_insert(place);
        });
        if let Some(slot) = older.and_then(|older| self.slots.get_mut(older)) {
            slot.newer = Some(place);
        }
        if let Some(slot) = self.slots.get_mut(place) {
            slot.older = older;
            slot.newer = None;
        }
        let used = self.used(pool);
        *used = used.saturating_add(cost);
    }

    /// Takes a connection out of a pool.
    fn unlink(&mut self, place: usize, pool: Pool) {
        let Some(slot) = self.slots.get_mut(place) else {
            return;
        };
        let (source, bytes) = (slot.source, slot.bytes);
        let (older, newer) = (slot.older.take(), slot.newer.take());
        if let Some(slot) = older.and_then(|older| self.slots.get_mut(older)) {
            slot.newer = newer;
        }
        if let Some(slot) = newer.and_then(|newer| self.slots.get_mut(newer)) {
            slot.older = older;
        }
        let cost = self.budgets.cost(pool, bytes);
        self.with_load(source, |load| {
            let fifo = load.fifo_mut(pool);
            fifo.cost = fifo.cost.saturating_sub(cost);
            if older.is_none() {
                fifo.oldest = newer;
            }
            if newer.is_none() {
                fifo.newest = older;
            }
        });
        let used = self.used(pool);
        *used = used.saturating_sub(cost);
    }
}

#[cfg(test)]
mod tests;
