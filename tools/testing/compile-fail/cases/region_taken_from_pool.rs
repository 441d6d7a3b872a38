// SPDX-License-Identifier: GPL-2.0

//! A region that is lent goes back to its pool.
//!
//! refused: E0507: cannot move out of dereference of `Loan<Buffer>`

#[path = "../support.rs"]
mod support;

use rrdma::{
    rdma::mr::Loan,
    scatter::Buffer, //
};

pub(crate) fn keep(loan: Loan<Buffer>) -> Option<Buffer> {
    #[cfg(misuse)]
    return (*loan).dismantle(); //~
    #[cfg(not(misuse))]
    {
        let mut loan = loan;
        loan.release()
    }
}
