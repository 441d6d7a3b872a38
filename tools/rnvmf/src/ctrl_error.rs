// SPDX-License-Identifier: GPL-2.0

//! Why the kernel gave a controller up.

use crate::error::{strerror, Error, Status};
use crate::netlink::attributes::{Attributes, Malformed};
use crate::uapi::{error as attribute, ErrorStage};
use serde::{Serialize, Serializer};
use std::fmt;

/// Where a controller was when it failed; a newer kernel may know more stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stage(pub(crate) u32);

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ErrorStage::from_raw(self.0) {
            Some(stage) => f.write_str(stage.name()),
            None => write!(f, "stage-{}", self.0),
        }
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The last error of a controller, or of a discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CtrlError {
    /// Where it failed.
    pub(crate) stage: Stage,
    /// The error number, positive.
    pub(crate) errno: i32,
    /// The cause in words.
    pub(crate) message: String,
    /// Reason of a rejection by the connection manager's peer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reject_reason: Option<u32>,
    /// NVMe/RDMA status of that rejection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cm_status: Option<u16>,
    /// NVMe status of a command.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) nvme_status: Option<u16>,
    /// Queue that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) qid: Option<u16>,
    /// Milliseconds until a discovery that is followed goes on, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next_attempt: Option<u32>,
}

impl CtrlError {
    /// Read the nest that the kernel sends.
    pub(crate) fn read(attributes: &Attributes) -> Result<Self, Malformed> {
        let stage = Stage(attributes.require("stage", attributes.u32(attribute::STAGE)?)?);
        let errno = attributes.require("errno", attributes.s32(attribute::ERRNO)?)?;
        let message = match attributes.string(attribute::MESSAGE)? {
            Some(text) if !text.is_empty() => text,
            _ => format!("{stage} failed: {}", strerror(errno)),
        };
        Ok(Self {
            stage,
            errno,
            message,
            reject_reason: attributes.u32(attribute::REJECT_REASON)?,
            cm_status: attributes.u16(attribute::CM_STATUS)?,
            nvme_status: attributes.u16(attribute::NVME_STATUS)?,
            qid: attributes.u16(attribute::QID)?,
            next_attempt: None,
        })
    }
}

impl From<CtrlError> for Error {
    fn from(ctrl_error: CtrlError) -> Self {
        let status = match ctrl_error.errno {
            libc::ETIMEDOUT => Status::Timeout,
            _ => Status::Failed,
        };
        Self {
            status,
            message: ctrl_error.message.clone(),
            ctrl_error: Some(Box::new(ctrl_error)),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::netlink::attributes::tests::{attributes, number, text};

    /// A failure as a target that does not know the subsystem causes it.
    pub(crate) fn rejected() -> CtrlError {
        CtrlError {
            stage: Stage(ErrorStage::FabricsConnect as u32),
            errno: 2,
            message: "rejected by target: no such subsystem nqn.x".into(),
            reject_reason: None,
            cm_status: None,
            nvme_status: Some(0x4182),
            qid: Some(0),
            next_attempt: None,
        }
    }

    #[test]
    fn reads_what_is_there() {
        let nest = attributes(vec![
            number(attribute::STAGE, 4u32),
            number(attribute::ERRNO, 2i32),
            number(attribute::NVME_STATUS, 0x4182u16),
            number(attribute::QID, 0u16),
            number(99, 7u32),
            text(
                attribute::MESSAGE,
                "rejected by target: no such subsystem nqn.x",
            ),
        ]);
        assert_eq!(CtrlError::read(&nest).unwrap(), rejected());
    }

    #[test]
    fn a_newer_stage_has_a_number() {
        let nest = attributes(vec![
            number(attribute::STAGE, 77u32),
            number(attribute::ERRNO, 5i32),
        ]);
        let ctrl_error = CtrlError::read(&nest).unwrap();
        assert_eq!(ctrl_error.stage.to_string(), "stage-77");
        assert_eq!(ctrl_error.message, "stage-77 failed: Input/output error");
    }

    #[test]
    fn a_stage_and_an_errno_are_needed() {
        let nest = attributes(vec![number(attribute::STAGE, 1u32)]);
        assert_eq!(
            CtrlError::read(&nest).unwrap_err().to_string(),
            "the kernel left out the attribute errno"
        );
    }

    #[test]
    fn only_a_timeout_ends_as_one() {
        let late = CtrlError {
            errno: libc::ETIMEDOUT,
            ..rejected()
        };
        assert_eq!(Error::from(late).status, Status::Timeout);
        assert_eq!(Error::from(rejected()).status, Status::Failed);
    }
}
