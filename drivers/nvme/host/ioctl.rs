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

/// A controller opened for writing grants no permission, unlike a disk.
const OPEN_MODE: OpenMode = OpenMode {
    partition: false,
    for_writing: false,
};

impl chrdev::Operations for Controller {
    fn open(&self) -> Result {
        match self.status.state() {
            CtrlState::Live => Ok(()),
            // This and the errors below are those of the C host.
            _ => Err(EAGAIN),
        }
    }

    fn ioctl(&self, call: &ioctl::Call) -> Result<c_int> {
        let asked = NvmeIoctl::from_number(call.number()).ok_or(ENOTTY)?;
        match asked {
            NvmeIoctl::Admin(layout) => return admin(call, OPEN_MODE, self, layout),
            // A controller device names no namespace.
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
            // A subsystem reset affects controllers of other hosts, and is not supported.
            _ => return Err(ENOTTY),
        }
        Ok(0)
    }
}
