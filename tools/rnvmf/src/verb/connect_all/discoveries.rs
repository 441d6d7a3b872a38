// SPDX-License-Identifier: GPL-2.0

//! The discovery controllers of a run, and their logs.

use super::classify::{classify, LogEntryClass};
use crate::cli::DiscoverArgs;
use crate::model::discovery::{DiscoveryLog, LogEntry};
use crate::model::options::Target;
use std::collections::HashSet;

/// When the log of a discovery controller is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum LogReads {
    /// After each event for a change, in a persistent run; otherwise once.
    Followed,
    /// Every `RETRY_INTERVAL`, because there are no events.
    Polled,
    /// Never: the subsystem has no discovery log.
    Refused,
}

/// A discovery controller.
pub(super) struct Discovery<'a> {
    /// Number of the kernel's discovery, if there is one.
    pub(super) id: Option<u32>,
    /// When its log is read.
    pub(super) reads: LogReads,
    pub(super) target: Target,
    /// The options for the subsystems of its log.
    pub(super) args: &'a DiscoverArgs,
    /// An entry of the configuration names it; otherwise only logs do.
    pub(super) is_configured: bool,
    /// The last log.
    pub(super) log: Option<DiscoveryLog>,
}

impl<'a> Discovery<'a> {
    /// Creates a discovery controller without a log.
    pub(super) fn new(target: Target, args: &'a DiscoverArgs, is_configured: bool) -> Self {
        Self {
            id: None,
            reads: LogReads::Followed,
            target,
            args,
            is_configured,
            log: None,
        }
    }

    /// Returns the entries of the last log.
    pub(super) fn entries(&self) -> &[LogEntry] {
        self.log.as_ref().map_or(&[], |log| &log.entries)
    }

    /// Returns the classes of these entries.
    pub(super) fn classes(&self) -> impl Iterator<Item = LogEntryClass> + '_ {
        let entries = self.entries().iter();
        entries.map(|entry| classify(entry, &self.target))
    }
}

/// All discovery controllers; each once, even if several logs refer to it.
#[derive(Default)]
pub(super) struct Discoveries<'a>(pub(super) Vec<Discovery<'a>>);

impl<'a> Discoveries<'a> {
    /// Returns the index of a discovery controller.
    pub(super) fn position(&self, target: &Target) -> Option<usize> {
        self.0.iter().position(|each| each.target == *target)
    }

    /// Returns the index of the discovery controller with this discovery of the kernel.
    pub(super) fn position_of_id(&self, id: u32) -> Option<usize> {
        self.0.iter().position(|each| each.id == Some(id))
    }

    /// Returns the discovery controller at a target.
    pub(super) fn find(&self, target: &Target) -> Option<&Discovery<'a>> {
        self.0.iter().find(|each| each.target == *target)
    }

    /// Whether the kernel has a discovery of one of them.
    pub(super) fn is_active(&self) -> bool {
        self.0.iter().any(|each| each.id.is_some())
    }

    /// Whether the log of one of them is never read.
    pub(super) fn has_refused(&self) -> bool {
        let mut reads = self.0.iter().map(|each| each.reads);
        reads.any(|reads| reads == LogReads::Refused)
    }

    /// Returns the targets in the logs of all discovery controllers that can be reached from the
    /// configuration. Two that only refer to each other cannot.
    pub(super) fn offered(&self) -> HashSet<Target> {
        let mut offered = HashSet::new();
        let mut left: Vec<_> = self.0.iter().filter(|each| each.is_configured).collect();
        while let Some(discovery) = left.pop() {
            for target in discovery.classes().filter_map(LogEntryClass::target) {
                if !offered.contains(&target) {
                    left.extend(self.find(&target));
                    offered.insert(target);
                }
            }
        }
        offered
    }
}
