// SPDX-License-Identifier: GPL-2.0

//! Messages to user space.
//!
//! C header: [`include/net/netlink.h`](srctree/include/net/netlink.h)

use crate::bindings;
use core::{marker::PhantomData, mem::ManuallyDrop, ptr::NonNull};
use kernel::{error::to_result, ffi::c_void, prelude::*};

/// A message that is being built.
///
/// Every method fails with `EMSGSIZE` if there is no room left. The message is then
/// cut back to where its nest began, but not sent; so whoever passes the error on,
/// with `?`, leaves nothing behind.
///
/// # Invariants
///
/// `skb` is valid for `'a`, used by this thread only, and ends in an unfinished
/// message.
pub struct Message<'a> {
    skb: NonNull<bindings::sk_buff>,
    _skb: PhantomData<&'a mut bindings::sk_buff>,
}

impl Message<'_> {
    /// Appends an 8-bit number.
    pub fn put_u8(&mut self, id: u16, value: u8) -> Result {
        self.put_bytes(id, &value.to_ne_bytes())
    }

    /// Appends a 16-bit number.
    pub fn put_u16(&mut self, id: u16, value: u16) -> Result {
        self.put_bytes(id, &value.to_ne_bytes())
    }

    /// Appends a 32-bit number.
    pub fn put_u32(&mut self, id: u16, value: u32) -> Result {
        self.put_bytes(id, &value.to_ne_bytes())
    }

    /// Appends a signed 32-bit number.
    pub fn put_i32(&mut self, id: u16, value: i32) -> Result {
        self.put_bytes(id, &value.to_ne_bytes())
    }

    /// Appends a number of 32 bits if it fits, else of 64: what specifications
    /// call `uint`. C: `nla_put_uint`.
    pub fn put_uint(&mut self, id: u16, value: u64) -> Result {
        match u32::try_from(value) {
            Ok(value) => self.put_u32(id, value),
            Err(_) => self.put_bytes(id, &value.to_ne_bytes()),
        }
    }

    /// Appends a 64-bit number; `pad` is the attribute by which it is aligned on
    /// machines that need it. C: `nla_put_64bit`.
    pub fn put_u64(&mut self, id: u16, value: u64, pad: u16) -> Result {
        let bytes = value.to_ne_bytes();
        // SAFETY: By the invariant of the type `skb` is valid and only ours;
        // `bytes` are as many as the length says.
        to_result(unsafe {
            bindings::nla_put_64bit(
                self.skb.as_ptr(),
                id.into(),
                bytes.len() as i32,
                bytes.as_ptr().cast(),
                pad.into(),
            )
        })
    }

    /// Appends a string and a NUL. For the reader it ends at a NUL that it holds.
    pub fn put_str(&mut self, id: u16, value: &str) -> Result {
        let len = payload_len(value.len().saturating_add(1))?;
        // SAFETY: By the invariant of the type `skb` is valid and only ours.
        let attribute = unsafe { bindings::nla_reserve(self.skb.as_ptr(), id.into(), len) };
        if attribute.is_null() {
            return Err(EMSGSIZE);
        }
        // SAFETY: The attribute was just made with room for `value` and one byte
        // after its header, which nobody else refers to.
        unsafe {
            let payload = attribute.add(1).cast::<u8>();
            payload.copy_from_nonoverlapping(value.as_ptr(), value.len());
            payload.add(value.len()).write(0);
        }
        Ok(())
    }

    /// Appends bytes.
    pub fn put_bytes(&mut self, id: u16, value: &[u8]) -> Result {
        let len = payload_len(value.len())?;
        // SAFETY: By the invariant of the type `skb` is valid and only ours;
        // `value` is as long as the length says.
        to_result(unsafe {
            bindings::nla_put(self.skb.as_ptr(), id.into(), len, value.as_ptr().cast())
        })
    }

    /// Appends a flag, if it is set.
    pub fn put_flag(&mut self, id: u16, set: bool) -> Result {
        if set {
            self.put_bytes(id, &[])
        } else {
            Ok(())
        }
    }

    /// Appends a nested attribute with what `build` appends; if that fails,
    /// nothing.
    pub fn nest(&mut self, id: u16, build: impl FnOnce(&mut Message<'_>) -> Result) -> Result {
        let skb = self.skb;
        // SAFETY: By the invariant of the type `skb` is valid and only ours.
        let start = unsafe { bindings::nla_nest_start(skb.as_ptr(), id.into()) };
        if start.is_null() {
            return Err(EMSGSIZE);
        }
        // INVARIANT: It is the message of `self`, which stays borrowed. `build`
        // takes one of any lifetime, so it has no other to swap this with.
        let built = build(&mut Message {
            skb,
            _skb: PhantomData,
        });
        let ended = built.and_then(|()| {
            // SAFETY: `start` is still where it was: what was built went after it,
            // and nested attributes that were cut back were after it too.
            to_result(unsafe { bindings::nla_nest_end_safe(skb.as_ptr(), start) })
        });
        if ended.is_err() {
            // SAFETY: As above.
            unsafe { bindings::nla_nest_cancel(skb.as_ptr(), start) };
        }
        ended
    }
}

/// The length of a payload as C takes it, if an attribute can be that long.
fn payload_len(len: usize) -> Result<i32> {
    let total = len.checked_add(size_of::<bindings::nlattr>());
    match total.map(u16::try_from) {
        Some(Ok(_)) => Ok(len as i32),
        _ => Err(EMSGSIZE),
    }
}

/// What goes into the header of a message.
pub(super) struct Header {
    pub(super) portid: u32,
    pub(super) seq: u32,
    pub(super) flags: u32,
    pub(super) command: u8,
}

/// Appends a message to `skb`, or nothing if that fails: with `EMSGSIZE` where it
/// has no room, or as `build` does.
///
/// `opened` is called with the message once it has a header.
///
/// # Safety
///
/// `skb` must be valid and used by this thread only, and `family` valid.
pub(super) unsafe fn append(
    skb: NonNull<bindings::sk_buff>,
    family: *const bindings::genl_family,
    header: &Header,
    opened: impl FnOnce(*mut c_void),
    build: impl FnOnce(&mut Message<'_>) -> Result,
) -> Result {
    // SAFETY: The caller answers for `skb` and `family`.
    let message = unsafe {
        bindings::genlmsg_put(
            skb.as_ptr(),
            header.portid,
            header.seq,
            family,
            header.flags as i32,
            header.command,
        )
    };
    if message.is_null() {
        return Err(EMSGSIZE);
    }
    opened(message);
    // INVARIANT: The caller answers for `skb`, which now ends in this message.
    let built = build(&mut Message {
        skb,
        _skb: PhantomData,
    });
    // SAFETY: `message` is still where it was, since all that was built is after it.
    unsafe {
        match built {
            Ok(()) => bindings::genlmsg_end(skb.as_ptr(), message),
            Err(_) => bindings::genlmsg_cancel(skb.as_ptr(), message),
        }
    }
    built
}

/// A buffer of its own for a message of about a page.
///
/// # Invariants
///
/// `skb` is valid and owned by this.
pub(super) struct Buffer {
    skb: NonNull<bindings::sk_buff>,
}

impl Buffer {
    /// Allocates a buffer. Sleeps.
    pub(super) fn new() -> Result<Self> {
        // SAFETY: There is nothing to answer for.
        let skb = unsafe { bindings::genlmsg_new_default(bindings::GFP_KERNEL) };
        // INVARIANT: It was just allocated, for us.
        Ok(Self {
            skb: NonNull::new(skb).ok_or(ENOMEM)?,
        })
    }

    pub(super) fn skb(&self) -> NonNull<bindings::sk_buff> {
        self.skb
    }

    /// Gives the buffer away, to be sent.
    pub(super) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).skb.as_ptr()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: By the invariant of the type it is valid and ours.
        unsafe { bindings::nlmsg_free(self.skb.as_ptr()) };
    }
}
