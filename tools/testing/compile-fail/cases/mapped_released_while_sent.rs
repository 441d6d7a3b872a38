// SPDX-License-Identifier: GPL-2.0

//! Mapped data cannot be released while a work request names it.
//!
//! refused: E0502: cannot borrow `*mapped` as mutable because it is also borrowed as immutable

use rrdma::{
    rdma::dma::Mapped,
    scatter::Buffer, //
};

pub(crate) fn release(mapped: &mut Mapped<Buffer>) -> bool {
    let mut entries = mapped.entries();
    let found = entries.next().is_some();
    drop(mapped.release()); //~
    #[cfg(misuse)]
    let found = entries.next().is_some();
    found
}
