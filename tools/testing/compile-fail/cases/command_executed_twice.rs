// SPDX-License-Identifier: GPL-2.0

//! A command is executed once: its tag belongs to one execution.
//!
//! refused: E0382: use of moved value: `command`

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::block::{
    Command,
    Status, //
};
use support::Driver;

pub(crate) fn send(command: Command<'_, Driver>) -> Result<Status> {
    let status = command.execute(None)?.status();
    #[cfg(misuse)]
    let status = command.execute(None)?.status(); //~
    Ok(status)
}
