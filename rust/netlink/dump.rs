// SPDX-License-Identifier: GPL-2.0

//! Dumps: replies of several messages.

use super::{
    message::{append, Header},
    Attributes, Message,
};
use crate::{bindings, net::Namespace};
use core::{marker::PhantomData, ops::Deref, ptr::NonNull};
use kernel::{ffi::c_int, prelude::*};

/// One part of a dump. Dereferences to the attributes of the request.
///
/// The handler continues at the [`cursor`](Self::cursor), initially 0, and appends a
/// [`message`](Self::message) for each item. When `message` returns `false`, the part is full: the
/// handler sets the cursor to the item that did not fit and returns. It is called again until a
/// part is not full. For example, for items in the order of their ids:
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
/// - `skb`, `cb`, its state and `info` are valid for `'a` and used only by this thread. They belong
///   to a dump for a socket of user space.
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
    /// Creates a part of a dump.
    ///
    /// # Safety
    ///
    /// C passed `skb` and `cb` to `dumpit`, and `info` is that of `cb`. C does not use `cursor`.
    /// `family` is valid. All of this holds for `'a`.
    pub(super) unsafe fn from_raw(
        skb: NonNull<bindings::sk_buff>,
        cb: *mut bindings::netlink_callback,
        info: *const bindings::genl_info,
        family: *const bindings::genl_family,
        cursor: &'a mut u64,
    ) -> Self {
        // INVARIANT: C passes a valid `skb` and `cb` to `dumpit`, for this thread. The rest is
        // among the safety requirements of this function.
        Self {
            skb,
            cb,
            info,
            family,
            cursor,
            // SAFETY: C keeps the request unchanged until the dump ends. The extended ack is that
            // of this call.
            attributes: unsafe { Attributes::of(info) },
            full: false,
            _cb: PhantomData,
        }
    }

    /// Returns the result of `dumpit` for C: the number of bytes if more parts follow, else 0.
    pub(super) fn outcome(&self) -> c_int {
        if self.full {
            self.used() as c_int
        } else {
            0
        }
    }

    fn used(&self) -> u32 {
        // SAFETY: By the type invariants, `skb` is valid.
        unsafe { (*self.skb.as_ptr()).len }
    }

    /// Returns the network namespace of the reader.
    pub fn net(&self) -> Namespace {
        // SAFETY: By the type invariants, `info` is valid. The reader's socket holds its namespace.
        unsafe { Namespace::get(bindings::genl_info_net(self.info)) }
    }

    /// Returns the port ID of the reader's socket.
    pub fn portid(&self) -> u32 {
        // SAFETY: By the type invariants, `info` is valid.
        unsafe { (*self.info).snd_portid }
    }

    /// Returns the cursor as last set, in this or an earlier part; initially 0.
    pub fn cursor(&self) -> u64 {
        *self.cursor
    }

    /// Sets the cursor.
    pub fn set_cursor(&mut self, cursor: u64) {
        *self.cursor = cursor;
    }

    /// Sets the generation of the dumped items: a number that changes with them, and is not 0.
    ///
    /// If it differs from that of the previous part, C marks the messages with `NLM_F_DUMP_INTR`,
    /// and the reader knows that the dump is inconsistent. Call it before the first message of each
    /// part.
    pub fn set_generation(&mut self, generation: u32) {
        // SAFETY: By the type invariants, `cb` is valid and used only by this thread.
        unsafe { (*self.cb).seq = generation };
    }

    /// Appends a message that `build` fills.
    ///
    /// Returns `false` if the part is full, and then also for all later messages.
    ///
    /// # Errors
    ///
    /// The error of `build`; `EMSGSIZE` if the message exceeds an empty part. An error ends the
    /// dump.
    pub fn message(
        &mut self,
        command: u8,
        build: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result<bool> {
        if self.full {
            return Ok(false);
        }
        // SAFETY: By the type invariants, `info` is valid.
        let info = unsafe { &*self.info };
        let header = Header {
            portid: info.snd_portid,
            seq: info.snd_seq,
            flags: bindings::NLM_F_MULTI,
            command,
        };
        let cb = self.cb;
        // SAFETY: By the type invariants, `cb` is valid. `append` passes a message with a complete
        // header.
        let opened = |message| unsafe { bindings::genl_dump_check_consistent(cb, message) };
        // SAFETY: By the type invariants, `skb` and `family` are valid, and only this thread uses
        // `skb`.
        match unsafe { append(self.skb, self.family, &header, opened, build) } {
            Ok(()) => Ok(true),
            // An empty part would end the dump without the item.
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
