// SPDX-License-Identifier: GPL-2.0

//! Queue pairs of one sample that are connected by hand with each other.
//!
//! Both ends are in the same module, so they exchange their addresses by function calls. If they
//! are on two devices, the packets cross the link between them.

use super::{
    peer::{
        self,
        Peer, //
    },
    requirement::DeviceRequirement,
    step_error::{
        Step,
        StepError, //
    },
    task::{
        self,
        SampleTask, //
    }, //
};
use kernel::{
    prelude::*,
    sync::Arc, //
};
use rrdma::rdma::{
    device::{
        DeviceRef,
        GidEntry,
        Mtu,
        Port, //
    },
    path::Path,
    pd::ProtectionDomain,
    qp::{
        rc,
        Init,
        Psn,
        QpContext,
        Qpn,
        Rc,
        Reset,
        Rts, //
    },
};

/// A port with a GID, and the protection domain for queue pairs on it.
pub(crate) struct PortGid<'a> {
    pub(crate) task: &'a Arc<SampleTask>,
    port: Port<'a>,
    source: GidEntry<'a>,
    pub(crate) pd: Arc<ProtectionDomain>,
}

impl<'a> PortGid<'a> {
    /// Takes port 1 of `device` and its GID at `gid_index`. May sleep.
    pub(crate) fn new(
        task: &'a Arc<SampleTask>,
        device: &'a DeviceRef,
        gid_index: u32,
    ) -> Result<Self, StepError> {
        DeviceRequirement::ConnectionsByHand.check(device)?;
        let port = device.port(1).ok_or(ENODEV).step("port")?;
        Ok(Self {
            task,
            port,
            source: port.gid(gid_index).step("GID")?,
            pd: ProtectionDomain::new(device.clone(), task::NAME).step("protection domain")?,
        })
    }

    /// Returns the device.
    pub(crate) fn device(&self) -> &DeviceRef {
        self.pd.device()
    }

    /// Returns the active MTU of the port.
    pub(crate) fn mtu(&self) -> Result<Mtu, StepError> {
        let mtu = self.port.attributes().step("port")?.active_mtu;
        mtu.ok_or(ENODEV).step("MTU")
    }

    /// Moves a queue pair to INIT, on this port.
    pub(crate) fn init_qp<C: QpContext<QpType = Rc>>(
        &self,
        pair: Reset<C>,
        access: rc::Access,
    ) -> Result<Init<C>, StepError> {
        peer::initialise(pair, self.port, access).step("connect")
    }

    /// Connects `pair` with the queue pair `number` at `there`.
    ///
    /// `reads` limits the RDMA reads and atomic operations in flight in each direction.
    pub(crate) fn connect<C: QpContext<QpType = Rc>>(
        &self,
        pair: Init<C>,
        there: &PortGid<'_>,
        number: Qpn,
        mtu: Mtu,
        reads: u8,
    ) -> Result<Rts<C>, StepError> {
        let psn = Psn::truncate(1);
        let peer = Peer {
            path: Path::to_gid(self.source.clone(), there.source.gid()).step("path")?,
            mtu,
            qpn: number,
            psn,
        };
        peer.connect(pair, psn, reads).step("connect")
    }
}
