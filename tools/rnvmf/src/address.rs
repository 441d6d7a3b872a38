// SPDX-License-Identifier: GPL-2.0

//! Numeric addresses in the form that the kernel module takes, and the resolution of host names.

use crate::error::{io_message, Error, Status};
use crate::signal;
use crate::uapi::TRADDR_MAX_LEN;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which a wait for the resolver checks for a stop signal.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A numeric address, with a scope if it is link-local.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    ip: IpAddr,
    /// Name or index of an interface.
    scope: Option<String>,
}

impl std::str::FromStr for Address {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (ip, scope) = match text.split_once('%') {
            Some((ip, scope)) => (ip, Some(scope.to_owned())),
            None => (text, None),
        };
        let ip: IpAddr = match ip.parse() {
            Ok(ip) => ip,
            Err(_) if text.starts_with('[') => return Err("write it without brackets"),
            Err(_) => return Err("not a numeric IPv4 or IPv6 address"),
        };
        match &scope {
            Some(scope) if scope.is_empty() => Err("nothing follows the %"),
            Some(_) if ip.is_ipv4() => Err("an IPv4 address has no scope"),
            _ if text.len() > TRADDR_MAX_LEN => Err("too long"),
            _ => Ok(Self { ip, scope }),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.scope {
            Some(scope) => write!(f, "{}%{scope}", self.ip),
            None => write!(f, "{}", self.ip),
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        let scope = match socket {
            SocketAddr::V6(v6) if v6.scope_id() != 0 => Some(v6.scope_id().to_string()),
            _ => None,
        };
        Self {
            ip: socket.ip(),
            scope,
        }
    }
}

impl Address {
    /// Parses an address to connect to or from. A link-local one belongs to an interface.
    pub(crate) fn parse_scoped(text: &str) -> Result<Self, &'static str> {
        let address: Self = text.parse()?;
        match address.scope {
            None if address.is_link_local() => {
                Err("a link-local address needs its interface, as in fe80::1%eth0")
            }
            _ => Ok(address),
        }
    }

    /// Returns the address without its scope.
    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Returns the name or the index of the interface that a link-local address belongs to.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
    }

    /// Whether this is an IPv4 address.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.ip.is_ipv4()
    }

    /// Whether this is an IPv6 link-local address.
    pub(crate) fn is_link_local(&self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }

    /// Whether both may be the same address. A name and an index may denote the same interface.
    pub(crate) fn may_equal(&self, other: &Self) -> bool {
        let is_index = |scope: &str| scope.parse::<u32>().is_ok();
        let same_scope = match (self.scope(), other.scope()) {
            (Some(one), Some(other)) => one == other || is_index(one) != is_index(other),
            (one, other) => one == other,
        };
        self.ip == other.ip && same_scope
    }

    /// Returns this address with the scope of `other`, if that is link-local.
    pub(crate) fn with_scope_of(&self, other: &Self) -> Option<Self> {
        let scope = other.scope.clone().filter(|_| other.is_link_local())?;
        Some(Self {
            ip: self.ip,
            scope: Some(scope),
        })
    }
}

/// Returns the address of a target.
///
/// A host name is passed to `lookup`, which may take up to `seconds`. Of several addresses the
/// first one of the family of `from` is used, or without `from` the first one.
pub(crate) fn resolve(
    lookup: impl FnOnce(&str) -> io::Result<Vec<Address>> + Send + 'static,
    host: &str,
    from: Option<&Address>,
    seconds: u32,
) -> Result<Address, Error> {
    match Address::parse_scoped(host) {
        Ok(address) => return Ok(address),
        // A host name has none of these characters.
        Err(why) if host.contains([':', '%']) => {
            let text = format!("invalid address {host}: {why}");
            return Err(Error::new(Status::Usage, text));
        }
        Err(_) => (),
    }
    let cannot =
        |status, why: &str| Error::new(status, format!("cannot resolve host name {host}: {why}"));
    let name = host.to_owned();
    let stopped = || signal::last().is_some();
    let found = run_with_timeout(seconds, stopped, move || lookup(&name));
    let found = found.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => cannot(Status::Timeout, &error.to_string()),
        _ => cannot(Status::Failed, lookup_error(&io_message(&error))),
    })?;
    first_of_family(found.into_iter(), from).ok_or_else(|| match from {
        Some(from) => {
            let why = format!("it has no address of the family of {from}");
            cannot(Status::Failed, &why)
        }
        None => cannot(Status::Failed, "it has no address"),
    })
}

/// Looks up a host name with the system's resolver.
pub(crate) fn lookup(host: &str) -> io::Result<Vec<Address>> {
    Ok((host, 0).to_socket_addrs()?.map(Address::from).collect())
}

/// Runs `act` on a new thread and returns its result, or an error after `seconds` or as soon as
/// `stopped` returns true. The resolver cannot be cancelled, and may be configured to wait for
/// minutes.
fn run_with_timeout<T: Send + 'static>(
    seconds: u32,
    stopped: impl Fn() -> bool,
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (sender, receiver) = sync_channel(1);
    thread::Builder::new().spawn(move || {
        // After the timeout no receiver exists.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(act)));
    })?;
    let end = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if let Ok(result) = receiver.recv_timeout(left.min(POLL_INTERVAL)) {
            return result.unwrap_or_else(|panic| resume_unwind(panic));
        }
        if stopped() {
            return Err(io::Error::new(ErrorKind::Interrupted, "interrupted"));
        }
        if left.is_zero() {
            let text = format!("no answer within {seconds} s");
            return Err(io::Error::new(ErrorKind::TimedOut, text));
        }
    }
}

fn first_of_family(
    mut found: impl Iterator<Item = Address>,
    from: Option<&Address>,
) -> Option<Address> {
    found.find(|each| from.is_none_or(|from| each.is_ipv4() == from.is_ipv4()))
}

/// Returns the resolver's part of an error message of the standard library.
fn lookup_error(text: &str) -> &str {
    text.strip_prefix("failed to lookup address information: ")
        .unwrap_or(text)
}

/// An address and a port, displayed as in a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// Creates an endpoint from a numeric address or a host name.
    pub(crate) fn new(host: impl fmt::Display, port: u16) -> Self {
        Self {
            host: host.to_string(),
            port,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An invalid address may contain brackets.
        if self.host.contains(':') && !self.host.starts_with('[') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests;
