// SPDX-License-Identifier: GPL-2.0

//! A disk is thawed by the thread that froze it, also if the guard is leaked.
//!
//! refused: E0277: `*mut ()` cannot be sent between threads safely

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::block::{
    Disk,
    Frozen, //
};
use support::Driver;

fn elsewhere<T: Send>(_work: T) {}

pub(crate) fn freeze(disk: &Disk<Driver>) -> Result {
    let frozen: &mut Frozen<'_, Driver> = KBox::leak(KBox::new(disk.freeze()?, GFP_KERNEL)?);
    let _ = &frozen;
    elsewhere(disk);
    #[cfg(misuse)]
    elsewhere(frozen); //~
    Ok(())
}
