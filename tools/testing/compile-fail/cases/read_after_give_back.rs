// SPDX-License-Identifier: GPL-2.0

//! A buffer that the device may write cannot be read.
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
