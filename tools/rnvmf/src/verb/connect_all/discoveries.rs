// SPDX-License-Identifier: GPL-2.0

//! The discovery controllers of a run, and what their logs have.

use super::classify::{classify, LogEntryClass};
use crate::cli::DiscoverArgs;
use crate::model::discovery::{DiscoveryLog, LogEntry};
use crate::model::options::Target;
use std::collections::HashSet;

/// What leads to a discovery controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// An entry of the configuration.
    Config,
    /// Only a log.
    Referral,
}

/// A discovery controller.
pub(super) struct Discovery<'a> {
    /// Number of the kernel's discovery, while there is one.
    pub(super) id: Option<u32>,
    /// It has no event for changes: its log is read again every `RETRY_INTERVAL`.
    pub(super) polled: bool,
    pub(super) target: Target,
    /// The options for what its log has.
    pub(super) args: &'a DiscoverArgs,
    pub(super) source: Source,
    /// The last log.
    pub(super) log: Option<DiscoveryLog>,
}

impl<'a> Discovery<'a> {
    /// A discovery controller whose log was not read yet.
    pub(super) fn new(target: Target, args: &'a DiscoverArgs, source: Source) -> Self {
        Self {
            id: None,
            polled: false,
            target,
            args,
            source,
            log: None,
        }
    }

    /// Returns the entries of the last log.
    pub(super) fn entries(&self) -> &[LogEntry] {
        self.log.as_ref().map_or(&[], |log| &log.entries)
    }

    /// Returns the subsystems and discovery controllers of the last log.
    fn targets(&self) -> impl Iterator<Item = Target> + '_ {
        let entries = self.entries().iter();
        entries.filter_map(|entry| match classify(entry, &self.target) {
            LogEntryClass::Subsystem(target) | LogEntryClass::Referral(target) => Some(target),
            LogEntryClass::Known | LogEntryClass::Unsupported(_) => None,
        })
    }
}

/// All discovery controllers, each once however many logs refer to it.
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

    /// Whether the kernel has a discovery for one of them.
    pub(super) fn is_active(&self) -> bool {
        self.0.iter().any(|each| each.id.is_some())
    }

    /// Returns what the logs have of the discovery controllers that the configuration or such logs
    /// lead to. Two that only refer to each other are not among those.
    pub(super) fn offered(&self) -> HashSet<Target> {
        let mut offered = HashSet::new();
        let is_configured = |each: &&Discovery<'_>| each.source == Source::Config;
        let mut left: Vec<_> = self.0.iter().filter(is_configured).collect();
        while let Some(discovery) = left.pop() {
            for target in discovery.targets() {
                if !offered.contains(&target) {
                    left.extend(self.find(&target));
                    offered.insert(target);
                }
            }
        }
        offered
    }
}
