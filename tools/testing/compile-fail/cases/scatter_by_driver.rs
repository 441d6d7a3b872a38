// SPDX-License-Identifier: GPL-2.0

//! Only the crate can declare memory that a device may access.
//!
//! refused: E0200: the trait `Scatter` requires an `unsafe impl` declaration

use core::pin::Pin;
use kernel::prelude::*;
use rrdma::scatter::{
    Scatter,
    ScatterTable, //
};

pub(crate) struct Anything;

#[cfg(misuse)]
impl Scatter for Anything {
    //~
    fn fill(&mut self, _table: Pin<&mut ScatterTable>) -> Result {
        Ok(())
    }
}
