// SPDX-License-Identifier: GPL-2.0

//! A controller as its disks see it.

use super::Controller;
use crate::disk_ioctl;
use kernel::{
    prelude::*,
    sync::atomic::ordering, //
};
use nvme_proto::format::status::Status;
use rnvmf_disk::{
    DiskController,
    FailedIo,
    Io, //
};
use rrdma::{
    block::{
        Ioctl,
        Op, //
    },
    sync::Msecs,
};

impl DiskController for Controller {
    fn is_connected(&self) -> bool {
        self.scan_channel.is_open()
    }

    fn holds_io(&self) -> bool {
        self.holds_io.get()
    }

    fn path_retry_limit(&self) -> Msecs {
        let target = self.target_retry_ms.load(ordering::Relaxed);
        Msecs::new(target.min(self.fast_io_fail_ms.load(ordering::Relaxed)))
    }

    fn log_path_error(&self, disk: &str, status: Status, limit_ms: u32) {
        if may_log(self) {
            pr_warn!(
                "{disk}: {}\n",
                format_args!("{status}: retrying for up to {limit_ms} ms")
            );
        }
    }

    fn log_failed_io(&self, failed: FailedIo<'_>) {
        if !may_log(self) {
            return;
        }
        let FailedIo {
            disk,
            op,
            start,
            count,
            status,
            retries,
        } = failed;
        let times = plural(retries.into(), "retry", "retries");
        let what = match op {
            Op::Flush => {
                pr_warn!(
                    "{disk}: {}\n",
                    format_args!("flush failed: {status}, after {retries} {times}")
                );
                return;
            }
            Op::Read => "read",
            Op::Write => "write",
            Op::Discard => "discard",
            Op::WriteZeroes => "zeroing",
            _ => "request",
        };
        let blocks = plural(count, "block", "blocks");
        pr_warn!(
            "{disk}: {what} of {count} {blocks} at {start} failed: {}\n",
            format_args!("{status}, after {retries} {times}")
        );
    }

    fn ioctl(&self, call: Ioctl<'_, Io>) -> Result<c_int> {
        disk_ioctl::ioctl(call, self)
    }
}

/// Returns whether one more failed request may be logged.
fn may_log(controller: &Controller) -> bool {
    controller.failed_io.allows(c"rnvmf: failed I/O")
}

fn plural(count: u32, one: &'static str, more: &'static str) -> &'static str {
    match count {
        1 => one,
        _ => more,
    }
}
