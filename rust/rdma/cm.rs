// SPDX-License-Identifier: GPL-2.0

//! The connection manager.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! A connection is made in steps, each of which is a type and consumes the one
//! before it:
//!
//! ```text
//! active   Id ── resolve ──▶ Addressed ── create_queue_pair ──▶ Prepared ── connect ──▶ Connected
//! passive  Listener ── next ──▶ Incoming ── create_queue_pair ──▶ Accepting ── accept ──▶ Connected
//!                               (have a device)                   (may post receives)
//! ```
//!
//! The steps wait in the caller's thread, and an error says which of them failed
//! and why. All waiting is on one
//! [`TimedCompletion`](crate::sync::TimedCompletion), the caller's: whoever
//! completes it makes the caller look again at whether it is still wanted, so a
//! step can be aborted at any moment. Dropping any of the types destroys the id,
//! which waits for a handler that is running; the peer of a request that is
//! dropped hears that it was rejected.
//!
//! ```ignore
//! // samples/key_ping/server.rs
//! let incoming = task
//!     .wait_for("client", EVER, || listener.next().transpose())?
//!     .map_err(|lost| Failure::new("client", fmt!("{lost}")))?;
//! let accepting = prepare(task, incoming)?;
//! // ...
//! let connected = accepting
//!     .accept(accepted, patience(&cancelled))
//!     .step("accept")?;
//! ```
//!
//! No consumer's code runs under the connection manager's locks, but for
//! [`Endpoint::lost`], which is told that an established connection has ended, and that of
//! an [`Observer`].

mod active;
mod cm_id;
mod connection;
mod destination;
mod endpoint;
mod error;
mod incoming;
mod listener;
mod observer;
mod peer;
mod service;

pub use active::{
    Addressed,
    Id,
    Prepared, //
};
pub use connection::Connected;
pub use endpoint::{
    Endpoint,
    Lost, //
};
pub use error::{
    Cause,
    Error,
    Rejection,
    Stage, //
};
pub use incoming::{
    Accepting,
    Incoming, //
};
pub use listener::Listener;
pub use observer::{
    Event,
    Observer, //
};
pub use peer::{
    Parameters,
    PeerParameters,
    RdAtomicLimits, //
};
pub use service::{
    Query,
    Service,
    ServiceListener,
    QKEY, //
};

pub use crate::net::Address;
pub use crate::sync::WaitLimits;

pub(crate) use active::resolve_for_datagrams;
pub(crate) use cm_id::CmId;
pub(crate) use destination::Destination;
pub(crate) use listener::{
    forget_names,
    init, //
};
