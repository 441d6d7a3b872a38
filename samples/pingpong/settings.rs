// SPDX-License-Identifier: GPL-2.0

//! Module parameters, named after the long options of the programs.

use crate::common::step_error::StepError;
use kernel::{
    fmt,
    prelude::*, //
};
use rrdma::{
    params::Text,
    rdma::{
        device::Mtu,
        path::{
            Path,
            ServiceLevel, //
        },
    },
    sync::Msecs, //
};

rrdma::parameters! {
    server: Text<63> = "", "address of the server; empty: be the server";
    port: Number<1, 65535> = 18515, "TCP port for the exchange of addresses; default 18515";
    device: Text<63> = "", "RDMA device name; empty: first device with an active port";
    ib_port: Number<1, 255> = 1, "port number of the device; default 1";
    gid_index: Number<0, 255> = 0, "GID index of the port; default 0";
    size: Number<1, 1048576> = 4096, "message size in bytes; default 4096";
    mtu: Number<256, 4096> = 1024, "path MTU: 256, 512, 1024, 2048 or 4096; default 1024";
    rx_depth: Number<1, 32767> = 500, "number of posted receives; default 500";
    iters: Number<1, 1000000000> = 1000, "number of messages in each direction; default 1000";
    sl: Number<0, 15> = 0, "service level; default 0";
    tclass: Number<0, 255> = 0, "traffic class; default 0";
    hops: Number<0, 255> = 0, "hop limit; default 0, that of the route";
    events: Bool = false, "sleep until a completion event instead of polling";
    check: Bool = false, "validate received data; a program as the client needs -c";
    patience: Number<1, 3600000> = 10000, "timeout in ms without a message; default 10000";
}

/// Parameters, checked as far as possible without a device.
pub(crate) struct Settings {
    pub(crate) server: Text<63>,
    pub(crate) port: u16,
    pub(crate) device: Text<63>,
    pub(crate) ib_port: u32,
    pub(crate) gid_index: u32,
    pub(crate) size: usize,
    pub(crate) mtu: Mtu,
    pub(crate) rx_depth: u32,
    pub(crate) iters: u32,
    service_level: ServiceLevel,
    traffic_class: u8,
    /// 0: that of the route.
    hop_limit: u8,
    /// Sleep until a completion event instead of polling.
    pub(crate) events: bool,
    pub(crate) check: bool,
    pub(crate) patience: Msecs,
}

/// Maximum size of all posted receives together, in bytes.
pub(crate) const MOST: usize = 64 << 20;

impl Settings {
    /// Reads the parameters.
    ///
    /// # Errors
    ///
    /// The cause names the parameter, or the two that do not fit together.
    pub(crate) fn get() -> Result<Self, StepError> {
        let refuse = |cause: fmt::Arguments<'_>| StepError::new("parameters", cause);
        let mtu = parameters::mtu.get();
        let sl = parameters::sl.get();
        let settings = Self {
            server: parameters::server.get(),
            port: narrow(parameters::port.get()),
            device: parameters::device.get(),
            ib_port: parameters::ib_port.get(),
            gid_index: parameters::gid_index.get(),
            size: parameters::size.get() as usize,
            mtu: Mtu::from_bytes(mtu)
                .ok_or_else(|| refuse(fmt!("mtu={mtu} is not an RDMA MTU")))?,
            rx_depth: parameters::rx_depth.get(),
            iters: parameters::iters.get(),
            service_level: ServiceLevel::new(narrow(sl)).unwrap_or(ServiceLevel::MAX),
            traffic_class: narrow(parameters::tclass.get()),
            hop_limit: narrow(parameters::hops.get()),
            events: parameters::events.get(),
            check: parameters::check.get(),
            patience: Msecs::new(parameters::patience.get()),
        };
        let (size, depth) = (settings.size, settings.rx_depth);
        if size.saturating_mul(depth as usize) > MOST {
            return Err(refuse(fmt!(
                "rx_depth={depth} receives of size={size} exceed {MOST} bytes"
            )));
        }
        Ok(settings)
    }

    /// Sets how the packets on `path` travel.
    pub(crate) fn route<'a>(&self, path: Path<'a>) -> Path<'a> {
        let path = path
            .with_service_level(self.service_level)
            .with_traffic_class(self.traffic_class);
        match self.hop_limit {
            0 => path,
            limit => path.with_hop_limit(limit),
        }
    }

    /// Returns whether this end is the client, which sends first.
    pub(crate) fn is_client(&self) -> bool {
        !self.server.is_empty()
    }
}

/// Converts a number that the range of its parameter keeps small enough.
fn narrow<T: TryFrom<u32> + Default>(number: u32) -> T {
    T::try_from(number).unwrap_or_default()
}
