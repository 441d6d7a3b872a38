// SPDX-License-Identifier: GPL-2.0

//! Work requests, and the ownership of the memory that they name.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_send_wr`,
//! `struct ib_recv_wr`
//!
//! An [`Operation`] is pinned memory with everything that its work requests name: completion entry,
//! buffers, regions. Posting consumes it. Its completion, successful or flushed, returns it to
//! [`Complete::complete`]. So a buffer cannot be freed or accessed while a work request names it,
//! and each operation completes once, to one owner.
//!
//! Registers a region, and then sends the message with its key:
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
mod credited_message;
mod datagram;
mod message;
mod operation;
mod payload;
mod post;
mod receive_memory;
mod repeated_receive;
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
pub use credited_message::CreditedMessage;
pub use message::{
    FixedMessage,
    Message,
    MessageMut,
    Messages,
    MAX_MESSAGE_DATA, //
};
pub use operation::{
    Complete,
    Operation,
    Operations,
    Receive,
    Refusal,
    Unposted, //
};
pub(super) use post::with_receive_wr;

pub use receive_memory::{
    ReceiveBuffer,
    ReceiveMemory,
    ReceivePieces, //
};
pub use repeated_receive::{
    AfterReceive,
    RepeatedReceive, //
};

pub use payload::{
    Inline,
    Payload,
    SgeThen, //
};

pub use super::dma::Sge;

/// Maximum number of memory pieces of an operation, unless it is posted in a [`Batch`].
pub const MAX_SGE: usize = 8;

/// Maximum number of work requests of an operation, unless it is posted in a [`Batch`].
pub const MAX_REQUESTS: usize = 4;
