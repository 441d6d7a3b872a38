// SPDX-License-Identifier: GPL-2.0

//! A discovery: the log of a discovery controller, read once.
//!
//! The controller is on no list and has no disks. It is connected as others are, but for its
//! admin queue only, by a thread of its own, and gone when the log is read or that failed. What
//! was read is kept for the socket that asked.

use super::{
    setup,
    Admin,
    Controller,
    Sender, //
};
use crate::{
    failure::Failure,
    host::Host,
    netlink::uapi::{
        ErrorStage,
        DISCOVERY_ENTRIES_MAX, //
    },
    options::{
        Limit,
        Loss,
        Options, //
    },
};
use kernel::{
    new_mutex,
    prelude::*,
    sync::{
        Arc,
        Mutex, //
    },
};
use nvme_wire::{
    discovery::{
        Entry,
        Header, //
    },
    sqe::LogPage,
};
use rrdma::{
    errno,
    net::Namespace,
    rdma::device::Device,
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs,
        TimedCompletion, //
    },
};

/// Where all failures of a log happen.
const STAGE: ErrorStage = ErrorStage::Discovery;

/// How often a log is read that changes meanwhile, as nvme-cli does.
const ATTEMPTS: u32 = 10;

/// Entries that are read at once: a page, which no controller refuses.
const AT_ONCE: usize = 4;

/// How long the controller may take to shut down.
const SHUTDOWN: Msecs = Msecs::from_secs(5);

/// A connection that is lost is not made again.
const LOSS: Loss = Loss {
    reconnect_delay: 1,
    give_up: Limit::After(0),
    fail_io: Limit::After(0),
};

/// A discovery.
#[pin_data]
pub(crate) struct Discovery {
    pub(crate) id: u32,
    /// The port of the socket that asked.
    owner: u32,
    controller: Arc<Controller>,
    #[pin]
    outcome: Mutex<Option<Result<Log, Failure>>>,
    #[pin]
    over: TimedCompletion,
}

impl Discovery {
    /// A discovery that does nothing yet. May sleep.
    pub(crate) fn new(host: Arc<Host>, id: u32, options: Options, owner: u32) -> Result<Arc<Self>> {
        let controller = Controller::new(host, id, true, options, LOSS)?;
        Arc::pin_init(
            pin_init!(Self {
                id,
                owner,
                controller,
                outcome <- new_mutex!(None, "rnvme::Discovery::outcome"),
                over <- TimedCompletion::new(),
            }),
            GFP_KERNEL,
        )
    }

    /// Whether a socket has asked for it.
    pub(crate) fn is_of(&self, namespace: &Namespace, owner: u32) -> bool {
        self.owner == owner && *self.namespace() == *namespace
    }

    /// The network namespace that it is in.
    pub(crate) fn namespace(&self) -> &Namespace {
        &self.controller.options.namespace
    }

    /// Its controller, if that has something on `device`.
    pub(crate) fn controller_on(&self, device: &Device) -> Option<&Controller> {
        Some(&*self.controller).filter(|controller| controller.uses(device))
    }

    /// Ends it, if it is not over. Any context.
    pub(crate) fn cancel(&self) {
        self.controller.delete();
    }

    /// Whether it was ended.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.controller.is_deleting()
    }

    /// Whether something came of it. May sleep.
    pub(crate) fn is_over(&self) -> bool {
        self.outcome.lock().is_some()
    }

    /// Waits until it is over. Sleeps.
    pub(crate) fn wait(&self) {
        self.over.wait();
    }

    /// It got no thread, so it is over.
    pub(crate) fn never_ran(&self) {
        self.over.complete_all();
    }

    /// What came of it; `None` while it is under way.
    pub(crate) fn outcome<R>(&self, look: impl FnOnce(Option<&Result<Log, Failure>>) -> R) -> R {
        look(self.outcome.lock().as_ref())
    }

    /// From connecting to when nothing is left of the connection. Sleeps.
    pub(crate) fn run(this: &Arc<Self>) {
        let controller = &*this.controller;
        let outcome = Self::read(controller).map_err(|failure| match controller.is_deleting() {
            true => Failure::new(
                failure.stage,
                errno::ECANCELED,
                format_args!("the discovery was cancelled"),
            ),
            false => failure,
        });
        controller.release_device();
        *this.outcome.lock() = Some(outcome);
        controller.host.tell_discovery(this);
        controller.host.discoveries.over(this);
        this.over.complete_all();
    }

    #[inline(never)]
    fn read(controller: &Controller) -> Result<Log, Failure> {
        let deadline = Deadline::after(controller.options.connect_timeout);
        let (queue, configuration) = setup::connect_admin(controller, deadline)?;
        let admin = |deadline| Admin {
            sender: Sender::Thread(&queue),
            controller,
            deadline,
        };
        let log = Log::read(&admin(deadline))?;
        // It is a courtesy: what goes wrong changes nothing, the connection ends in any case.
        if let Err(failure) = admin(Deadline::after(SHUTDOWN)).shut_down(configuration) {
            let message = failure.message();
            pr_debug!("discovery {}: shutdown: {}\n", controller.id, message);
        }
        Ok(log)
    }
}

/// A discovery log.
pub(crate) struct Log {
    pub(crate) header: Header,
    /// Of so many entries each, which were looked at.
    pieces: KVec<Buffer>,
}

impl Log {
    /// An entry that was read, counted from 0.
    pub(crate) fn entry(&self, number: usize) -> Option<Entry<'_>> {
        let most = usize::try_from(self.header.entries).unwrap_or(usize::MAX);
        if number >= most {
            return None;
        }
        let piece = self.pieces.get(number / AT_ONCE)?;
        let mut entries = piece.bytes().chunks_exact(Entry::SIZE);
        Entry::parse(entries.nth(number % AT_ONCE)?).ok()
    }

    /// Reads the log until it does not change meanwhile.
    fn read(admin: &Admin<'_>) -> Result<Self, Failure> {
        let mut header = Self::header(admin)?;
        for _ in 0..ATTEMPTS {
            let pieces = Self::entries(admin, &header)?;
            let now = Self::header(admin)?;
            if now == header {
                return Ok(Self { header, pieces });
            }
            header = now;
        }
        Err(Failure::new(
            STAGE,
            EAGAIN,
            format_args!("the discovery log changed {ATTEMPTS} times while it was read"),
        ))
    }

    fn header(admin: &Admin<'_>) -> Result<Header, Failure> {
        let data = Self::part(admin, 0, Header::SIZE)?;
        Header::parse(data.bytes())
            .map_err(|why| Failure::target(STAGE, format_args!("the discovery log: {why}")))
    }

    /// As many entries as the header says, and we take.
    fn entries(admin: &Admin<'_>, header: &Header) -> Result<KVec<Buffer>, Failure> {
        let count = header.entries.min(DISCOVERY_ENTRIES_MAX.into());
        let mut pieces = KVec::new();
        let (mut number, mut offset) = (0u64, Header::SIZE as u64);
        while number < count {
            let entries = (AT_ONCE as u64).min(count.saturating_sub(number));
            let length = (entries as usize).saturating_mul(Entry::SIZE);
            let piece = Self::part(admin, offset, length)?;
            Self::check(number, piece.bytes())?;
            pieces
                .push(piece, GFP_KERNEL)
                .map_err(|_| Failure::kernel(STAGE, ENOMEM, "discovery log"))?;
            number = number.saturating_add(entries);
            offset = offset.saturating_add(length as u64);
        }
        Ok(pieces)
    }

    /// Looks at entries, of which the first has this number.
    fn check(first: u64, data: &[u8]) -> Result<(), Failure> {
        for (number, entry) in (first..u64::MAX).zip(data.chunks_exact(Entry::SIZE)) {
            Entry::parse(entry).map_err(|why| {
                Failure::target(
                    STAGE,
                    format_args!("entry {number} of the discovery log: {why}"),
                )
            })?;
        }
        Ok(())
    }

    fn part(admin: &Admin<'_>, offset: u64, length: usize) -> Result<Buffer, Failure> {
        let what = "reading the discovery log";
        if admin.deadline.left() == Msecs::new(0) {
            let limit = admin.controller.options.connect_timeout.get();
            return Err(Failure::new(
                STAGE,
                ETIMEDOUT,
                format_args!("{what}: not done within {limit} ms"),
            ));
        }
        let page = LogPage::new(LogPage::DISCOVERY, offset, length as u64)
            .map_err(|why| Failure::new(STAGE, EINVAL, format_args!("{what}: {why}")))?;
        admin.log_page(STAGE, page, what)
    }
}
