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
    /// Address it connects from, where one was asked for.
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
    /// Number of the last look at its namespaces that is over.
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
pub(crate) mod tests {
    use super::*;
    use crate::nlattr::tests::{attributes, bytes, nest, number, text};

    /// A live controller, everything known.
    pub(crate) fn live() -> Controller {
        Controller {
            device: "rnvmf0".into(),
            id: 0,
            state: State(CtrlState::Live as u32),
            transport: "rdma",
            traddr: "10.0.0.9".into(),
            trsvcid: 4420,
            subsysnqn: "nqn.2014-08.org.example:disk".into(),
            host_traddr: Some("10.0.0.1".into()),
            hostnqn: Some("nqn.2014-08.org.example:host".into()),
            hostid: Some("00112233-4455-6677-8899-aabbccddeeff".into()),
            cntlid: Some(1),
            rdma_device: Some("rxe0".into()),
            nr_io_queues: Some(2),
            nr_write_queues: Some(1),
            nr_poll_queues: Some(0),
            queue_size: Some(128),
            keep_alive_tmo: Some(5),
            connect_timeout: Some(10_000),
            reconnect_delay: Some(10),
            ctrl_loss_tmo: Some(LossTmo(600)),
            fast_io_fail_tmo: Some(LossTmo(LOSS_TMO_NEVER)),
            attempts: None,
            next_attempt: None,
            give_up: None,
            nr_resets: Some(2),
            nr_reconnects: Some(1),
            tos: Some(0),
            model: Some("Linux".into()),
            serial: Some("0123456789".into()),
            firmware: Some("7.3.4".into()),
            nr_namespaces: Some(1),
            nr_refused_namespaces: Some(0),
            refused_namespaces: Vec::new(),
            max_transfer: Some(1_048_576),
            inline_size: Some(16_384),
            scan: Some(3),
            error: None,
        }
    }

    /// The same while it connects.
    pub(crate) fn connecting() -> Controller {
        Controller {
            state: State(CtrlState::Connecting as u32),
            host_traddr: None,
            cntlid: None,
            rdma_device: None,
            nr_io_queues: None,
            nr_write_queues: None,
            nr_poll_queues: None,
            queue_size: None,
            nr_resets: Some(0),
            nr_reconnects: Some(0),
            model: None,
            serial: None,
            firmware: None,
            nr_namespaces: None,
            nr_refused_namespaces: None,
            max_transfer: None,
            inline_size: None,
            scan: None,
            ..live()
        }
    }

    /// The same with namespaces that have no disk, one of which has no name.
    pub(crate) fn rejecting() -> Controller {
        let rejection = |nsid, reason: &str| NsRejection {
            nsid,
            reason: reason.into(),
        };
        Controller {
            nr_refused_namespaces: Some(3),
            refused_namespaces: vec![
                rejection(2, "8 bytes of metadata a block are not supported"),
                rejection(7, "not attached to the controller"),
            ],
            ..live()
        }
    }

    /// The same after a loss.
    pub(crate) fn recovering() -> Controller {
        Controller {
            state: State(CtrlState::Connecting as u32),
            error: Some(crate::error::tests::rejected()),
            attempts: Some(3),
            next_attempt: Some(1900),
            give_up: Some(597_001),
            ..live()
        }
    }

    #[test]
    fn reads_everything() {
        let message = attributes(vec![
            number(attribute::CTRL_ID, 0u32),
            text(attribute::NAME, "rnvmf0"),
            number(attribute::STATE, 2u32),
            text(attribute::TRADDR, "10.0.0.9"),
            number(attribute::TRSVCID, 4420u16),
            text(attribute::HOST_TRADDR, "10.0.0.1"),
            text(attribute::SUBSYSNQN, "nqn.2014-08.org.example:disk"),
            text(attribute::HOSTNQN, "nqn.2014-08.org.example:host"),
            bytes(
                attribute::HOSTID,
                &std::array::from_fn::<u8, 16, _>(|i| i as u8 * 0x11),
            ),
            number(attribute::NR_IO_QUEUES, 2u32),
            number(attribute::NR_WRITE_QUEUES, 1u32),
            number(attribute::NR_POLL_QUEUES, 0u32),
            number(attribute::QUEUE_SIZE, 128u32),
            number(attribute::KEEP_ALIVE_TMO, 5u32),
            number(attribute::CONNECT_TIMEOUT, 10_000u32),
            number(attribute::RECONNECT_DELAY, 10u32),
            number(attribute::CTRL_LOSS_TMO, 600u32),
            number(attribute::FAST_IO_FAIL_TMO, LOSS_TMO_NEVER),
            number(attribute::TOS, 0u8),
            number(attribute::CNTLID, 1u16),
            text(attribute::RDMA_DEVICE, "rxe0"),
            text(attribute::MODEL, "Linux"),
            text(attribute::SERIAL, "0123456789"),
            text(attribute::FIRMWARE, "7.3.4"),
            number(attribute::NR_NAMESPACES, 1u32),
            number(attribute::NR_NO_DISK, 0u32),
            number(attribute::MAX_TRANSFER, 1_048_576u32),
            number(attribute::INLINE_SIZE, 16_384u32),
            number(attribute::SCAN, 3u32),
            number(attribute::NR_RESETS, 2u32),
            number(attribute::NR_RECONNECTS, 1u32),
            number(1000, 1u32),
        ]);
        assert_eq!(Controller::read(&message).unwrap(), live());
    }

    #[test]
    fn reads_a_nested_error() {
        let message = attributes(vec![
            number(attribute::CTRL_ID, 3u32),
            text(attribute::NAME, "rnvmf3"),
            number(attribute::STATE, 5u32),
            text(attribute::TRADDR, "fe80::1%eth0"),
            number(attribute::TRSVCID, 4421u16),
            text(attribute::SUBSYSNQN, "nqn.x"),
            nest(
                attribute::ERROR,
                vec![
                    number(crate::uapi::error::STAGE, 0u32),
                    number(crate::uapi::error::ERRNO, 110i32),
                    text(crate::uapi::error::MESSAGE, "no answer"),
                ],
            ),
        ]);
        let controller = Controller::read(&message).unwrap();
        assert_eq!(controller.state.known(), Some(CtrlState::Dead));
        assert_eq!(controller.endpoint().to_string(), "[fe80::1%eth0]:4421");
        assert_eq!(controller.error.unwrap().message, "no answer");
    }

    #[test]
    fn reads_refusals() {
        let refused = |nsid: u32, reason: &str| {
            nest(
                attribute::NO_DISK,
                vec![number(refusal::NSID, nsid), text(refusal::REASON, reason)],
            )
        };
        let message = attributes(vec![
            number(attribute::CTRL_ID, 0u32),
            text(attribute::NAME, "rnvmf0"),
            number(attribute::STATE, 2u32),
            text(attribute::TRADDR, "10.0.0.9"),
            number(attribute::TRSVCID, 4420u16),
            text(attribute::SUBSYSNQN, "nqn.x"),
            number(attribute::NR_NO_DISK, 3u32),
            refused(7, "not attached to the controller"),
            refused(2, "8 bytes of metadata a block are not supported"),
        ]);
        let controller = Controller::read(&message).unwrap();
        assert_eq!(controller.rejection_lines(), rejecting().rejection_lines());
        assert_eq!(
            controller.rejection_lines(),
            [
                "namespace 2: 8 bytes of metadata a block are not supported",
                "namespace 7: not attached to the controller",
                "1 more namespace",
            ]
        );
        assert!(live().rejection_lines().is_empty());
        assert!(connecting().rejection_lines().is_empty());
    }

    #[test]
    fn ten_comes_after_two() {
        let called = |device: &str| Controller {
            device: device.into(),
            ..live()
        };
        let mut all = ["rnvmf10", "rnvmf2", "rnvmf1"].map(called);
        Controller::sort(&mut all);
        let names = all.map(|each| each.device);
        assert_eq!(names, ["rnvmf1", "rnvmf2", "rnvmf10"]);
    }

    #[test]
    fn a_newer_state_has_a_number() {
        assert_eq!(State(42).to_string(), "state-42");
        assert_eq!(State(42).known(), None);
    }

    #[test]
    fn what_is_left_out_is_named() {
        let message = attributes(vec![text(attribute::NAME, "rnvmf0")]);
        assert_eq!(
            Controller::read(&message).unwrap_err().to_string(),
            "the kernel left out the attribute ctrl-id"
        );
    }
}
