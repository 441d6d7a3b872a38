// SPDX-License-Identifier: GPL-2.0

//! The peer of a queue pair that is connected by hand.

use super::{
    formats::handshake::PingpongDest,
    step_error::{
        Step,
        StepError, //
    },
};
use kernel::prelude::*;
use rrdma::rdma::{
    device::{
        port::Protocol,
        Gid,
        GidEntry,
        Mtu,
        Port, //
    },
    path::Path,
    qp::{
        rc,
        AckTimeout,
        Init,
        Psn,
        QpContext,
        Qpn,
        Rc,
        Reset,
        RetryCount,
        RnrTimer,
        Rts,
        TransitionError, //
    },
};

/// The timers of the programs in libibverbs: 67 ms and 0.64 ms.
const TIMEOUT: AckTimeout = AckTimeout::of::<14>();
const RNR_TIMER: RnrTimer = RnrTimer::of::<12>();

/// Moves a queue pair for a reliable connection to INIT, on `port`. `access` is that of the peer.
pub(crate) fn initialise<C: QpContext<QpType = Rc>>(
    reset: Reset<C>,
    port: Port<'_>,
    access: rc::Access,
) -> Result<Init<C>, TransitionError> {
    reset.into_init(rc::Init {
        port,
        pkey_index: 0,
        access,
    })
}

/// Address of the peer. Transport services use different parts of it.
pub(crate) struct Peer<'a> {
    /// Path to the peer.
    pub(crate) path: Path<'a>,
    /// Path MTU.
    pub(crate) mtu: Mtu,
    /// Queue pair number of the peer.
    pub(crate) qpn: Qpn,
    /// Packet sequence number of the first packet from the peer.
    pub(crate) psn: Psn,
}

impl<'a> Peer<'a> {
    /// Returns the peer with the address `theirs`, reached from `port` with the GID `source`.
    pub(crate) fn told(
        theirs: &PingpongDest,
        mtu: Mtu,
        port: Port<'a>,
        source: GidEntry<'a>,
    ) -> Result<Self, StepError> {
        let path = match port.protocol() {
            Protocol::InfiniBand => Path::to_lid(port, theirs.lid),
            _ => Path::to_gid(source, Gid::from_bytes(theirs.gid)),
        };
        Ok(Self {
            path: path.step("path")?,
            mtu,
            qpn: Qpn::new(theirs.qpn).ok_or(EINVAL).step("peer")?,
            psn: Psn::new(theirs.psn).ok_or(EINVAL).step("peer")?,
        })
    }

    /// Connects a reliable connection to the peer.
    ///
    /// `reads` limits the RDMA reads and atomic operations in flight in each direction. `psn` is
    /// the number of the first packet that this end sends.
    pub(crate) fn connect<C: QpContext<QpType = Rc>>(
        self,
        init: Init<C>,
        psn: Psn,
        reads: u8,
    ) -> Result<Rts<C>, TransitionError> {
        let rtr = init.into_rtr(rc::Rtr {
            path: self.path,
            path_mtu: self.mtu,
            dest_qpn: self.qpn,
            rq_psn: self.psn,
            max_dest_rd_atomic: reads,
            min_rnr_timer: RNR_TIMER,
        })?;
        rtr.into_rts(rc::Rts {
            sq_psn: psn,
            timeout: TIMEOUT,
            retry_count: RetryCount::MAX,
            rnr_retry: RetryCount::FOR_EVER,
            max_rd_atomic: reads,
        })
    }
}
