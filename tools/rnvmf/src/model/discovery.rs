// SPDX-License-Identifier: GPL-2.0

//! The log of a discovery controller, as the kernel reports it.

use crate::address::Endpoint;
use crate::error::CtrlError;
use crate::error::Error;
use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{discovery as attribute, DISCOVERY_ENTRY_LEN};
use nvme_proto::format::discovery::Entry;
use serde::{Serialize, Serializer};
use std::fmt;

/// The log of a discovery controller. The names in JSON are nvme-cli's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct DiscoveryLog {
    /// Changes with the log.
    pub(crate) genctr: u64,
    /// How many entries there are, of which the kernel reads no more than the first.
    pub(crate) numrec: u64,
    /// The entries that were read.
    #[serde(rename = "records")]
    pub(crate) entries: Vec<LogEntry>,
}

impl DiscoveryLog {
    /// Reads a log without its entries; `None` while the discovery is under way.
    pub(crate) fn read(from: &Attributes) -> Result<Option<Self>, Error> {
        if let Some(nest) = from.nest(attribute::ERROR)? {
            return Err(CtrlError {
                next_attempt: from.u32(attribute::NEXT_ATTEMPT)?,
                ..CtrlError::read(&nest)?
            }
            .into());
        }
        let Some(genctr) = from.uint(attribute::GENERATION)? else {
            return Ok(None);
        };
        let numrec = from.uint(attribute::NR_ENTRIES)?;
        Ok(Some(Self {
            genctr,
            numrec: from.require("nr-entries", numrec)?,
            entries: Vec::new(),
        }))
    }
}

/// An entry of a discovery log: a path to a subsystem.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LogEntry {
    /// Type of the transport.
    pub(crate) trtype: TrType,
    /// Family of the address.
    pub(crate) adrfam: AdrFam,
    /// Type of the subsystem.
    pub(crate) subtype: SubType,
    /// What the transport must or may do.
    pub(crate) treq: Treq,
    /// Number of the target's port.
    pub(crate) portid: u16,
    /// Port at the address.
    pub(crate) trsvcid: String,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subnqn: String,
    /// The address.
    pub(crate) traddr: String,
    /// What else there is to say.
    pub(crate) eflags: EFlags,
    /// Protocol of RDMA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rdma_prtype: Option<PrType>,
    /// Type of the queue pairs of RDMA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rdma_qptype: Option<QpType>,
    /// How connections of RDMA are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rdma_cms: Option<Cms>,
    /// Key of the partition of RDMA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rdma_pkey: Option<u16>,
}

impl LogEntry {
    /// Reads a message of the dump.
    pub(crate) fn read(from: &Attributes) -> Result<Self, Malformed> {
        let bytes = from.array::<DISCOVERY_ENTRY_LEN>(attribute::ENTRY)?;
        let bytes = from.require("entry", bytes)?;
        let entry = Entry::parse(&bytes).map_err(|_| Malformed::Value(attribute::ENTRY))?;
        Ok(Self {
            trtype: TrType(entry.trtype),
            adrfam: AdrFam(entry.adrfam),
            subtype: SubType(entry.subtype),
            treq: Treq(entry.treq),
            portid: entry.portid,
            trsvcid: entry.trsvcid.into(),
            subnqn: entry.subnqn.as_str().into(),
            traddr: entry.traddr.into(),
            eflags: EFlags(entry.eflags),
            rdma_prtype: entry.tsas.map(|tsas| PrType(tsas.prtype)),
            rdma_qptype: entry.tsas.map(|tsas| QpType(tsas.qptype)),
            rdma_cms: entry.tsas.map(|tsas| Cms(tsas.cms)),
            rdma_pkey: entry.tsas.map(|tsas| tsas.pkey),
        })
    }

    /// Whether both are the same path to the same subsystem, whatever their other fields are.
    pub(crate) fn same_path(&self, other: &Self) -> bool {
        self.subtype == other.subtype
            && self.trtype == other.trtype
            && self.adrfam == other.adrfam
            && self.traddr == other.traddr
            && self.trsvcid == other.trsvcid
            && self.subnqn == other.subnqn
    }

    /// Where it leads to.
    pub(crate) fn endpoint(&self) -> EntryAddr<'_> {
        EntryAddr(self)
    }
}

/// The address of an entry, which need not be one of IP.
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

/// Defines numbers of the NVMe-oF specification, with nvme-cli's names for them.
macro_rules! named {
    ($($(#[$doc:meta])* $kind:ident($raw:ty) = $word:literal { $($value:literal => $name:literal,)* })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) struct $kind(pub(crate) $raw);

            impl fmt::Display for $kind {
                fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                    match self.0 {
                        $($value => f.write_str($name),)*
                        other => write!(f, concat!($word, "-{}"), other),
                    }
                }
            }

            impl Serialize for $kind {
                fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                    serializer.collect_str(self)
                }
            }
        )*
    };
}

named! {
    /// Type of a transport.
    TrType(u8) = "trtype" {
        1 => "rdma",
        2 => "fc",
        3 => "tcp",
        254 => "loop",
    }
    /// Family of an address.
    AdrFam(u8) = "adrfam" {
        0 => "pci",
        1 => "ipv4",
        2 => "ipv6",
        3 => "infiniband",
        4 => "fibre-channel",
    }
    /// Type of a subsystem.
    SubType(u8) = "subtype" {
        1 => "discovery subsystem referral",
        2 => "nvme subsystem",
        3 => "current discovery subsystem",
    }
    /// What a transport must or may do.
    Treq(u8) = "treq" {
        0 => "not specified",
        1 => "required",
        2 => "not required",
        4 => "not specified, sq flow control disable supported",
        5 => "required, sq flow control disable supported",
        6 => "not required, sq flow control disable supported",
    }
    /// What else there is to say of an entry.
    EFlags(u16) = "eflags" {
        0 => "none",
        1 => "duplicate discovery information",
        2 => "explicit discovery connections",
        3 => "explicit discovery connections, duplicate discovery information",
    }
    /// Protocol of RDMA.
    PrType(u8) = "prtype" {
        1 => "not specified",
        2 => "infiniband",
        3 => "roce",
        4 => "roce-v2",
        5 => "iwarp",
    }
    /// Type of queue pairs.
    QpType(u8) = "qptype" {
        1 => "connected",
        2 => "datagram",
    }
    /// How connections are managed.
    Cms(u8) = "cms" {
        1 => "rdma-cm",
    }
}

impl TrType {
    /// The only one that is connected here.
    pub(crate) const RDMA: Self = Self(1);
}

impl AdrFam {
    /// Whether addresses are those of IP.
    pub(crate) fn is_ip(self) -> bool {
        matches!(self.0, 1 | 2)
    }
}

impl SubType {
    /// Another discovery controller.
    pub(crate) const REFERRAL: Self = Self(1);
    /// A subsystem with disks.
    pub(crate) const NVM: Self = Self(2);
    /// The discovery controller that has the log.
    pub(crate) const CURRENT: Self = Self(3);
}

impl EFlags {
    /// Whether the log of the referral is the same as this one.
    pub(crate) fn is_duplicate(self) -> bool {
        self.0 & 1 != 0
    }
}

#[cfg(test)]
pub(crate) mod tests;
