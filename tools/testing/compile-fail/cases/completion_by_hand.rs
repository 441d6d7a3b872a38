// SPDX-License-Identifier: GPL-2.0

//! Only a completion queue creates completions.
//!
//! refused: E0624: associated function `from_raw` is private

use rrdma::rdma::cq::Completion;

pub(crate) fn succeeded(completion: &Completion<'_>) -> bool {
    #[cfg(misuse)]
    let _by_hand = Completion::from_raw; //~
    completion.result().is_ok()
}
