// SPDX-License-Identifier: GPL-2.0

//! The data of a region cannot be released while a work request names it.
//!
//! refused: E0502: cannot borrow `*region` as mutable because it is also borrowed as immutable

use rrdma::{
    rdma::mr::Region,
    scatter::Buffer, //
};

pub(crate) fn release(region: &mut Region<Buffer>) -> bool {
    let mut entries = region.entries();
    let found = entries.next().is_some();
    drop(region.release()); //~
    #[cfg(misuse)]
    let found = entries.next().is_some();
    found
}
