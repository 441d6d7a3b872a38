// SPDX-License-Identifier: GPL-2.0

//! Attributes of a request.

use super::extack::Extack;
use crate::bindings;
use core::fmt;
use kernel::prelude::*;

/// Attributes of a request.
///
/// C has validated them with the policy of the operation. The methods that read an attribute return
/// `None` if it is absent. They also do if the family declares it with another kind, which is a bug
/// of the family. The last one of duplicate attributes is used.
///
/// # Invariants
///
/// `bytes` is part of the message that is being handled.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    extack: Extack<'a>,
}

const HEADER: usize = size_of::<bindings::nlattr>();

impl<'a> Attributes<'a> {
    /// Returns the attributes of a request.
    ///
    /// # Safety
    ///
    /// `info` is valid and describes a request that is being handled. Its message and extended ack
    /// are valid for `'a`, and only this thread uses the extended ack.
    pub(super) unsafe fn of(info: *const bindings::genl_info) -> Self {
        // SAFETY: By the safety requirements of this function, `info` is valid.
        let info = unsafe { &*info };
        // SAFETY: By the safety requirements of this function, the message is valid.
        let total = unsafe { (*info.nlhdr).nlmsg_len } as usize;
        let headers = size_of::<bindings::nlmsghdr>() + size_of::<bindings::genlmsghdr>();
        // SAFETY: C has checked that the message is at least `nlmsg_len` bytes long and has both
        // headers. The attributes follow the generic netlink header. The message does not change
        // while it is handled.
        let bytes = unsafe {
            core::slice::from_raw_parts(
                info.genlhdr.add(1).cast::<u8>(),
                total.saturating_sub(headers),
            )
        };
        // INVARIANT: `bytes` is the message without its headers.
        Self {
            bytes,
            // SAFETY: By the safety requirements of this function, the extended ack is null or
            // valid for `'a`, and only this thread uses it.
            extack: unsafe { Extack::from_raw(info.extack) },
        }
    }

    /// Returns the last attribute with this number, with its header.
    fn find(&self, id: u16) -> Option<&'a [u8]> {
        let mut rest = self.bytes;
        let mut found = None;
        while let [l0, l1, t0, t1, ..] = *rest {
            let len = usize::from(u16::from_ne_bytes([l0, l1]));
            let kind = u16::from_ne_bytes([t0, t1]) & bindings::NLA_TYPE_MASK as u16;
            if len < HEADER {
                break;
            }
            let Some(attr) = rest.get(..len) else { break };
            if kind == id {
                found = Some(attr);
            }
            // The last attribute may lack padding.
            rest = rest
                .get(len.next_multiple_of(bindings::NLA_ALIGNTO as usize)..)
                .unwrap_or_default();
        }
        found
    }

    fn number<const N: usize>(&self, id: u16) -> Option<[u8; N]> {
        self.bytes(id)?.try_into().ok()
    }

    /// Returns an 8-bit number.
    pub fn u8(&self, id: u16) -> Option<u8> {
        self.number(id).map(u8::from_ne_bytes)
    }

    /// Returns a 16-bit number.
    pub fn u16(&self, id: u16) -> Option<u16> {
        self.number(id).map(u16::from_ne_bytes)
    }

    /// Returns a 32-bit number.
    pub fn u32(&self, id: u16) -> Option<u32> {
        self.number(id).map(u32::from_ne_bytes)
    }

    /// Returns a number of 32 or 64 bits.
    pub fn uint(&self, id: u16) -> Option<u64> {
        let wide = || self.number(id).map(u64::from_ne_bytes);
        self.u32(id).map(u64::from).or_else(wide)
    }

    /// Returns a string, without its NUL.
    ///
    /// # Errors
    ///
    /// `EINVAL`, with an extended ack, if the string is not UTF-8.
    pub fn str(&self, id: u16) -> Result<Option<&'a str>> {
        let Some(bytes) = self.bytes(id) else {
            return Ok(None);
        };
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        core::str::from_utf8(text)
            .map(Some)
            .map_err(|_| self.refuse(id, fmt!("not valid UTF-8")))
    }

    /// Returns the payload of an attribute of any kind.
    pub fn bytes(&self, id: u16) -> Option<&'a [u8]> {
        self.find(id)?.get(HEADER..)
    }

    /// Returns whether a flag is present.
    pub fn flag(&self, id: u16) -> bool {
        self.find(id).is_some()
    }

    /// Returns a 32-bit number, or the error of [`missing`](Self::missing).
    pub fn required_u32(&self, id: u16) -> Result<u32> {
        self.u32(id).ok_or_else(|| self.missing(id))
    }

    /// Returns a number of 32 or 64 bits, or the error of [`missing`](Self::missing).
    pub fn required_uint(&self, id: u16) -> Result<u64> {
        self.uint(id).ok_or_else(|| self.missing(id))
    }

    /// Returns a string; fails like [`str`](Self::str), or with the error of
    /// [`missing`](Self::missing).
    pub fn required_str(&self, id: u16) -> Result<&'a str> {
        self.str(id)?.ok_or_else(|| self.missing(id))
    }

    /// Returns the payload of an attribute, or the error of [`missing`](Self::missing).
    pub fn required_bytes(&self, id: u16) -> Result<&'a [u8]> {
        self.bytes(id).ok_or_else(|| self.missing(id))
    }

    /// Reports a missing attribute in the extended ack, and returns `EINVAL`.
    pub fn missing(&self, id: u16) -> Error {
        self.extack.set_missing(id);
        EINVAL
    }

    /// Reports an invalid attribute in the extended ack, and returns `EINVAL`.
    ///
    /// The kernel keeps 79 bytes of the message. It truncates a longer one and logs it.
    pub fn refuse(&self, id: u16, message: fmt::Arguments<'_>) -> Error {
        if let Some(attribute) = self.find(id) {
            // SAFETY: By the type invariants, `attribute` is part of the message.
            unsafe { self.extack.set_bad_attribute(attribute.as_ptr().cast()) };
        }
        self.fail(EINVAL, message)
    }

    /// Reports an error of the whole request in the extended ack, and returns `error`. The length
    /// of the message is limited as in [`refuse`](Self::refuse).
    pub fn fail(&self, error: Error, message: fmt::Arguments<'_>) -> Error {
        self.extack.set_message(message);
        error
    }
}
