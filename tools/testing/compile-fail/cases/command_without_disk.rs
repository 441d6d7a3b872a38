// SPDX-License-Identifier: GPL-2.0

//! A disk cannot be dropped while commands for it exist.
//!
//! refused: E0505: cannot move out of `disk` because it is borrowed

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::block::{
    Command,
    Direction,
    Disk,
    Status,
    TagPool, //
};
use support::Driver;

pub(crate) fn send(disk: Disk<Driver>) -> Result<Status> {
    let executed = Command::new(&disk, Direction::In, TagPool::Shared)?.execute(None)?;
    let status = executed.status();
    #[cfg(not(misuse))]
    drop(executed);
    drop(disk); //~
    Ok(status)
}
