// SPDX-License-Identifier: GPL-2.0

//! The bytes of a leaked receive cannot be kept while its memory is posted again.
//!
//! refused: E0499: cannot borrow `*memory` as mutable more than once at a time

use kernel::prelude::*;
use rrdma::rdma::wr::{
    ReceiveMemory,
    ReceivePieces, //
};

pub(crate) fn post(memory: KBox<ReceiveMemory>) -> ReceivePieces<'static> {
    let memory: &'static mut ReceiveMemory = KBox::leak(memory);
    #[cfg(misuse)]
    let bytes: &'static [u8] = memory.first();
    let pieces: ReceivePieces<'static> = memory.pieces(); //~
    #[cfg(misuse)]
    let _ = bytes.first();
    pieces
}
