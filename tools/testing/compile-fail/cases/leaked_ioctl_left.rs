// SPDX-License-Identifier: GPL-2.0

//! The data of a disk is used while the ioctl is in the disk, also if the ioctl is leaked.
//!
//! refused: E0507: cannot move out of `*call`

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::block::Ioctl;
use support::Driver;

pub(crate) fn handle(call: KBox<Ioctl<'_, Driver>>) {
    let call: &Ioctl<'_, Driver> = KBox::leak(call);
    let data = call.data();
    #[cfg(misuse)]
    call.leave(); //~
    let _ = data;
}
