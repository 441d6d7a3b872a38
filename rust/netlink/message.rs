// SPDX-License-Identifier: GPL-2.0

//! Messages to user space.
//!
//! C header: [`include/net/netlink.h`](srctree/include/net/netlink.h)

use crate::bindings;
use core::{marker::PhantomData, mem::ManuallyDrop, ptr::NonNull};
use kernel::{error::to_result, ffi::c_void, prelude::*};

/// A message under construction.
///
/// Every method that appends fails with `EMSGSIZE` if the message is full. The enclosing nest or
/// message is then incomplete; returning the error from `build` removes it.
///
/// # Invariants
///
/// `skb` is valid for `'a`, is used only by this thread, and ends in an unfinished message.
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

    /// Appends a number with 32 bits if it fits, else with 64 bits (`uint` in specifications). C:
    /// `nla_put_uint()`.
    pub fn put_uint(&mut self, id: u16, value: u64) -> Result {
        match u32::try_from(value) {
            Ok(value) => self.put_u32(id, value),
            Err(_) => self.put_bytes(id, &value.to_ne_bytes()),
        }
    }

    /// Appends a string and a NUL. Readers stop at the first NUL in the string.
    pub fn put_str(&mut self, id: u16, value: &str) -> Result {
        let len = payload_len(value.len().saturating_add(1))?;
        // SAFETY: By the type invariants, `skb` is valid and used only by this thread.
        let attribute = unsafe { bindings::nla_reserve(self.skb.as_ptr(), id.into(), len) };
        if attribute.is_null() {
            return Err(EMSGSIZE);
        }
        // SAFETY: `nla_reserve()` returned an attribute with room for `value` and one more byte
        // after its header. Nobody else refers to it.
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
        // SAFETY: By the type invariants, `skb` is valid and used only by this thread. `value` has
        // the given length.
        to_result(unsafe {
            bindings::nla_put(self.skb.as_ptr(), id.into(), len, value.as_ptr().cast())
        })
    }

    /// Appends a flag if it is set.
    pub fn put_flag(&mut self, id: u16, set: bool) -> Result {
        if set {
            self.put_bytes(id, &[])
        } else {
            Ok(())
        }
    }

    /// Appends a nested attribute that `build` fills. Appends nothing if `build` fails.
    pub fn nest(&mut self, id: u16, build: impl FnOnce(&mut Message<'_>) -> Result) -> Result {
        let skb = self.skb;
        // SAFETY: By the type invariants, `skb` is valid and used only by this thread.
        let start = unsafe { bindings::nla_nest_start(skb.as_ptr(), id.into()) };
        if start.is_null() {
            return Err(EMSGSIZE);
        }
        // INVARIANT: This is the message of `self`, which stays borrowed. `build` accepts a
        // `Message` of any lifetime, so it cannot keep it or swap it for another one.
        let built = build(&mut Message {
            skb,
            _skb: PhantomData,
        });
        let ended = built.and_then(|()| {
            // SAFETY: `start` is still in the message: `build` appends after it, and cancelled
            // nests are cut back to a later position.
            to_result(unsafe { bindings::nla_nest_end_safe(skb.as_ptr(), start) })
        });
        if ended.is_err() {
            // SAFETY: `start` is still in the message, as for `nla_nest_end_safe()`.
            unsafe { bindings::nla_nest_cancel(skb.as_ptr(), start) };
        }
        ended
    }
}

/// Returns the length of a payload for C, or `EMSGSIZE` if no attribute can be that long.
fn payload_len(len: usize) -> Result<i32> {
    let total = len.checked_add(size_of::<bindings::nlattr>());
    match total.map(u16::try_from) {
        Some(Ok(_)) => Ok(len as i32),
        _ => Err(EMSGSIZE),
    }
}

/// Header of a message.
pub(super) struct Header {
    pub(super) portid: u32,
    pub(super) seq: u32,
    pub(super) flags: u32,
    pub(super) command: u8,
}

/// Appends a message that `build` fills to `skb`. Appends nothing on an error: `EMSGSIZE` if `skb`
/// is full, or the error of `build`.
///
/// `opened` is called with the message once it has a header.
///
/// # Safety
///
/// `skb` is valid and used only by this thread. `family` is valid.
pub(super) unsafe fn append(
    skb: NonNull<bindings::sk_buff>,
    family: *const bindings::genl_family,
    header: &Header,
    opened: impl FnOnce(*mut c_void),
    build: impl FnOnce(&mut Message<'_>) -> Result,
) -> Result {
    // SAFETY: By the safety requirements of this function, `skb` and `family` are valid.
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
    // INVARIANT: By the safety requirements of this function, `skb` is valid and used only by this
    // thread. It ends in the message that was just begun.
    let built = build(&mut Message {
        skb,
        _skb: PhantomData,
    });
    // SAFETY: `message` is still in `skb`: `build` only appends after it.
    unsafe {
        match built {
            Ok(()) => bindings::genlmsg_end(skb.as_ptr(), message),
            Err(_) => bindings::genlmsg_cancel(skb.as_ptr(), message),
        }
    }
    built
}

/// A socket buffer for a message of about a page.
///
/// # Invariants
///
/// `skb` is valid and owned.
pub(super) struct Buffer {
    skb: NonNull<bindings::sk_buff>,
}

impl Buffer {
    /// Allocates a buffer. May sleep.
    ///
    /// # Errors
    ///
    /// `ENOMEM`.
    pub(super) fn new() -> Result<Self> {
        // SAFETY: The function has no requirements; this context may sleep.
        let skb = unsafe { bindings::genlmsg_new_default(bindings::GFP_KERNEL) };
        // INVARIANT: The buffer was just allocated, and has no other owner.
        Ok(Self {
            skb: NonNull::new(skb).ok_or(ENOMEM)?,
        })
    }

    pub(super) fn skb(&self) -> NonNull<bindings::sk_buff> {
        self.skb
    }

    /// Releases the ownership, to send the buffer.
    pub(super) fn into_raw(self) -> *mut bindings::sk_buff {
        ManuallyDrop::new(self).skb.as_ptr()
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: By the type invariants, `skb` is valid and owned.
        unsafe { bindings::nlmsg_free(self.skb.as_ptr()) };
    }
}
