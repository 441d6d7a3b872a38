// SPDX-License-Identifier: GPL-2.0

//! The log of a discovery controller.

use crate::{
    admin::Admin,
    ctrl_error::CtrlError,
    uapi::{
        ErrorStage,
        DISCOVERY_ENTRIES_MAX, //
    },
};
use kernel::prelude::*;
use nvme_proto::format::{
    discovery::{
        Entry,
        Header, //
    },
    sqe::LogPage,
};
use rrdma::{
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// How often a log is read that changes meanwhile, as nvme-cli does.
const ATTEMPTS: u32 = 10;

/// Entries that are read at once: a page, which no controller refuses.
const AT_ONCE: usize = 4;

/// The stage of all errors of a discovery log.
pub(super) const STAGE: ErrorStage = ErrorStage::Discovery;

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
    pub(super) fn read(admin: &Admin<'_>) -> Result<Self, CtrlError> {
        let mut header = Self::header(admin)?;
        for _ in 0..ATTEMPTS {
            let pieces = Self::entries(admin, &header)?;
            let now = Self::header(admin)?;
            if now == header {
                return Ok(Self { header, pieces });
            }
            header = now;
        }
        Err(CtrlError::new(
            STAGE,
            EAGAIN,
            format_args!("the discovery log changed {ATTEMPTS} times while it was read"),
        ))
    }

    fn header(admin: &Admin<'_>) -> Result<Header, CtrlError> {
        let data = Self::part(admin, 0, Header::SIZE)?;
        Header::parse(data.bytes())
            .map_err(|why| CtrlError::target(STAGE, format_args!("the discovery log: {why}")))
    }

    /// As many entries as the header says, and we take.
    fn entries(admin: &Admin<'_>, header: &Header) -> Result<KVec<Buffer>, CtrlError> {
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
                .map_err(|_| CtrlError::kernel(STAGE, ENOMEM, "discovery log"))?;
            number = number.saturating_add(entries);
            offset = offset.saturating_add(length as u64);
        }
        Ok(pieces)
    }

    /// Looks at entries, of which the first has this number.
    fn check(first: u64, data: &[u8]) -> Result<(), CtrlError> {
        for (number, entry) in (first..u64::MAX).zip(data.chunks_exact(Entry::SIZE)) {
            Entry::parse(entry).map_err(|why| {
                CtrlError::target(
                    STAGE,
                    format_args!("entry {number} of the discovery log: {why}"),
                )
            })?;
        }
        Ok(())
    }

    fn part(admin: &Admin<'_>, offset: u64, length: usize) -> Result<Buffer, CtrlError> {
        let what = "reading the discovery log";
        if admin.deadline.left() == Msecs::new(0) {
            let limit = admin.deadline.span().get();
            return Err(CtrlError::new(
                STAGE,
                ETIMEDOUT,
                format_args!("{what}: not done within {limit} ms"),
            ));
        }
        admin.keep_alive_if_due()?;
        let page = LogPage::new(LogPage::DISCOVERY, offset, length as u64)
            .map_err(|why| CtrlError::new(STAGE, EINVAL, format_args!("{what}: {why}")))?;
        admin.log_page(STAGE, page, what)
    }
}

/// The result of a discovery.
pub(crate) enum DiscoveryResult {
    Read(Log),
    /// The error, and the time of the next attempt, if there is one.
    Failed(CtrlError, Option<Deadline>),
}

impl From<Result<Log, CtrlError>> for DiscoveryResult {
    fn from(result: Result<Log, CtrlError>) -> Self {
        match result {
            Ok(log) => Self::Read(log),
            Err(failure) => Self::Failed(failure, None),
        }
    }
}
