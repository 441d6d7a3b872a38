// SPDX-License-Identifier: GPL-2.0

//! The connection manager, active side.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! A connection is made in steps, each of which is a type and consumes the one
//! before it:
//!
//! ```text
//! Id ── resolve ──▶ Addressed ── create_queue_pair ──▶ Prepared ── connect ──▶ Connected
//!                   (has a device)                     (may post receives)
//! ```
//!
//! The steps wait in the caller's thread, and an error says which of them failed
//! and why. All waiting is on one
//! [`TimedCompletion`](crate::sync::TimedCompletion), the caller's: whoever
//! completes it makes the caller look again at whether it is still wanted, so a
//! step can be aborted at any moment. Dropping any of the types destroys the id,
//! which waits for a handler that is running.

mod address;
mod error;
mod id;

pub use address::Address;
pub use error::{
    Cause,
    Error,
    Rejection,
    Stage, //
};
pub use id::{
    Addressed,
    Connected,
    Id,
    Lost,
    Parameters,
    Patience,
    Prepared, //
};
