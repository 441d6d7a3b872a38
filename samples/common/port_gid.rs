// SPDX-License-Identifier: GPL-2.0

//! A place for queue pairs that are connected by hand with others of the same sample.
//!
//! What they have to tell each other they tell by a function call. The packets take
//! the wire, if there is one between their devices.

use super::{
    failure::{
        Failure,
        Step, //
    },
    peer::Peer,
    requirement::DeviceRequirement,
    task::SampleTask, //
};
use kernel::{
    prelude::*,
    str::CStr,
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

/// A port, and the GID that queue pairs are known by there.
pub(crate) struct PortGid<'a> {
    pub(crate) task: &'a Arc<SampleTask>,
    port: Port<'a>,
    source: GidEntry<'a>,
    pub(crate) pd: Arc<ProtectionDomain>,
}

impl<'a> PortGid<'a> {
    /// The first port of `device`, and its GID of a number.
    pub(crate) fn new(
        task: &'a Arc<SampleTask>,
        device: &'a DeviceRef,
        gid_index: u32,
        owner: &'static CStr,
    ) -> Result<Self, Failure> {
        DeviceRequirement::ConnectionsByHand.check(device)?;
        let port = device.port(1).ok_or(ENODEV).step("port")?;
        Ok(Self {
            task,
            port,
            source: port.gid(gid_index).step("GID")?,
            pd: ProtectionDomain::new(device.clone(), owner).step("protection domain")?,
        })
    }

    /// The device.
    pub(crate) fn device(&self) -> &DeviceRef {
        self.pd.device()
    }

    /// The largest packets that the port can have now.
    pub(crate) fn mtu(&self) -> Result<Mtu, Failure> {
        let mtu = self.port.attributes().step("port")?.active_mtu;
        mtu.ok_or(ENODEV).step("MTU")
    }

    /// Puts a queue pair here.
    pub(crate) fn init_qp<C: QpContext<QpType = Rc>>(
        &self,
        pair: Reset<C>,
        access: rc::Access,
    ) -> Result<Init<C>, Failure> {
        let init = rc::Init {
            port: self.port,
            pkey_index: 0,
            access,
        };
        pair.into_init(init).step("connect")
    }

    /// Connects a queue pair that was put here with the one of that number there, with
    /// so many reads and atomic operations at once in each direction.
    pub(crate) fn connect<C: QpContext<QpType = Rc>>(
        &self,
        pair: Init<C>,
        there: &PortGid<'_>,
        number: Qpn,
        mtu: Mtu,
        reads: u8,
    ) -> Result<Rts<C>, Failure> {
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
