// SPDX-License-Identifier: GPL-2.0

//! What a port says of itself.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `struct ib_port_attr`

use crate::{
    bindings,
    rdma::device::Mtu, //
    text::kernel_display,
};
use core::fmt;

/// What the port is ready for (`enum ib_port_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It does not say.
    Nop,
    /// There is no link.
    Down,
    /// There is a link; the subnet manager has not configured it.
    Init,
    /// It is configured, and waits for the subnet manager to let it go.
    Armed,
    /// It sends and receives.
    Active,
    /// It is active, and the link has just failed; it may come back.
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
    /// As `rdma link show` does.
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

/// What the port's transceiver does (`enum ib_port_phys_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PhysicalState {
    /// It sleeps.
    Sleep,
    /// It looks for a link.
    Polling,
    /// It is off.
    Disabled,
    /// It agrees with the other end on how to talk.
    Training,
    /// There is a link.
    LinkUp,
    /// It mends a link with errors.
    LinkErrorRecovery,
    /// It is being tested.
    PhyTest,
    /// It does not say, or something else.
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
    /// As `rdma link show` does.
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

/// How many lanes a link has (`enum ib_port_width`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Width(u8);

impl Width {
    /// The number of lanes; `None` if the port does not know.
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
    /// As in `4X`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lanes() {
            Some(lanes) => write!(f, "{lanes}X"),
            None => write!(f, "invalid width ({})", self.0),
        }
    }
}

/// How fast each lane of a link is (`enum ib_port_speed`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Speed(u16);

impl Speed {
    /// Megabits a second; `None` if the port does not know.
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
    /// As in `2.5 Gbps`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.megabits() {
            Some(megabits) => write!(f, "{}.{} Gbps", megabits / 1000, megabits % 1000 / 100),
            None => write!(f, "invalid speed ({})", self.0),
        }
    }
}

kernel_display!(State, PhysicalState, Width, Speed);

/// What a port says of itself (`struct ib_port_attr`), as of when it was asked.
///
/// LIDs, service levels, virtual lanes and the subnet manager are of InfiniBand:
/// with RoCE and iWARP they are zero, or made up by the driver.
#[derive(Clone, Copy)]
pub struct Attributes {
    /// What it is ready for.
    pub state: State,
    /// What its transceiver does.
    pub physical_state: PhysicalState,
    /// The largest packets that it can ever have; `None` if it does not say.
    pub max_mtu: Option<Mtu>,
    /// The largest packets that it can have now; `None` if it does not say.
    pub active_mtu: Option<Mtu>,
    /// Bytes of the longest message.
    pub max_message_size: u32,
    /// Lanes.
    pub width: Width,
    /// Speed of each.
    pub speed: Speed,
    /// Entries of the GID table, whether they are used or not.
    pub gid_table_length: u32,
    /// Entries of the P_Key table, whether they are used or not.
    pub pkey_table_length: u16,
    /// The capability mask of PortInfo, as the InfiniBand specification numbers it.
    pub capabilities: u32,
    /// The second capability mask of PortInfo.
    pub capabilities2: u16,
    /// Its local identifier.
    pub lid: u32,
    /// How many of the low bits of the identifier it does not look at.
    pub lmc: u8,
    /// The local identifier of the subnet manager.
    pub sm_lid: u32,
    /// The service level that the subnet manager is to be talked to with.
    pub sm_sl: u8,
    /// The prefix of the subnet.
    pub subnet_prefix: u64,
    /// How long the subnet takes at most to deliver: 4.096 µs × 2^this.
    pub subnet_timeout: u8,
    /// What the subnet manager has done when it configured the port.
    pub init_type_reply: u8,
    /// Virtual lanes, as the specification numbers the sets of them.
    pub max_vl_num: u8,
    /// Packets with a wrong P_Key.
    pub bad_pkeys: u32,
    /// Packets with a wrong Q_Key.
    pub bad_qkeys: u32,
}

impl From<bindings::ib_port_attr> for Attributes {
    fn from(raw: bindings::ib_port_attr) -> Self {
        Self {
            state: State::from_raw(raw.state),
            physical_state: PhysicalState::from_raw(raw.phys_state),
            max_mtu: Mtu::from_raw(raw.max_mtu),
            active_mtu: Mtu::from_raw(raw.active_mtu),
            max_message_size: raw.max_msg_sz,
            width: Width(raw.active_width),
            speed: Speed(raw.active_speed),
            gid_table_length: raw.gid_tbl_len.try_into().unwrap_or(0),
            pkey_table_length: raw.pkey_tbl_len,
            capabilities: raw.port_cap_flags,
            capabilities2: raw.port_cap_flags2,
            lid: raw.lid,
            lmc: raw.lmc,
            sm_lid: raw.sm_lid,
            sm_sl: raw.sm_sl,
            subnet_prefix: raw.subnet_prefix,
            subnet_timeout: raw.subnet_timeout,
            init_type_reply: raw.init_type_reply,
            max_vl_num: raw.max_vl_num,
            bad_pkeys: raw.bad_pkey_cntr,
            bad_qkeys: raw.qkey_viol_cntr,
        }
    }
}
