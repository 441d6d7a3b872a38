// SPDX-License-Identifier: GPL-2.0

//! What a request asks for.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use crate::bindings;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Write the volatile cache of the device to the medium. Only where
    /// [`write_cache`](super::Limits::write_cache) is set.
    Flush,
    /// Forget what is in ranges of sectors. Only with a limit on discards set.
    Discard,
    /// Write zeroes. Only with a limit on them set.
    WriteZeroes,
    /// A [`Command`](super::Command) of the driver that reads.
    DriverIn,
    /// A [`Command`](super::Command) of the driver that writes.
    DriverOut,
    /// Another operation, which the driver did not say that it knows: the number of
    /// C's `enum req_op`.
    Other(u8),
}

impl Op {
    /// The bits of `cmd_flags` that hold the operation: `REQ_OP_MASK`.
    pub(super) const MASK: u32 = (1 << bindings::REQ_OP_BITS) - 1;

    /// The operation in the `cmd_flags` of a request.
    #[inline]
    pub(super) fn from_flags(flags: bindings::blk_opf_t) -> Self {
        match flags & Self::MASK {
            bindings::req_op_REQ_OP_READ => Self::Read,
            bindings::req_op_REQ_OP_WRITE => Self::Write,
            bindings::req_op_REQ_OP_FLUSH => Self::Flush,
            bindings::req_op_REQ_OP_DISCARD => Self::Discard,
            bindings::req_op_REQ_OP_WRITE_ZEROES => Self::WriteZeroes,
            bindings::req_op_REQ_OP_DRV_IN => Self::DriverIn,
            bindings::req_op_REQ_OP_DRV_OUT => Self::DriverOut,
            other => Self::Other(other as u8),
        }
    }
}

const _: () = assert!(
    Op::MASK <= u8::MAX as u32,
    "Op::Other holds the number of an operation"
);
