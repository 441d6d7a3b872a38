// SPDX-License-Identifier: GPL-2.0

//! A region of a pool cannot be taken out of its guard.
//!
//! refused: E0507: cannot move out of dereference of `MrGuard<Buffer>`

#[path = "../support.rs"]
mod support;

use rrdma::{
    rdma::mr::MrGuard,
    scatter::Buffer, //
};

pub(crate) fn keep(loan: MrGuard<Buffer>) -> Option<Buffer> {
    #[cfg(misuse)]
    return (*loan).dereg(); //~
    #[cfg(not(misuse))]
    {
        let mut loan = loan;
        loan.release()
    }
}
