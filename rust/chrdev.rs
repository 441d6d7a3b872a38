// SPDX-License-Identifier: GPL-2.0

//! Character devices with ioctls.
//!
//! A driver reserves [`Numbers`], and creates a [`Node`] with its [`Operations`] for each of its
//! devices. [`sysfs::Device::new`](crate::sysfs::Device::new) takes the node, and udev creates the
//! file in `/dev`.
//!
//! # Lifetime
//!
//! An open file outlives its node. It holds a reference to the operations, and to the driver's
//! module. Dropping the node does not wait for calls, because a process decides how long a call
//! takes, for example with memory that it pages in itself. Later calls fail with `ENODEV`, but
//! running calls continue. Operations must therefore work when their device is gone.
//!
//! C header: [`include/linux/cdev.h`](srctree/include/linux/cdev.h)

mod cdev_inner;
mod file;
mod node;
mod numbers;

pub use cdev_inner::Operations;
pub use node::Node;
pub use numbers::Numbers;

pub(crate) use cdev_inner::{
    forget,
    init, //
};
