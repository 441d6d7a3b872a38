// SPDX-License-Identifier: GPL-2.0

//! Taking the data of a region checks that the peer cannot access it.
//!
//! refused: E0308: mismatched types

use rrdma::{
    rdma::mr::Region,
    scatter::Buffer, //
};

#[cfg(not(misuse))]
type Taken = Option<Buffer>;
#[cfg(misuse)]
type Taken = Buffer;

pub(crate) fn take(region: &mut Region<Buffer>) -> Taken {
    region.release() //~
}
