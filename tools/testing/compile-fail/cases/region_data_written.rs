// SPDX-License-Identifier: GPL-2.0

//! Data that the peer may reach is not written to.
//!
//! refused: E0596: cannot borrow `*data` as mutable, as it is behind a `&` reference

use rrdma::rdma::mr::{
    Buffer,
    Region, //
};

pub(crate) fn clear(region: &mut Region<Buffer>) {
    if let Some(data) = region.data() {
        let _ = data.bytes();
        #[cfg(misuse)]
        data.bytes_mut().fill(0); //~
    }
}
