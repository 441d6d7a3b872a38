// SPDX-License-Identifier: GPL-2.0

//! Work requests, and who owns the memory that they name.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_send_wr`, `struct ib_recv_wr`
//!
//! An [`Operation`] is a pinned piece of memory with everything that a work
//! request names: its completion entry, buffers, regions. Posting consumes it;
//! its completion, successful or flushed, hands it to [`Complete::complete`]. So
//! no buffer can be freed or touched while a request names it, and a request
//! completes once to one owner.
//!
//! A region that is registered, and then the message that tells of it:
//!
//! ```ignore
//! // samples/key_ping/client.rs
//! let advertised = Operation::new(AdvertisedRegion { region, message }).step(step)?;
//! queue
//!     .post_send(advertised, |advertised, chain| {
//!         chain.register(&advertised.region)?;
//!         chain.send([advertised.message.sge()])
//!     })
//!     .step(step)?;
//! ```

mod batch;
mod chain;
mod datagram;
mod operation;
mod payload;
mod post;
mod request;
mod wr_buffer;

pub use batch::{
    Batch,
    BatchCapacity, //
};
pub use chain::{
    Chain,
    ATOMIC_BYTES, //
};
pub use operation::{
    Complete,
    Operation,
    Receive,
    Unposted, //
};
pub use payload::{
    Inline,
    Payload,
    SgeThen, //
};

pub use super::dma::Sge;

/// Pieces of memory of all requests of one operation that is not of a [`Batch`].
pub const MAX_SGE: usize = 8;

/// Requests of one operation that is not of a [`Batch`].
pub const MAX_REQUESTS: usize = 4;
