// SPDX-License-Identifier: GPL-2.0

//! An ioctl is handled in the calling process, because its pointers are of that process.
//!
//! refused: E0277: `*mut ()` cannot be shared between threads safely

use kernel::prelude::*;
use rrdma::{
    chrdev::Operations,
    ioctl::Call, //
};

pub(crate) struct Teller;

fn elsewhere<T: Send>(_work: T) {}

impl Operations for Teller {
    fn ioctl(&self, call: &Call) -> Result<c_int> {
        let number = call.number();
        #[cfg(not(misuse))]
        elsewhere(number);
        #[cfg(misuse)]
        elsewhere(call); //~
        Ok(number.count_ones() as c_int)
    }
}
