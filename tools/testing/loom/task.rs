// SPDX-License-Identifier: GPL-2.0

//! Stand-in for `kernel::task`.

pub(crate) fn might_sleep() {}
