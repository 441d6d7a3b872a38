// SPDX-License-Identifier: GPL-2.0

//! A service without acknowledgements does not let the peer read.
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
