// SPDX-License-Identifier: GPL-2.0

//! The module that nvme-fabrics loads for a transport: `nvme-` and the name of the transport.
//!
//! It registers a transport under the same name. nvme-fabrics does not refuse the second one, and
//! serves connects with the first.
//!
//! C header: [`include/linux/module.h`](srctree/include/linux/module.h)

use crate::bindings;
use kernel::{
    container_of,
    fmt,
    prelude::*,
    print::{
        call_printk,
        format_strings, //
    },
    str::CStr,
    types::Opaque, //
};

/// Size of the name of the module, with the NUL at its end. A transport has at most 15 bytes.
const NAME_SIZE: usize = 21;

/// Logs which of two modules serves a transport, if the stock driver is loaded, or when it is.
///
/// # Invariants
///
/// `notifier` is registered. `name` ends with a NUL.
#[pin_data(PinnedDrop)]
pub(crate) struct StockDriver {
    #[pin]
    notifier: Opaque<bindings::notifier_block>,
    name: [u8; NAME_SIZE],
    /// This module.
    module: &'static ThisModule,
}

// SAFETY: C does the locking of the notifier block.
unsafe impl Send for StockDriver {}

// SAFETY: As for `Send`.
unsafe impl Sync for StockDriver {}

impl StockDriver {
    /// Logs if the stock driver of a transport is loaded, and watches for it from then on. May
    /// sleep.
    ///
    /// Called before the module registers the transport. If both are loaded at the same time, the
    /// log may name the wrong one.
    pub(crate) fn watch(transport: &str, module: &'static ThisModule) -> impl PinInit<Self> {
        let name = module_name(transport);
        pin_init!(&this in Self {
            notifier: Opaque::new(bindings::notifier_block {
                notifier_call: Some(called),
                ..pin_init::zeroed()
            }),
            name,
            module,
            _: {
                // SAFETY: The fields above are initialised. The block is pinned until `drop`
                // unregisters it, and registered only here, which cannot fail.
                unsafe {
                    let this = this.as_ref();
                    if bindings::module_exists(module.as_ptr(), name.as_ptr().cast()) {
                        this.log_first();
                    }
                    bindings::register_module_notifier(this.notifier.get());
                }
            },
        })
    }

    fn log_first(&self) {
        let (ours, stock) = (self.own_name(), self.name());
        self.log(fmt!(
            "{stock} was loaded first and serves connects; disconnect its controllers and unload it \
             (rmmod {stock}) to have {ours} serve them\n"
        ));
    }

    fn log_second(&self) {
        let (ours, stock) = (self.own_name(), self.name());
        self.log(fmt!(
            "{stock} was loaded, too, but {ours} was first and serves connects; disconnect the \
             controllers of {stock} and unload it (rmmod {stock})\n"
        ));
    }

    fn log(&self, text: fmt::Arguments<'_>) {
        let prefix = self.own_name().to_bytes_with_nul();
        // SAFETY: The format is one of `format_strings`, and the prefix ends with a NUL.
        unsafe { call_printk(&format_strings::WARNING, prefix, text) };
    }

    /// Returns the name of the stock driver.
    fn name(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.name).unwrap_or_default()
    }

    /// Returns the name of this module.
    fn own_name(&self) -> &'static CStr {
        // SAFETY: A module has a name, which does not change.
        unsafe { CStr::from_char_ptr((&raw const (*self.module.as_ptr()).name).cast()) }
    }
}

/// Returns the name of the module that nvme-fabrics loads for a transport, for C.
fn module_name(transport: &str) -> [u8; NAME_SIZE] {
    let mut name = [0; NAME_SIZE];
    let bytes = Iterator::chain(b"nvme_".iter(), transport.as_bytes());
    for (to, from) in name.iter_mut().take(NAME_SIZE - 1).zip(bytes) {
        *to = match from {
            b'-' => b'_',
            byte => *byte,
        };
    }
    name
}

/// Callback of the notifier.
///
/// # Safety
///
/// C calls it for a registered notifier of a [`StockDriver`], with a module.
unsafe extern "C" fn called(
    notifier: *mut bindings::notifier_block,
    state: c_ulong,
    module: *mut c_void,
) -> c_int {
    if state == bindings::module_state_MODULE_STATE_LIVE as c_ulong {
        let notifier = Opaque::cast_from(notifier.cast_const());
        // SAFETY: By the safety requirements of this function, the notifier is part of a
        // `StockDriver`, which unregisters it before it is freed. That waits for this.
        let this = unsafe { &*container_of!(notifier, StockDriver, notifier) };
        let module = module.cast::<bindings::module>();
        // SAFETY: By the safety requirements of this function, it is a module, which has a name.
        let name = unsafe { CStr::from_char_ptr((&raw const (*module).name).cast()) };
        // A transport may have a name for which nvme-fabrics loads this module.
        if name == this.name() && module != this.module.as_ptr() {
            this.log_second();
        }
    }
    bindings::NOTIFY_DONE as c_int
}

#[pinned_drop]
impl PinnedDrop for StockDriver {
    fn drop(self: Pin<&mut Self>) {
        // SAFETY: By the type invariants, the notifier is registered. This waits for its calls.
        unsafe { bindings::unregister_module_notifier(self.notifier.get()) };
    }
}
