// SPDX-License-Identifier: GPL-2.0

//! A disk outlives the commands that are sent through it.
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
    let executed = Command::new(&disk, Direction::In, TagPool::Shared)?.execute();
    let status = executed.status();
    #[cfg(not(misuse))]
    drop(executed);
    drop(disk); //~
    Ok(status)
}
