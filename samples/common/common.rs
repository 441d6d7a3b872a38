// SPDX-License-Identifier: GPL-2.0

//! Modules shared by all samples.
//!
//! - [`task`]: runs a sample and stops it on unload or device removal.
//! - [`step_error`]: errors, with the step that failed.
//! - [`requirement`]: device capabilities that a sample needs.
//! - [`exchange`]: exchange of queue pair addresses over TCP.
//! - [`peer`]: the peer of a queue pair that is connected by hand.
//! - [`port_gid`]: queue pairs of one sample that are connected with each other.
//! - [`formats`]: message formats, as bytes.

// No sample uses everything. Cargo builds the formats as a crate of its own, so they are `pub`.
#![allow(dead_code, unreachable_pub)]

pub(crate) mod exchange;
#[path = "formats/formats.rs"]
pub(crate) mod formats;
pub(crate) mod peer;
pub(crate) mod port_gid;
pub(crate) mod requirement;
pub(crate) mod step_error;
pub(crate) mod task;
