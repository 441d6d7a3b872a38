// SPDX-License-Identifier: GPL-2.0

//! The ioctls of controllers.

use crate::{
    controller::Controller,
    passthru::{
        admin,
        check_permission, //
    },
};
use kernel::prelude::*;
use nvme_proto::{
    format::passthru::NvmeIoctl,
    policy::{
        ctrl_state::CtrlState,
        permission::{
            OpenMode,
            Permission, //
        },
    },
};
use rrdma::{
    chrdev,
    ioctl, //
};

/// That it was opened for writing gives nothing.
const OPEN_MODE: OpenMode = OpenMode {
    partition: false,
    for_writing: false,
};

impl chrdev::Operations for Controller {
    fn open(&self) -> Result {
        match self.status.state() {
            CtrlState::Live => Ok(()),
            // The C host's error, as are those below.
            _ => Err(EAGAIN),
        }
    }

    fn ioctl(&self, call: &ioctl::Call) -> Result<c_int> {
        let asked = NvmeIoctl::from_number(call.number()).ok_or(ENOTTY)?;
        match asked {
            NvmeIoctl::Admin(layout) => return admin(call, OPEN_MODE, self)?.write(call, layout),
            // Of which namespace?
            NvmeIoctl::NamespaceId | NvmeIoctl::Io(_) => return Err(ENOTTY),
            NvmeIoctl::Reset | NvmeIoctl::SubsystemReset | NvmeIoctl::Rescan => {}
        }
        check_permission(call, OPEN_MODE, Permission::SysAdmin)?;
        match asked {
            NvmeIoctl::Reset => {
                self.request_reset().map_err(|_| EBUSY)?;
                self.wait_reset()?;
            }
            NvmeIoctl::Rescan => {
                self.request_scan().map_err(|_| EBUSY)?;
            }
            // It takes other hosts' controllers, too. We never ask for that.
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}
