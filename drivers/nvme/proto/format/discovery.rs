// SPDX-License-Identifier: GPL-2.0

//! The discovery log page: a header, and one entry for each port of a subsystem.
//!
//! The log may change while it is read in parts. A reader compares the
//! [generation](Header::generation) before and after.
//!
//! Source: NVMe Base, Discovery Log Page (Log Page Identifier 70h); for [`RdmaTsas`] the NVMe RDMA
//! Transport.

use crate::format::layout::Reader;
use crate::format::nqn::{InvalidNqn, Nqn};
use core::fmt;
use core::ops::Range;

/// The header of the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Generation Counter (GENCTR): differs when the log has changed.
    pub generation: u64,
    /// Number of Records (NUMREC): how many entries follow.
    pub entries: u64,
}

impl Header {
    /// Size in bytes; the first entry follows.
    pub const SIZE: usize = 1024;

    /// Parses a header.
    ///
    /// # Errors
    ///
    /// [`InvalidLog`].
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

/// An entry of the log, with the field names of the specification.
///
/// Numbers may have any value. The strings are printable ASCII.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'a> {
    /// Transport Type; see [`Entry::RDMA`].
    pub trtype: u8,
    /// Address Family.
    pub adrfam: u8,
    /// Subsystem Type.
    pub subtype: u8,
    /// Transport Requirements.
    pub treq: u8,
    /// Port ID.
    pub portid: u16,
    /// Controller ID; FFFEh and FFFFh: any.
    pub cntlid: u16,
    /// Admin Max SQ Size, in entries.
    pub asqsz: u16,
    /// Entry Flags.
    pub eflags: u16,
    /// Transport Service Identifier; for RDMA a port.
    pub trsvcid: &'a str,
    /// NVM Subsystem Qualified Name.
    pub subnqn: Nqn<'a>,
    /// Transport Address.
    pub traddr: &'a str,
    /// Transport Specific Address Subtype; `None` if the transport is not RDMA.
    pub tsas: Option<RdmaTsas>,
}

/// Transport Specific Address Subtype of RDMA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RdmaTsas {
    /// RDMA QP Service Type.
    pub qptype: u8,
    /// RDMA Provider Type: InfiniBand, RoCE or iWARP.
    pub prtype: u8,
    /// RDMA Connection Management Service.
    pub cms: u8,
    /// RDMA Partition Key.
    pub pkey: u16,
}

impl<'a> Entry<'a> {
    /// Size in bytes.
    pub const SIZE: usize = ENTRY_SIZE;

    /// [`trtype`](Self::trtype) of the RDMA transport.
    pub const RDMA: u8 = 1;

    /// Parses an entry.
    ///
    /// # Errors
    ///
    /// [`InvalidEntry`].
    pub fn parse(data: &'a [u8]) -> Result<Self, InvalidEntry> {
        let short = InvalidEntry::Short(data.len());
        let block = data.first_chunk::<ENTRY_SIZE>().ok_or(short)?;
        let reader = Reader::over(block);
        let field = |bytes: Range<usize>| block.get(bytes).unwrap_or_default();
        let trtype = reader.u8::<0>();
        Ok(Self {
            trtype,
            adrfam: reader.u8::<1>(),
            subtype: reader.u8::<2>(),
            treq: reader.u8::<3>(),
            portid: reader.u16::<4>(),
            cntlid: reader.u16::<6>(),
            asqsz: reader.u16::<8>(),
            eflags: reader.u16::<10>(),
            trsvcid: padded(field(32..64), "TRSVCID")?,
            subnqn: nqn(field(256..512), "SUBNQN")?,
            traddr: padded(field(512..768), "TRADDR")?,
            tsas: (trtype == Self::RDMA).then(|| RdmaTsas {
                qptype: reader.u8::<768>(),
                prtype: reader.u8::<769>(),
                cms: reader.u8::<770>(),
                pkey: reader.u16::<776>(),
            }),
        })
    }
}

/// A string that ends at a NUL or before spaces that pad the field. A string that fills the field
/// is refused: it may be cut off.
fn padded<'a>(field: &'a [u8], name: &'static str) -> Result<&'a str, InvalidEntry> {
    let text = terminated(field).trim_ascii_end();
    if text.len() == field.len() {
        return Err(InvalidEntry::Unterminated(name));
    }
    printable(text, name)
}

/// An NQN that ends at a NUL.
fn nqn<'a>(field: &'a [u8], name: &'static str) -> Result<Nqn<'a>, InvalidEntry> {
    let text = terminated(field);
    if text.len() == field.len() {
        return Err(InvalidEntry::Unterminated(name));
    }
    let text = printable(text, name)?;
    Nqn::new(text.as_bytes()).map_err(InvalidEntry::Name)
}

/// The bytes of a field before its first NUL; all if there is no NUL.
fn terminated(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

fn printable<'a>(text: &'a [u8], name: &'static str) -> Result<&'a str, InvalidEntry> {
    match core::str::from_utf8(text) {
        Ok(text) if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) => Ok(text),
        _ => Err(InvalidEntry::NotPrintable(name)),
    }
}

/// Why a header cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidLog {
    /// The header is too short; its length in bytes.
    Short(usize),
    /// The Record Format (RECFMT) is not 0.
    Format(u16),
}

impl fmt::Display for InvalidLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(len) => write!(f, "{len} bytes are too short for a header"),
            Self::Format(format) => write!(f, "unknown record format {format}"),
        }
    }
}

/// Why an entry cannot be used. A string is named by its field.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidEntry {
    /// The entry is too short; its length in bytes.
    Short(usize),
    /// A string does not end within its field.
    Unterminated(&'static str),
    /// A string is not printable ASCII.
    NotPrintable(&'static str),
    /// SUBNQN is not a valid NQN.
    Name(InvalidNqn),
}

impl fmt::Display for InvalidEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(len) => write!(f, "{len} bytes are too short for an entry"),
            Self::Unterminated(field) => write!(f, "{field} is not terminated"),
            Self::NotPrintable(field) => write!(f, "{field} is not printable ASCII"),
            Self::Name(why) => write!(f, "SUBNQN: {why}"),
        }
    }
}

#[cfg(test)]
mod tests;
