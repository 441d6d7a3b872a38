// SPDX-License-Identifier: GPL-2.0

//! Only a completion proves that a key was invalidated.
//!
//! refused: E0616: field `rkey` of struct `Invalidation` is private

use rrdma::{
    rdma::{
        cq::Invalidation,
        mr::{
            Region,
            RemoteKey, //
        }, //
    },
    scatter::Buffer,
};

pub(crate) fn close(told: &mut Invalidation, region: &mut Region<Buffer>, key: RemoteKey) -> bool {
    #[cfg(misuse)]
    let () = told.rkey = key.rkey; //~
    told.rkey() == key.rkey && region.invalidated_by(*told)
}
