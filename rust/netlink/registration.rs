// SPDX-License-Identifier: GPL-2.0

//! Registrations: families that user space can reach.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{
    callbacks::Callbacks,
    message::{append, Buffer, Header},
    shared::Shared,
    sockets::Watch,
    Family, Message,
};
use crate::{bindings, errno::ENOBUFS, net::Namespace, sync::Rundown};
use core::marker::PhantomPinned;
use kernel::{error::to_result, prelude::*, sync::Arc};

/// A registered family, with what its handlers work on.
///
/// Dropping it [unregisters](Self::unregister) the family, if that was not done.
///
/// A module drops it before what its handlers need, and registers last: its
/// initialisation must not fail once user space can begin to use the family, any
/// more than that of a module in C.
#[pin_data(PinnedDrop)]
pub struct Registration<F: Family> {
    /// Whoever multicasts is inside; closed when the family is unregistered, or about to be.
    #[pin]
    senders: Rundown,
    live: Live,
    #[pin]
    context: F::Context,
    // C has a pointer to the context, so it must not move, whatever its type.
    #[pin]
    _pin: PhantomPinned,
}

impl<F: Family> Registration<F> {
    /// Registers a family that belongs to `module`.
    ///
    /// Fails as `context` does; with `EEXIST` if there is a family of the name;
    /// with `ENOMEM`. Sleeps. C: `genl_register_family`.
    pub fn new(
        context: impl PinInit<F::Context, Error>,
        module: &'static ThisModule,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            senders <- Rundown::new(),
            context <- context,
            live: {
                // SAFETY: `this` is what is being initialised.
                let context = unsafe { &raw const (*this.as_ptr()).context };
                // SAFETY: The context has been initialised and is pinned. Nothing
                // fails after this, so it is dropped with the registration, after
                // the family is unregistered and after `live`.
                unsafe { Live::new::<F>(context, module)? }
            },
            _pin: PhantomPinned,
        })
    }

    /// Returns what the handlers work on.
    pub fn context(&self) -> &F::Context {
        &self.context
    }

    /// Unregisters the family, and waits for handlers that are running; readers in the
    /// middle of a dump get `ENODEV`. What is to be multicast from then on is not. Once
    /// it is under way, another call does nothing. Sleeps.
    ///
    /// Not for a handler to do: it would wait for itself. So where handlers have
    /// references to this, another one has to be kept until this has returned.
    /// C: `genl_unregister_family`.
    pub fn unregister(&self) {
        if !self.senders.close() {
            return;
        }
        // The family has its groups only while it is registered.
        self.senders.wait();
        // SAFETY: The family is registered, and this is only done once, so there is no
        // failure to return. It waits for all `doit` and first `dumpit` calls.
        unsafe { bindings::genl_unregister_family(Shared::family(&self.live.shared)) };
        // Later parts of a dump come by the reader's socket, and only know `shared`.
        self.live.shared.close();
    }

    /// Sends a message that `build` fills, of about a page at most, to all who
    /// listen to a group in a namespace; if nobody does, or the family is not
    /// registered any more, does nothing.
    ///
    /// Whoever misses it for want of memory, or because `build` fails, finds
    /// `ENOBUFS` when it listens on, as for a message that it had no room for.
    ///
    /// `group` is an index of [`Family::GROUPS`], or else it fails with `EINVAL`.
    /// It fails as `build` does; with `ENOMEM`; and with `ENOBUFS` if a listener
    /// who wants the sender to know has missed the message. Sleeps.
    /// C: `genlmsg_multicast_netns`, `genl_set_err`.
    pub fn multicast(
        &self,
        net: &Namespace,
        group: usize,
        command: u8,
        build: impl FnOnce(&mut Message<'_>) -> Result,
    ) -> Result {
        if group >= F::GROUPS.len() {
            return Err(EINVAL);
        }
        let group = group.try_into()?;
        let Some(_sending) = self.senders.enter() else {
            return Ok(());
        };
        let family = Shared::family(&self.live.shared);
        // SAFETY: The family is registered as long as this is inside, the namespace
        // alive, the group one of the family's.
        if unsafe { bindings::genl_has_listeners(family, net.as_ptr(), group) } == 0 {
            return Ok(());
        }
        let header = Header {
            portid: 0,
            seq: 0,
            flags: 0,
            command,
        };
        let built = Buffer::new().and_then(|buffer| {
            // SAFETY: The buffer is ours, and the family registered.
            unsafe { append(buffer.skb(), family, &header, |_| (), build)? };
            Ok(buffer)
        });
        let buffer = built.inspect_err(|_| {
            // SAFETY: As for the listeners.
            unsafe {
                bindings::genl_set_err(family, net.as_ptr(), group, ENOBUFS.to_errno());
            }
        })?;
        // SAFETY: As for the listeners; the callee takes the buffer.
        let sent = to_result(unsafe {
            bindings::genlmsg_multicast_netns(
                family,
                net.as_ptr(),
                buffer.into_raw(),
                group,
                bindings::GFP_KERNEL,
            )
        });
        match sent {
            // The last listener left meanwhile.
            Err(ESRCH) => Ok(()),
            sent => sent,
        }
    }
}

#[pinned_drop]
impl<F: Family> PinnedDrop for Registration<F> {
    fn drop(self: Pin<&mut Self>) {
        self.unregister();
    }
}

/// A family that was registered, and is kept at least until it is not.
struct Live {
    shared: Arc<Shared>,
    /// After the family, none of whose handlers can then keep anything for a socket.
    _watch: Option<Watch>,
}

impl Live {
    /// # Safety
    ///
    /// `context` must be valid until what is returned has been dropped, and that only once
    /// the family is unregistered.
    unsafe fn new<F: Family>(context: *const F::Context, module: &ThisModule) -> Result<Self> {
        // First, so that no socket which the family hears from is closed unheard.
        // SAFETY: The caller says that the context is valid until this is dropped.
        let watch = unsafe { Watch::new::<F>(context)? };
        let shared = Shared::new::<F>(context.cast(), module, Callbacks::<F>::entries)?;
        // SAFETY: `Shared::new` filled the family, which is in an allocation that
        // is kept until it is unregistered. What it points to is kept with it.
        to_result(unsafe { bindings::genl_register_family(Shared::family(&shared)) })?;
        Ok(Self {
            shared,
            _watch: watch,
        })
    }
}
