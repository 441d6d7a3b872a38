// SPDX-License-Identifier: GPL-2.0

//! The states of a queue pair.
//!
//! C header: [`include/rdma/ib_verbs.h`](srctree/include/rdma/ib_verbs.h), `enum ib_qp_state`

use crate::{
    bindings,
    text::kernel_display, //
};
use core::fmt;

/// The state of a queue pair (`enum ib_qp_state`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum State {
    /// Initial state.
    Reset = bindings::ib_qp_state_IB_QPS_RESET,
    /// On a port. Receives can be posted, but incoming packets are dropped.
    Init = bindings::ib_qp_state_IB_QPS_INIT,
    /// Ready to receive: incoming packets are accepted.
    Rtr = bindings::ib_qp_state_IB_QPS_RTR,
    /// Ready to send, in addition to [`Rtr`](Self::Rtr).
    Rts = bindings::ib_qp_state_IB_QPS_RTS,
    /// Send queue drained, or being drained.
    Sqd = bindings::ib_qp_state_IB_QPS_SQD,
    /// Send queue error: a send of an unreliable service failed. Receives still work.
    Sqe = bindings::ib_qp_state_IB_QPS_SQE,
    /// Error: all posted work requests are flushed.
    Error = bindings::ib_qp_state_IB_QPS_ERR,
}

impl State {
    pub(super) fn as_raw(self) -> bindings::ib_qp_state {
        self as bindings::ib_qp_state
    }

    /// Returns the state; unknown values become [`Error`](Self::Error).
    pub(super) fn from_raw(raw: bindings::ib_qp_state) -> Self {
        match raw {
            bindings::ib_qp_state_IB_QPS_RESET => Self::Reset,
            bindings::ib_qp_state_IB_QPS_INIT => Self::Init,
            bindings::ib_qp_state_IB_QPS_RTR => Self::Rtr,
            bindings::ib_qp_state_IB_QPS_RTS => Self::Rts,
            bindings::ib_qp_state_IB_QPS_SQD => Self::Sqd,
            bindings::ib_qp_state_IB_QPS_SQE => Self::Sqe,
            _ => Self::Error,
        }
    }
}

impl fmt::Display for State {
    /// Formats the state as `rdma res show qp` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reset => "RESET",
            Self::Init => "INIT",
            Self::Rtr => "RTR",
            Self::Rts => "RTS",
            Self::Sqd => "SQD",
            Self::Sqe => "SQE",
            Self::Error => "ERR",
        })
    }
}

kernel_display!(State);
