// SPDX-License-Identifier: GPL-2.0

//! Attributes of a port: its state, its link, the sizes of its tables.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_port_attr`

use crate::{
    bindings,
    rdma::{
        attributes::attributes,
        device::Mtu, //
    },
    text::kernel_display,
};
use core::fmt;

/// The logical state of a port (`enum ib_port_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No state, or an unknown one.
    Nop,
    /// No link.
    Down,
    /// The link is up, but the subnet manager has not configured the port yet.
    Init,
    /// The port is configured, but the subnet manager has not activated it yet.
    Armed,
    /// The port can send and receive.
    Active,
    /// The port was active, and its link has failed but may recover.
    ActiveDefer,
}

impl State {
    pub(super) fn from_raw(raw: bindings::ib_port_state) -> Self {
        match raw {
            bindings::ib_port_state_IB_PORT_DOWN => Self::Down,
            bindings::ib_port_state_IB_PORT_INIT => Self::Init,
            bindings::ib_port_state_IB_PORT_ARMED => Self::Armed,
            bindings::ib_port_state_IB_PORT_ACTIVE => Self::Active,
            bindings::ib_port_state_IB_PORT_ACTIVE_DEFER => Self::ActiveDefer,
            _ => Self::Nop,
        }
    }
}

impl fmt::Display for State {
    /// Prints the name that `rdma link show` prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Nop => "NOP",
            Self::Down => "DOWN",
            Self::Init => "INIT",
            Self::Armed => "ARMED",
            Self::Active => "ACTIVE",
            Self::ActiveDefer => "ACTIVE_DEFER",
        })
    }
}

/// The physical state of a port (`enum ib_port_phys_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhysicalState {
    /// Asleep.
    Sleep,
    /// Polling for a link.
    Polling,
    /// Switched off.
    Disabled,
    /// Negotiating the link with the other end.
    Training,
    /// The link is up.
    LinkUp,
    /// Recovering from link errors.
    LinkErrorRecovery,
    /// In a test mode.
    PhyTest,
    /// No state, or another one with this number.
    Other(u8),
}

impl PhysicalState {
    fn from_raw(raw: u8) -> Self {
        match raw.into() {
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_SLEEP => Self::Sleep,
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_POLLING => Self::Polling,
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_DISABLED => Self::Disabled,
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_PORT_CONFIGURATION_TRAINING => {
                Self::Training
            }
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_UP => Self::LinkUp,
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_LINK_ERROR_RECOVERY => {
                Self::LinkErrorRecovery
            }
            bindings::ib_port_phys_state_IB_PORT_PHYS_STATE_PHY_TEST => Self::PhyTest,
            _ => Self::Other(raw),
        }
    }
}

impl fmt::Display for PhysicalState {
    /// Prints the name that `rdma link show` prints.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sleep => "SLEEP",
            Self::Polling => "POLLING",
            Self::Disabled => "DISABLED",
            Self::Training => "PORT_CONFIGURATION_TRAINING",
            Self::LinkUp => "LINK_UP",
            Self::LinkErrorRecovery => "LINK_ERROR_RECOVERY",
            Self::PhyTest => "PHY_TEST",
            Self::Other(number) => return write!(f, "UNKNOWN({number})"),
        })
    }
}

/// The number of lanes of a link (`enum ib_port_width`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width(u8);

impl Width {
    /// Returns the number of lanes; `None` if the value is unknown.
    pub fn lanes(self) -> Option<u32> {
        Some(match u32::from(self.0) {
            bindings::ib_port_width_IB_WIDTH_1X => 1,
            bindings::ib_port_width_IB_WIDTH_2X => 2,
            bindings::ib_port_width_IB_WIDTH_4X => 4,
            bindings::ib_port_width_IB_WIDTH_8X => 8,
            bindings::ib_port_width_IB_WIDTH_12X => 12,
            _ => return None,
        })
    }
}

impl fmt::Display for Width {
    /// Prints as in `4X`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes() {
            Some(lanes) => write!(f, "{lanes}X"),
            None => write!(f, "invalid width ({})", self.0),
        }
    }
}

/// The speed of one lane of a link (`enum ib_port_speed`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed(u16);

impl Speed {
    /// Returns the speed in megabits per second; `None` if the value is unknown.
    pub fn megabits(self) -> Option<u32> {
        Some(match u32::from(self.0) {
            bindings::ib_port_speed_IB_SPEED_SDR => 2_500,
            bindings::ib_port_speed_IB_SPEED_DDR => 5_000,
            bindings::ib_port_speed_IB_SPEED_QDR | bindings::ib_port_speed_IB_SPEED_FDR10 => 10_000,
            bindings::ib_port_speed_IB_SPEED_FDR => 14_000,
            bindings::ib_port_speed_IB_SPEED_EDR => 25_000,
            bindings::ib_port_speed_IB_SPEED_HDR => 50_000,
            bindings::ib_port_speed_IB_SPEED_NDR => 100_000,
            bindings::ib_port_speed_IB_SPEED_XDR => 200_000,
            _ => return None,
        })
    }
}

impl fmt::Display for Speed {
    /// Prints as in `2.5 Gbps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.megabits() {
            Some(megabits) => write!(f, "{}.{} Gbps", megabits / 1000, megabits % 1000 / 100),
            None => write!(f, "invalid speed ({})", self.0),
        }
    }
}

kernel_display!(State, PhysicalState, Width, Speed);

attributes! {
    /// Attributes of a port at the time of the query (`struct ib_port_attr`).
    ///
    /// LIDs, service levels, virtual lanes and the subnet manager exist with InfiniBand only. With
    /// RoCE and iWARP, these attributes are zero or made up by the driver.
    #[derive(Clone, Copy)]
    pub struct Attributes from |raw: bindings::ib_port_attr| {
        /// Logical state.
        state: State = State::from_raw(raw.state),
        /// Physical state.
        physical_state: PhysicalState = PhysicalState::from_raw(raw.phys_state),
        /// Maximum MTU that the port supports; `None` if unknown.
        max_mtu: Option<Mtu> = Mtu::from_raw(raw.max_mtu),
        /// Current MTU; `None` if unknown.
        active_mtu: Option<Mtu> = Mtu::from_raw(raw.active_mtu),
        /// Maximum size of a message in bytes.
        max_message_size: u32 = raw.max_msg_sz,
        /// Number of lanes.
        width: Width = Width(raw.active_width),
        /// Speed of a lane.
        speed: Speed = Speed(raw.active_speed),
        /// Size of the GID table, including unused entries.
        gid_table_length: u32 = raw.gid_tbl_len.try_into().unwrap_or(0),
        /// Size of the P_Key table, including unused entries.
        pkey_table_length: u16 = raw.pkey_tbl_len,
        /// Capability mask of PortInfo, see the InfiniBand specification.
        capabilities: u32 = raw.port_cap_flags,
        /// Second capability mask of PortInfo.
        capabilities2: u16 = raw.port_cap_flags2,
        /// Local identifier.
        lid: u32 = raw.lid,
        /// LID mask control: the number of low bits of the LID that the port ignores.
        lmc: u8 = raw.lmc,
        /// Local identifier of the subnet manager.
        sm_lid: u32 = raw.sm_lid,
        /// Service level for packets to the subnet manager.
        sm_sl: u8 = raw.sm_sl,
        /// Subnet prefix.
        subnet_prefix: u64 = raw.subnet_prefix,
        /// Maximum time that the subnet takes to deliver a packet: 4.096 µs × 2^value.
        subnet_timeout: u8 = raw.subnet_timeout,
        /// How the subnet manager initialised the port (InitTypeReply).
        init_type_reply: u8 = raw.init_type_reply,
        /// Virtual lanes, as the specification encodes them (VLCap).
        max_vl_num: u8 = raw.max_vl_num,
        /// Number of packets with a wrong P_Key.
        bad_pkeys: u32 = raw.bad_pkey_cntr,
        /// Number of packets with a wrong Q_Key.
        bad_qkeys: u32 = raw.qkey_viol_cntr,
    }
}
