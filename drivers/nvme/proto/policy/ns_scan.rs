// SPDX-License-Identifier: GPL-2.0

//! Which namespaces a scan identifies, and what failures mean.

use crate::{
    format::status::Status,
    policy::revalidate::NsAttributes, //
};

/// State of an NSID, as a scan found it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NsState<'a, F> {
    /// A namespace that is usable as a disk.
    Usable(NsAttributes<'a>),
    /// No active namespace, or one that cannot be a disk.
    Unusable,
    /// A namespace that has a disk, and whose Identify failed for now, with this error.
    Unknown(&'a F),
}

/// Result of a scan.
pub trait ScanView {
    /// Error of an Identify that failed for now.
    type Error;

    /// Returns the state of an NSID.
    fn state(&self, nsid: u32) -> NsState<'_, Self::Error>;
}

/// Action of a scan when the Identify of a namespace fails. Malformed data rejects only the
/// namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdentifyFailure {
    /// The scan fails: the error has no NVMe status. There was no response, or this host failed.
    FailScan,
    /// The disk stays as it is, and the scan reports the error: a live controller scans again, a
    /// reconnect fails.
    KeepDisk,
    /// The namespace has no disk and gets none. The host scans again soon, without an event.
    SkipAndRescan,
    /// The namespace gets no disk, and an existing one is removed. Only an event, a request or a
    /// reconnect leads to another scan.
    RemoveDisk,
}

impl IdentifyFailure {
    /// Decides by the NVMe `status` of the error, if it has one, and by whether the namespace has a
    /// disk that is not gone.
    pub fn of(status: Option<Status>, has_disk: bool) -> Self {
        match status {
            None => Self::FailScan,
            Some(status) if status.do_not_retry() => Self::RemoveDisk,
            Some(_) if has_disk => Self::KeepDisk,
            Some(_) => Self::SkipAndRescan,
        }
    }
}

/// Limits how many listed namespaces a scan identifies, and keeps the last NSID. The scan passes
/// listed NSIDs in rising order. Beyond the limit, it passes the higher NSIDs that have a disk,
/// listed or not.
///
/// A target that lists very many new namespaces thus does not prevent the revalidation of disks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NsidWalk {
    left: usize,
    last: u32,
}

/// Whether a scan identifies a listed namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NextNsid {
    /// Identify it.
    Identify,
    /// The limit is reached: the scan identifies no more listed namespaces.
    LimitReached,
}

impl NsidWalk {
    /// Returns a walk over at most `limit` listed namespaces.
    pub const fn new(limit: usize) -> Self {
        Self {
            left: limit,
            last: 0,
        }
    }

    /// Returns the last NSID that the scan identifies; 0 before the first.
    pub const fn last(&self) -> u32 {
        self.last
    }

    /// Decides on `nsid`, the next listed namespace.
    #[must_use]
    pub fn listed(&mut self, nsid: u32) -> NextNsid {
        match self.left.checked_sub(1) {
            Some(left) => {
                self.left = left;
                self.last = nsid;
                NextNsid::Identify
            }
            None => NextNsid::LimitReached,
        }
    }

    /// Records that the scan identifies `nsid`, the next namespace beyond the limit with a disk.
    pub fn record_disk(&mut self, nsid: u32) {
        self.last = nsid;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::status::Code;

    #[test]
    fn failed_identify_keeps_disk_unless_final() {
        let transient = Status::from_code(Code::INTERNAL_ERROR);
        let last = Status::from_wire((transient.get() | 0x4000) << 1);
        assert!(last.do_not_retry());
        let of = IdentifyFailure::of;
        assert_eq!(of(None, true), IdentifyFailure::FailScan);
        assert_eq!(of(None, false), IdentifyFailure::FailScan);
        assert_eq!(of(Some(transient), true), IdentifyFailure::KeepDisk);
        assert_eq!(of(Some(transient), false), IdentifyFailure::SkipAndRescan);
        assert_eq!(of(Some(last), true), IdentifyFailure::RemoveDisk);
        assert_eq!(of(Some(last), false), IdentifyFailure::RemoveDisk);
    }

    #[test]
    fn limit_does_not_stop_disks() {
        let mut walk = NsidWalk::new(2);
        assert_eq!(walk.last(), 0);
        assert_eq!(walk.listed(1), NextNsid::Identify);
        assert_eq!(walk.listed(7), NextNsid::Identify);
        assert_eq!(walk.listed(8), NextNsid::LimitReached);
        assert_eq!(walk.last(), 7);
        walk.record_disk(u32::MAX);
        assert_eq!(walk.last(), u32::MAX);
    }

    #[test]
    fn limit_of_none_identifies_none() {
        assert_eq!(NsidWalk::new(0).listed(1), NextNsid::LimitReached);
    }
}
