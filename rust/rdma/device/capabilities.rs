// SPDX-License-Identifier: GPL-2.0

//! Capability flags of a device.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h),
//! `enum ib_device_cap_flags`, `enum ib_kernel_cap_flags`

use crate::bindings;
use core::ops::BitOr;

/// A set of capability flags. Those of `enum ib_device_cap_flags` are visible to user space, too.
/// Those of `enum ib_kernel_cap_flags` have names that start with `KERNEL_`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    device: u64,
    kernel: u64,
}

impl Capabilities {
    pub(super) const fn new(device: u64, kernel: u64) -> Self {
        Self { device, kernel }
    }

    /// Returns whether the set contains all flags of `other`.
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.device & other.device == other.device && self.kernel & other.kernel == other.kernel
    }

    /// Returns the flags of `enum ib_device_cap_flags`.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.device
    }

    /// Returns the names of the flags in the set: those of the C constants, without their prefix.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        NAMES
            .iter()
            .filter(move |(flag, _)| self.contains(*flag))
            .map(|(_, name)| *name)
    }
}

impl From<bindings::rrdma_device_capabilities> for Capabilities {
    fn from(raw: bindings::rrdma_device_capabilities) -> Self {
        Self::new(raw.device, raw.kernel)
    }
}

impl BitOr for Capabilities {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::new(self.device | other.device, self.kernel | other.kernel)
    }
}

/// Declares the constants and their names.
macro_rules! capabilities {
    (
        device { $($(#[$doc:meta])* $name:ident = $flag:ident;)+ }
        kernel { $($(#[$kernel_doc:meta])* $kernel_name:ident = $kernel_flag:ident;)+ }
    ) => {
        impl Capabilities {
            $($(#[$doc])* pub const $name: Self = Self::new(bindings::$flag as u64, 0);)+
            $(
                $(#[$kernel_doc])*
                pub const $kernel_name: Self = Self::new(0, bindings::$kernel_flag as u64);
            )+
        }

        const NAMES: &[(Capabilities, &str)] = &[
            $((Capabilities::$name, stringify!($name)),)+
            $((Capabilities::$kernel_name, stringify!($kernel_name)),)+
        ];
    };
}

capabilities! {
    device {
        /// A queue pair can be resized.
        RESIZE_MAX_WR = ib_device_cap_flags_IB_DEVICE_RESIZE_MAX_WR;
        /// Counts packets with a wrong P_Key.
        BAD_PKEY_CNTR = ib_device_cap_flags_IB_DEVICE_BAD_PKEY_CNTR;
        /// Counts packets with a wrong Q_Key.
        BAD_QKEY_CNTR = ib_device_cap_flags_IB_DEVICE_BAD_QKEY_CNTR;
        /// Raw datagrams can be multicast.
        RAW_MULTI = ib_device_cap_flags_IB_DEVICE_RAW_MULTI;
        /// Automatic path migration.
        AUTO_PATH_MIG = ib_device_cap_flags_IB_DEVICE_AUTO_PATH_MIG;
        /// A queue pair can move to another port while its send queue is drained.
        CHANGE_PHY_PORT = ib_device_cap_flags_IB_DEVICE_CHANGE_PHY_PORT;
        /// The port of an address handle must be that of the queue pair.
        UD_AV_PORT_ENFORCE = ib_device_cap_flags_IB_DEVICE_UD_AV_PORT_ENFORCE;
        /// A state change can name the expected current state (`IB_QP_CUR_STATE`).
        CURR_QP_STATE_MOD = ib_device_cap_flags_IB_DEVICE_CURR_QP_STATE_MOD;
        /// Ports can be shut down.
        SHUTDOWN_PORT = ib_device_cap_flags_IB_DEVICE_SHUTDOWN_PORT;
        /// Reports that a port has become active.
        PORT_ACTIVE_EVENT = ib_device_cap_flags_IB_DEVICE_PORT_ACTIVE_EVENT;
        /// Has a system image GUID.
        SYS_IMAGE_GUID = ib_device_cap_flags_IB_DEVICE_SYS_IMAGE_GUID;
        /// A responder without a posted receive answers with an RNR NAK.
        RC_RNR_NAK_GEN = ib_device_cap_flags_IB_DEVICE_RC_RNR_NAK_GEN;
        /// Shared receive queues can be resized.
        SRQ_RESIZE = ib_device_cap_flags_IB_DEVICE_SRQ_RESIZE;
        /// A notification can be requested after a number of completions.
        N_NOTIFY_CQ = ib_device_cap_flags_IB_DEVICE_N_NOTIFY_CQ;
        /// Memory windows.
        MEM_WINDOW = ib_device_cap_flags_IB_DEVICE_MEM_WINDOW;
        /// Offloads IP checksums of datagrams.
        UD_IP_CSUM = ib_device_cap_flags_IB_DEVICE_UD_IP_CSUM;
        /// Extended reliable connections.
        XRC = ib_device_cap_flags_IB_DEVICE_XRC;
        /// Fast registration, local invalidation, and send with invalidation, all as work requests.
        MEM_MGT_EXTENSIONS = ib_device_cap_flags_IB_DEVICE_MEM_MGT_EXTENSIONS;
        /// Memory windows of type 2A.
        MEM_WINDOW_TYPE_2A = ib_device_cap_flags_IB_DEVICE_MEM_WINDOW_TYPE_2A;
        /// Memory windows of type 2B.
        MEM_WINDOW_TYPE_2B = ib_device_cap_flags_IB_DEVICE_MEM_WINDOW_TYPE_2B;
        /// Offloads IP checksums on reliable connections.
        RC_IP_CSUM = ib_device_cap_flags_IB_DEVICE_RC_IP_CSUM;
        /// Offloads IP checksums of raw packets.
        RAW_IP_CSUM = ib_device_cap_flags_IB_DEVICE_RAW_IP_CSUM;
        /// Steers packets to queue pairs by their content.
        MANAGED_FLOW_STEERING = ib_device_cap_flags_IB_DEVICE_MANAGED_FLOW_STEERING;
        /// Can receive the frame check sequence of raw Ethernet frames.
        RAW_SCATTER_FCS = ib_device_cap_flags_IB_DEVICE_RAW_SCATTER_FCS;
        /// Can pad incoming writes to a cache line.
        PCI_WRITE_END_PADDING = ib_device_cap_flags_IB_DEVICE_PCI_WRITE_END_PADDING;
        /// The flush operation, with global visibility.
        FLUSH_GLOBAL = ib_device_cap_flags_IB_DEVICE_FLUSH_GLOBAL;
        /// The flush operation, to persistent memory.
        FLUSH_PERSISTENT = ib_device_cap_flags_IB_DEVICE_FLUSH_PERSISTENT;
        /// The atomic write operation.
        ATOMIC_WRITE = ib_device_cap_flags_IB_DEVICE_ATOMIC_WRITE;
        /// Confidential guest: DMA uses bounce buffers.
        CC_DMA_BOUNCE = ib_device_cap_flags_IB_DEVICE_CC_DMA_BOUNCE;
    }
    kernel {
        /// Has a key for local access to all memory.
        KERNEL_LOCAL_DMA_LKEY = ib_kernel_cap_flags_IBK_LOCAL_DMA_LKEY;
        /// Generates and checks integrity data (T10-PI).
        KERNEL_INTEGRITY_HANDOVER = ib_kernel_cap_flags_IBK_INTEGRITY_HANDOVER;
        /// Regions of user memory whose pages need not be present.
        KERNEL_ON_DEMAND_PAGING = ib_kernel_cap_flags_IBK_ON_DEMAND_PAGING;
        /// Fast registration of pieces that are not whole pages.
        KERNEL_SG_GAPS_REG = ib_kernel_cap_flags_IBK_SG_GAPS_REG;
        /// `rdma link delete` can remove the device.
        KERNEL_ALLOW_USER_UNREG = ib_kernel_cap_flags_IBK_ALLOW_USER_UNREG;
        /// A queue pair can block the loopback of its own multicasts.
        KERNEL_BLOCK_MULTICAST_LOOPBACK = ib_kernel_cap_flags_IBK_BLOCK_MULTICAST_LOOPBACK;
        /// TCP segmentation offload over datagrams.
        KERNEL_UD_TSO = ib_kernel_cap_flags_IBK_UD_TSO;
        /// Virtual functions can be configured.
        KERNEL_VIRTUAL_FUNCTION = ib_kernel_cap_flags_IBK_VIRTUAL_FUNCTION;
        /// Network devices over Omni-Path queue pairs.
        KERNEL_RDMA_NETDEV_OPA = ib_kernel_cap_flags_IBK_RDMA_NETDEV_OPA;
    }
}
