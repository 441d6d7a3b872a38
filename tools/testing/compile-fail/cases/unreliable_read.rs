// SPDX-License-Identifier: GPL-2.0

//! What does not acknowledge cannot be read from.
//!
//! refused: E0599: no variant or associated item named `Read` found for enum `rrdma::rdma::qp::uc::Access` in the current scope

use rrdma::rdma::qp::uc::Access;

pub(crate) fn access() -> Access {
    #[cfg(not(misuse))]
    let access = Access::Write;
    #[cfg(misuse)]
    let access = Access::Read; //~
    access
}
