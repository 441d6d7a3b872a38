// SPDX-License-Identifier: GPL-2.0

//! Requests of user space.

use super::{
    message::{append, Buffer, Header},
    Attributes, Message,
};
use crate::{bindings, net::Namespace};
use core::{marker::PhantomData, ops::Deref};
use kernel::{error::to_result, prelude::*};

/// A request that is being handled. Dereferences to its attributes. C: `struct genl_info`.
///
/// # Invariants
///
/// `info` is valid for `'a` and used only by this thread. It describes a request of a socket of
/// user space.
pub struct Request<'a> {
    info: *mut bindings::genl_info,
    attributes: Attributes<'a>,
    _info: PhantomData<&'a mut bindings::genl_info>,
}

impl<'a> Request<'a> {
    /// Wraps a request.
    ///
    /// # Safety
    ///
    /// C passed `info` to `doit`, which does not return for `'a`.
    pub(super) unsafe fn from_raw(info: *mut bindings::genl_info) -> Self {
        // INVARIANT: By the safety requirements of this function, `doit` passes such an `info`.
        Self {
            info,
            // SAFETY: By the safety requirements of this function, the request is being handled.
            attributes: unsafe { Attributes::of(info) },
            _info: PhantomData,
        }
    }

    /// Returns the network namespace of the sender.
    pub fn net(&self) -> Namespace {
        // SAFETY: By the type invariants, `info` is valid. The sender's socket holds its namespace.
        unsafe { Namespace::get(bindings::genl_info_net(self.info)) }
    }

    /// Returns the port ID of the sender's socket.
    pub fn portid(&self) -> u32 {
        // SAFETY: By the type invariants, `info` is valid.
        unsafe { (*self.info).snd_portid }
    }

    /// Sends a reply that `build` fills, of about one page at most. May sleep.
    ///
    /// # Errors
    ///
    /// - The error of `build`; `EMSGSIZE` if the reply does not fit.
    /// - `ENOMEM`, or the error of the sender's socket.
    pub fn reply(&self, command: u8, build: impl FnOnce(&mut Message<'_>) -> Result) -> Result {
        let buffer = Buffer::new()?;
        // SAFETY: By the type invariants, `info` is valid.
        let info = unsafe { &*self.info };
        let header = Header {
            portid: info.snd_portid,
            seq: info.snd_seq,
            flags: 0,
            command,
        };
        // SAFETY: The buffer is owned. The family is registered while a request is handled.
        unsafe { append(buffer.skb(), info.family, &header, |_| (), build)? };
        // SAFETY: By the type invariants, `info` is valid. The callee consumes the buffer.
        to_result(unsafe { bindings::genlmsg_reply(buffer.into_raw(), self.info) })
    }
}

impl<'a> Deref for Request<'a> {
    type Target = Attributes<'a>;

    fn deref(&self) -> &Attributes<'a> {
        &self.attributes
    }
}
