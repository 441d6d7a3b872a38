// SPDX-License-Identifier: GPL-2.0

//! Passes invalid arguments to constructors that need no device.

use kernel::prelude::*;
use rrdma::chrdev::Numbers;

module! {
    type: InvalidArgs,
    name: "rrdma_test_invalid_args",
    authors: ["The rnvmf developers"],
    description: "Test: invalid arguments",
    license: "GPL",
}

struct InvalidArgs;

impl kernel::Module for InvalidArgs {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        // C would reserve a major number for ever.
        match Numbers::new(c"rrdma_test", 0) {
            Err(error) if error == EINVAL => Ok(Self),
            Err(error) => Err(error),
            Ok(_) => Err(ERANGE),
        }
    }
}
