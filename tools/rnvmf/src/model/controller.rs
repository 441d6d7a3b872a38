// SPDX-License-Identifier: GPL-2.0

//! A controller, as the kernel describes it.

use crate::address::Endpoint;
use crate::error::{CtrlError, Error, Status};
use crate::nlattr::{Attributes, Malformed};
use crate::uapi::{ctrl as attribute, refusal, CtrlState, LOSS_TMO_NEVER};
use serde::{Serialize, Serializer};
use std::fmt;
use uuid::Uuid;

/// State of a controller; a newer kernel may know more states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct State(pub(crate) u32);

impl State {
    /// The state, where this program knows it.
    pub(crate) fn known(self) -> Option<CtrlState> {
        CtrlState::from_raw(self.0)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some(state) => f.write_str(state.name()),
            None => write!(f, "state-{}", self.0),
        }
    }
}

impl Serialize for State {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Seconds after a loss, as the kernel has them. In JSON -1 is never, as on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LossTmo(pub(crate) u32);

impl fmt::Display for LossTmo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            LOSS_TMO_NEVER => f.write_str("never"),
            seconds => write!(f, "{seconds} s"),
        }
    }
}

impl Serialize for LossTmo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            LOSS_TMO_NEVER => serializer.serialize_i64(-1),
            seconds => serializer.serialize_u32(seconds),
        }
    }
}

/// A namespace that has no disk, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct NsRejection {
    /// Namespace identifier.
    pub(crate) nsid: u32,
    /// Why it has none.
    pub(crate) reason: String,
}

impl NsRejection {
    fn read(from: &Attributes) -> Result<Self, Malformed> {
        Ok(Self {
            nsid: from.require("nsid", from.u32(refusal::NSID)?)?,
            reason: from.require("reason", from.string(refusal::REASON)?)?,
        })
    }

    /// Read those of a controller, in the order of their numbers.
    fn read_all(from: &Attributes) -> Result<Vec<Self>, Malformed> {
        let nests = from.nests(attribute::NO_DISK)?;
        let mut all = nests
            .iter()
            .map(Self::read)
            .collect::<Result<Vec<_>, _>>()?;
        all.sort_by_key(|each| each.nsid);
        Ok(all)
    }
}

/// A controller. What it learns only while it connects is absent until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Controller {
    /// Name, such as rnvmf0.
    pub(crate) device: String,
    /// Number, which is not the one in the name, and not another's as soon as it is gone.
    pub(crate) id: u32,
    /// State.
    pub(crate) state: State,
    /// Always `rdma`.
    pub(crate) transport: &'static str,
    /// Address of the target.
    pub(crate) traddr: String,
    /// Port of the target.
    pub(crate) trsvcid: u16,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subsysnqn: String,
    /// Address that it connects from, if one was chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) host_traddr: Option<String>,
    /// NVMe Qualified Name of the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostnqn: Option<String>,
    /// Identifier of the host, a UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hostid: Option<String>,
    /// Identifier that the target gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cntlid: Option<u16>,
    /// RDMA device in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rdma_device: Option<String>,
    /// Number of I/O queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_io_queues: Option<u32>,
    /// I/O queues for writes only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_write_queues: Option<u32>,
    /// I/O queues for polled requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_poll_queues: Option<u32>,
    /// Entries of each I/O queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) queue_size: Option<u32>,
    /// Keep-alive timeout in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Milliseconds that an attempt to connect may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) connect_timeout: Option<u32>,
    /// Longest pause between attempts to connect again, in seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reconnect_delay: Option<u32>,
    /// Seconds after a loss that attempts go on for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ctrl_loss_tmo: Option<LossTmo>,
    /// Seconds after a loss that I/O waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fast_io_fail_tmo: Option<LossTmo>,
    /// Attempts to connect again since the loss, while they go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) attempts: Option<u32>,
    /// Milliseconds until the next attempt, while none is under way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_attempt: Option<u32>,
    /// Milliseconds until no more attempts are made, while it is lost and they have an end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) give_up: Option<u32>,
    /// How often it was connected anew by a reset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_resets: Option<u32>,
    /// And after a loss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_reconnects: Option<u32>,
    /// Type of service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tos: Option<u8>,
    /// Model number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
    /// Serial number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) serial: Option<String>,
    /// Firmware revision.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) firmware: Option<String>,
    /// Number of namespaces that have a disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_namespaces: Option<u32>,
    /// Number of namespaces that have none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nr_refused_namespaces: Option<u32>,
    /// The first of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused_namespaces: Vec<NsRejection>,
    /// Most bytes that one command may move.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) max_transfer: Option<u32>,
    /// Most bytes that a capsule carries itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) inline_size: Option<u32>,
    /// Number of the last finished scan of its namespaces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scan: Option<u32>,
    /// The last error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<CtrlError>,
}

impl Controller {
    /// Returns what controllers are ordered by: of two numbers in names the longer one is greater.
    fn name_order(&self) -> (usize, &str) {
        (self.device.len(), &self.device)
    }

    /// Sorts controllers by name.
    pub(crate) fn sort(controllers: &mut [Self]) {
        controllers.sort_by(|one, other| one.name_order().cmp(&other.name_order()));
    }

    /// Returns the controller with this name, or with this name under /dev.
    pub(crate) fn find<'a>(name: &str, controllers: &'a [Self]) -> Result<&'a Self, Error> {
        let device = name.strip_prefix("/dev/").unwrap_or(name);
        let found = controllers.iter().find(|each| each.device == device);
        found.ok_or_else(|| Self::not_found(name))
    }

    /// There is no controller with this name.
    pub(crate) fn not_found(name: &str) -> Error {
        let text = format!("no controller {name}: see rnvmf show");
        Error::new(Status::NotFound, text)
    }

    /// Reads the attributes of a reply or an event.
    pub(crate) fn read(from: &Attributes) -> Result<Self, Malformed> {
        Ok(Self {
            device: from.require("name", from.string(attribute::NAME)?)?,
            id: from.require("ctrl-id", from.u32(attribute::CTRL_ID)?)?,
            state: State(from.require("state", from.u32(attribute::STATE)?)?),
            transport: "rdma",
            traddr: from.require("traddr", from.string(attribute::TRADDR)?)?,
            trsvcid: from.require("trsvcid", from.u16(attribute::TRSVCID)?)?,
            subsysnqn: from.require("subsysnqn", from.string(attribute::SUBSYSNQN)?)?,
            host_traddr: from.string(attribute::HOST_TRADDR)?,
            hostnqn: from.string(attribute::HOSTNQN)?,
            hostid: from
                .array(attribute::HOSTID)?
                .map(|bytes| Uuid::from_bytes(bytes).to_string()),
            cntlid: from.u16(attribute::CNTLID)?,
            rdma_device: from.string(attribute::RDMA_DEVICE)?,
            nr_io_queues: from.u32(attribute::NR_IO_QUEUES)?,
            nr_write_queues: from.u32(attribute::NR_WRITE_QUEUES)?,
            nr_poll_queues: from.u32(attribute::NR_POLL_QUEUES)?,
            queue_size: from.u32(attribute::QUEUE_SIZE)?,
            keep_alive_tmo: from.u32(attribute::KEEP_ALIVE_TMO)?,
            connect_timeout: from.u32(attribute::CONNECT_TIMEOUT)?,
            reconnect_delay: from.u32(attribute::RECONNECT_DELAY)?,
            ctrl_loss_tmo: from.u32(attribute::CTRL_LOSS_TMO)?.map(LossTmo),
            fast_io_fail_tmo: from.u32(attribute::FAST_IO_FAIL_TMO)?.map(LossTmo),
            attempts: from.u32(attribute::ATTEMPTS)?,
            next_attempt: from.u32(attribute::NEXT_ATTEMPT)?,
            give_up: from.u32(attribute::GIVE_UP)?,
            nr_resets: from.u32(attribute::NR_RESETS)?,
            nr_reconnects: from.u32(attribute::NR_RECONNECTS)?,
            tos: from.u8(attribute::TOS)?,
            model: from.string(attribute::MODEL)?,
            serial: from.string(attribute::SERIAL)?,
            firmware: from.string(attribute::FIRMWARE)?,
            nr_namespaces: from.u32(attribute::NR_NAMESPACES)?,
            nr_refused_namespaces: from.u32(attribute::NR_NO_DISK)?,
            refused_namespaces: NsRejection::read_all(from)?,
            max_transfer: from.u32(attribute::MAX_TRANSFER)?,
            inline_size: from.u32(attribute::INLINE_SIZE)?,
            scan: from.u32(attribute::SCAN)?,
            error: match from.nest(attribute::ERROR)? {
                Some(nest) => Some(CtrlError::read(&nest)?),
                None => None,
            },
        })
    }

    /// Returns the number of I/O queues of all kinds.
    pub(crate) fn nr_all_queues(&self) -> Option<u64> {
        let others = [self.nr_write_queues, self.nr_poll_queues];
        let others = others.into_iter().flatten().map(u64::from);
        Some(u64::from(self.nr_io_queues?) + others.sum::<u64>())
    }

    /// Returns a line for each namespace that has no disk.
    pub(crate) fn rejection_lines(&self) -> Vec<String> {
        let named = &self.refused_namespaces;
        let mut lines: Vec<String> = named
            .iter()
            .map(|NsRejection { nsid, reason }| format!("namespace {nsid}: {reason}"))
            .collect();
        let all = self.nr_refused_namespaces.unwrap_or(0) as usize;
        match all.saturating_sub(named.len()) {
            0 => (),
            1 => lines.push("1 more namespace".into()),
            more => lines.push(format!("{more} more namespaces")),
        }
        lines
    }

    /// The target's address and port.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.traddr, self.trsvcid)
    }
}

#[cfg(test)]
pub(crate) mod tests;
