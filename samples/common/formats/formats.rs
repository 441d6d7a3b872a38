// SPDX-License-Identifier: GPL-2.0

//! Message formats of the samples, as bytes.
//!
//! This does not use the kernel. The samples include it as a module; cargo builds and tests it as a
//! crate.

#![cfg_attr(test, allow(clippy::indexing_slicing))]

pub mod handshake;
pub mod ping;
