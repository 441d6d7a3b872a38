// SPDX-License-Identifier: GPL-2.0

//! The transport as a type, and its limits.

use nvmet::{
    PortLimit,
    PortLimits, //
};

/// The RDMA transport. Only the type is used. Its implementation is in
/// [`transport`](crate::transport).
pub(crate) struct Rdma;

/// Limits of the ports. They are those of nvmet-rdma.
pub(crate) const LIMITS: PortLimits = PortLimits {
    in_capsule: PortLimit {
        default: PAGE,
        max: 4 * PAGE,
    },
    queue_size: PortLimit {
        default: 128,
        max: 256,
    },
    mdts: 8,
};

/// Do Not Retry, in the form of `include/linux/nvme.h`.
pub(crate) const DNR: u16 = 0x4000;

/// Smallest page of a host in bytes (CAP.MPSMIN), the unit of MDTS.
const PAGE: u32 = 4096;

/// Maximum data of a command in bytes.
pub(crate) const MAX_TRANSFER: u32 = PAGE << LIMITS.mdts;

/// Maximum number of pages of the data of a command.
pub(crate) const MAX_PAGES: u32 = MAX_TRANSFER / PAGE;
