// SPDX-License-Identifier: GPL-2.0

//! Logs the attributes of RDMA devices, as `ibv_devinfo -v` does, but from the kernel.
//!
//! The module is a client of RDMA devices. It logs the attributes of each device that is added, the
//! events of the device, and its removal. A device is not removed while the module uses it.

use kernel::{
    fmt,
    prelude::*, //
};
use rrdma::{
    errno::EOPNOTSUPP,
    rdma::{
        client::{
            Client,
            Event,
            Registration, //
        },
        device::{
            self,
            port,
            Device,
            DeviceRef,
            Mtu,
            Port, //
        },
    },
    sync::{
        OwnedQueue,
        WorkKind, //
    },
};

module! {
    type: DeviceInfo,
    name: "rrdma_device_info",
    authors: ["The rnvmf developers"],
    description: "Sample: attributes and events of RDMA devices and their ports",
    license: "GPL",
}

struct DeviceInfo {
    /// Dropping it calls `removing` for all devices.
    _registration: Registration<Observer>,
}

impl kernel::Module for DeviceInfo {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        let queue = OwnedQueue::new(c"rrdma_device_info", WorkKind::Ordinary, 1)?;
        Ok(Self {
            _registration: Registration::new(Observer { queue })?,
        })
    }
}

/// Context of the client callbacks.
struct Observer {
    /// Queries that an event handler cannot make itself. They run one at a time, to keep the log in
    /// the order of the events.
    queue: OwnedQueue,
}

impl Client for Observer {
    const NAME: &'static CStr = c"rrdma_device_info";

    type Context = Self;

    fn added(_: &Self, device: &DeviceRef) {
        pr_info!("{}: added\n", device.name());
        log_device(device);
        device.ports().for_each(log_port);
    }

    fn event(observer: &Self, device: &DeviceRef, event: Event) {
        let name = device.name();
        let Some(port) = event.port() else {
            pr_info!("{name}: event: {event}\n");
            return;
        };
        pr_info!("{name}/{port}: event: {event}\n");
        // Events arrive with locks held, and querying a port may sleep. The work item owns a
        // reference to the device, so a removal waits for it.
        let device = device.clone();
        let work = move || device.port(port).into_iter().for_each(log_port_changes);
        if observer.queue.try_spawn(GFP_KERNEL, work).is_err() {
            pr_err!("{name}/{port}: port not queried: out of memory\n");
        }
    }

    fn renamed(_: &Self, device: &DeviceRef) {
        pr_info!("{}: renamed\n", device.name());
    }

    fn removing(_: &Self, device: &Device) {
        pr_info!("{}: removing\n", device.name());
    }
}

/// Logs one attribute, with the name from `ibv_devinfo` if it has one.
fn fact(of: &impl fmt::Display, name: &str, value: fmt::Arguments<'_>) {
    pr_info!("{of}: {name}: {value}\n");
}

/// Logs attributes that are plain numbers.
fn facts(of: &impl fmt::Display, facts: &[(&str, u32)]) {
    for (name, value) in facts {
        fact(of, name, fmt!("{value}"));
    }
}

/// Something with a number: a port of a device, or an entry of a table of the port.
struct Numbered<'a, T>(&'a T, u32);

impl<T: fmt::Display> fmt::Display for Numbered<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)?;
        write!(f, "/{}", self.1)
    }
}

/// A GUID, as in `5054:00ff:fe12:3456`.
struct Guid(u64);

impl fmt::Display for Guid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d] = [48, 32, 16, 0].map(|shift| self.0 >> shift & 0xffff);
        write!(f, "{a:04x}:{b:04x}:{c:04x}:{d:04x}")
    }
}

/// An MTU, if there is one.
struct Bytes(Option<Mtu>);

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(mtu) => mtu.fmt(f),
            None => f.write_str("none"),
        }
    }
}

fn log_device(device: &Device) {
    let name = &device.name();
    let has = device.attributes();
    fact(name, "firmware", fmt!("{}", device.firmware_version()));
    fact(name, "node_type", fmt!("{}", has.node_type));
    fact(name, "node_guid", fmt!("{}", Guid(has.node_guid)));
    fact(name, "sys_image_guid", fmt!("{}", Guid(has.sys_image_guid)));
    fact(name, "vendor_id", fmt!("{:#06x}", has.vendor_id));
    fact(name, "hw_ver", fmt!("{:#X}", has.hardware_version));
    fact(name, "max_mr_size", fmt!("{:#x}", has.max_mr_size));
    fact(name, "page_size_cap", fmt!("{:#x}", has.page_size_cap));
    fact(name, "atomic_cap", fmt!("{}", has.atomics));
    fact(
        name,
        "device_cap_flags",
        fmt!("{:#x}", has.capabilities.bits()),
    );
    for capability in has.capabilities.names() {
        fact(name, "capability", fmt!("{capability}"));
    }
    log_limits(name, &has);
}

fn log_limits(name: &impl fmt::Display, has: &device::Attributes) {
    let limits = [
        ("vendor_part_id", has.vendor_part_id),
        ("phys_port_cnt", has.ports),
        ("num_comp_vectors", has.completion_vectors),
        ("max_qp", has.max_qp),
        ("max_qp_wr", has.max_qp_wr),
        ("max_send_sge", has.max_send_sge),
        ("max_recv_sge", has.max_recv_sge),
        ("max_sge_rd", has.max_sge_rd),
        ("max_qp_rd_atom", has.max_qp_rd_atom),
        ("max_qp_init_rd_atom", has.max_qp_init_rd_atom),
        ("max_res_rd_atom", has.max_res_rd_atom),
        ("local_ca_ack_delay", has.local_ca_ack_delay.into()),
        ("max_cq", has.max_cq),
        ("max_cqe", has.max_cqe),
        (
            "max_cq_moderation_count",
            has.max_cq_moderation_count.into(),
        ),
        (
            "max_cq_moderation_period",
            has.max_cq_moderation_period.into(),
        ),
        ("max_srq", has.max_srq),
        ("max_srq_wr", has.max_srq_wr),
        ("max_srq_sge", has.max_srq_sge),
        ("max_pd", has.max_pd),
        ("max_mr", has.max_mr),
        ("max_mw", has.max_mw),
        ("max_fast_reg_page_list_len", has.max_fast_reg_page_list_len),
        ("max_ah", has.max_ah),
        ("max_pkeys", has.max_pkeys.into()),
        ("max_mcast_grp", has.max_mcast_grp),
        ("max_mcast_qp_attach", has.max_mcast_qp_attach),
        ("max_total_mcast_qp_attach", has.max_total_mcast_qp_attach),
        ("max_ee", has.max_ee),
        ("max_ee_rd_atom", has.max_ee_rd_atom),
        ("max_ee_init_rd_atom", has.max_ee_init_rd_atom),
        ("max_rdd", has.max_rdd),
        ("max_raw_ipv6_qp", has.max_raw_ipv6_qp),
        ("max_raw_ethy_qp", has.max_raw_ethy_qp),
    ];
    facts(name, &limits);
}

fn log_port(port: Port<'_>) {
    let device = port.device().name();
    let name = &Numbered(&device, port.number());
    fact(name, "protocol", fmt!("{}", port.protocol()));
    fact(name, "link_layer", fmt!("{}", port.link_layer()));
    if let Some(netdev) = port.netdev() {
        fact(name, "netdev", fmt!("{}", netdev.name));
        fact(name, "netdev_index", fmt!("{}", netdev.index));
    }
    if let Some(attributes) = ask(name, port) {
        log_port_state(name, &attributes);
        log_port_attributes(name, &attributes);
    }
    log_gids(name, port);
    for (index, pkey) in port.pkeys() {
        fact(&Numbered(name, index.into()), "pkey", fmt!("{pkey}"));
    }
    log_statistics(name, port);
}

/// Returns the attributes of the port. Logs why if they are not available.
fn ask(name: &impl fmt::Display, port: Port<'_>) -> Option<port::Attributes> {
    match port.attributes() {
        Ok(attributes) => return Some(attributes),
        // The RDMA device is removed, too, but its client callback comes a little later.
        Err(ENODEV) => pr_info!("{name}: port query failed: network device removed\n"),
        Err(error) => pr_err!("{name}: port query failed: {error:?}\n"),
    }
    None
}

/// Logs what may have changed with an event.
fn log_port_changes(port: Port<'_>) {
    let device = port.device().name();
    let name = &Numbered(&device, port.number());
    if let Some(attributes) = ask(name, port) {
        log_port_state(name, &attributes);
    }
    log_gids(name, port);
}

fn log_port_state(name: &impl fmt::Display, port: &port::Attributes) {
    fact(name, "state", fmt!("PORT_{}", port.state));
    fact(name, "phys_state", fmt!("{}", port.physical_state));
    fact(name, "active_mtu", fmt!("{}", Bytes(port.active_mtu)));
}

fn log_gids(name: &impl fmt::Display, port: Port<'_>) {
    for gid in port.gids() {
        let entry = &Numbered(name, gid.index().into());
        fact(entry, "gid", fmt!("{}, {}", gid.gid(), gid.kind()));
        if let Some(netdev) = gid.netdev() {
            fact(entry, "gid_netdev", fmt!("{}", netdev.name));
        }
    }
}

fn log_port_attributes(name: &impl fmt::Display, port: &port::Attributes) {
    fact(name, "max_mtu", fmt!("{}", Bytes(port.max_mtu)));
    fact(name, "active_width", fmt!("{}", port.width));
    fact(name, "active_speed", fmt!("{}", port.speed));
    fact(name, "max_msg_sz", fmt!("{:#x}", port.max_message_size));
    fact(name, "port_cap_flags", fmt!("{:#010x}", port.capabilities));
    fact(name, "port_cap_flags2", fmt!("{:#06x}", port.capabilities2));
    fact(name, "port_lmc", fmt!("{:#04x}", port.lmc));
    fact(name, "bad_pkey_cntr", fmt!("{:#x}", port.bad_pkeys));
    fact(name, "qkey_viol_cntr", fmt!("{:#x}", port.bad_qkeys));
    let numbers = [
        ("gid_tbl_len", port.gid_table_length),
        ("pkey_tbl_len", port.pkey_table_length.into()),
        ("port_lid", port.lid),
        ("sm_lid", port.sm_lid),
        ("sm_sl", port.sm_sl.into()),
        ("subnet_timeout", port.subnet_timeout.into()),
        ("init_type_reply", port.init_type_reply.into()),
        ("max_vl_num", port.max_vl_num.into()),
    ];
    facts(name, &numbers);
}

fn log_statistics(name: &impl fmt::Display, port: Port<'_>) {
    let statistics = port.statistics().and_then(|mut statistics| {
        statistics.update()?;
        Ok(statistics)
    });
    match statistics {
        Ok(statistics) => {
            for (counter, value) in statistics.iter() {
                fact(name, "counter", fmt!("{counter} {value}"));
            }
        }
        // Drivers need not have counters.
        Err(error) if error == EOPNOTSUPP => {}
        Err(error) => pr_err!("{name}: reading counters failed: {error:?}\n"),
    }
}
