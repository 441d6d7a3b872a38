// SPDX-License-Identifier: GPL-2.0

//! Why the kernel refused a request: the error number and the extended acknowledgement.

use super::request::Request;
use crate::error::{describe_errno, Error, Status};
use neli::consts::nl::NlmsgerrAttr;
use neli::types::{Buffer, GenlBuffer};

const EPERM: i32 = 1;
const ENOENT: i32 = 2;
const EACCES: i32 = 13;
const EEXIST: i32 = 17;
const ENODEV: i32 = 19;
const ETIMEDOUT: i32 = 110;
const EALREADY: i32 = 114;

// Attributes of an extended acknowledgement that neli has no names for.
const MISS_TYPE: u16 = 5;

/// A refusal.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    errno: i32,
    message: Option<String>,
    /// The attribute that the kernel points at.
    bad: Option<&'static str>,
    /// The attribute that the kernel misses.
    missing: Option<&'static str>,
}

impl Refusal {
    /// Read an error reply to `request`; the kernel's error numbers are negative.
    pub(super) fn read(
        error: i32,
        extack: &GenlBuffer<NlmsgerrAttr, Buffer>,
        request: &Request,
    ) -> Self {
        let mut refusal = Self {
            errno: error.wrapping_neg(),
            ..Self::default()
        };
        for attribute in extack.iter() {
            let payload = attribute.nla_payload().as_ref();
            match attribute.nla_type().nla_type() {
                NlmsgerrAttr::Msg => {
                    let text = payload.strip_suffix(b"\0").unwrap_or(payload);
                    refusal.message = Some(String::from_utf8_lossy(text).into_owned());
                }
                NlmsgerrAttr::Offset => {
                    refusal.bad = number(payload)
                        .and_then(|offset| usize::try_from(offset).ok())
                        .and_then(|offset| request.attribute_at(offset));
                }
                NlmsgerrAttr::UnrecognizedConst(MISS_TYPE) => {
                    refusal.missing = number(payload)
                        .and_then(|id| u16::try_from(id).ok())
                        .and_then(|id| request.attribute_name(id));
                }
                _ => (),
            }
        }
        refusal
    }

    /// The error number, positive.
    pub(super) fn errno(&self) -> i32 {
        self.errno
    }

    fn status(&self) -> Status {
        match self.errno {
            EPERM | EACCES => Status::Permission,
            ENOENT | ENODEV => Status::NotFound,
            EEXIST | EALREADY => Status::Exists,
            ETIMEDOUT => Status::Timeout,
            _ => Status::Failed,
        }
    }
}

fn number(payload: &[u8]) -> Option<u32> {
    payload.try_into().map(u32::from_ne_bytes).ok()
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        let status = refusal.status();
        let mut text = match refusal.message {
            Some(message) => message,
            None if status == Status::Permission => {
                "permission denied: run as root (CAP_NET_ADMIN is needed)".into()
            }
            None => describe_errno(refusal.errno),
        };
        if let Some(name) = refusal.missing {
            text = format!("{text} (attribute {name} is missing)");
        } else if let Some(name) = refusal.bad {
            text = format!("{text} (attribute {name})");
        }
        Self::new(status, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::{ctrl, Command};
    use neli::genl::{AttrTypeBuilder, Nlattr, NlattrBuilder};

    fn attribute(id: NlmsgerrAttr, payload: &[u8]) -> Nlattr<NlmsgerrAttr, Buffer> {
        NlattrBuilder::default()
            .nla_type(AttrTypeBuilder::default().nla_type(id).build().unwrap())
            .nla_payload(Buffer::from(payload))
            .build()
            .unwrap()
    }

    fn refuse(error: i32, extack: Vec<Nlattr<NlmsgerrAttr, Buffer>>) -> Error {
        let request = Request::new(Command::Connect)
            .with(ctrl::TRSVCID, 0u16)
            .unwrap()
            .with(ctrl::QUEUE_SIZE, 3u32)
            .unwrap();
        Refusal::read(error, &extack.into_iter().collect(), &request).into()
    }

    #[test]
    fn the_bad_attribute_is_named() {
        let error = refuse(
            -34,
            vec![
                attribute(NlmsgerrAttr::Msg, b"integer out of range\0"),
                attribute(NlmsgerrAttr::Offset, &28u32.to_ne_bytes()),
            ],
        );
        assert_eq!(error.message, "integer out of range (attribute queue-size)");
        assert_eq!(error.status, Status::Failed);
    }

    #[test]
    fn the_missing_attribute_is_named() {
        let miss = NlmsgerrAttr::UnrecognizedConst(MISS_TYPE);
        let id = u32::from(ctrl::TRADDR);
        let error = refuse(-22, vec![attribute(miss, &id.to_ne_bytes())]);
        assert_eq!(
            error.message,
            "Invalid argument (attribute traddr is missing)"
        );
    }

    #[test]
    fn statuses_follow_the_error_number() {
        for (errno, status) in [
            (EPERM, Status::Permission),
            (EACCES, Status::Permission),
            (ENOENT, Status::NotFound),
            (ENODEV, Status::NotFound),
            (EEXIST, Status::Exists),
            (EALREADY, Status::Exists),
            (ETIMEDOUT, Status::Timeout),
            (12, Status::Failed),
        ] {
            assert_eq!(refuse(-errno, vec![]).status, status, "errno {errno}");
        }
    }

    #[test]
    fn permission_says_what_to_do() {
        assert_eq!(
            refuse(-EPERM, vec![]).message,
            "permission denied: run as root (CAP_NET_ADMIN is needed)"
        );
    }
}
