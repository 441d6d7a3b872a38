// SPDX-License-Identifier: GPL-2.0

//! What memory a device may reach is vouched for in the crate: a driver cannot say it.
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
