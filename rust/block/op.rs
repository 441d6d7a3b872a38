// SPDX-License-Identifier: GPL-2.0

//! Operations of requests.
//!
//! C header: [`include/linux/blk_types.h`](srctree/include/linux/blk_types.h)

use crate::bindings;

/// Operation of a request. C: `enum req_op`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Read sectors.
    Read,
    /// Write sectors.
    Write,
    /// Flush the volatile write cache. Requires [`write_cache`](super::Limits::write_cache).
    Flush,
    /// Discard ranges of sectors. Requires a limit on discards.
    Discard,
    /// Write zeroes. Requires a limit on write-zeroes requests.
    WriteZeroes,
    /// A [`Command`](super::Command) of the driver that reads.
    DriverIn,
    /// A [`Command`](super::Command) of the driver that writes.
    DriverOut,
    /// Any other operation, by its number in `enum req_op`. The driver has enabled none of them.
    Other(u8),
}

impl Op {
    /// Mask of the operation in `cmd_flags`: `REQ_OP_MASK`.
    pub(super) const MASK: u32 = (1 << bindings::REQ_OP_BITS) - 1;

    /// Returns the operation in the `cmd_flags` of a request.
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
    "the number of an operation must fit Op::Other"
);
