// SPDX-License-Identifier: GPL-2.0

//! One invalidation closes one region.
//!
//! refused: E0382: use of moved value: `invalidation`

use rrdma::rdma::{
    cq::Invalidation,
    mr::{
        Buffer,
        Region, //
    },
};

pub(crate) fn close(
    first: &mut Region<Buffer>,
    second: &mut Region<Buffer>,
    invalidation: Invalidation,
) -> bool {
    let closed = first.invalidated_by(invalidation);
    #[cfg(misuse)]
    let closed = closed && second.invalidated_by(invalidation); //~
    closed
}
