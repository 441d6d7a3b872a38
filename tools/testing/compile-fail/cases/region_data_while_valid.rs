// SPDX-License-Identifier: GPL-2.0

//! Whether data is out of the reach of the peer is asked when it is taken.
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
