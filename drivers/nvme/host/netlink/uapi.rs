// SPDX-License-Identifier: GPL-2.0
// Made by tools/netlink/gen-uapi from Documentation/netlink/specs/rnvme.yaml; do not edit.

//! Numbers and policies of the generic netlink family, as data.

// The specification is the whole interface; the module need not use all of it.
#![allow(dead_code)]

use rrdma::netlink::{Attribute, Kind};

/// Name of the family.
pub(crate) const FAMILY: &core::ffi::CStr = c"rnvme";

/// Version of the family.
pub(crate) const VERSION: u8 = 1;

/// Name of the multicast group of events.
pub(crate) const GROUP_EVENTS: &core::ffi::CStr = c"events";

/// Longest NVMe Qualified Name, in bytes.
pub(crate) const NQN_MAX_LEN: usize = 223;

/// Longest numeric address, an IPv6 one with a scope included.
pub(crate) const TRADDR_MAX_LEN: usize = 64;

/// Longest name of a controller or of a disk.
pub(crate) const NAME_MAX_LEN: usize = 31;

/// Longest text that an error carries.
pub(crate) const MESSAGE_MAX_LEN: usize = 255;

/// Size of a host identifier, in bytes.
pub(crate) const HOSTID_LEN: usize = 16;

/// Size of a namespace globally unique identifier, in bytes.
pub(crate) const NGUID_LEN: usize = 16;

/// Size of an IEEE extended unique identifier, in bytes.
pub(crate) const EUI64_LEN: usize = 8;

/// Size of a universally unique identifier, in bytes.
pub(crate) const UUID_LEN: usize = 16;

/// Port used where a connect names none.
pub(crate) const TRSVCID_DEFAULT: u32 = 4420;

/// Most I/O queues that NVMe can number.
pub(crate) const NR_IO_QUEUES_MAX: u32 = 65535;

/// Smallest queue that a connect may ask for.
pub(crate) const QUEUE_SIZE_MIN: u32 = 16;

/// Largest queue that a connect may ask for.
pub(crate) const QUEUE_SIZE_MAX: u32 = 1024;

/// Queue size used where a connect names none.
pub(crate) const QUEUE_SIZE_DEFAULT: u32 = 128;

/// Longest keep-alive timeout in seconds; NVMe counts it in 32 bits of milliseconds.
pub(crate) const KEEP_ALIVE_TMO_MAX: u32 = 4_294_967;

/// Keep-alive timeout in seconds where a connect names none.
pub(crate) const KEEP_ALIVE_TMO_DEFAULT: u32 = 5;

/// Longest time to connect, in milliseconds.
pub(crate) const CONNECT_TIMEOUT_MAX: u32 = 600_000;

/// Time to connect where a connect names none, in milliseconds.
pub(crate) const CONNECT_TIMEOUT_DEFAULT: u32 = 10000;

/// Commands of requests, replies and events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Command {
    /// Start to connect a controller, and reply with its number and name at once. Whether it
    /// succeeds comes as events of the controller; the state live is success, and the states
    /// deleting and dead are failure. The event that tells of live comes after the disks of the
    /// namespaces were made.
    Connect = 1,
    /// Start to remove a controller in whatever state it is. The event ctrl-del-ntf tells that it
    /// is gone.
    Disconnect = 2,
    /// Read one controller, or all of the caller's network namespace.
    CtrlGet = 3,
    /// A controller was made.
    CtrlAddNtf = 4,
    /// The state of a controller or its last error changed.
    CtrlChangeNtf = 5,
    /// A controller is gone.
    CtrlDelNtf = 6,
    /// Read one namespace, or all of one controller, or all.
    NsGet = 7,
    /// A namespace got its disk.
    NsAddNtf = 8,
    /// The disk of a namespace is gone.
    NsDelNtf = 9,
}

/// State of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum CtrlState {
    /// Made; nothing has been sent to the target yet.
    New = 0,
    /// Its queues are being connected and set up.
    Connecting = 1,
    /// Ready for I/O.
    Live = 2,
    /// An error stopped it; its queues are being torn down.
    Resetting = 3,
    /// Being removed.
    Deleting = 4,
    /// Failed for good; the error attribute tells why.
    Dead = 5,
}

/// Where a controller was when it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ErrorStage {
    /// Resolving the target's address to an RDMA device.
    Address = 0,
    /// Resolving the route to the target.
    Route = 1,
    /// Setting up the RDMA device.
    Device = 2,
    /// Connecting a queue pair through the RDMA connection manager.
    Connect = 3,
    /// The Fabrics Connect command of a queue.
    FabricsConnect = 4,
    /// Reading the controller's properties and enabling it.
    Enable = 5,
    /// Identifying the controller.
    Identify = 6,
    /// Agreeing on the number of I/O queues and setting them up.
    Queues = 7,
    /// Finding the namespaces and making their disks.
    Namespaces = 8,
    /// Keeping an idle connection alive.
    KeepAlive = 9,
    /// A command to a live controller.
    Io = 10,
    /// The connection of a live controller.
    Transport = 11,
    /// The RDMA device went away.
    Removal = 12,
}

/// Why a controller failed. Only what is known is present; the stage, the errno and the message
/// always are.
pub(crate) mod error {
    /// Where it failed.
    pub(crate) const STAGE: u16 = 1;

    /// The error number, positive.
    pub(crate) const ERRNO: u16 = 2;

    /// Reason with which the connection manager's peer rejected the connection.
    pub(crate) const REJECT_REASON: u16 = 3;

    /// NVMe/RDMA status in the private data of that rejection.
    pub(crate) const CM_STATUS: u16 = 4;

    /// NVMe status field without the phase bit, as a command returned it.
    pub(crate) const NVME_STATUS: u16 = 5;

    /// Queue that failed; 0 is the admin queue.
    pub(crate) const QID: u16 = 6;

    /// The cause, for a person to read.
    pub(crate) const MESSAGE: u16 = 7;
}

/// A controller, and what a connect asks of one.
pub(crate) mod ctrl {
    /// Number of the controller, unique while it exists.
    pub(crate) const CTRL_ID: u16 = 1;

    /// Name of the controller, such as rnvme0.
    pub(crate) const NAME: u16 = 2;

    /// State of the controller.
    pub(crate) const STATE: u16 = 3;

    /// Numeric IPv4 or IPv6 address of the target; IPv6 may end in %scope.
    pub(crate) const TRADDR: u16 = 4;

    /// Port of the target.
    pub(crate) const TRSVCID: u16 = 5;

    /// Numeric address to connect from.
    pub(crate) const HOST_TRADDR: u16 = 6;

    /// NVMe Qualified Name of the subsystem.
    pub(crate) const SUBSYSNQN: u16 = 7;

    /// NVMe Qualified Name of the host.
    pub(crate) const HOSTNQN: u16 = 8;

    /// Identifier of the host, a UUID in the byte order of its text.
    pub(crate) const HOSTID: u16 = 9;

    /// Number of I/O queues. A connect asks for it, and gets no more than the target and the RDMA
    /// device offer; the default is one for each online CPU.
    pub(crate) const NR_IO_QUEUES: u16 = 10;

    /// Entries of each I/O queue; a connect asks for it, and may get fewer.
    pub(crate) const QUEUE_SIZE: u16 = 11;

    /// Keep-alive timeout in seconds; 0 switches keep-alive off.
    pub(crate) const KEEP_ALIVE_TMO: u16 = 12;

    /// Milliseconds after which a connect that has not made it fails.
    pub(crate) const CONNECT_TIMEOUT: u16 = 13;

    /// Type of service of the connections, as the connection manager takes it.
    pub(crate) const TOS: u16 = 14;

    /// Connect even where a controller of the same host, subsystem and address exists.
    pub(crate) const DUPLICATE_CONNECT: u16 = 15;

    /// Identifier that the target gave to the controller.
    pub(crate) const CNTLID: u16 = 16;

    /// RDMA device that the controller uses.
    pub(crate) const RDMA_DEVICE: u16 = 17;

    /// Model number that the target reports.
    pub(crate) const MODEL: u16 = 18;

    /// Serial number that the target reports.
    pub(crate) const SERIAL: u16 = 19;

    /// Firmware revision that the target reports.
    pub(crate) const FIRMWARE: u16 = 20;

    /// Number of namespaces that have a disk.
    pub(crate) const NR_NAMESPACES: u16 = 21;

    /// Most bytes that one command may move.
    pub(crate) const MAX_TRANSFER: u16 = 22;

    /// Most bytes of data that a command capsule carries itself.
    pub(crate) const INLINE_SIZE: u16 = 23;

    /// The last error of the controller.
    pub(crate) const ERROR: u16 = 24;
}

/// A namespace that has a disk.
pub(crate) mod ns {
    /// Controller of the namespace.
    pub(crate) const CTRL_ID: u16 = 1;

    /// Namespace identifier.
    pub(crate) const NSID: u16 = 2;

    /// Name of the disk, such as rnvme0n1.
    pub(crate) const NAME: u16 = 3;

    /// Capacity in bytes.
    pub(crate) const SIZE: u16 = 4;

    /// Logical block size in bytes.
    pub(crate) const BLOCK_SIZE: u16 = 5;

    /// Physical block size in bytes.
    pub(crate) const PHYSICAL_BLOCK_SIZE: u16 = 6;

    /// Namespace globally unique identifier, where it has one.
    pub(crate) const NGUID: u16 = 7;

    /// IEEE extended unique identifier, where it has one.
    pub(crate) const EUI64: u16 = 8;

    /// Universally unique identifier, where it has one.
    pub(crate) const UUID: u16 = 9;

    /// The namespace refuses writes.
    pub(crate) const READ_ONLY: u16 = 10;

    /// The target has a volatile write cache.
    pub(crate) const WRITE_CACHE: u16 = 11;
}

/// What the do request of connect takes.
pub(crate) const CONNECT_DO: &[Attribute] = &[
    Attribute {
        id: ctrl::TRADDR,
        kind: Kind::Str { max_len: 64 },
    },
    Attribute {
        id: ctrl::TRSVCID,
        kind: Kind::U16 {
            min: 1,
            max: u16::MAX,
        },
    },
    Attribute {
        id: ctrl::HOST_TRADDR,
        kind: Kind::Str { max_len: 64 },
    },
    Attribute {
        id: ctrl::SUBSYSNQN,
        kind: Kind::Str { max_len: 223 },
    },
    Attribute {
        id: ctrl::HOSTNQN,
        kind: Kind::Str { max_len: 223 },
    },
    Attribute {
        id: ctrl::HOSTID,
        kind: Kind::Binary {
            min_len: 16,
            max_len: 16,
        },
    },
    Attribute {
        id: ctrl::NR_IO_QUEUES,
        kind: Kind::U32 { min: 1, max: 65535 },
    },
    Attribute {
        id: ctrl::QUEUE_SIZE,
        kind: Kind::U32 { min: 16, max: 1024 },
    },
    Attribute {
        id: ctrl::KEEP_ALIVE_TMO,
        kind: Kind::U32 {
            min: 0,
            max: 4_294_967,
        },
    },
    Attribute {
        id: ctrl::CONNECT_TIMEOUT,
        kind: Kind::U32 {
            min: 1,
            max: 600_000,
        },
    },
    Attribute {
        id: ctrl::TOS,
        kind: Kind::U8 {
            min: 0,
            max: u8::MAX,
        },
    },
    Attribute {
        id: ctrl::DUPLICATE_CONNECT,
        kind: Kind::Flag,
    },
];

/// What the do request of disconnect takes.
pub(crate) const DISCONNECT_DO: &[Attribute] = &[Attribute {
    id: ctrl::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the do request of ctrl-get takes.
pub(crate) const CTRL_GET_DO: &[Attribute] = &[Attribute {
    id: ctrl::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the dump request of ctrl-get takes.
pub(crate) const CTRL_GET_DUMP: &[Attribute] = &[];

/// What the do request of ns-get takes.
pub(crate) const NS_GET_DO: &[Attribute] = &[
    Attribute {
        id: ns::CTRL_ID,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
        },
    },
    Attribute {
        id: ns::NSID,
        kind: Kind::U32 {
            min: 1,
            max: u32::MAX,
        },
    },
];

/// What the dump request of ns-get takes.
pub(crate) const NS_GET_DUMP: &[Attribute] = &[Attribute {
    id: ns::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];
