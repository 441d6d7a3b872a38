// SPDX-License-Identifier: GPL-2.0

//! Attributes of a request.

use super::extack::Extack;
use crate::bindings;
use core::{fmt, ptr::null};
use kernel::prelude::*;

/// The attributes of a request, or of one of its nested attributes.
///
/// C has checked them by what the operation takes. The methods that read one
/// return `None` if it is absent; so they do if it is declared as something else,
/// which is an error of the family. If it is given twice, the last one counts.
///
/// # Invariants
///
/// - `bytes` is part of the message that is being handled, as is `nest` unless it
///   is null.
#[derive(Clone, Copy)]
pub struct Attributes<'a> {
    bytes: &'a [u8],
    nest: *const bindings::nlattr,
    extack: Extack<'a>,
}

/// An attribute with its header.
///
/// # Invariants
///
/// `bytes` is part of the message that is being handled, and begins with the
/// header of an attribute.
struct Raw<'a> {
    bytes: &'a [u8],
}

const HEADER: usize = size_of::<bindings::nlattr>();

impl<'a> Raw<'a> {
    fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER..).unwrap_or_default()
    }

    fn as_ptr(&self) -> *const bindings::nlattr {
        self.bytes.as_ptr().cast()
    }
}

impl<'a> Attributes<'a> {
    /// The attributes of a request.
    ///
    /// # Safety
    ///
    /// `info` must be valid and describe a request that is being handled, whose
    /// message and extended ack are valid for `'a`, the latter used by this thread
    /// only.
    pub(super) unsafe fn of(info: *const bindings::genl_info) -> Self {
        // SAFETY: The caller says that `info` is valid.
        let info = unsafe { &*info };
        // SAFETY: The caller says that the message is valid.
        let total = unsafe { (*info.nlhdr).nlmsg_len } as usize;
        let headers = size_of::<bindings::nlmsghdr>() + size_of::<bindings::genlmsghdr>();
        // SAFETY: C has checked that the message is as long as its length says and
        // has both headers, of which the second is all that comes between the first
        // and the attributes; nobody writes to it for as long as it is handled.
        let bytes = unsafe {
            core::slice::from_raw_parts(
                info.genlhdr.add(1).cast::<u8>(),
                total.saturating_sub(headers),
            )
        };
        // INVARIANT: `bytes` is what follows the headers of the message.
        Self {
            bytes,
            nest: null(),
            // SAFETY: The caller answers for the extended ack.
            extack: unsafe { Extack::from_raw(info.extack) },
        }
    }

    /// Finds an attribute: the last one of its number.
    fn find(&self, id: u16) -> Option<Raw<'a>> {
        let mut rest = self.bytes;
        let mut found = None;
        while let [l0, l1, t0, t1, ..] = *rest {
            let len = usize::from(u16::from_ne_bytes([l0, l1]));
            let kind = u16::from_ne_bytes([t0, t1]) & bindings::NLA_TYPE_MASK as u16;
            if len < HEADER {
                break;
            }
            let Some(bytes) = rest.get(..len) else { break };
            if kind == id {
                // INVARIANT: The four bytes were just read as a header.
                found = Some(Raw { bytes });
            }
            // The last one needs no padding.
            rest = rest
                .get(len.next_multiple_of(bindings::NLA_ALIGNTO as usize)..)
                .unwrap_or_default();
        }
        found
    }

    fn number<const N: usize>(&self, id: u16) -> Option<[u8; N]> {
        self.find(id)?.payload().try_into().ok()
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

    /// Returns a 64-bit number.
    pub fn u64(&self, id: u16) -> Option<u64> {
        self.number(id).map(u64::from_ne_bytes)
    }

    /// Returns a string, up to its NUL; refuses the attribute, with `EINVAL`, if
    /// it is not UTF-8.
    pub fn str(&self, id: u16) -> Result<Option<&'a str>> {
        let Some(bytes) = self.bytes(id) else {
            return Ok(None);
        };
        let len = bytes.iter().position(|&byte| byte == 0);
        let text = bytes.get(..len.unwrap_or(bytes.len())).unwrap_or_default();
        match core::str::from_utf8(text) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(self.refuse(id, fmt!("not UTF-8"))),
        }
    }

    /// Returns the bytes of an attribute of any kind.
    pub fn bytes(&self, id: u16) -> Option<&'a [u8]> {
        Some(self.find(id)?.payload())
    }

    /// Returns whether a flag is present.
    pub fn flag(&self, id: u16) -> bool {
        self.find(id).is_some()
    }

    /// Returns the attributes in a nested attribute.
    pub fn nested(&self, id: u16) -> Option<Attributes<'a>> {
        let raw = self.find(id)?;
        // INVARIANT: Both are part of the message, as `raw` is.
        Some(Attributes {
            bytes: raw.payload(),
            nest: raw.as_ptr(),
            extack: self.extack,
        })
    }

    /// Returns an 8-bit number that must not be missing, see
    /// [`missing`](Self::missing).
    pub fn required_u8(&self, id: u16) -> Result<u8> {
        self.u8(id).ok_or_else(|| self.missing(id))
    }

    /// Returns a 16-bit number that must not be missing.
    pub fn required_u16(&self, id: u16) -> Result<u16> {
        self.u16(id).ok_or_else(|| self.missing(id))
    }

    /// Returns a 32-bit number that must not be missing.
    pub fn required_u32(&self, id: u16) -> Result<u32> {
        self.u32(id).ok_or_else(|| self.missing(id))
    }

    /// Returns a 64-bit number that must not be missing.
    pub fn required_u64(&self, id: u16) -> Result<u64> {
        self.u64(id).ok_or_else(|| self.missing(id))
    }

    /// Returns a string that must not be missing, nor other than UTF-8.
    pub fn required_str(&self, id: u16) -> Result<&'a str> {
        self.str(id)?.ok_or_else(|| self.missing(id))
    }

    /// Returns bytes that must not be missing.
    pub fn required_bytes(&self, id: u16) -> Result<&'a [u8]> {
        self.bytes(id).ok_or_else(|| self.missing(id))
    }

    /// Notes in the extended ack that an attribute is missing; returns `EINVAL`.
    pub fn missing(&self, id: u16) -> Error {
        // SAFETY: By the invariant of the type `nest` is null or in the message.
        unsafe { self.extack.set_missing(self.nest, id) };
        EINVAL
    }

    /// Notes in the extended ack what is wrong with an attribute; returns
    /// `EINVAL`.
    ///
    /// The kernel has room for a message of 79 bytes, and logs one that it cuts.
    pub fn refuse(&self, id: u16, message: fmt::Arguments<'_>) -> Error {
        if let Some(raw) = self.find(id) {
            // SAFETY: By its invariant `raw` is in the message.
            unsafe { self.extack.set_bad_attribute(raw.as_ptr()) };
        }
        self.fail(EINVAL, message)
    }

    /// Notes a message in the extended ack, and returns `error`, for what is wrong
    /// with no attribute. As long as in [`refuse`](Self::refuse).
    pub fn fail(&self, error: Error, message: fmt::Arguments<'_>) -> Error {
        self.extack.set_message(message);
        error
    }
}
