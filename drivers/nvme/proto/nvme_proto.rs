// SPDX-License-Identifier: GPL-2.0

//! NVMe and NVMe/RDMA as pure Rust: formats of the specifications, and decisions of a host.
//!
//! The crate knows no kernel type, does not allocate, and has no `unsafe`. No input can make it
//! panic: it checks every byte and number that a peer or a user controls. It is linked into
//! `rnvmf.ko`, and is an ordinary crate for user-space tests and fuzzing.
//!
//! - [`format`](mod@format): encodes commands and decodes responses, data structures and ioctls.
//! - [`policy`]: decides from decoded values and numbers: limits, retries, states, reconnects.
//!
//! # Example
//!
//! Build a read of 4 KiB, and decode the response to it:
//!
//! ```
//! use nvme_proto::format::{
//!     cid::{CommandId, Generation, Tag},
//!     cqe::Completion,
//!     sgl::{Invalidate, Sgl},
//!     sqe::{BlockCount, BlockRange, Command, RwFlags},
//! };
//!
//! let id = CommandId::new(Tag::new(5).unwrap(), Generation::default());
//! let range = BlockRange {
//!     start: 8,
//!     count: BlockCount::new(8).unwrap(),
//! };
//! let mut command = Command::read(1, range, RwFlags::default());
//! command.set_command_id(id);
//! // The target writes the data to address 0x1000, which key 0xabcd gives access to.
//! command.set_sgl(Sgl::keyed(0x1000, 4096, 0xabcd, Invalidate::ByTarget).unwrap());
//! assert_eq!(command.as_bytes()[0], 0x02);
//!
//! let response = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 5, 0, 0, 0];
//! let completion = Completion::parse(&response).unwrap();
//! assert_eq!(completion.command_id(), id);
//! assert!(completion.status().is_success());
//! ```

// Kbuild passes `no_std` on the command line; tests use the standard library.
#![cfg_attr(not(any(MODULE, test)), no_std)]
// A test fails by a panic.
#![cfg_attr(
    test,
    allow(
        clippy::arithmetic_side_effects,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::indexing_slicing,
        clippy::unwrap_used
    )
)]

pub mod format;
pub mod policy;

#[cfg(test)]
mod testing;
