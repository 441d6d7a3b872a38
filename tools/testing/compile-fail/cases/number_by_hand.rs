// SPDX-License-Identifier: GPL-2.0

//! A number with too many bits cannot be created.
//!
//! refused: E0423: cannot initialize a tuple struct which contains private fields

use rrdma::rdma::qp::Psn;

pub(crate) fn psn() -> Option<Psn> {
    #[cfg(not(misuse))]
    let psn = Psn::new(0x1000000);
    #[cfg(misuse)]
    let psn = Some(Psn(0x1000000)); //~
    psn
}
