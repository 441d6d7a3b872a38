// SPDX-License-Identifier: GPL-2.0

//! Registered generic netlink families.
//!
//! C header: [`include/net/genetlink.h`](srctree/include/net/genetlink.h)

use super::{
    callbacks::Callbacks,
    message::{append, Buffer, Header},
    shared::Shared,
    sockets::SocketNotifier,
    Family, Message,
};
use crate::{
    bindings,
    errno::ENOBUFS,
    net::Namespace,
    sync::{
        DropsLater,
        ModuleUse,
        Rundown,
        SleepingDrop,
        UseKind, //
    },
};
use core::{
    marker::PhantomPinned,
    panic::Location, //
};
use kernel::{error::to_result, prelude::*, sync::Arc};

/// A registered family and the data of its handlers.
///
/// Dropping it [unregisters](Self::unregister) the family. In atomic context, a work item does that, and drops the data.
///
/// A module drops the registration before anything that the handlers use. Dumps fail with `EBUSY`
/// until the init function of the module has succeeded.
pub struct Registration<F: Family>(SleepingDrop<Pin<KBox<OwnedFamily<F>>>>);

/// A family that is registered until it is unregistered or this is dropped. Both sleep.
#[pin_data(PinnedDrop)]
struct OwnedFamily<F: Family> {
    /// Multicasts are inside; closed when unregistering starts.
    #[pin]
    senders: Rundown,
    live: Live,
    #[pin]
    context: F::Context,
    // C has a pointer to the context, so it must not move even if its type is `Unpin`.
    #[pin]
    _pin: PhantomPinned,
    module: ModuleUse,
}

impl<F: Family> DropsLater for Pin<KBox<OwnedFamily<F>>> {
    fn drop_later(self) {
        self.module.clone().drop_later("netlink family", self);
    }
}

impl<F: Family> Registration<F> {
    /// Registers a family that belongs to `module`. May sleep. C: `genl_register_family()`.
    ///
    /// # Errors
    ///
    /// The error of `context`; `EEXIST` if a family of this name exists; `ENOMEM`.
    #[track_caller]
    pub fn new(
        context: impl PinInit<F::Context, Error>,
        module: &'static ThisModule,
    ) -> Result<Self> {
        let module_use = ModuleUse::new(UseKind::NetlinkFamily, Location::caller())?;
        let registered = OwnedFamily::new(context, module, module_use);
        let registered = KBox::pin_init(registered, GFP_KERNEL)?;
        Ok(Self(SleepingDrop::new(registered)))
    }

    /// Returns the data of the handlers.
    pub fn context(&self) -> &F::Context {
        &self.0.context
    }

    /// Unregisters the family, and waits for running handlers. Unfinished dumps fail with `ENODEV`,
    /// and later multicasts do nothing. A second call does nothing, also while the first one runs.
    /// Sleeps.
    ///
    /// Must not be called in a handler, which would wait for itself. So where handlers hold
    /// references to this, another reference must be held until this returns. C:
    /// `genl_unregister_family()`.
    pub fn unregister(&self) {
        self.0.unregister();
    }

    /// Multicasts a message that `build` fills, of about one page at most, to the listeners of a
    /// group in a namespace. Does nothing without listeners, or if the family is unregistered.
    /// Sleeps.
    ///
    /// If the message cannot be built, its listeners get `ENOBUFS` from their next receive, as for
    /// a full socket. C: `genlmsg_multicast_netns()`, `genl_set_err()`.
    ///
    /// # Errors
    ///
    /// - `EINVAL` if `group` is not an index of [`Family::GROUPS`].
    /// - `ENOMEM`, or the error of `build`.
    /// - `ENOBUFS` if a listener with `NETLINK_BROADCAST_ERROR` missed the message.
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
        let Some(_sending) = self.0.senders.enter() else {
            return Ok(());
        };
        let family = Shared::family(&self.0.live.shared);
        // SAFETY: `_sending` keeps the family registered. The namespace is alive, and `group` is a
        // group of the family.
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
            // SAFETY: The buffer is owned, and `_sending` keeps the family registered.
            unsafe { append(buffer.skb(), family, &header, |_| (), build)? };
            Ok(buffer)
        });
        let buffer = built.inspect_err(|_| {
            // SAFETY: `_sending` keeps the family registered. The namespace is alive, and `group`
            // is a group of the family.
            unsafe {
                bindings::genl_set_err(family, net.as_ptr(), group, ENOBUFS.to_errno());
            }
        })?;
        // SAFETY: `_sending` keeps the family registered. The namespace is alive, and `group` is a
        // group of the family. The callee consumes the buffer.
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
            // The last listener left after the check above.
            Err(ESRCH) => Ok(()),
            sent => sent,
        }
    }
}

impl<F: Family> OwnedFamily<F> {
    /// Registers a family. May sleep.
    fn new(
        context: impl PinInit<F::Context, Error>,
        owner: &'static ThisModule,
        module: ModuleUse,
    ) -> impl PinInit<Self, Error> {
        try_pin_init!(&this in Self {
            module,
            senders <- Rundown::new(),
            context <- context,
            live: {
                // SAFETY: `this` points to the value under initialisation.
                let context = unsafe { &raw const (*this.as_ptr()).context };
                // SAFETY: The context is initialised and pinned. No later initialiser fails, so the
                // context is dropped with the registration: after the family is unregistered and
                // after `live`.
                unsafe { Live::new::<F>(context, owner)? }
            },
            _pin: PhantomPinned,
        })
    }

    /// Unregisters the family, see [`Registration::unregister`].
    fn unregister(&self) {
        if !self.senders.close() {
            return;
        }
        // Multicasts use the groups, which exist only while the family is registered.
        self.senders.wait(|count| {
            pr_warn!(
                "netlink family {}: has waited for 10 s for {count} threads that send\n",
                F::NAME
            );
        });
        // SAFETY: The family is registered. `close` returns true only once, so this call is the
        // only one and cannot fail. It waits for all `doit` and first `dumpit` calls.
        unsafe { bindings::genl_unregister_family(Shared::family(&self.live.shared)) };
        // Later parts of a dump do not use the `genl_family` in C, only `shared`.
        self.live.shared.close();
    }
}

#[pinned_drop]
impl<F: Family> PinnedDrop for OwnedFamily<F> {
    fn drop(self: Pin<&mut Self>) {
        self.unregister();
    }
}

/// A family that was registered. Kept at least until it is unregistered.
struct Live {
    shared: Arc<Shared>,
    /// Dropped after the family is unregistered, when no handler can store data for a socket.
    _notifier: Option<SocketNotifier>,
}

impl Live {
    /// Registers a family.
    ///
    /// # Safety
    ///
    /// `context` is valid until the result is dropped, which happens after the family is
    /// unregistered.
    unsafe fn new<F: Family>(context: *const F::Context, module: &ThisModule) -> Result<Self> {
        // Before the family is registered, so that the close of no socket with requests is missed.
        //
        // SAFETY: By the safety requirements of this function, the context is valid until the
        // notifier is dropped.
        let notifier = unsafe { SocketNotifier::new::<F>(context)? };
        let shared = Shared::new::<F>(context.cast(), module, Callbacks::<F>::entries)?;
        // SAFETY: `Shared::new` initialised the family, in an allocation that is kept until it is
        // unregistered, with everything that the family points to.
        to_result(unsafe { bindings::genl_register_family(Shared::family(&shared)) })?;
        Ok(Self {
            shared,
            _notifier: notifier,
        })
    }
}
