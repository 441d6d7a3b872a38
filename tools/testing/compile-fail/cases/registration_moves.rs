// SPDX-License-Identifier: GPL-2.0

//! A registered client cannot be moved: the core has its address.
//!
//! refused: E0277: `PhantomPinned` cannot be unpinned

use core::pin::Pin;
use rrdma::rdma::client::{
    Client,
    Registration, //
};

pub(crate) fn change<C: Client>(registration: Pin<&mut Registration<C>>) {
    let _ = registration.context();
    #[cfg(misuse)]
    let _ = registration.get_mut(); //~
}
