// SPDX-License-Identifier: GPL-2.0

//! Addresses: numeric ones as the kernel takes them, and names that stand for them.

use crate::error::{io_message, Error, Status};
use crate::signal::STOP;
use crate::uapi::TRADDR_MAX_LEN;
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::sync::mpsc::sync_channel;
use std::thread;
use std::time::{Duration, Instant};

/// How often a wait for the resolver looks for a stop signal.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A numeric address, with the scope that a link-local one needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    ip: IpAddr,
    scope: Option<String>,
}

impl std::str::FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (ip, scope) = match text.split_once('%') {
            Some((ip, scope)) => (ip, Some(scope)),
            None => (text, None),
        };
        let ip: IpAddr = ip.parse().map_err(|_| {
            if text.starts_with('[') {
                "it is written without brackets"
            } else {
                "not a numeric IPv4 or IPv6 address"
            }
        })?;
        match scope {
            Some("") => return Err("nothing follows the %".into()),
            Some(_) if ip.is_ipv4() => return Err("an IPv4 address has no scope".into()),
            _ if text.len() > TRADDR_MAX_LEN => return Err("too long".into()),
            _ => (),
        }
        Ok(Self {
            ip,
            scope: scope.map(str::to_owned),
        })
    }
}

impl Address {
    /// The address without its scope.
    pub(crate) fn ip(&self) -> IpAddr {
        self.ip
    }

    /// The interface that a link-local address is on, by its name or number.
    pub(crate) fn scope(&self) -> Option<&str> {
        self.scope.as_deref()
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
    /// Whether it is of IP version 4, and not of 6.
    pub(crate) fn is_ipv4(&self) -> bool {
        self.ip.is_ipv4()
    }

    /// Whether it is valid on one link only.
    pub(crate) fn is_link_local(&self) -> bool {
        matches!(self.ip, IpAddr::V6(ip) if ip.is_unicast_link_local())
    }

    /// Whether it may equal another one: an interface's name may be that of any number.
    pub(crate) fn may_equal(&self, other: &Self) -> bool {
        let is_number = |scope: &str| scope.parse::<u32>().is_ok();
        let same_scope = match (self.scope(), other.scope()) {
            (Some(one), Some(other)) => one == other || is_number(one) != is_number(other),
            (one, other) => one == other,
        };
        self.ip == other.ip && same_scope
    }

    /// Returns this address with the scope of a link-local one.
    pub(crate) fn with_scope_of(&self, other: &Self) -> Option<Self> {
        let scope = other.scope.clone().filter(|_| other.is_link_local())?;
        Some(Self {
            ip: self.ip,
            scope: Some(scope),
        })
    }
}

/// Returns the address of a target, after a lookup of at most `seconds` if it is a host name. Of
/// several addresses it is the first one of the family of `from`, or the first one.
pub(crate) fn resolve(host: &str, from: Option<&Address>, seconds: u32) -> Result<Address, Error> {
    resolve_with(lookup, host, from, seconds)
}

/// Like `resolve`, with another function for the lookup.
pub(crate) fn resolve_with(
    lookup: impl FnOnce(&str) -> io::Result<Vec<Address>> + Send + 'static,
    host: &str,
    from: Option<&Address>,
    seconds: u32,
) -> Result<Address, Error> {
    match host.parse() {
        Ok(address) => return Ok(address),
        // No host name has these.
        Err(why) if host.contains([':', '%']) => {
            let text = format!("{host} is no address: {why}");
            return Err(Error::new(Status::Usage, text));
        }
        Err(_) => (),
    }
    let cannot = |why: String| Error::failed(format!("cannot resolve host name {host}: {why}"));
    let name = host.to_owned();
    let stopped = || STOP.get().is_some();
    let found = run_with_timeout(seconds, stopped, move || lookup(&name));
    let found = found.map_err(|error| match error.kind() {
        ErrorKind::TimedOut => Error {
            status: Status::Timeout,
            ..cannot(error.to_string())
        },
        _ => cannot(lookup_error(&error)),
    })?;
    first_of_family(found.into_iter(), from).ok_or_else(|| match from {
        Some(from) => cannot(format!("it has no address of the family of {from}")),
        None => cannot("it has no address".into()),
    })
}

/// Looks up a host name in the system's resolver.
pub(crate) fn lookup(host: &str) -> io::Result<Vec<Address>> {
    Ok((host, 0).to_socket_addrs()?.map(Address::from).collect())
}

/// Runs `act` on a thread of its own, and returns its result unless the time runs out or `stopped`
/// returns true before. The resolver may be configured to wait for minutes, and cannot be
/// cancelled.
fn run_with_timeout<T: Send + 'static>(
    seconds: u32,
    stopped: impl Fn() -> bool,
    act: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    let (answer, answered) = sync_channel(1);
    thread::Builder::new().spawn(move || {
        // Nobody receives it after the timeout.
        let _ = answer.send(catch_unwind(AssertUnwindSafe(act)));
    })?;
    let end = Instant::now() + Duration::from_secs(seconds.into());
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if let Ok(result) = answered.recv_timeout(left.min(POLL_INTERVAL)) {
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

/// Returns the resolver's message without the standard library's words around it.
fn lookup_error(error: &std::io::Error) -> String {
    let text = io_message(error);
    match text.strip_prefix("failed to lookup address information: ") {
        Some(cause) => cause.to_owned(),
        None => text,
    }
}

/// An address and a port, as people write them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    host: String,
    port: u16,
}

impl Endpoint {
    /// The endpoint at a numeric address or a host name.
    pub(crate) fn new(host: impl fmt::Display, port: u16) -> Self {
        Self {
            host: host.to_string(),
            port,
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A wrong address may have brackets already.
        if self.host.contains(':') && !self.host.starts_with('[') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests;
