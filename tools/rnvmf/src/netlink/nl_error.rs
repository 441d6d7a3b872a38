// SPDX-License-Identifier: GPL-2.0

//! Why the kernel rejected a request: the error number and the extended acknowledgement.

use super::message::Ack;
use super::request::Request;
use crate::error::{strerror, Error, Status};
use crate::nlattr::Malformed;

// Attributes of an extended acknowledgement, from linux/netlink.h.
const MESSAGE: u16 = 1;
const OFFSET: u16 = 2;
const MISS_TYPE: u16 = 5;

/// An error that the kernel answered a request with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct NlError {
    errno: i32,
    message: Option<String>,
    /// The attribute that the kernel points at.
    bad: Option<&'static str>,
    /// The attribute that the kernel misses.
    missing: Option<&'static str>,
}

impl NlError {
    /// Reads the end of `request`.
    pub(super) fn read(ack: &Ack, request: &Request) -> Result<Self, Malformed> {
        let extack = &ack.extack;
        let offset = extack.u32(OFFSET)?;
        let miss = extack.u32(MISS_TYPE)?;
        Ok(Self {
            errno: ack.error.wrapping_neg(),
            message: extack.string(MESSAGE)?,
            bad: offset.and_then(|offset| request.attribute_at(offset as usize)),
            missing: miss
                .and_then(|id| u16::try_from(id).ok())
                .and_then(|id| request.attribute_name(id)),
        })
    }

    /// The error number, positive.
    pub(crate) fn errno(&self) -> i32 {
        self.errno
    }

    fn status(&self) -> Status {
        match self.errno {
            libc::EPERM | libc::EACCES => Status::Permission,
            libc::ENOENT | libc::ENODEV => Status::NotFound,
            libc::EEXIST | libc::EALREADY => Status::Exists,
            libc::ETIMEDOUT => Status::Timeout,
            _ => Status::Failed,
        }
    }
}

impl From<NlError> for Error {
    fn from(nl_error: NlError) -> Self {
        let status = nl_error.status();
        let mut text = match nl_error.message {
            Some(message) => message,
            None if status == Status::Permission => {
                "permission denied: run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)".into()
            }
            None => strerror(nl_error.errno),
        };
        if let Some(name) = nl_error.missing {
            text = format!("{text} (attribute {name} is missing)");
        } else if let Some(name) = nl_error.bad {
            text = format!("{text} (attribute {name})");
        }
        Self::new(status, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nlattr::tests::{attributes, number, text};
    use crate::uapi::{ctrl, Command};

    fn reject(errno: i32, extack: Vec<Vec<u8>>) -> Error {
        let request = Request::new(Command::Connect)
            .with(ctrl::TRSVCID, 0u16)
            .with(ctrl::QUEUE_SIZE, 3u32);
        let ack = Ack {
            error: -errno,
            extack: attributes(extack),
        };
        NlError::read(&ack, &request).unwrap().into()
    }

    #[test]
    fn the_bad_attribute_is_named() {
        let error = reject(
            libc::ERANGE,
            vec![text(MESSAGE, "integer out of range"), number(OFFSET, 28u32)],
        );
        assert_eq!(error.message, "integer out of range (attribute queue-size)");
        assert_eq!(error.status, Status::Failed);
    }

    #[test]
    fn the_missing_attribute_is_named() {
        let id = u32::from(ctrl::TRADDR);
        let error = reject(libc::EINVAL, vec![number(MISS_TYPE, id)]);
        assert_eq!(
            error.message,
            "Invalid argument (attribute traddr is missing)"
        );
    }

    #[test]
    fn statuses_follow_the_error_number() {
        for (errno, status) in [
            (libc::EPERM, Status::Permission),
            (libc::EACCES, Status::Permission),
            (libc::ENOENT, Status::NotFound),
            (libc::ENODEV, Status::NotFound),
            (libc::EEXIST, Status::Exists),
            (libc::EALREADY, Status::Exists),
            (libc::ETIMEDOUT, Status::Timeout),
            (libc::ENOMEM, Status::Failed),
        ] {
            assert_eq!(reject(errno, vec![]).status, status, "errno {errno}");
        }
    }

    #[test]
    fn permission_says_what_to_do() {
        assert_eq!(
            reject(libc::EPERM, vec![]).message,
            "permission denied: run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)"
        );
    }
}
