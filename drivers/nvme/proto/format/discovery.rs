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
mod tests {
    use super::*;
    use crate::testing::Random;

    /// An entry as the kernel's target makes it.
    fn entry() -> Vec<u8> {
        let mut data = vec![0; Entry::SIZE];
        data[..4].copy_from_slice(&[1, 1, 2, 0x04]);
        data[4..12].copy_from_slice(&[0x44, 0x11, 0xff, 0xff, 32, 0, 1, 0]);
        data[32..36].copy_from_slice(b"4420");
        data[256..261].copy_from_slice(b"nqn.x");
        data[512..521].copy_from_slice(b"192.0.2.1");
        data[768..771].copy_from_slice(&[1, 5, 1]);
        data[776..778].copy_from_slice(&[0xcd, 0xab]);
        data
    }

    #[test]
    fn headers() {
        let mut data = vec![0; 1024];
        data[..16].copy_from_slice(&[7, 0, 0, 0, 0, 0, 0, 1, 3, 0, 0, 0, 0, 0, 0, 0x80]);
        let header = Header::parse(&data).unwrap();
        assert_eq!(header.generation, 0x0100_0000_0000_0007);
        assert_eq!(header.entries, 0x8000_0000_0000_0003);
        data[16] = 1;
        assert_eq!(Header::parse(&data), Err(InvalidLog::Format(1)));
        assert_eq!(Header::parse(&data[1..]), Err(InvalidLog::Short(1023)));
    }

    #[test]
    fn entries() {
        let data = entry();
        let entry = Entry::parse(&data).unwrap();
        let kind = (entry.transport, entry.family, entry.subsystem_type);
        assert_eq!(kind, (1, 1, 2));
        assert_eq!((entry.requirements, entry.port_id), (4, 4420));
        assert_eq!((entry.controller_id, entry.admin_queue_size), (0xffff, 32));
        assert_eq!(entry.flags, 1);
        assert_eq!((entry.address, entry.service), ("192.0.2.1", "4420"));
        assert_eq!(entry.subsystem.as_str(), "nqn.x");
        let rdma = entry.rdma.unwrap();
        assert_eq!((rdma.queue_pairs, rdma.provider), (1, 5));
        assert_eq!((rdma.connections, rdma.partition), (1, 0xabcd));
    }

    #[test]
    fn only_rdma_has_what_is_particular_to_it() {
        let mut data = entry();
        data[0] = 3;
        assert_eq!(Entry::parse(&data).unwrap().rdma, None);
    }

    #[test]
    fn spaces_fill_texts_to_their_end() {
        let mut data = entry();
        data[32..64].fill(b' ');
        data[32..36].copy_from_slice(b"4420");
        data[512..768].fill(b' ');
        data[512] = b'x';
        let entry = Entry::parse(&data).unwrap();
        assert_eq!((entry.address, entry.service), ("x", "4420"));
    }

    #[test]
    fn broken_texts() {
        let cases: [(usize, &[u8], InvalidEntry); 9] = [
            (32, &[b'1'; 32], InvalidEntry::Endless(Field::Service)),
            (512, &[b'1'; 256], InvalidEntry::Endless(Field::Address)),
            (256, &[b'n'; 256], InvalidEntry::Endless(Field::Subsystem)),
            (
                256,
                &[b'n'; 224],
                InvalidEntry::Name(InvalidNqn::TooLong(224)),
            ),
            (256, &[0], InvalidEntry::Name(InvalidNqn::Empty)),
            (32, b"\n", InvalidEntry::Character(Field::Service)),
            (512, b"\x1b[2J", InvalidEntry::Character(Field::Address)),
            (512, b"\xe4", InvalidEntry::Character(Field::Address)),
            (257, b"\x7f", InvalidEntry::Character(Field::Subsystem)),
        ];
        for (at, bytes, why) in cases {
            let mut data = entry();
            data[at..at + bytes.len()].copy_from_slice(bytes);
            assert_eq!(Entry::parse(&data), Err(why), "{at}");
            assert!(!why.to_string().is_empty());
        }
        let short = InvalidEntry::Short(1023);
        assert_eq!(Entry::parse(&entry()[1..]), Err(short));
        let nothing = [0; Entry::SIZE];
        assert!(Entry::parse(&nothing).is_err());
    }

    #[test]
    fn any_bytes_are_printable_or_refused() {
        let mut random = Random::new(70);
        let mut taken = 0;
        for _ in 0..5000 {
            let mut data = entry();
            for _ in 0..random.below(4) {
                let at = random.below(Entry::SIZE);
                random.fill(&mut data[at..at + 1]);
            }
            if let Ok(entry) = Entry::parse(&data) {
                taken += 1;
                for text in [entry.service, entry.address, entry.subsystem.as_str()] {
                    assert!(text.bytes().all(|byte| matches!(byte, b' '..=b'~')));
                }
            }
        }
        assert!(taken > 1000 && taken < 5000, "{taken}");
    }
}
