// SPDX-License-Identifier: GPL-2.0

//! The ioctls of controllers.

use super::{
    admin,
    allow,
    tell, //
};
use crate::controller::Controller;
use kernel::prelude::*;
use nvme_proto::policy::{
    passthrough::{
        Call,
        Opened,
        Permission, //
    },
    state::State,
};
use rrdma::{
    chrdev,
    ioctl, //
};

/// That it was opened for writing gives nothing.
const OPENED: Opened = Opened {
    partition: false,
    for_writing: false,
};

impl chrdev::Operations for Controller {
    fn open(&self) -> Result {
        match self.status(|status| status.state) {
            State::Live => Ok(()),
            // The C host's error, as are those below.
            _ => Err(EAGAIN),
        }
    }

    fn ioctl(&self, call: &ioctl::Call) -> Result<c_int> {
        let asked = Call::from_number(call.number()).ok_or(ENOTTY)?;
        match asked {
            Call::Admin(layout) => return tell(call, layout, admin(call, OPENED, self)?),
            // Of which namespace?
            Call::NamespaceId | Call::Io(_) => return Err(ENOTTY),
            Call::Reset | Call::SubsystemReset | Call::Rescan => {}
        }
        allow(call, OPENED, Permission::Administrator)?;
        match asked {
            Call::Reset => {
                self.ask_reset().map_err(|_| EBUSY)?;
                self.await_reset()?;
            }
            Call::Rescan => {
                self.ask_scan().map_err(|_| EBUSY)?;
            }
            // It takes other hosts' controllers, too. We never ask for that.
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}
