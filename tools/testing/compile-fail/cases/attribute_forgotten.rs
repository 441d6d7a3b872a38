// SPDX-License-Identifier: GPL-2.0

//! A transition of a queue pair needs all its attributes.
//!
//! refused: E0063: missing field `rq_psn` in initializer of `rrdma::rdma::qp::uc::Rtr<'_>`

use rrdma::rdma::{
    device::Mtu,
    path::Path,
    qp::{
        uc,
        Psn,
        Qpn, //
    },
};

pub(crate) fn attributes(path: Path<'_>, dest_qpn: Qpn, _rq_psn: Psn) -> uc::Rtr<'_> {
    #[cfg(not(misuse))]
    let attributes = uc::Rtr {
        path,
        path_mtu: Mtu::Bytes1024,
        dest_qpn,
        rq_psn: _rq_psn,
    };
    #[cfg(misuse)]
    #[rustfmt::skip]
    let attributes = uc::Rtr { //~
        path,
        path_mtu: Mtu::Bytes1024,
        dest_qpn,
    };
    attributes
}
