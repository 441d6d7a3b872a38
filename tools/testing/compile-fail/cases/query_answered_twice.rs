// SPDX-License-Identifier: GPL-2.0

//! A service query is answered only once.
//!
//! refused: E0382: use of moved value: `query`

use rrdma::rdma::{
    cm::{
        Query,
        QKEY, //
    },
    qp::Qpn,
};

pub(crate) fn answer(query: Query, number: Qpn) {
    drop(query.answer(number, QKEY, &[]));
    #[cfg(misuse)]
    drop(query.answer(number, QKEY, &[])); //~
}
