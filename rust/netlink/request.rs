// SPDX-License-Identifier: GPL-2.0

//! Requests.

use super::{
    message::{append, Buffer, Header},
    Attributes, Message,
};
use crate::{bindings, net::Namespace};
use core::{marker::PhantomData, ops::Deref};
use kernel::{error::to_result, prelude::*};

/// A request that is being handled. Dereferences to its attributes.
///
/// # Invariants
///
/// `info` is valid for `'a`, used by this thread only, and describes a request
/// from a user's socket.
pub struct Request<'a> {
    info: *mut bindings::genl_info,
    attributes: Attributes<'a>,
    _info: PhantomData<&'a mut bindings::genl_info>,
}

impl<'a> Request<'a> {
    /// # Safety
    ///
    /// `info` must be as C passes it to `doit`, and stay so for `'a`.
    pub(super) unsafe fn from_raw(info: *mut bindings::genl_info) -> Self {
        // INVARIANT: C passes to `doit` what the invariant asks for.
        Self {
            info,
            // SAFETY: The caller says that the request is being handled.
            attributes: unsafe { Attributes::of(info) },
            _info: PhantomData,
        }
    }

    /// Returns the network namespace of the sender.
    pub fn net(&self) -> Namespace {
        // SAFETY: By the invariant of the type `info` is valid, and the namespace
        // alive, because the sender's socket is.
        unsafe { Namespace::get(bindings::genl_info_net(self.info)) }
    }

    /// Returns the port of the sender's socket.
    pub fn portid(&self) -> u32 {
        // SAFETY: By the invariant of the type `info` is valid.
        unsafe { (*self.info).snd_portid }
    }

    /// Sends a reply that `build` fills, of about a page at most.
    ///
    /// Fails as `build` does, of which `EMSGSIZE` is for what does not fit; with
    /// `ENOMEM`; or with what keeps it from the sender's socket. Sleeps.
    pub fn reply(&self, command: u8, build: impl FnOnce(&mut Message<'_>) -> Result) -> Result {
        let buffer = Buffer::new()?;
        // SAFETY: By the invariant of the type `info` is valid.
        let info = unsafe { &*self.info };
        let header = Header {
            portid: info.snd_portid,
            seq: info.snd_seq,
            flags: 0,
            command,
        };
        // SAFETY: The buffer is ours, and the family registered while one of its
        // requests is handled.
        unsafe { append(buffer.skb(), info.family, &header, |_| (), build)? };
        // SAFETY: By the invariant of the type `info` is valid; the callee takes
        // the buffer.
        to_result(unsafe { bindings::genlmsg_reply(buffer.into_raw(), self.info) })
    }
}

impl<'a> Deref for Request<'a> {
    type Target = Attributes<'a>;

    fn deref(&self) -> &Attributes<'a> {
        &self.attributes
    }
}
