// SPDX-License-Identifier: GPL-2.0

//! The generic netlink family `rnvmf`: its numbers, names and limits.
//!
//! `spec.rs` is generated from `Documentation/netlink/specs/rnvmf.yaml` and uses the macros of
//! `define.rs`. The module `rnvmf` makes its netlink policies from each [`Request`]; the program
//! `rnvmf` uses the same numbers, and the names in its messages.

// Kbuild passes no_std on the command line; the test harness needs std.
#![cfg_attr(not(any(MODULE, test)), no_std)]

mod define;
mod spec;

pub use define::{Attribute, Kind, Request};
pub use spec::*;

#[cfg(test)]
mod tests;
