// SPDX-License-Identifier: GPL-2.0

//! Tests values that constructors refuse, and that need no device.

use kernel::prelude::*;
use rrdma::chrdev::Numbers;

module! {
    type: Refusals,
    name: "rrdma_test_refusals",
    authors: ["The rnvmf developers"],
    description: "Test: values that constructors refuse",
    license: "GPL",
}

struct Refusals;

impl kernel::Module for Refusals {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // C would reserve a major number for ever.
        match Numbers::new(c"rrdma_test", 0) {
            Err(error) if error == EINVAL => Ok(Self),
            Err(error) => Err(error),
            Ok(_) => Err(ERANGE),
        }
    }
}
