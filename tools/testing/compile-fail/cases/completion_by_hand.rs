// SPDX-License-Identifier: GPL-2.0

//! Completions come from a completion queue.
//!
//! refused: E0624: associated function `from_raw` is private

use core::ptr::NonNull;
use rrdma::rdma::cq::Completion;

pub(crate) fn length(completion: &Completion<'_>) -> usize {
    #[cfg(misuse)]
    let completion = Completion::from_raw(NonNull::dangling()); //~
    completion.byte_len()
}
