// SPDX-License-Identifier: GPL-2.0

//! Memory that the processor writes cannot be posted.
//!
//! refused: E0502: cannot borrow `*buffer` as immutable because it is also borrowed as mutable

use rrdma::rdma::dma::DmaBuffer;

pub(crate) fn length(buffer: &mut DmaBuffer) -> u32 {
    let mut bytes = buffer.write();
    bytes.fill(0);
    #[cfg(not(misuse))]
    drop(bytes);
    buffer.sge().length() //~
}
