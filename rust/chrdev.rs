// SPDX-License-Identifier: GPL-2.0

//! Character devices: what processes open to ask something of a driver by `ioctl`.
//!
//! A driver reserves [`Numbers`], and makes a [`Node`] of one of them for each thing that can be
//! asked, with its [`Operations`]. [`sysfs::Device::new`](crate::sysfs::Device::new) takes the
//! node, and so there is a file for it under `/dev`.
//!
//! # Who may still call
//!
//! A file that is open outlives the node: it holds the driver's module, which is not unloaded
//! before it is closed, and a reference to the operations. Dropping the node waits for nobody: a
//! process may sit in its call for as long as it likes, on memory that it swaps in itself. What is
//! asked afterwards is answered `ENODEV` here; a call that was under way goes on, so operations
//! have to bear to be called when what they are about is gone.
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
