// SPDX-License-Identifier: GPL-2.0

//! Whether a disk is in use.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Whether somebody has a disk, or a partition of it, for himself: a file system, the device mapper,
/// swap. Who has only opened it is not seen.
pub(super) fn in_use(disk: &str) -> bool {
    let mut open = OpenOptions::new();
    open.read(true).custom_flags(libc::O_EXCL);
    let opened = open.open(Path::new("/dev").join(disk));
    opened.is_err_and(|error| error.raw_os_error() == Some(libc::EBUSY))
}
