// SPDX-License-Identifier: GPL-2.0

//! Requests that the kernel rejects.

use super::codec::{find, text};
use super::message::Request;
use crate::error::{io_message, Error, Status};
use netlink_packet_core::parse_u32;
use std::io;

// Attributes of an extended acknowledgement, from linux/netlink.h.
const MSG: u16 = 1;
const OFFS: u16 = 2;
const MISS_TYPE: u16 = 5;

/// What the kernel says of an attribute that the operation of an older module does not have, from
/// lib/nlattr.c.
const UNKNOWN: [&str; 2] = ["Unknown attribute type", "Unsupported attribute"];

/// Returns the error for a request that the kernel answered with `code`, a negative error number,
/// and an extended acknowledgement.
pub(super) fn rejection(code: i32, extack: &[u8], request: &Request) -> Error {
    let errno = code.wrapping_neg();
    let status = match errno {
        libc::EPERM | libc::EACCES => Status::Permission,
        libc::ENOENT | libc::ENODEV => Status::NotFound,
        libc::EEXIST | libc::EALREADY => Status::Exists,
        libc::ETIMEDOUT => Status::Timeout,
        _ => Status::Failed,
    };
    let cause = match find(extack, MSG) {
        Some(message) => text(&message),
        None if status == Status::Permission => {
            "permission denied: run as root (CAP_NET_ADMIN and CAP_SYS_ADMIN are needed)".into()
        }
        None => io_message(&io::Error::from_raw_os_error(errno)),
    };
    let number = |id| parse_u32(&find(extack, id)?).ok();
    let missing = number(MISS_TYPE).and_then(|id| request.attribute_name(id as u16));
    let invalid = number(OFFS).and_then(|offset| request.attribute_at(offset as usize));
    let message = match (missing, invalid) {
        // Falling back to a request without the attribute would do something else.
        (None, Some(name)) if UNKNOWN.contains(&&*cause) => format!(
            "the loaded rnvmf module is older than this program and does not know the attribute {name}: \
             install and load the module of this version"
        ),
        (Some(name), _) => format!("{cause} (attribute {name} is missing)"),
        (None, Some(name)) => format!("{cause} (attribute {name})"),
        (None, None) => cause,
    };
    Error {
        errno: Some(errno),
        ..Error::new(status, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::message::tests::{number, text as string};
    use crate::uapi::{ctrl, CONNECT_DO};
    use netlink_packet_core::NetlinkHeader;
    use serde_json::json;

    fn reject(errno: i32, extack: Vec<Vec<u8>>) -> Error {
        let args = json!({"trsvcid": 0, "queue_size": 3});
        let request = Request::new(&CONNECT_DO, NetlinkHeader::default(), &args).unwrap();
        rejection(-errno, &extack.concat(), &request)
    }

    #[test]
    fn an_invalid_attribute_is_named() {
        let error = reject(
            libc::ERANGE,
            vec![string(MSG, "integer out of range"), number(OFFS, 28)],
        );
        assert_eq!(error.message, "integer out of range (attribute queue-size)");
        assert_eq!(error.status, Status::Failed);
    }

    #[test]
    fn a_missing_attribute_is_named() {
        let id = u32::from(ctrl::TRADDR);
        let error = reject(libc::EINVAL, vec![number(MISS_TYPE, id)]);
        assert_eq!(
            error.message,
            "Invalid argument (attribute traddr is missing)"
        );
    }

    #[test]
    fn an_attribute_that_an_older_module_lacks_is_an_error() {
        for cause in UNKNOWN {
            let error = reject(libc::EINVAL, vec![string(MSG, cause), number(OFFS, 28)]);
            assert_eq!(
                error.message,
                "the loaded rnvmf module is older than this program and does not know the attribute \
                 queue-size: install and load the module of this version"
            );
            assert_eq!(error.status, Status::Failed);
            assert_eq!(error.errno, Some(libc::EINVAL));
        }
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
