// SPDX-License-Identifier: GPL-2.0

//! RDMA verbs and the connection manager.
//!
//! Ownership follows one direction, and every object keeps its parents alive:
//!
//! ```text
//! client::Registration ── device::DeviceRef ─┬─ pd::ProtectionDomain ─┬─ qp::QueuePair
//!                                            ├─ cq::CompletionQueue ──┘      │
//!                                            └─ dma::DmaBuffer          wr::Operation
//! cm::Id ── owns a queue pair's connection                              mr::Region
//! ```
//!
//! A [`device::DeviceRef`] keeps the removal of its device waiting; the driver is
//! told by [`client::Client::removing`] and drops what it has. Memory that a
//! posted work request names belongs to the request until its completion: it
//! lives in a [`wr::Operation`], which posting consumes and completion returns.

pub mod ah;
pub mod client;
pub mod cm;
pub mod cq;
pub mod device;
pub mod dma;
pub mod mr;
pub mod multicast;
pub mod path;
pub mod pd;
pub mod qp;
pub mod rw;
pub mod srq;
pub mod wr;
