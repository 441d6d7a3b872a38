// SPDX-License-Identifier: GPL-2.0

//! Attributes of a device: its limits, its capabilities, its vendor.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_device_attr`
//!
//! Attributes for user space only are left out: on-demand paging, receive hashing, tag matching,
//! raw packets, packet pacing.

use super::Capabilities;
use crate::{
    bindings,
    rdma::attributes::attributes,
    text::kernel_display, //
};
use core::fmt;

/// The type of a device (`enum rdma_node_type`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeType {
    /// A channel adapter of InfiniBand or RoCE.
    ChannelAdapter,
    /// An InfiniBand switch. Its only port is number 0.
    Switch,
    /// An InfiniBand router.
    Router,
    /// An iWARP network interface.
    Rnic,
    /// Another type, with this number.
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
    /// Prints the name that `rdma dev show` prints.
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

/// The scope within which atomic operations of the device are atomic (`enum ib_atomic_cap`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AtomicScope {
    /// The device has no atomic operations.
    None,
    /// Atomic among the accesses of this device.
    Device,
    /// Atomic among the accesses of all devices and of the processors.
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
    /// Prints the name of the verbs, without its prefix.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "ATOMIC_NONE",
            Self::Device => "ATOMIC_HCA",
            Self::Global => "ATOMIC_GLOB",
        })
    }
}

kernel_display!(NodeType, AtomicScope);

attributes! {
    /// Attributes of a device (`struct ib_device_attr`), in the units of the verbs.
    ///
    /// A limit applies to the whole device, unless it says otherwise. It is not guaranteed: memory
    /// may run out before the limit is reached.
    #[derive(Clone, Copy)]
    pub struct Attributes from |raw: bindings::rrdma_device_attributes| {
        /// GUID of the node. Soft devices on the same MAC address have the same GUID.
        node_guid: u64 = raw.node_guid,
        /// GUID that all nodes of a hardware unit share.
        sys_image_guid: u64 = raw.sys_image_guid,
        /// Type of the device.
        node_type: NodeType = raw.node_type.into(),
        /// PCI vendor ID, or IEEE number of the vendor.
        vendor_id: u32 = raw.vendor_id,
        /// Product number of the vendor.
        vendor_part_id: u32 = raw.vendor_part_id,
        /// Hardware version number of the vendor.
        hardware_version: u32 = raw.hardware_version,
        /// Number of physical ports.
        ports: u32 = raw.ports,
        /// Number of completion vectors (interrupts), for distributing completion queues.
        completion_vectors: u32 = raw.completion_vectors,
        /// NUMA node of the device, or -1.
        numa_node: i32 = raw.numa_node,

        /// Supported features.
        capabilities: Capabilities = raw.capabilities.into(),
        /// Scope of compare-and-swap and fetch-and-add.
        atomics: AtomicScope = raw.atomics.into(),
        /// Scope of the masked atomic operations.
        masked_atomics: AtomicScope = raw.masked_atomics.into(),

        /// Maximum number of queue pairs.
        max_qp: u32 = raw.max_qp,
        /// Maximum number of work requests in one send or receive queue.
        max_qp_wr: u32 = raw.max_qp_wr,
        /// Maximum number of scatter/gather entries of a send.
        max_send_sge: u32 = raw.max_send_sge,
        /// Maximum number of scatter/gather entries of a receive.
        max_recv_sge: u32 = raw.max_recv_sge,
        /// Maximum number of scatter/gather entries of an RDMA read.
        max_sge_rd: u32 = raw.max_sge_rd,
        /// Number of entries of an RDMA read above which a memory region is faster; 0 if there is
        /// no such number.
        max_sgl_rd: u32 = raw.max_sgl_rd,
        /// Maximum number of RDMA reads and atomics outstanding at a queue pair as responder.
        max_qp_rd_atom: u32 = raw.max_qp_rd_atom,
        /// Maximum number of RDMA reads and atomics outstanding at a queue pair as initiator.
        max_qp_init_rd_atom: u32 = raw.max_qp_init_rd_atom,
        /// Maximum number of RDMA reads and atomics outstanding at all queue pairs as responder.
        max_res_rd_atom: u32 = raw.max_res_rd_atom,
        /// Maximum time until the device acknowledges a packet: 4.096 µs × 2^value.
        local_ca_ack_delay: u8 = raw.local_ca_ack_delay,

        /// Maximum number of completion queues.
        max_cq: u32 = raw.max_cq,
        /// Maximum number of entries of a completion queue.
        max_cqe: u32 = raw.max_cqe,
        /// Maximum number of completions per notification; 0 if there is no moderation.
        max_cq_moderation_count: u16 = raw.max_cq_moderation_count,
        /// Maximum delay of a notification by moderation, in microseconds.
        max_cq_moderation_period: u16 = raw.max_cq_moderation_period,

        /// Maximum number of shared receive queues.
        max_srq: u32 = raw.max_srq,
        /// Maximum number of receives in a shared receive queue.
        max_srq_wr: u32 = raw.max_srq_wr,
        /// Maximum number of scatter/gather entries of a receive in a shared receive queue.
        max_srq_sge: u32 = raw.max_srq_sge,

        /// Maximum number of protection domains.
        max_pd: u32 = raw.max_pd,
        /// Maximum number of memory regions.
        max_mr: u32 = raw.max_mr,
        /// Maximum number of memory windows.
        max_mw: u32 = raw.max_mw,
        /// Maximum size of a memory region, in bytes.
        max_mr_size: u64 = raw.max_mr_size,
        /// Page sizes of memory regions: bit n stands for 2^n bytes.
        page_size_cap: u64 = raw.page_size_cap,
        /// Maximum number of pages of a fast registration.
        max_fast_reg_page_list_len: u32 = raw.max_fast_reg_page_list_len,

        /// Maximum number of address handles.
        max_ah: u32 = raw.max_ah,
        /// Maximum number of P_Keys of a port.
        max_pkeys: u16 = raw.max_pkeys,
        /// Maximum number of multicast groups.
        max_mcast_grp: u32 = raw.max_mcast_grp,
        /// Maximum number of queue pairs attached to a multicast group.
        max_mcast_qp_attach: u32 = raw.max_mcast_qp_attach,
        /// Maximum number of queue pairs attached to all multicast groups.
        max_total_mcast_qp_attach: u32 = raw.max_total_mcast_qp_attach,

        /// Maximum number of end-to-end contexts, for reliable datagrams, which no device supports.
        max_ee: u32 = raw.max_ee,
        /// Maximum number of RDMA reads and atomics of an end-to-end context as responder.
        max_ee_rd_atom: u32 = raw.max_ee_rd_atom,
        /// Maximum number of RDMA reads and atomics of an end-to-end context as initiator.
        max_ee_init_rd_atom: u32 = raw.max_ee_init_rd_atom,
        /// Maximum number of reliable datagram domains.
        max_rdd: u32 = raw.max_rdd,
        /// Maximum number of queue pairs for raw IPv6 datagrams.
        max_raw_ipv6_qp: u32 = raw.max_raw_ipv6_qp,
        /// Maximum number of queue pairs for raw Ethernet datagrams.
        max_raw_ethy_qp: u32 = raw.max_raw_ethy_qp,
    }
}
