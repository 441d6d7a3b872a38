// SPDX-License-Identifier: GPL-2.0

//! What host, device and target agree on: the least that each allows.

pub mod block;
pub mod controller;
pub mod queue;
pub mod queue_counts;
pub mod transfer;
