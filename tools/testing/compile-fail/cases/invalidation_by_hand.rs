// SPDX-License-Identifier: GPL-2.0

//! That a key was invalidated is told by a completion, not by a number.
//!
//! refused: E0423: cannot initialize a tuple struct which contains private fields

use rrdma::rdma::{
    cq::{
        Completion,
        Invalidation, //
    },
    mr::{
        Buffer,
        Region, //
    },
};

pub(crate) fn close(region: &mut Region<Buffer>, completion: &Completion<'_>, rkey: u32) -> bool {
    #[cfg(misuse)]
    return region.invalidated_by(Invalidation(rkey)); //~
    #[cfg(not(misuse))]
    completion
        .invalidation()
        .is_some_and(|invalidation| region.invalidated_by(invalidation))
}
