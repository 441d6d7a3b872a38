// SPDX-License-Identifier: GPL-2.0

//! What the samples share.
//!
//! - [`task`]: the life of a sample.
//! - [`failure`]: why one failed.
//! - [`requirement`]: what a device must be able to do.
//! - [`exchange`]: how two ends learn of each other out of band.
//! - [`peer`]: whom a queue pair is connected with.
//! - [`port_gid`]: where queue pairs are that are connected with one another.
//! - [`formats`]: what they and their peers say to each other, as bytes.

// A sample uses a part of it. The formats are a crate for cargo.
#![allow(dead_code, unreachable_pub)]

pub(crate) mod exchange;
pub(crate) mod failure;
#[path = "formats/formats.rs"]
pub(crate) mod formats;
pub(crate) mod peer;
pub(crate) mod port_gid;
pub(crate) mod requirement;
pub(crate) mod task;
