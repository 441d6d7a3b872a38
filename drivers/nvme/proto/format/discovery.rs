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
/// Any block is an entry. Numbers may have any value. A text that is not valid does not hide the
/// other fields.
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
    /// Transport Service Identifier, printable ASCII; for RDMA a port.
    pub trsvcid: Result<&'a str, InvalidText<'a>>,
    /// NVM Subsystem Qualified Name, UTF-8 without control characters.
    pub subnqn: Result<Nqn<'a>, InvalidText<'a>>,
    /// Transport Address, printable ASCII.
    pub traddr: Result<&'a str, InvalidText<'a>>,
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

    /// Parses an entry; `None` if `data` is shorter.
    pub fn parse(data: &'a [u8]) -> Option<Self> {
        let block = data.first_chunk::<ENTRY_SIZE>()?;
        let reader = Reader::over(block);
        let field = |bytes: Range<usize>| block.get(bytes).unwrap_or_default();
        let trtype = reader.u8::<0>();
        Some(Self {
            trtype,
            adrfam: reader.u8::<1>(),
            subtype: reader.u8::<2>(),
            treq: reader.u8::<3>(),
            portid: reader.u16::<4>(),
            cntlid: reader.u16::<6>(),
            asqsz: reader.u16::<8>(),
            eflags: reader.u16::<10>(),
            trsvcid: ascii(field(32..64)),
            subnqn: nqn(field(256..512)),
            traddr: ascii(field(512..768)),
            tsas: (trtype == Self::RDMA).then(|| RdmaTsas {
                qptype: reader.u8::<768>(),
                prtype: reader.u8::<769>(),
                cms: reader.u8::<770>(),
                pkey: reader.u16::<776>(),
            }),
        })
    }
}

/// Parses ASCII that ends at a NUL or before spaces that pad the field. A string that fills the
/// field is not valid: it may be cut off.
fn ascii(field: &[u8]) -> Result<&str, InvalidText<'_>> {
    let bytes = terminated(field).trim_ascii_end();
    let invalid = |why| InvalidText { bytes, why };
    if bytes.len() == field.len() {
        return Err(invalid(InvalidTextReason::Unterminated));
    }
    match core::str::from_utf8(bytes) {
        Ok(text) if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) => Ok(text),
        _ => Err(invalid(InvalidTextReason::NotAscii)),
    }
}

/// Parses an NQN that ends at a NUL.
fn nqn(field: &[u8]) -> Result<Nqn<'_>, InvalidText<'_>> {
    let bytes = terminated(field);
    let invalid = |why| InvalidText { bytes, why };
    let name = Nqn::new(bytes).map_err(|why| invalid(InvalidTextReason::Name(why)))?;
    if name.as_str().chars().any(char::is_control) {
        return Err(invalid(InvalidTextReason::Control));
    }
    Ok(name)
}

/// The bytes of a field before its first NUL; all if there is no NUL.
fn terminated(field: &[u8]) -> &[u8] {
    field.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Reason why a header cannot be used.
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

/// A text that is not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct InvalidText<'a> {
    /// The field up to its end or padding. Any bytes: escape them before they are printed.
    pub bytes: &'a [u8],
    /// Reason why they are not valid.
    pub why: InvalidTextReason,
}

/// Reason why a text is not valid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidTextReason {
    /// It does not end within its field.
    Unterminated,
    /// It is not printable ASCII.
    NotAscii,
    /// It is not a valid NQN.
    Name(InvalidNqn),
    /// The NQN has a control character.
    Control,
}

impl fmt::Display for InvalidTextReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unterminated => f.write_str("not terminated"),
            Self::NotAscii => f.write_str("not printable ASCII"),
            Self::Name(why) => fmt::Display::fmt(why, f),
            Self::Control => f.write_str("the name holds a control character"),
        }
    }
}

#[cfg(test)]
mod tests;
