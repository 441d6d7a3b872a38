// SPDX-License-Identifier: GPL-2.0

//! Limits on which host, RDMA device and target agree: the minimum of what each allows.
//!
//! - [`controller`]: whether the host supports a controller.
//! - [`queue`]: number and size of queues.
//! - [`queue_counts`]: I/O queues for reads, for writes and to be polled.
//! - [`transfer`]: size of a transfer, and in-capsule data.
//! - [`block`]: limits of a disk.

pub mod block;
pub mod controller;
pub mod queue;
pub mod queue_counts;
pub mod transfer;
