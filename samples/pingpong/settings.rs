// SPDX-License-Identifier: GPL-2.0

//! What is played: the options of the programs, by their long names.

use super::engine::polled_queue::Poller;
use crate::common::failure::Failure;
use kernel::{
    fmt,
    prelude::*, //
};
use rrdma::{
    params::Text,
    rdma::{
        device::{
            Device,
            Mtu, //
        },
        path::ServiceLevel, //
    },
    sync::Msecs, //
};

rrdma::parameters! {
    server: Text<63> = "", "address of the peer; empty: be the server";
    port: Number<1, 65535> = 18515, "TCP port to tell each other the addresses";
    device: Text<63> = "", "RDMA device; empty: the first with an active port";
    ib_port: Number<1, 255> = 1, "port of the device";
    gid_index: Number<0, 255> = 0, "which GID of the port";
    size: Number<1, 1048576> = 4096, "bytes of a message";
    mtu: Number<256, 4096> = 1024, "bytes of a packet: 256, 512, 1024, 2048 or 4096";
    rx_depth: Number<1, 32767> = 500, "receives that are posted";
    iters: Number<1, 1000000000> = 1000, "messages in each direction";
    sl: Number<0, 15> = 0, "service level";
    events: Bool = false, "sleep until something completes instead of polling";
    check: Bool = false, "look at every byte, as -c of the program writes them";
    patience: Number<1, 3600000> = 10000, "milliseconds of silence after which it is over";
}

/// The parameters, checked as far as they can be without a device.
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
    pub(crate) service_level: ServiceLevel,
    pub(crate) poller: Poller,
    pub(crate) check: bool,
    pub(crate) patience: Msecs,
}

/// Bytes that the posted receives may have, all together.
const MOST: usize = 64 << 20;

impl Settings {
    /// The parameters.
    ///
    /// # Errors
    ///
    /// Names the parameter, or the two that do not go together.
    pub(crate) fn get() -> Result<Self, Failure> {
        let refuse = |cause: fmt::Arguments<'_>| Failure::new("parameters", cause);
        let mtu = parameters::mtu.get();
        let sl = parameters::sl.get();
        let settings = Self {
            server: parameters::server.get(),
            port: narrow(parameters::port.get()),
            device: parameters::device.get(),
            ib_port: parameters::ib_port.get(),
            gid_index: parameters::gid_index.get(),
            size: parameters::size.get() as usize,
            mtu: Mtu::from_bytes(mtu).ok_or_else(|| refuse(fmt!("mtu={mtu} is no MTU of RDMA")))?,
            rx_depth: parameters::rx_depth.get(),
            iters: parameters::iters.get(),
            service_level: ServiceLevel::new(narrow(sl)).unwrap_or(ServiceLevel::MAX),
            poller: match parameters::events.get() {
                true => Poller::WokenTask,
                false => Poller::Task,
            },
            check: parameters::check.get(),
            patience: Msecs::new(parameters::patience.get()),
        };
        let (size, depth) = (settings.size, settings.rx_depth);
        if size.saturating_mul(depth as usize) > MOST {
            return Err(refuse(fmt!(
                "rx_depth={depth} receives of size={size} are more than {MOST} bytes"
            )));
        }
        Ok(settings)
    }

    /// Checks what a device limits.
    ///
    /// # Errors
    ///
    /// Names the parameter.
    pub(crate) fn check(&self, device: &Device) -> Result<(), Failure> {
        let limits = device.attributes();
        // The drain of the queue pair needs one more, and its queue one more still.
        let most = limits.max_qp_wr.min(limits.max_cqe).saturating_sub(4);
        if self.rx_depth > most {
            return Err(Failure::new(
                "parameters",
                fmt!(
                    "rx_depth={}: {} can have {most}",
                    self.rx_depth,
                    device.name()
                ),
            ));
        }
        Ok(())
    }

    /// Whether we are the client, which begins.
    pub(crate) fn is_client(&self) -> bool {
        !self.server.is_empty()
    }
}

/// A number that its parameter keeps small enough.
fn narrow<T: TryFrom<u32> + Default>(number: u32) -> T {
    T::try_from(number).unwrap_or_default()
}
