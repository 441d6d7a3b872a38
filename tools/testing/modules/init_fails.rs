// SPDX-License-Identifier: GPL-2.0

//! Registers a netlink family, and fails to load when a request arrives. The module is then freed,
//! even if a dump has begun, and a thread waits that only the drop of its `Thread` stops.

use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::{
    errno::ECANCELED,
    netlink::{
        Operation,
        Registration, //
    },
    sync::{
        Msecs,
        Thread,
        TimedCompletion, //
    },
};

module! {
    type: InitFails,
    name: "rrdma_test_init_fails",
    authors: ["The rnvmf developers"],
    description: "Test: a module that registers a netlink family and fails to load",
    license: "GPL",
}

/// Time until the module fails to load without a request.
const LIMIT: Msecs = Msecs::from_secs(20);

/// Messages of a dump, more than one part has.
const MESSAGES: u64 = 100_000;

struct Family;

impl rrdma::netlink::Family for Family {
    const NAME: &'static CStr = c"rrdma_test";
    const VERSION: u8 = 1;
    const OPERATIONS: &'static [Operation<Self>] = &[
        Operation {
            command: 1,
            admin: false,
            attributes: &[],
            doit: Some(|requested, _| {
                requested.complete();
                Ok(())
            }),
            dumpit: None,
        },
        Operation {
            command: 2,
            admin: false,
            attributes: &[],
            doit: None,
            dumpit: Some(|_, dump| {
                while dump.cursor() < MESSAGES && dump.message(2, |_| Ok(()))? {
                    dump.set_cursor(dump.cursor().saturating_add(1));
                }
                Ok(())
            }),
        },
    ];
    const GROUPS: &'static [&'static CStr] = &[];

    type Context = Arc<TimedCompletion>;
}

struct InitFails;

impl kernel::Module for InitFails {
    fn init(module: &'static ThisModule) -> Result<Self> {
        let over = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let stopped = over.clone();
        let _thread = Thread::spawn(
            fmt!("rrdma_init_fails"),
            move || stopped.complete(),
            move || over.wait(),
        )?;
        let requested = Arc::pin_init(TimedCompletion::new(), GFP_KERNEL)?;
        let _family = Registration::<Family>::new(Ok(requested.clone()), module)?;
        match requested.wait_timeout(LIMIT) {
            true => Err(ECANCELED),
            false => Err(ETIMEDOUT),
        }
    }
}
