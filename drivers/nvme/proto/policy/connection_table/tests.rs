// SPDX-License-Identifier: GPL-2.0

use super::*;
use core::{cell::Cell, ops::Deref};
use std::{cell::RefCell, rc::Rc};

#[derive(Debug)]
struct List<T> {
    items: Vec<T>,
    room: usize,
}

impl<T> Deref for List<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for List<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<T> Storage<T> for List<T> {
    type Error = ();

    fn reserve_one(&mut self) -> Result<(), ()> {
        (self.items.len() < self.room).then_some(()).ok_or(())
    }

    fn insert(&mut self, at: usize, item: T) {
        self.items.insert(at, item);
    }

    fn remove(&mut self, at: usize) -> Option<T> {
        (at < self.items.len()).then(|| self.items.remove(at))
    }
}

/// A connection. Its number is added to `evicted` when it is evicted.
#[derive(Debug)]
struct Connection {
    number: u32,
    is_in_use: Rc<Cell<bool>>,
    evicted: Rc<RefCell<Vec<u32>>>,
}

impl Evictable for Connection {
    fn is_in_use(&self) -> bool {
        self.is_in_use.get()
    }

    fn evict(&self) {
        self.evicted.borrow_mut().push(self.number);
    }
}

struct Table {
    table: ConnectionTable<List<Slot<Connection>>, List<SourceLoad>>,
    /// Whether the connections that are added from now on are in use.
    in_use: Rc<Cell<bool>>,
    evicted: Rc<RefCell<Vec<u32>>>,
}

impl Table {
    fn new(budgets: Budgets, connections: usize, sources: usize) -> Self {
        Self {
            table: ConnectionTable::new(budgets, list(connections), list(sources)),
            in_use: Rc::default(),
            evicted: Rc::default(),
        }
    }

    /// Requests a connection of 100 KiB, and returns which ones were evicted for it.
    fn ask(
        &mut self,
        from: u32,
        number: u32,
        now_ms: u64,
    ) -> Result<(ConnectionId, Vec<u32>), Refused> {
        self.ask_for(100 * KIB, from, number, now_ms)
    }

    fn ask_for(
        &mut self,
        bytes: u64,
        from: u32,
        number: u32,
        now_ms: u64,
    ) -> Result<(ConnectionId, Vec<u32>), Refused> {
        let newcomer = Newcomer {
            source: source(from),
            bytes,
        };
        let connection = Connection {
            number,
            is_in_use: self.in_use.clone(),
            evicted: self.evicted.clone(),
        };
        let mut place = None;
        let id = self.table.request(newcomer, now_ms, |id| {
            place = Some(id);
            Some(connection)
        })?;
        assert_eq!(place, Some(id));
        Ok((id, self.evicted.take()))
    }

    /// Establishes a connection, and returns which ones were evicted for it.
    fn establish(&mut self, id: ConnectionId, now_ms: u64) -> Result<Vec<u32>, Refused> {
        self.table.establish(id, now_ms)?;
        Ok(self.evicted.take())
    }

    /// Requests a connection and establishes it.
    fn connect(&mut self, from: u32, number: u32, now_ms: u64) -> Result<Vec<u32>, Refused> {
        let (id, evicted) = self.ask(from, number, now_ms)?;
        assert_eq!(evicted, []);
        self.establish(id, now_ms)
    }

    fn remove(&mut self, id: ConnectionId) -> Option<u32> {
        self.table.remove(id).map(|connection| connection.number)
    }
}

const KIB: u64 = 1024;

fn list<T>(room: usize) -> List<T> {
    List {
        items: Vec::new(),
        room,
    }
}

fn table() -> Table {
    let budgets = Budgets {
        half_open: 1000 * KIB,
        idle: 4000 * KIB,
    };
    Table::new(budgets, 100_000, 100_000)
}

fn source(number: u32) -> Source {
    let mut bytes = [0; 16];
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    Source(bytes)
}

#[test]
fn a_newcomer_evicts_the_oldest_of_the_source_that_has_most() {
    let mut table = table();
    for n in 0..7 {
        assert_eq!(table.ask(1, n, n.into()).unwrap().1, []);
    }
    for n in 7..10 {
        assert_eq!(table.ask(2, n, n.into()).unwrap().1, []);
    }
    // However young they are.
    assert_eq!(table.ask(3, 10, 10).unwrap().1, [0]);
    assert_eq!(table.ask(3, 11, 10).unwrap().1, [1]);
    assert_eq!(table.ask(2, 12, 10).unwrap().1, [2]);
    // 4 of source 1, 4 of source 2.
    assert_eq!(table.ask(1, 13, 10).unwrap_err(), Refused::Full);
    assert_eq!(table.ask(2, 14, 10).unwrap_err(), Refused::Full);
    // Source 3 has two, and gets one more.
    assert_eq!(table.ask(3, 15, 10).unwrap().1, [3]);
}

#[test]
fn the_source_that_has_most_gets_in_when_something_is_old() {
    let mut table = table();
    for n in 0..10 {
        table.ask(n / 5, n, n.into()).unwrap();
    }
    assert_eq!(table.ask(0, 10, 499).unwrap_err(), Refused::Full);
    assert_eq!(table.ask(0, 10, 500).unwrap().1, [0]);
    assert_eq!(table.ask(1, 11, 505).unwrap().1, [5]);
    // If all its own are young, that of another source.
    let mut table = self::table();
    for n in 0..4 {
        table.ask(0, n, 0).unwrap();
    }
    for n in 4..10 {
        table.ask(1, n, 400).unwrap();
    }
    assert_eq!(table.ask(1, 10, 499).unwrap_err(), Refused::Full);
    assert_eq!(table.ask(1, 10, 500).unwrap().1, [0]);
}

#[test]
fn forged_sources_lock_out_nobody() {
    let mut table = table();
    for n in 0..20_000_u32 {
        let (id, evicted) = table.ask(n, n, u64::from(n) / 100).unwrap();
        assert_eq!(evicted.len(), usize::from(n >= 10));
        if n >= 10 {
            // The oldest of all.
            assert_eq!(evicted, [n - 10]);
            table.remove(ConnectionId(id.0.wrapping_sub(10)));
        }
    }
}

#[test]
fn the_first_of_a_source_fits_whatever_its_size() {
    let mut table = table();
    for n in 0..10 {
        table.ask(n, n, 0).unwrap();
    }
    assert!(table.ask_for(u64::MAX, 100, 100, 0).is_ok());
    // Its source has most now.
    assert_eq!(table.ask(100, 101, 0).unwrap_err(), Refused::Full);
    assert_eq!(table.ask(200, 200, 0).unwrap().1, [100]);
}

#[test]
fn a_half_open_connection_keeps_a_thread() {
    let budgets = Budgets {
        half_open: 1 << 40,
        idle: 1 << 40,
    };
    let mut table = Table::new(budgets, 4096, 4096);
    for n in 0..1024 {
        assert_eq!(table.ask(n, n, 0).unwrap().1, []);
    }
    assert_eq!(table.ask(1024, 1024, 0).unwrap().1, [0]);
}

#[test]
fn requests_evict_no_established_connection() {
    let mut table = table();
    for n in 0..40 {
        assert_eq!(table.connect(1, n, 0), Ok(vec![]));
    }
    for n in 40..10_000 {
        let (_, evicted) = table.ask(n, n, 1_000_000).unwrap();
        assert!(evicted.iter().all(|evicted| *evicted >= 40));
    }
}

#[test]
fn an_established_connection_evicts_idle_ones() {
    let mut table = table();
    for n in 0..40 {
        assert_eq!(table.connect(1, n, 0), Ok(vec![]));
    }
    assert_eq!(table.connect(2, 40, 0), Ok(vec![0]));
    assert_eq!(table.connect(1, 41, 4999), Err(Refused::Full));
    assert_eq!(table.connect(1, 42, 5000), Ok(vec![1]));
}

#[test]
fn what_is_in_use_is_not_evicted() {
    let mut table = table();
    table.in_use.set(true);
    for n in 0..1000 {
        assert_eq!(table.connect(1, n, 0), Ok(vec![]));
    }
    assert_eq!(table.table.iter().count(), 1000);
    assert!(!table.table.is_empty() && table.table.may_allocate());
    // A look takes them out of the pool at once.
    let mut table = self::table();
    table.in_use.set(true);
    for n in 0..1000 {
        let (id, _) = table.ask(1, n, 0).unwrap();
        assert_eq!(table.establish(id, 0), Ok(vec![]));
        table.table.look(id);
        table.table.look(id);
        assert_eq!(table.table.idle, 0);
    }
    table.in_use.set(false);
    let (id, _) = table.ask(1, 1000, 0).unwrap();
    table.table.look(id);
    assert_eq!(table.table.half_open, 100 * KIB);
}

#[test]
fn what_was_evicted_ends_before_more_is_allocated() {
    let mut table = table();
    let mut ids = Vec::new();
    for n in 0..35 {
        ids.push(table.ask(n, n, 0).unwrap().0);
    }
    // 25 were evicted.
    assert!(table.table.may_allocate());
    table.ask(35, 35, 0).unwrap();
    assert!(!table.table.may_allocate());
    // It ends by itself at the same time.
    table.table.end(ids[0]);
    assert!(!table.table.may_allocate());
    assert_eq!(table.remove(ids[0]), Some(0));
    assert!(table.table.may_allocate());
    assert_eq!(table.remove(ids[0]), None);
}

#[test]
fn a_source_whose_connections_do_not_end_waits() {
    let mut table = table();
    let mut stuck = Vec::new();
    for n in 0..51 {
        let (id, _) = table.ask(1, n, 0).unwrap();
        table.establish(id, 0).unwrap();
        table.table.end(id);
        stuck.push(id);
    }
    // 5100 KiB end.
    assert_eq!(table.ask(1, 51, 9999).unwrap_err(), Refused::Full);
    let other = table.ask(2, 52, 9999).unwrap().0;
    table.table.end(other);
    // Much less than half of it.
    assert!(table.ask(2, 53, 9999).is_ok());
    // They were not evicted: they may take for ever.
    assert!(table.table.may_allocate());
    table.remove(stuck[0]);
    table.remove(stuck[1]);
    assert!(table.ask(1, 54, 9999).is_ok());
}

#[test]
fn no_memory() {
    let budgets = Budgets::of_memory(1 << 30);
    let mut table = Table::new(budgets, 2, 1);
    assert!(table.ask(1, 1, 0).is_ok());
    assert_eq!(table.ask(2, 2, 0).unwrap_err(), Refused::NoMemory);
    assert!(table.ask(1, 3, 0).is_ok());
    assert_eq!(table.ask(1, 4, 0).unwrap_err(), Refused::NoMemory);
    // No connection.
    let mut table = self::table();
    let newcomer = Newcomer {
        source: source(1),
        bytes: 1,
    };
    let made = table.table.request(newcomer, 0, |_| None);
    assert_eq!(made, Err(Refused::NoMemory));
    assert!(table.table.is_empty() && table.table.sources.is_empty());
}

/// What is known of a connection of the model.
#[derive(Clone, Copy)]
struct Known {
    id: ConnectionId,
    number: u32,
    from: u32,
    since_ms: u64,
    pool: Option<Pool>,
}

struct Model {
    known: Vec<Known>,
    now_ms: u64,
    random: u64,
}

impl Model {
    fn random(&mut self, below: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % below
    }

    /// Checks the answer for a newcomer of a source to a pool.
    fn check(&mut self, pool: Pool, from: u32, refused: bool, evicted: &[u32]) {
        let room = match pool {
            Pool::HalfOpen => 10,
            Pool::Idle => 40,
        };
        for number in evicted {
            let victim = self.known.iter_mut().find(|k| k.number == *number).unwrap();
            assert_eq!(victim.pool, Some(pool));
            victim.pool = None;
            let victim = *victim;
            let older = |k: &&Known| k.pool == Some(pool) && k.from == victim.from;
            let mut same = self.known.iter().filter(older);
            assert!(same.all(|k| k.since_ms >= victim.since_ms));
        }
        let waiting = self.known.iter().filter(|k| k.pool == Some(pool));
        let waiting: Vec<_> = waiting.collect();
        assert!(waiting.len() <= room);
        assert_eq!(
            refused || !evicted.is_empty(),
            waiting.len() + evicted.len() == room
        );
        if refused {
            let count = |from| waiting.iter().filter(|k| k.from == from).count();
            let is_old = |k: &&&Known| self.now_ms - k.since_ms >= pool.patience_ms();
            assert_eq!(waiting.iter().filter(is_old).count(), 0);
            let most = waiting.iter().map(|k| count(k.from)).max().unwrap();
            assert_eq!(count(from), most);
        }
    }
}

#[test]
fn full_only_if_nothing_is_old_and_no_source_has_more() {
    let mut table = table();
    let mut model = Model {
        known: Vec::new(),
        now_ms: 0,
        random: 0x2545_f491_4f6c_dd1d,
    };
    let (mut refusals, mut evictions) = (0, 0);
    for number in 0..40_000 {
        model.now_ms += model.random(60);
        let number_of = model.known.len() as u64;
        match model.random(8) {
            0..4 => {
                // Some sources send more than others.
                let below = model.random(6) + 1;
                let from = model.random(below) as u32;
                let answer = table.ask(from, number, model.now_ms);
                let evicted = answer
                    .as_ref()
                    .map_or(vec![], |(_, evicted)| evicted.clone());
                model.check(Pool::HalfOpen, from, answer.is_err(), &evicted);
                refusals += u32::from(answer.is_err());
                evictions += evicted.len();
                if let Ok((id, _)) = answer {
                    model.known.push(Known {
                        id,
                        number,
                        from,
                        since_ms: model.now_ms,
                        pool: Some(Pool::HalfOpen),
                    });
                }
            }
            4..6 if number_of > 0 => {
                let at = model.random(number_of) as usize;
                let known = model.known[at];
                let made = table.establish(known.id, model.now_ms);
                let evicted = made.clone().unwrap_or_default();
                if known.pool == Some(Pool::HalfOpen) {
                    model.known[at].pool = None;
                    model.check(Pool::Idle, known.from, made.is_err(), &evicted);
                    model.known[at].since_ms = model.now_ms;
                    model.known[at].pool = made.ok().map(|_| Pool::Idle);
                } else {
                    assert_eq!(made, Ok(vec![]));
                }
            }
            6 if number_of > 0 => {
                let at = model.random(number_of) as usize;
                table.table.end(model.known[at].id);
                model.known[at].pool = None;
            }
            _ if number_of > 0 => {
                let at = model.random(number_of) as usize;
                let known = model.known.swap_remove(at);
                assert_eq!(table.remove(known.id), Some(known.number));
            }
            _ => {}
        }
        // Ones that end never fill their share here.
        while model.known.iter().filter(|k| k.pool.is_none()).count() > 20 {
            let at = model.known.iter().position(|k| k.pool.is_none()).unwrap();
            let known = model.known.swap_remove(at);
            assert_eq!(table.remove(known.id), Some(known.number));
        }
        assert_eq!(table.table.iter().count(), model.known.len());
    }
    assert!(refusals > 100 && evictions > 100);
    for known in model.known {
        table.remove(known.id);
    }
    let table = table.table;
    assert!(table.is_empty());
    assert_eq!(
        (table.half_open, table.idle, table.ending, table.evicted),
        (0, 0, 0, 0)
    );
    assert!(table.sources.is_empty());
}
