// SPDX-License-Identifier: GPL-2.0

//! What the device may write again is not read.
//!
//! refused: E0499: cannot borrow `*buffer` as mutable more than once at a time

use rrdma::rdma::dma::DmaBuffer;

pub(crate) fn last(buffer: &mut DmaBuffer) -> Option<u8> {
    let bytes = buffer.read();
    let last = bytes.last().copied();
    buffer.give_back(); //~
    #[cfg(misuse)]
    let last = bytes.last().copied();
    last
}
