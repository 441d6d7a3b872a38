// SPDX-License-Identifier: GPL-2.0

//! The discovery log: what a discovery controller knows of, as a log page.
//!
//! A header, and then one entry for each way to a subsystem. It may change while it is read
//! in parts: its [generation](Header::generation), before and after, tells.

use crate::format::layout::Reader;
use crate::format::nqn::{InvalidNqn, Nqn};
use core::fmt;

/// The header of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Changes with the log.
    pub generation: u64,
    /// How many entries follow.
    pub entries: u64,
}

impl Header {
    /// Its size in bytes; the first entry follows.
    pub const SIZE: usize = 1024;

    /// Reads a header.
    pub fn parse(data: &[u8]) -> Result<Self, InvalidLog> {
        let reader = Reader::<{ Self::SIZE }>::new(data).ok_or(InvalidLog::Short(data.len()))?;
        match reader.u16::<16>() {
            0 => Ok(Self {
                generation: reader.u64::<0>(),
                entries: reader.u64::<8>(),
            }),
            format => Err(InvalidLog::Format(format)),
        }
    }
}

const ENTRY_SIZE: usize = 1024;

/// An entry of the log. Its texts are printable ASCII, and the name a proper one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Type of the transport.
    pub transport: u8,
    /// Family of the address.
    pub family: u8,
    /// Type of the subsystem.
    pub subsystem_type: u8,
    /// What the transport must or may do.
    pub requirements: u8,
    /// Number of the target's port.
    pub port_id: u16,
    /// Controller to connect to; 0xfffe and 0xffff are any.
    pub controller_id: u16,
    /// Most entries of an admin queue.
    pub admin_queue_size: u16,
    /// What else there is to say of the entry.
    pub flags: u16,
    /// Service at the address: for RDMA, a port.
    pub service: &'a str,
    /// Name of the subsystem.
    pub subsystem: Nqn<'a>,
    /// The address.
    pub address: &'a str,
    /// What is particular to RDMA, if that is the transport.
    pub rdma: Option<RdmaTsas>,
}

/// What an entry says of RDMA in particular.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaTsas {
    /// Type of the queue pairs.
    pub queue_pairs: u8,
    /// The protocol: InfiniBand, RoCE or iWARP.
    pub provider: u8,
    /// How connections are managed.
    pub connections: u8,
    /// Key of the partition.
    pub partition: u16,
}

impl<'a> Entry<'a> {
    /// Its size in bytes.
    pub const SIZE: usize = ENTRY_SIZE;

    /// The type of transport that is RDMA.
    pub const RDMA: u8 = 1;

    const SERVICE: usize = 32;
    const TEXT: usize = 256;

    /// Reads an entry.
    pub fn parse(data: &'a [u8]) -> Result<Self, InvalidEntry> {
        let short = InvalidEntry::Short(data.len());
        let block = data.first_chunk::<ENTRY_SIZE>().ok_or(short)?;
        let reader = Reader::over(block);
        let field = |at: usize, len: usize| {
            let tail = block.get(at..).unwrap_or_default();
            tail.get(..len).unwrap_or_default()
        };
        let transport = reader.u8::<0>();
        Ok(Self {
            transport,
            family: reader.u8::<1>(),
            subsystem_type: reader.u8::<2>(),
            requirements: reader.u8::<3>(),
            port_id: reader.u16::<4>(),
            controller_id: reader.u16::<6>(),
            admin_queue_size: reader.u16::<8>(),
            flags: reader.u16::<10>(),
            service: text(field(32, Self::SERVICE), Field::Service)?,
            subsystem: name(field(256, Self::TEXT))?,
            address: text(field(512, Self::TEXT), Field::Address)?,
            rdma: (transport == Self::RDMA).then(|| RdmaTsas {
                queue_pairs: reader.u8::<768>(),
                provider: reader.u8::<769>(),
                connections: reader.u8::<770>(),
                partition: reader.u16::<776>(),
            }),
        })
    }
}

/// A text, which spaces fill, or a NUL ends. One that fills all of the field cannot be told
/// from one that goes on.
fn text(field: &[u8], which: Field) -> Result<&str, InvalidEntry> {
    let end = field.iter().position(|byte| *byte == 0);
    let text = field.get(..end.unwrap_or(field.len())).unwrap_or_default();
    let filled = text.trim_ascii_end();
    if end.is_none() && filled.len() == field.len() {
        return Err(InvalidEntry::Endless(which));
    }
    printable(filled, which)
}

/// A name, which a NUL ends.
fn name(field: &[u8]) -> Result<Nqn<'_>, InvalidEntry> {
    let end = field.iter().position(|byte| *byte == 0);
    let end = end.ok_or(InvalidEntry::Endless(Field::Subsystem))?;
    let name = field.get(..end).unwrap_or_default();
    let name = printable(name, Field::Subsystem)?;
    Nqn::new(name.as_bytes()).map_err(InvalidEntry::Name)
}

fn printable(text: &[u8], which: Field) -> Result<&str, InvalidEntry> {
    let odd = InvalidEntry::Character(which);
    if !text.iter().all(|byte| matches!(byte, b' '..=b'~')) {
        return Err(odd);
    }
    core::str::from_utf8(text).map_err(|_| odd)
}

/// A field with text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Field {
    /// The service.
    Service,
    /// The name of the subsystem.
    Subsystem,
    /// The address.
    Address,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Service => "the service",
            Self::Subsystem => "the name of the subsystem",
            Self::Address => "the address",
        })
    }
}

/// Why a header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidLog {
    /// It has so many bytes.
    Short(usize),
    /// The log has a format that nobody knows here.
    Format(u16),
}

impl fmt::Display for InvalidLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(len) => write!(f, "{len} bytes are too short for a header"),
            Self::Format(format) => write!(f, "it has the unknown format {format}"),
        }
    }
}

/// Why an entry cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidEntry {
    /// It has so many bytes.
    Short(usize),
    /// A text does not end.
    Endless(Field),
    /// A text is not printable ASCII.
    Character(Field),
    /// The name of the subsystem is none.
    Name(InvalidNqn),
}

impl fmt::Display for InvalidEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(len) => write!(f, "{len} bytes are too short"),
            Self::Endless(field) => write!(f, "{field} does not end"),
            Self::Character(field) => write!(f, "{field} is not printable ASCII"),
            Self::Name(why) => write!(f, "the subsystem: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
