// SPDX-License-Identifier: GPL-2.0

//! A driver cannot call C functions.
//!
//! refused: E0603: module `bindings` is private

#[cfg(misuse)]
use rrdma::bindings; //~

pub(crate) fn online() -> u32 {
    rrdma::cpu::online()
}
