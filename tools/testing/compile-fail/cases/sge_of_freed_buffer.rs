// SPDX-License-Identifier: GPL-2.0

//! A buffer cannot be dropped while a scatter/gather entry names it.
//!
//! refused: E0505: cannot move out of `buffer` because it is borrowed

use rrdma::rdma::dma::DmaBuffer;

pub(crate) fn length(buffer: DmaBuffer) -> u32 {
    let sge = buffer.sge();
    let length = sge.length();
    drop(buffer); //~
    #[cfg(misuse)]
    let length = sge.length();
    length
}
