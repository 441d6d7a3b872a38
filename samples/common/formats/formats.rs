// SPDX-License-Identifier: GPL-2.0

//! What the samples and their peers say to each other, as bytes.
//!
//! Nothing here knows of the kernel: the samples have it as a module of theirs,
//! and cargo builds and tests it as a crate.

#![cfg_attr(test, allow(clippy::indexing_slicing))]

pub mod handshake;
pub mod ping;
