// SPDX-License-Identifier: GPL-2.0

//! Memory that the processor writes cannot be posted, also if the guard of the writes is leaked.
//!
//! refused: E0502: cannot borrow `*buffer` as immutable because it is also borrowed as mutable

use core::ops::DerefMut;
use kernel::prelude::*;
use rrdma::rdma::dma::DmaBuffer;

pub(crate) fn length(buffer: &mut DmaBuffer) -> Result<u32> {
    let bytes = KBox::leak(KBox::new(buffer.write(), GFP_KERNEL)?);
    #[cfg(not(misuse))]
    bytes.fill(0);
    let length = buffer.sge().length(); //~
    #[cfg(misuse)]
    bytes.deref_mut().fill(0);
    Ok(length)
}
