// SPDX-License-Identifier: GPL-2.0

//! What a device says of itself: its limits, its capabilities, its origin.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_device_attr`
//!
//! What concerns user space only is left out: demand paging, receive hashing, tag
//! matching, raw packets, packet pacing.

use super::Capabilities;
use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;

/// What the device is (`enum rdma_node_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeType {
    /// A channel adapter: InfiniBand, and RoCE.
    ChannelAdapter,
    /// An InfiniBand switch; its only port is number 0.
    Switch,
    /// An InfiniBand router.
    Router,
    /// A network interface of iWARP.
    Rnic,
    /// Something else, of this number.
    Other(u32),
}

impl From<u32> for NodeType {
    fn from(raw: u32) -> Self {
        match raw {
            bindings::RDMA_NODE_IB_CA => Self::ChannelAdapter,
            bindings::RDMA_NODE_IB_SWITCH => Self::Switch,
            bindings::RDMA_NODE_IB_ROUTER => Self::Router,
            bindings::RDMA_NODE_RNIC => Self::Rnic,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for NodeType {
    /// As `rdma dev show` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ChannelAdapter => f.write_str("ca"),
            Self::Switch => f.write_str("switch"),
            Self::Router => f.write_str("router"),
            Self::Rnic => f.write_str("rnic"),
            Self::Other(number) => write!(f, "node type {number}"),
        }
    }
}

/// With whose accesses to memory the device's atomic operations are atomic
/// (`enum ib_atomic_cap`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicScope {
    /// There are no atomic operations.
    None,
    /// With those of this device.
    Device,
    /// With those of all devices, and of the processors.
    Global,
}

impl From<bindings::ib_atomic_cap> for AtomicScope {
    fn from(raw: bindings::ib_atomic_cap) -> Self {
        match raw {
            bindings::ib_atomic_cap_IB_ATOMIC_HCA => Self::Device,
            bindings::ib_atomic_cap_IB_ATOMIC_GLOB => Self::Global,
            _ => Self::None,
        }
    }
}

impl fmt::Display for AtomicScope {
    /// As the verbs name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "ATOMIC_NONE",
            Self::Device => "ATOMIC_HCA",
            Self::Global => "ATOMIC_GLOB",
        })
    }
}

kernel_display!(NodeType, AtomicScope);

/// Declares [`Attributes`], and how it is made of what C read.
macro_rules! attributes {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        /// What a device says of itself (`struct ib_device_attr`), all in the units
        /// of the verbs. A limit is of one device, unless it says otherwise, and
        /// no promise: memory may run out earlier.
        #[derive(Clone, Copy)]
        pub struct Attributes {
            $($(#[$doc])* pub $name: $type,)+
        }

        impl From<bindings::rrdma_device_attributes> for Attributes {
            fn from(raw: bindings::rrdma_device_attributes) -> Self {
                Self {
                    $($name: raw.$name.into(),)+
                }
            }
        }
    };
}

attributes! {
    /// The GUID of the node; not unique among soft devices that share a MAC address.
    node_guid: u64,
    /// The GUID that all nodes of one piece of hardware have in common.
    sys_image_guid: u64,
    /// What the device is.
    node_type: NodeType,
    /// The PCI vendor, or the IEEE's number of it.
    vendor_id: u32,
    /// The vendor's number of the product.
    vendor_part_id: u32,
    /// The vendor's number of the hardware's version.
    hardware_version: u32,
    /// Physical ports.
    ports: u32,
    /// Completion vectors (interrupts) to spread completion queues over.
    completion_vectors: u32,
    /// Memory node the device is nearest to, or -1.
    numa_node: i32,

    /// What it can do.
    capabilities: Capabilities,
    /// Of compare-and-swap and fetch-and-add.
    atomics: AtomicScope,
    /// Of their masked variants.
    masked_atomics: AtomicScope,

    /// Queue pairs.
    max_qp: u32,
    /// Work requests that one queue of a queue pair can hold.
    max_qp_wr: u32,
    /// Scatter/gather entries of one send request.
    max_send_sge: u32,
    /// Scatter/gather entries of one receive request.
    max_recv_sge: u32,
    /// Scatter/gather entries of one RDMA read.
    max_sge_rd: u32,
    /// Entries of one RDMA read above which registering the memory is faster; 0 if
    /// there is no such number.
    max_sgl_rd: u32,
    /// RDMA reads and atomics that a queue pair can have outstanding as responder.
    max_qp_rd_atom: u32,
    /// RDMA reads and atomics that a queue pair can have outstanding as initiator.
    max_qp_init_rd_atom: u32,
    /// RDMA reads and atomics that all queue pairs can have outstanding as responder.
    max_res_rd_atom: u32,
    /// How long the device takes to acknowledge: 4.096 µs × 2^this.
    local_ca_ack_delay: u8,

    /// Completion queues.
    max_cq: u32,
    /// Entries that one completion queue can hold.
    max_cqe: u32,
    /// Completions that one notification can stand for; 0 if there is no moderation.
    max_cq_moderation_count: u16,
    /// Microseconds that a notification can be put off by moderation.
    max_cq_moderation_period: u16,

    /// Shared receive queues.
    max_srq: u32,
    /// Receives that one shared receive queue can hold.
    max_srq_wr: u32,
    /// Scatter/gather entries of one receive of a shared receive queue.
    max_srq_sge: u32,

    /// Protection domains.
    max_pd: u32,
    /// Memory regions.
    max_mr: u32,
    /// Memory windows.
    max_mw: u32,
    /// Bytes of one memory region.
    max_mr_size: u64,
    /// The sizes of pages that regions can be made of: bit n for 2^n bytes.
    page_size_cap: u64,
    /// Pages that one fast registration can cover.
    max_fast_reg_page_list_len: u32,
    /// Pages that one fast registration with integrity data can cover.
    max_pi_fast_reg_page_list_len: u32,
    /// Bytes of the device's own memory; for user space only.
    max_dm_size: u64,

    /// Address handles.
    max_ah: u32,
    /// P_Keys of one port.
    max_pkeys: u16,
    /// Multicast groups.
    max_mcast_grp: u32,
    /// Queue pairs that one multicast group can have.
    max_mcast_qp_attach: u32,
    /// Queue pairs that all multicast groups can have together.
    max_total_mcast_qp_attach: u32,

    /// The bits of a completion's time stamp that count; for user space only.
    timestamp_mask: u64,
    /// The clock of these, in kHz; 0 if there is none.
    hca_core_clock: u64,

    /// End-to-end contexts: of reliable datagrams, which no device has.
    max_ee: u32,
    /// RDMA reads and atomics of one of these as responder.
    max_ee_rd_atom: u32,
    /// RDMA reads and atomics of one of these as initiator.
    max_ee_init_rd_atom: u32,
    /// Reliable datagram domains.
    max_rdd: u32,
    /// Queue pairs for raw IPv6 datagrams.
    max_raw_ipv6_qp: u32,
    /// Queue pairs for raw Ethernet datagrams.
    max_raw_ethy_qp: u32,
}
