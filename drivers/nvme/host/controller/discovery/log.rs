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
    status::{
        Code,
        Status, //
    },
};
use rrdma::{
    errno,
    scatter::Buffer,
    sync::{
        Deadline,
        Msecs, //
    },
};

/// Number of times that a log is read while it keeps changing; nvme-cli's default.
const ATTEMPTS: u32 = 10;

/// Number of entries that one command reads: 4 KiB, within any MDTS.
const ENTRIES_PER_READ: usize = 4;

/// The stage of all errors of a discovery log.
pub(super) const STAGE: ErrorStage = ErrorStage::Discovery;

/// A discovery log.
pub(crate) struct Log {
    pub(crate) header: Header,
    /// Entries, up to [`ENTRIES_PER_READ`] in each buffer.
    buffers: KVec<Buffer>,
}

impl Log {
    /// Returns the entries as the controller sent them. User space checks them, so that an invalid
    /// one does not hide the others.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = self.buffers.iter().map(Buffer::bytes);
        bytes.flat_map(|bytes| bytes.chunks_exact(Entry::SIZE))
    }

    /// Reads the log until it is the same before and after. Sleeps.
    pub(super) fn read(admin: &Admin<'_>) -> Result<Self, CtrlError> {
        let mut header = Self::read_header(admin)?;
        for _ in 0..ATTEMPTS {
            let buffers = Self::read_entries(admin, &header)?;
            let now = Self::read_header(admin)?;
            if now == header {
                return Ok(Self { header, buffers });
            }
            header = now;
        }
        Err(CtrlError::new(
            STAGE,
            EAGAIN,
            format_args!("the discovery log changed {ATTEMPTS} times while it was read"),
        ))
    }

    fn read_header(admin: &Admin<'_>) -> Result<Header, CtrlError> {
        let buffer = Self::read_part(admin, 0, Header::SIZE).map_err(of_other_type)?;
        Header::parse(buffer.bytes())
            .map_err(|why| CtrlError::target(STAGE, format_args!("the discovery log: {why}")))
    }

    /// Reads the entries that the header announces, up to [`DISCOVERY_ENTRIES_MAX`].
    fn read_entries(admin: &Admin<'_>, header: &Header) -> Result<KVec<Buffer>, CtrlError> {
        let count = header.entries.min(DISCOVERY_ENTRIES_MAX.into()) as usize;
        let mut buffers = KVec::new();
        for first in (0..count).step_by(ENTRIES_PER_READ) {
            let entries = count.saturating_sub(first).min(ENTRIES_PER_READ);
            let offset = Header::SIZE.saturating_add(first.saturating_mul(Entry::SIZE));
            let length = entries.saturating_mul(Entry::SIZE);
            let buffer = Self::read_part(admin, offset, length)?;
            buffers
                .push(buffer, GFP_KERNEL)
                .map_err(|_| CtrlError::kernel(STAGE, ENOMEM, "discovery log"))?;
        }
        Ok(buffers)
    }

    fn read_part(admin: &Admin<'_>, offset: usize, length: usize) -> Result<Buffer, CtrlError> {
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
        let page = LogPage::discovery(offset as u64, length as u64)
            .ok_or_else(|| CtrlError::kernel(STAGE, EINVAL, what))?;
        admin.log_page(STAGE, page, what)
    }
}

/// Returns the error of a controller that has no discovery log.
fn of_other_type(refused: CtrlError) -> CtrlError {
    let lacks = |status: Status| status.is_unsupported() || status.code() == Code::INVALID_LOG_PAGE;
    if !refused.status().is_some_and(lacks) {
        return refused;
    }
    let why = format_args!("not a discovery subsystem");
    let mut error = CtrlError::new(STAGE, errno::EOPNOTSUPP, why);
    error.nvme_status = refused.nvme_status;
    error
}

/// The result of a discovery.
pub(crate) enum DiscoveryResult {
    /// The log.
    Read(Log),
    /// The error, and the time of the next attempt; `None` if the discovery ended.
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
