// SPDX-License-Identifier: GPL-2.0

//! Discovery logs.

use crate::address::Endpoint;
use crate::error::{CtrlError, Error};
use crate::output::named;
use nvme_proto::format::discovery::{Entry, InvalidText};
use nvme_proto::format::nqn::Nqn;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The log of a discovery controller. Its names in JSON are those of nvme-cli.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DiscoveryLog {
    /// Generation Counter: changes when the log changes.
    pub(crate) genctr: u64,
    /// Number of Records. `entries` may be fewer: the kernel reads at most `DISCOVERY_ENTRIES_MAX`.
    pub(crate) numrec: u64,
    /// The entries.
    #[serde(rename = "records")]
    pub(crate) entries: Vec<LogEntry>,
}

/// A reply or a notification about a discovery.
#[derive(Debug, Deserialize)]
pub(crate) struct DiscoveryReply {
    /// Number of the discovery.
    pub(crate) discovery_id: u32,
    generation: Option<u64>,
    nr_entries: Option<u64>,
    error: Option<CtrlError>,
    next_attempt: Option<u32>,
}

impl DiscoveryReply {
    /// Returns the log without its entries; `None` while the discovery is under way.
    pub(crate) fn log(self) -> Result<Option<DiscoveryLog>, Error> {
        if let Some(error) = self.error {
            let next_attempt = self.next_attempt;
            return Err(Error::from(CtrlError {
                next_attempt,
                ..error
            }));
        }
        let log = self.generation.zip(self.nr_entries);
        Ok(log.map(|(genctr, numrec)| DiscoveryLog {
            genctr,
            numrec,
            entries: Vec::new(),
        }))
    }
}

/// An entry of a log in a reply: the bytes of the target, in hexadecimal.
#[derive(Deserialize)]
struct EntryReply {
    entry: String,
}

impl TryFrom<EntryReply> for LogEntry {
    type Error = String;

    fn try_from(EntryReply { entry: digits }: EntryReply) -> Result<Self, String> {
        let byte = |at| u8::from_str_radix(digits.get(at..at + 2)?, 16).ok();
        let bytes: Vec<u8> = (0..digits.len()).step_by(2).filter_map(byte).collect();
        let entry = Entry::parse(&bytes).ok_or("a discovery log entry is too short")?;
        let mut invalid = Vec::new();
        let mut text = |name, field: Result<&str, InvalidText<'_>>| match field {
            Ok(text) => text.to_owned(),
            Err(InvalidText { bytes, why }) => {
                invalid.push(format!("{name}: {why}"));
                bytes.escape_ascii().to_string()
            }
        };
        Ok(Self {
            trtype: TrType(entry.trtype),
            adrfam: AdrFam(entry.adrfam),
            subtype: SubType(entry.subtype),
            treq: Treq(entry.treq),
            portid: entry.portid,
            trsvcid: text("TRSVCID", entry.trsvcid),
            subnqn: text("SUBNQN", entry.subnqn.map(Nqn::as_str)),
            traddr: text("TRADDR", entry.traddr),
            eflags: EFlags(entry.eflags),
            rdma_prtype: entry.tsas.map(|tsas| PrType(tsas.prtype)),
            rdma_qptype: entry.tsas.map(|tsas| QpType(tsas.qptype)),
            rdma_cms: entry.tsas.map(|tsas| Cms(tsas.cms)),
            rdma_pkey: entry.tsas.map(|tsas| tsas.pkey),
            invalid: Some(invalid.join("; ")).filter(|why| !why.is_empty()),
        })
    }
}

/// An entry of a discovery log: a subsystem and how to reach it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(try_from = "EntryReply")]
pub(crate) struct LogEntry {
    /// Transport Type.
    pub(crate) trtype: TrType,
    /// Address Family.
    pub(crate) adrfam: AdrFam,
    /// Subsystem Type.
    pub(crate) subtype: SubType,
    /// Transport Requirements.
    pub(crate) treq: Treq,
    /// Port ID: the number of the port of the target.
    pub(crate) portid: u16,
    /// Transport Service Identifier; a port for IP addresses.
    pub(crate) trsvcid: String,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subnqn: String,
    /// Transport Address.
    pub(crate) traddr: String,
    /// Entry Flags.
    pub(crate) eflags: EFlags,
    /// RDMA Provider Type.
    pub(crate) rdma_prtype: Option<PrType>,
    /// RDMA QP Service Type.
    pub(crate) rdma_qptype: Option<QpType>,
    /// RDMA Connection Management Service.
    pub(crate) rdma_cms: Option<Cms>,
    /// RDMA Partition Key.
    pub(crate) rdma_pkey: Option<u16>,
    /// Why texts of the entry are not valid. These texts are escaped.
    pub(crate) invalid: Option<String>,
}

impl LogEntry {
    /// Whether both entries name the same subsystem at the same address.
    pub(crate) fn same_path(&self, other: &Self) -> bool {
        self.subtype == other.subtype
            && self.trtype == other.trtype
            && self.adrfam == other.adrfam
            && self.traddr == other.traddr
            && self.trsvcid == other.trsvcid
            && self.subnqn == other.subnqn
    }

    /// Returns the address and the service.
    pub(crate) fn endpoint(&self) -> EntryAddr<'_> {
        EntryAddr(self)
    }
}

/// The address and the service of an entry, which need not be an IP address and a port.
pub(crate) struct EntryAddr<'a>(&'a LogEntry);

impl fmt::Display for EntryAddr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LogEntry {
            traddr, trsvcid, ..
        } = self.0;
        match trsvcid.parse() {
            Ok(port) => write!(f, "{}", Endpoint::new(traddr, port)),
            Err(_) if trsvcid.is_empty() => f.write_str(traddr),
            Err(_) => write!(f, "{traddr} {trsvcid}"),
        }
    }
}

// Names are those of nvme-cli.
named! {
    /// Transport type.
    TrType(u8) = "trtype" [1 => "rdma", 2 => "fc", 3 => "tcp", 254 => "loop",];
    /// Address family.
    AdrFam(u8) = "adrfam" [
        0 => "pci", 1 => "ipv4", 2 => "ipv6", 3 => "infiniband", 4 => "fibre-channel",
    ];
    /// Subsystem type.
    SubType(u8) = "subtype" [
        1 => "discovery subsystem referral",
        2 => "nvme subsystem",
        3 => "current discovery subsystem",
    ];
    /// Transport requirements.
    Treq(u8) = "treq" [
        0 => "not specified",
        1 => "required",
        2 => "not required",
        4 => "not specified, sq flow control disable supported",
        5 => "required, sq flow control disable supported",
        6 => "not required, sq flow control disable supported",
    ];
    /// Entry flags.
    EFlags(u16) = "eflags" [
        0 => "none",
        1 => "duplicate discovery information",
        2 => "explicit discovery connections",
        3 => "explicit discovery connections, duplicate discovery information",
    ];
    /// RDMA provider type.
    PrType(u8) = "prtype" [
        1 => "not specified", 2 => "infiniband", 3 => "roce", 4 => "roce-v2", 5 => "iwarp",
    ];
    /// RDMA QP service type.
    QpType(u8) = "qptype" [1 => "connected", 2 => "datagram",];
    /// RDMA connection management service.
    Cms(u8) = "cms" [1 => "rdma-cm",];
}

impl TrType {
    /// The transport that this program connects.
    pub(crate) const RDMA: Self = Self(1);
}

impl AdrFam {
    /// Whether the addresses are IP addresses.
    pub(crate) fn is_ip(self) -> bool {
        matches!(self.0, 1 | 2)
    }
}

impl SubType {
    /// A referral to another discovery controller.
    pub(crate) const REFERRAL: Self = Self(1);
    /// An NVM subsystem, which has namespaces.
    pub(crate) const NVM: Self = Self(2);
    /// The discovery controller that has the log.
    pub(crate) const CURRENT: Self = Self(3);
}

impl EFlags {
    /// Whether the log of the referral has the same entries as this log.
    pub(crate) fn is_duplicate(self) -> bool {
        self.0 & 1 != 0
    }
}

#[cfg(test)]
pub(crate) mod tests;
