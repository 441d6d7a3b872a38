// SPDX-License-Identifier: GPL-2.0

//! RDMA verbs and the connection manager.
//!
//! Every object holds a reference to its parents, so a parent outlives its children:
//!
//! ```text
//! client::Registration ── device::DeviceRef ─┬─ pd::ProtectionDomain ─┬─ qp::QueuePair
//!                                            ├─ cq::CompletionQueue ──┘      │
//!                                            └─ dma::DmaBuffer          wr::Operation
//! cm::Connected ── owns the CM ID of a queue pair                       mr::Region
//! ```
//!
//! The removal of a device waits until the last [`device::DeviceRef`] is dropped. The core first
//! calls [`client::Client::removing`], in which the driver drops all its objects of the device.
//!
//! A posted work request owns the memory that it names until it completes. The memory lives in a
//! [`wr::Operation`]: posting consumes the operation and its completion returns it.

pub mod ah;
mod attributes;
pub mod client;
pub mod cm;
pub mod cq;
mod credits;
pub mod device;
pub mod dma;
pub mod mr;
pub mod multicast;
pub mod path;
pub mod pd;
pub mod qp;
pub mod rw;
mod sleeping_drop;
pub mod srq;
pub mod wr;
