// SPDX-License-Identifier: GPL-2.0

//! The RDMA connection manager.
//!
//! C header: [`include/rdma/rdma_cm.h`](srctree/include/rdma/rdma_cm.h)
//!
//! A connection is set up in steps. Each step is a type; a method that performs a step consumes the
//! value of the previous one:
//!
//! ```text
//! active   Id ── resolve ──▶ Addressed ── create_queue_pair ──▶ Prepared ── connect ──▶ Connected
//! passive  Listener ── next ──▶ Incoming ── create_queue_pair ──▶ Accepting ── accept ──▶ Connected
//!                               (have a device)                   (may post receives)
//! ```
//!
//! The methods block the calling thread. An [`Error`] names the step that failed ([`Stage`]) and
//! the reason ([`Cause`]).
//!
//! All steps wait for one [`TimedCompletion`](crate::sync::TimedCompletion) of the caller. Complete
//! it to abort a step: the step fails if [`WaitLimits::cancelled`] then returns true. A signal for the
//! calling thread aborts a step, too ([`Cause::Interrupted`]). Kernel threads and work items get none.
//! From the creation of the queue pair on, the removal of its device completes it, too. A step then fails
//! with [`Cause::DeviceRemoved`]. The owner of a [`Connected`] must drop it when
//! [`is_removing`](crate::rdma::device::DeviceRef::is_removing) of the device is true.
//!
//! Dropping any of these types destroys its CM ID (`rdma_destroy_id`), which waits for a running
//! event handler. A request that is dropped before it is accepted is rejected.
//!
//! ```ignore
//! // samples/key_ping/server.rs
//! let incoming = task
//!     .wait_for("client", EVER, || listener.next().transpose())?
//!     .map_err(|lost| StepError::new("client", fmt!("{lost}")))?;
//! let accepting = prepare(task, incoming)?;
//! // ...
//! let connected = accepting
//!     .accept(accepted, patience(&cancelled))
//!     .step("accept")?;
//! ```
//!
//! The connection manager calls code of the consumer in two places, both with locks of its own
//! held: [`Endpoint::lost`], when an established connection ends, and [`Observer::heard`].

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
mod private_data;
mod service;

pub use active::{Addressed, Connecting, Id, Prepared};
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
    Incoming,
    Unfinished, //
};
pub use listener::{ListenParams, Listener};
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

pub use crate::{net::Address, sync::WaitLimits};

pub(crate) use active::resolve_for_datagrams;
pub(crate) use cm_id::BoundId;
pub(crate) use destination::Destination;
pub(crate) use listener::{
    forget_names,
    init, //
};
