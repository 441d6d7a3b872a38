// SPDX-License-Identifier: GPL-2.0

//! The entries of the configuration, and the resolution of their host names.

use crate::address::Address;
use crate::cli::DiscoverArgs;
use crate::config::ConfigLine;
use crate::error::Error;
use crate::host::SystemEnv;
use crate::model::options::{ConnectArgs, Target};
use crate::verb::args::{discover_error, target};
use crate::verb::connect::connect_args;
use std::panic::resume_unwind;
use std::thread;

/// Number of host names that are resolved at a time.
pub(super) const NR_RESOLVERS: usize = 16;

/// An entry of the configuration.
pub(super) struct Entry<'a> {
    line: &'a ConfigLine,
    /// `None` until the host name is resolved.
    pub(super) action: Option<Action<'a>>,
    /// The last reported error of the resolution.
    pub(super) last_error: Option<String>,
}

/// What an entry requests.
#[derive(Clone)]
pub(super) enum Action<'a> {
    /// A connection.
    Connect(ConnectArgs),
    /// Connections to all subsystems in the log of a discovery controller.
    Discover {
        target: Target,
        args: &'a DiscoverArgs,
    },
}

impl<'a> Entry<'a> {
    /// Creates an entry whose host name is not resolved.
    pub(super) fn new(line: &'a ConfigLine) -> Self {
        Self {
            line,
            action: None,
            last_error: None,
        }
    }

    /// Whether its address is numeric, so that it is resolved at once.
    pub(super) fn is_numeric(&self) -> bool {
        self.line.subsystem().traddr.parse::<Address>().is_ok()
    }

    /// Whether it connects to a target.
    pub(super) fn connects(&self, target: &Target) -> bool {
        matches!(&self.action, Some(Action::Connect(args)) if args.target == *target)
    }

    /// Whether it names a discovery controller.
    pub(super) fn discovers(&self, at: &Target) -> bool {
        matches!(&self.action, Some(Action::Discover { target, .. }) if target == at)
    }

    /// Resolves its address. May take as long as its timeout.
    pub(super) fn resolve(&self, env: &SystemEnv) -> Result<Action<'a>, Error> {
        match self.line {
            ConfigLine::Connect(options) => connect_args(options, env).map(Action::Connect),
            ConfigLine::Discover(args) => {
                let subsystem = self.line.subsystem();
                match target(&subsystem, env) {
                    Ok(target) => Ok(Action::Discover { target, args }),
                    Err(error) => Err(discover_error(&subsystem.endpoint(), error)),
                }
            }
        }
    }
}

/// Resolves the addresses of several entries at the same time.
pub(super) fn resolve_all<'a>(
    entries: &[&mut Entry<'a>],
    env: &SystemEnv,
) -> Vec<Result<Action<'a>, Error>> {
    thread::scope(|scope| {
        let entries = entries.iter();
        let threads: Vec<_> = entries
            .map(|entry| scope.spawn(|| entry.resolve(env)))
            .collect();
        let results = threads.into_iter().map(|each| each.join());
        results
            .map(|result| result.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}
