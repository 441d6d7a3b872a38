// SPDX-License-Identifier: GPL-2.0

//! A claim passes its value between threads, so the value must be `Send`.
//!
//! refused: E0277: `*mut u8` cannot be sent between threads safely

use rrdma::sync::Claim;

#[cfg(not(misuse))]
type Value = usize;
#[cfg(misuse)]
type Value = *mut u8;

fn shared<T: Sync>(_: &T) {}

pub(crate) fn share(claim: &Claim<Value>) {
    shared(claim); //~
}
