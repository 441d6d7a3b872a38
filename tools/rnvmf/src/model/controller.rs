// SPDX-License-Identifier: GPL-2.0

//! A controller, as the kernel describes it.

use crate::address::Endpoint;
use crate::error::{CtrlError, Error, Status};
use crate::output::named;
use crate::uapi::{CtrlState, LOSS_TMO_NEVER};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use uuid::Uuid;

named! {
    /// State of a controller.
    State(u32) = "state" CtrlState;
}

impl State {
    /// Returns the entry of the specification; `None` if only a newer kernel knows it.
    pub(crate) fn known(self) -> Option<CtrlState> {
        CtrlState::from_raw(self.0)
    }
}

/// A time limit in seconds, counted from the loss of the connection. In JSON -1 means no limit, as
/// on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
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

/// A namespace without a disk.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub(crate) struct NsRejection {
    /// Namespace identifier.
    pub(crate) nsid: u32,
    /// Why it has no disk.
    pub(crate) reason: String,
}

fn sorted<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NsRejection>, D::Error> {
    let mut all = Vec::deserialize(from)?;
    all.sort();
    Ok(all)
}

fn rdma() -> &'static str {
    "rdma"
}

/// A controller. Fields that the program cannot know before the controller is connected are `None`
/// until then.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Controller {
    /// Name, such as rnvmf0.
    #[serde(rename(deserialize = "name"))]
    pub(crate) device: String,
    /// Handle in requests; not the number in the name. Not reused soon.
    #[serde(rename(deserialize = "ctrl_id"))]
    pub(crate) id: u32,
    /// State.
    pub(crate) state: State,
    /// Transport type; RDMA is the only one.
    #[serde(skip_deserializing, default = "rdma")]
    pub(crate) transport: &'static str,
    /// Address of the target.
    pub(crate) traddr: String,
    /// Port of the target.
    pub(crate) trsvcid: u16,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) subsysnqn: String,
    /// Source address, if one was chosen.
    pub(crate) host_traddr: Option<String>,
    /// NVMe Qualified Name of the host.
    pub(crate) hostnqn: Option<String>,
    /// Host identifier.
    pub(crate) hostid: Option<Uuid>,
    /// Controller identifier, which the target assigns.
    pub(crate) cntlid: Option<u16>,
    /// RDMA device in use.
    pub(crate) rdma_device: Option<String>,
    /// Number of I/O queues for all commands, or for reads if there are queues for writes.
    pub(crate) nr_io_queues: Option<u32>,
    /// Number of I/O queues for writes only.
    pub(crate) nr_write_queues: Option<u32>,
    /// Number of I/O queues for polled requests only.
    pub(crate) nr_poll_queues: Option<u32>,
    /// Entries of each I/O queue.
    pub(crate) queue_size: Option<u32>,
    /// Keep-alive timeout in seconds; 0 disables keep-alive.
    pub(crate) keep_alive_tmo: Option<u32>,
    /// Time limit of a connect attempt, in milliseconds.
    pub(crate) connect_timeout: Option<u32>,
    /// Longest pause between reconnect attempts, in seconds.
    pub(crate) reconnect_delay: Option<u32>,
    /// Time after which reconnecting is given up.
    pub(crate) ctrl_loss_tmo: Option<LossTmo>,
    /// Time after which I/O fails.
    pub(crate) fast_io_fail_tmo: Option<LossTmo>,
    /// Time after the target's keep-alive timeout until it has ended its commands.
    pub(crate) cqt: Option<LossTmo>,
    /// Number of writes that are held after a connection loss.
    pub(crate) held_writes: Option<u32>,
    /// Milliseconds until the held writes are released.
    pub(crate) held_writes_due: Option<u32>,
    /// Reconnect attempts since the connection was lost; absent while it is connected.
    pub(crate) attempts: Option<u32>,
    /// Milliseconds until the next reconnect attempt; absent during an attempt.
    pub(crate) next_attempt: Option<u32>,
    /// Milliseconds until reconnecting is given up; absent without a limit.
    pub(crate) give_up: Option<u32>,
    /// Number of resets that reconnected at the first attempt.
    pub(crate) nr_resets: Option<u32>,
    /// Number of reconnects after a connection loss, or after the first attempt of a reset failed.
    pub(crate) nr_reconnects: Option<u32>,
    /// Type of service.
    pub(crate) tos: Option<u8>,
    /// Model number.
    pub(crate) model: Option<String>,
    /// Serial number.
    pub(crate) serial: Option<String>,
    /// Firmware revision.
    pub(crate) firmware: Option<String>,
    /// Number of namespaces with a disk.
    pub(crate) nr_namespaces: Option<u32>,
    /// Number of namespaces without a disk.
    #[serde(rename(deserialize = "nr_no_disk"))]
    pub(crate) nr_refused_namespaces: Option<u32>,
    /// The namespaces without a disk, at most `NO_DISK_MAX` of them.
    #[serde(rename(deserialize = "no_disk"), default, deserialize_with = "sorted")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) refused_namespaces: Vec<NsRejection>,
    /// Largest transfer of one command, in bytes.
    pub(crate) max_transfer: Option<u32>,
    /// Largest in-capsule data, in bytes.
    pub(crate) inline_size: Option<u32>,
    /// Number of the last completed namespace scan.
    pub(crate) scan: Option<u32>,
    /// The last error.
    pub(crate) error: Option<CtrlError>,
}

impl Controller {
    /// Sorts controllers by the number in their names.
    pub(crate) fn sort(controllers: &mut [Self]) {
        controllers.sort_by_cached_key(|each| (each.device.len(), each.device.clone()));
    }

    /// Returns the controller with this name, which may begin with `/dev/`.
    pub(crate) fn find<'a>(name: &str, controllers: &'a [Self]) -> Result<&'a Self, Error> {
        let device = name.strip_prefix("/dev/").unwrap_or(name);
        let found = controllers.iter().find(|each| each.device == device);
        found.ok_or_else(|| {
            let mut error = Self::not_found(name);
            if let Some(owner) = controllers.iter().find(|each| each.may_have_disk(device)) {
                error.message += &format!("; {name} is a disk of {}", owner.device);
            }
            error
        })
    }

    /// Whether a name is that of a disk of the controller, or of a partition.
    fn may_have_disk(&self, name: &str) -> bool {
        let rest = name.strip_prefix(&self.device);
        let numbers = rest.and_then(|rest| rest.strip_prefix('n'));
        numbers.is_some_and(|numbers| {
            let (nsid, partition) = numbers.split_once('p').unwrap_or((numbers, "1"));
            [nsid, partition]
                .iter()
                .all(|number| number.parse::<u32>().is_ok())
        })
    }

    /// Returns the error for a name that no controller has.
    pub(crate) fn not_found(name: &str) -> Error {
        let text = format!("no controller {name}: see rnvmf show");
        Error::new(Status::NotFound, text)
    }

    /// Returns the number of I/O queues of all kinds.
    pub(crate) fn nr_all_queues(&self) -> Option<u64> {
        let others = [self.nr_write_queues, self.nr_poll_queues];
        let others = others.into_iter().flatten().map(u64::from);
        Some(u64::from(self.nr_io_queues?) + others.sum::<u64>())
    }

    /// Returns a line for each namespace without a disk, and one for those that the kernel does not
    /// name.
    pub(crate) fn rejection_lines(&self) -> Vec<String> {
        let named = &self.refused_namespaces;
        let line = |each: &NsRejection| format!("namespace {}: {}", each.nsid, each.reason);
        let mut lines: Vec<String> = named.iter().map(line).collect();
        let all = self.nr_refused_namespaces.unwrap_or(0) as usize;
        match all.saturating_sub(named.len()) {
            0 => (),
            1 => lines.push("1 more namespace".into()),
            more => lines.push(format!("{more} more namespaces")),
        }
        lines
    }

    /// Returns the target's address and port.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(&self.traddr, self.trsvcid)
    }
}

#[cfg(test)]
pub(crate) mod tests;
