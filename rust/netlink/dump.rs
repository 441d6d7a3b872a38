// SPDX-License-Identifier: GPL-2.0

//! Dumps: answers of many messages.

use super::{
    message::{append, Header},
    Attributes, Message,
};
use crate::{bindings, net::Namespace};
use core::{marker::PhantomData, ops::Deref, ptr::NonNull};
use kernel::{ffi::c_int, prelude::*};

/// A part of a dump that is being filled. Dereferences to the request's attributes.
///
/// The handler appends one [`message`](Self::message) after another, from where the
/// [`cursor`](Self::cursor) says, which is 0 at first. Once `message` returns
/// `false` it sets the cursor to what did not fit and returns; it is called again,
/// until one call returns without having been told that it is full. For example, of
/// items in the order of their ids:
///
/// ```ignore
/// for item in items.from(dump.cursor()) {
///     dump.set_cursor(item.id);
///     if !dump.message(COMMAND, |message| item.fill(message))? {
///         break;
///     }
/// }
/// ```
///
/// # Invariants
///
/// - `skb`, `cb`, its state and `info` are valid for `'a`, used by this thread only,
///   and belong to a dump to a user's socket.
/// - `family` is valid for `'a`.
pub struct Dump<'a> {
    skb: NonNull<bindings::sk_buff>,
    cb: *mut bindings::netlink_callback,
    info: *const bindings::genl_info,
    family: *const bindings::genl_family,
    cursor: &'a mut u64,
    attributes: Attributes<'a>,
    full: bool,
    _cb: PhantomData<&'a mut bindings::netlink_callback>,
}

impl<'a> Dump<'a> {
    /// # Safety
    ///
    /// `skb` and `cb` must be as C passes them to `dumpit`, `info` that of `cb`,
    /// `cursor` not part of what C uses, `family` valid; and all stay so for `'a`.
    pub(super) unsafe fn from_raw(
        skb: NonNull<bindings::sk_buff>,
        cb: *mut bindings::netlink_callback,
        info: *const bindings::genl_info,
        family: *const bindings::genl_family,
        cursor: &'a mut u64,
    ) -> Self {
        // INVARIANT: C passes to `dumpit` what the invariant asks for, and the
        // caller answers for the rest.
        Self {
            skb,
            cb,
            info,
            family,
            cursor,
            // SAFETY: The request is kept, and not written to, until the dump ends;
            // the extended ack is that of this call.
            attributes: unsafe { Attributes::of(info) },
            full: false,
            _cb: PhantomData,
        }
    }

    /// What C wants to have returned: the bytes that were appended if there is more
    /// to come, else 0.
    pub(super) fn outcome(&self) -> c_int {
        if self.full {
            self.used() as c_int
        } else {
            0
        }
    }

    fn used(&self) -> u32 {
        // SAFETY: By the invariant of the type `skb` is valid.
        unsafe { (*self.skb.as_ptr()).len }
    }

    /// Returns the network namespace of the reader.
    pub fn net(&self) -> Namespace {
        // SAFETY: By the invariant of the type `info` is valid, and the namespace
        // alive, because the reader's socket is.
        unsafe { Namespace::get(bindings::genl_info_net(self.info)) }
    }

    /// Returns the port of the reader's socket.
    pub fn portid(&self) -> u32 {
        // SAFETY: By the invariant of the type `info` is valid.
        unsafe { (*self.info).snd_portid }
    }

    /// Returns the cursor that was set last, in this or an earlier part; 0 at
    /// first.
    pub fn cursor(&self) -> u64 {
        *self.cursor
    }

    /// Sets the cursor.
    pub fn set_cursor(&mut self, cursor: u64) {
        *self.cursor = cursor;
    }

    /// Says which state of the items is being dumped, by a number that changes when
    /// they do, and is not 0.
    ///
    /// Messages of a part that sees another state than the one before tell the
    /// reader that the dump is not consistent (`NLM_F_DUMP_INTR`). Call it before
    /// the first message of each part.
    pub fn set_generation(&mut self, generation: u32) {
        // SAFETY: By the invariant of the type `cb` is valid and only ours.
        unsafe { (*self.cb).seq = generation };
    }

    /// Appends a message that `build` fills.
    ///
    /// Returns `false` if there was no room left, and does nothing but that from then
    /// on. Fails as `build` does, and with `EMSGSIZE` if the message alone is too
    /// long; that ends the dump.
    pub fn message(
        &mut self,
        command: u8,
        build: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result<bool> {
        if self.full {
            return Ok(false);
        }
        // SAFETY: By the invariant of the type `info` is valid.
        let info = unsafe { &*self.info };
        let header = Header {
            portid: info.snd_portid,
            seq: info.snd_seq,
            flags: bindings::NLM_F_MULTI,
            command,
        };
        let cb = self.cb;
        // SAFETY: By the invariant of the type `cb` is valid, and `append` passes
        // the message that it has just put a header on.
        let opened = |message| unsafe { bindings::genl_dump_check_consistent(cb, message) };
        // SAFETY: By the invariant of the type `skb` and `family` are valid, and the
        // former only ours.
        match unsafe { append(self.skb, self.family, &header, opened, build) } {
            Ok(()) => Ok(true),
            // A part without a message would be the end, with the item left out.
            Err(EMSGSIZE) if self.used() > 0 => {
                self.full = true;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

impl<'a> Deref for Dump<'a> {
    type Target = Attributes<'a>;

    fn deref(&self) -> &Attributes<'a> {
        &self.attributes
    }
}
