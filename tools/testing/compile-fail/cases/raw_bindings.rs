// SPDX-License-Identifier: GPL-2.0

//! C functions are not within the reach of a driver.
//!
//! refused: E0603: module `bindings` is private

#[cfg(misuse)]
use rrdma::bindings; //~

pub(crate) fn online() -> u32 {
    rrdma::cpu::online()
}
