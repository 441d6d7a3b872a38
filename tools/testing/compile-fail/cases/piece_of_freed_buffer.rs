// SPDX-License-Identifier: GPL-2.0

//! A piece of a buffer cannot outlive the mapping of the buffer.
//!
//! refused: E0505: cannot move out of `buffer` because it is borrowed

#[path = "../support.rs"]
mod support;

use kernel::prelude::*;
use rrdma::rdma::dma::DmaBuffer;

pub(crate) fn length(buffer: DmaBuffer) -> Result<u32> {
    let piece = buffer.piece(0..16)?;
    #[cfg(misuse)]
    drop(buffer); //~
    Ok(piece.length())
}
