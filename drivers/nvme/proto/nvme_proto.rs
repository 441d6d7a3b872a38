// SPDX-License-Identifier: GPL-2.0

//! NVMe and NVMe/RDMA formats, and the decisions that need nothing else.
//!
//! Nothing here knows the kernel, allocates, or can panic on any input: all
//! bytes and numbers that a peer or a user controls are checked as they are
//! read. The crate is part of `rnvmf.ko`, and an ordinary crate for tests.

// The kernel's build has it on the command line; tests have the library.
#![cfg_attr(not(any(MODULE, test)), no_std)]
// A test may panic; that is how it fails.
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
