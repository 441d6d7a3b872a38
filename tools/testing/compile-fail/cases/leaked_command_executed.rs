// SPDX-License-Identifier: GPL-2.0

//! A command that is leaked keeps its tag, and is not executed.
//!
//! refused: E0507: cannot move out of `*command`

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::block::Command;
use support::Driver;

pub(crate) fn send(command: KBox<Command<'static, Driver>>) -> Result {
    let command: &'static mut Command<'static, Driver> = KBox::leak(command);
    command.set_no_retry();
    #[cfg(misuse)]
    command.execute(None)?; //~
    Ok(())
}
