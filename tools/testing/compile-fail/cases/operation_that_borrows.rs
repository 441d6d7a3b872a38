// SPDX-License-Identifier: GPL-2.0

//! An operation owns the memory that it names: the device may keep it for ever.
//!
//! refused: E0478: lifetime bound not satisfied
//! refused: E0495: cannot infer an appropriate lifetime

#[path = "../support.rs"]
mod support;

use rrdma::rdma::{
    cq::Completion,
    dma::DmaBuffer,
    qp::QueuePair,
    wr::{
        Complete,
        Operation, //
    },
};
use support::Peer;

pub(crate) struct Borrowed<'a> {
    pub(crate) buffer: &'a DmaBuffer,
}

#[cfg(not(misuse))]
impl Complete<Peer> for Borrowed<'static> {
    fn complete(_: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {}
}

#[cfg(misuse)]
impl<'a> Complete<Peer> for Borrowed<'a> {
    //~
    fn complete(_: Operation<Self>, _: &QueuePair<Peer>, _: &Completion<'_>) {}
}
