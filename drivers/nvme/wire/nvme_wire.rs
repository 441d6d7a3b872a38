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

pub mod again;
pub mod async_event;
pub mod backoff;
pub mod block_status;
pub mod changed_namespaces;
pub mod cid;
pub mod connect;
pub mod cqe;
pub mod discovery;
pub mod dsm;
pub mod duplicates;
pub mod effects;
pub mod follow;
pub mod identify;
pub mod keep_alive;
pub mod latency;
pub mod limits;
pub mod loss;
pub mod nqn;
pub mod passthrough;
pub mod private_data;
pub mod property;
pub mod request_state;
pub mod retry;
pub mod sgl;
pub mod sqe;
pub mod state;
pub mod status;
pub mod uuid;

mod layout;
#[cfg(test)]
mod testing;
