// SPDX-License-Identifier: GPL-2.0
// Made by tools/netlink/gen-uapi from Documentation/netlink/specs/rnvmf.yaml; do not edit.

//! Numbers and policies of the generic netlink family, as data.

// The specification is the whole interface; the module need not use all of it.
#![allow(dead_code)]

use rrdma::netlink::{Attribute, Kind};

/// Name of the family.
pub(crate) const FAMILY: &core::ffi::CStr = c"rnvmf";

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

/// Longest pause between attempts to connect again, in seconds.
pub(crate) const RECONNECT_DELAY_MAX: u32 = 3600;

/// Longest pause between attempts where a connect names none, in seconds.
pub(crate) const RECONNECT_DELAY_DEFAULT: u32 = 10;

/// Longest time that a loss may take, in seconds.
pub(crate) const LOSS_TMO_MAX: u32 = 4_294_967;

/// A time that is never over.
pub(crate) const LOSS_TMO_NEVER: u32 = 4_294_967_295;

/// Time to connect again where a connect names none, in seconds.
pub(crate) const CTRL_LOSS_TMO_DEFAULT: u32 = 600;

/// Most entries of a discovery log that are read.
pub(crate) const DISCOVERY_ENTRIES_MAX: u32 = 1024;

/// Most namespaces without a disk that a controller names.
pub(crate) const NO_DISK_MAX: u32 = 16;

/// Longest text of why a namespace has no disk; what is longer is cut.
pub(crate) const REASON_MAX_LEN: usize = 111;

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
    /// The state of a controller or its last error changed, or a look at its namespaces is over.
    CtrlChangeNtf = 5,
    /// A controller is gone.
    CtrlDelNtf = 6,
    /// Read one namespace, or all of one controller, or all.
    NsGet = 7,
    /// A namespace got its disk.
    NsAddNtf = 8,
    /// The disk of a namespace is gone.
    NsDelNtf = 9,
    /// Start to reset a live controller: it is shut down and connected again, with its disks, whose
    /// I/O waits. Its state is resetting when this returns, and it has no error; live means that it
    /// was reset, and an error that it could not be connected at once, and why.
    CtrlReset = 10,
    /// Change what a controller does when its connection is lost, at least one of the attributes.
    /// It counts at once, also while the controller connects again; connect-timeout does for
    /// attempts that begin from then on. The event ctrl-change-ntf tells of it.
    CtrlSet = 11,
    /// Start to ask a discovery controller, and reply with a number at once. The kernel connects to
    /// it, reads its log and disconnects. The event discover-ntf tells when that is done. The
    /// connect-timeout is for all of it. The discovery belongs to the socket that asked for it: it
    /// ends, and what was read is forgotten, when that is closed, or asks for another. A persistent
    /// one stays connected, reads the log again whenever the controller says that it changed, and
    /// connects again after a loss, with pauses of up to reconnect-delay. Each log that was read,
    /// and each failure, has an event. Without persistent, keep-alive-tmo and reconnect-delay mean
    /// nothing.
    Discover = 12,
    /// Read how a discovery of this socket went, or dump the entries of the log that it has read,
    /// each in a message of its own.
    DiscoverGet = 13,
    /// A discovery is done, or a persistent one has a new log or has failed.
    DiscoverNtf = 14,
    /// Read what the queues of one controller have done together, or what each queue has done, of
    /// one controller or of all of the caller's network namespace.
    StatsGet = 15,
    /// Choose whether the time is measured that the commands of a controller take. It is not at
    /// first, as it costs a look at the clock at either end.
    StatsSet = 16,
    /// Start to look at the namespaces of a live controller, and reply with the number of that
    /// look: new ones get a disk, the disks of those that are gone or others go, the others follow
    /// in size and protection. The controller has no error when this returns. It is over when scan
    /// has come to that number; an error tells that it failed, and why.
    CtrlRescan = 17,
    /// The size of a namespace, or whether it can be written to, changed.
    NsChangeNtf = 18,
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
    /// An error or a reset stopped it; its queues are being torn down.
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
    /// Reading the discovery log.
    Discovery = 13,
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
    /// Number of the controller, which is not the one in its name: no other controller gets it
    /// until 2^32 more have been made.
    pub(crate) const CTRL_ID: u16 = 1;

    /// Name of the controller, such as rnvmf0.
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

    /// Number of I/O queues, those below not counted. A connect asks for it, and gets no more than
    /// the target and the RDMA device offer, nor than there are CPUs; the default is one for each
    /// online CPU.
    pub(crate) const NR_IO_QUEUES: u16 = 10;

    /// Entries of each I/O queue; a connect asks for it, and may get fewer.
    pub(crate) const QUEUE_SIZE: u16 = 11;

    /// Keep-alive timeout in seconds; 0 switches keep-alive off.
    pub(crate) const KEEP_ALIVE_TMO: u16 = 12;

    /// Milliseconds that an attempt to connect may take, the first as well as those after a loss or
    /// a reset.
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

    /// Longest pause between attempts to connect again, in seconds.
    pub(crate) const RECONNECT_DELAY: u16 = 25;

    /// Seconds after a loss that attempts to connect again go on for; 0 for none, loss-tmo-never
    /// for no end. After that the controller is dead.
    pub(crate) const CTRL_LOSS_TMO: u16 = 26;

    /// Seconds after a loss that I/O is held back for; then it fails at once until the controller
    /// is live again. Without it, I/O is held back as long as attempts go on.
    pub(crate) const FAST_IO_FAIL_TMO: u16 = 27;

    /// Attempts to connect again since the loss, while they go on.
    pub(crate) const ATTEMPTS: u16 = 28;

    /// Milliseconds until the next attempt, while none is under way.
    pub(crate) const NEXT_ATTEMPT: u16 = 29;

    /// Number of I/O queues for writes only, beside nr-io-queues, which are then for reads. A
    /// connect gets some only if it gets all of those.
    pub(crate) const NR_WRITE_QUEUES: u16 = 30;

    /// Number of I/O queues for polled requests only, beside the others. A connect gets some only
    /// if it gets all of the others.
    pub(crate) const NR_POLL_QUEUES: u16 = 31;

    /// Number of the discovery that was begun, unique while it exists.
    pub(crate) const DISCOVERY_ID: u16 = 32;

    /// Number of the last look at the namespaces of the live controller that is over. It counts up.
    pub(crate) const SCAN: u16 = 33;

    /// Stay connected to the discovery controller, and follow its log.
    pub(crate) const PERSISTENT: u16 = 34;

    /// Milliseconds until no more attempts are made, while the connection is lost; where it is
    /// absent they have no end.
    pub(crate) const GIVE_UP: u16 = 35;

    /// Ask the target not to tell how far it is in its queues. The host does not look at that in
    /// any case.
    pub(crate) const DISABLE_SQFLOW: u16 = 36;

    /// Number of namespaces that have no disk, as they were found last.
    pub(crate) const NR_NO_DISK: u16 = 37;

    /// A namespace that has no disk. Of more than no-disk-max there are as many.
    pub(crate) const NO_DISK: u16 = 38;

    /// How often the controller was connected anew by a reset, at its first attempt. It counts up
    /// from 0, and wraps around.
    pub(crate) const NR_RESETS: u16 = 39;

    /// How often it was connected anew after a loss, or after a reset whose first attempt failed,
    /// likewise.
    pub(crate) const NR_RECONNECTS: u16 = 40;
}

/// A namespace that has a disk.
pub(crate) mod ns {
    /// Controller of the namespace.
    pub(crate) const CTRL_ID: u16 = 1;

    /// Namespace identifier.
    pub(crate) const NSID: u16 = 2;

    /// Name of the disk, such as rnvmf0n1.
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

/// What a discovery controller knows of. While neither the error nor the generation is there it is
/// being asked.
pub(crate) mod discovery {
    /// Number of the discovery.
    pub(crate) const DISCOVERY_ID: u16 = 1;

    /// Generation of the log, which changes with it.
    pub(crate) const GENERATION: u16 = 2;

    /// How many entries the log has, as the controller says. No more than discovery-entries-max are
    /// read.
    pub(crate) const NR_ENTRIES: u16 = 3;

    /// Why the log could not be read.
    pub(crate) const ERROR: u16 = 4;

    /// An entry of the log.
    pub(crate) const ENTRY: u16 = 5;

    /// Milliseconds until the persistent discovery goes on, after an error. Where it is absent the
    /// discovery is over.
    pub(crate) const NEXT_ATTEMPT: u16 = 6;
}

/// An entry of a discovery log: a way to a subsystem. Numbers are those of the NVMe over Fabrics
/// specification.
pub(crate) mod entry {
    /// Type of the transport; 1 is RDMA.
    pub(crate) const TRTYPE: u16 = 1;

    /// Family of the address; 1 is IPv4, 2 is IPv6.
    pub(crate) const ADRFAM: u16 = 2;

    /// Type of the subsystem; 1 is a referral to another discovery controller, 2 an NVM subsystem,
    /// 3 this discovery controller.
    pub(crate) const SUBTYPE: u16 = 3;

    /// What the transport must or may do, as the entry has it.
    pub(crate) const TREQ: u16 = 4;

    /// Number of the target's port.
    pub(crate) const PORTID: u16 = 5;

    /// Controller to connect to; 0xfffe and 0xffff are any.
    pub(crate) const CNTLID: u16 = 6;

    /// Most entries of an admin queue.
    pub(crate) const ASQSZ: u16 = 7;

    /// Flags of the entry; bit 0 says that its log is the same as this one.
    pub(crate) const EFLAGS: u16 = 8;

    /// Address, in the form that the transport has for it.
    pub(crate) const TRADDR: u16 = 9;

    /// Service at the address; with RDMA, a port.
    pub(crate) const TRSVCID: u16 = 10;

    /// NVMe Qualified Name of the subsystem.
    pub(crate) const SUBNQN: u16 = 11;

    /// Type of the queue pairs; like the following, with RDMA only.
    pub(crate) const RDMA_QPTYPE: u16 = 12;

    /// Protocol, such as 4 for RoCEv2.
    pub(crate) const RDMA_PRTYPE: u16 = 13;

    /// How connections are managed; 1 is the RDMA connection manager.
    pub(crate) const RDMA_CMS: u16 = 14;

    /// Key of the partition.
    pub(crate) const RDMA_PKEY: u16 = 15;
}

/// How many commands took how long.
pub(crate) mod latency_bucket {
    /// Nanoseconds that they took less than, but not less than those of the bucket before; not
    /// there for the last bucket, of all that took longer.
    pub(crate) const BELOW: u16 = 1;

    /// How many there were, which is never 0.
    pub(crate) const COUNT: u16 = 2;
}

/// What a queue of a controller has done, or all of them together, since the controller was made;
/// connections that were lost are included. A command counts when the target has answered it.
/// Numbers only grow, and have 64 bits.
pub(crate) mod stats {
    /// Controller of the queue.
    pub(crate) const CTRL_ID: u16 = 1;

    /// Name of the controller, such as rnvmf0.
    pub(crate) const NAME: u16 = 2;

    /// Number of the queue, 0 is the admin queue; not there for all together.
    pub(crate) const QID: u16 = 3;

    /// Read commands.
    pub(crate) const READS: u16 = 4;

    /// Write commands.
    pub(crate) const WRITES: u16 = 5;

    /// Flush commands.
    pub(crate) const FLUSHES: u16 = 6;

    /// Commands of other kinds, all those of the admin queue included.
    pub(crate) const OTHERS: u16 = 7;

    /// Bytes that reads without an error returned.
    pub(crate) const READ_BYTES: u16 = 8;

    /// Bytes of writes without an error.
    pub(crate) const WRITTEN_BYTES: u16 = 9;

    /// Commands that the target answered with an error.
    pub(crate) const ERRORS: u16 = 10;

    /// Requests that are sent again, for an error that may pass or a connection that was lost.
    pub(crate) const RETRIES: u16 = 11;

    /// Commands whose data was sent in their capsule.
    pub(crate) const IN_CAPSULE: u16 = 12;

    /// Commands whose data the target was given a key for.
    pub(crate) const REGISTRATIONS: u16 = 13;

    /// Keys that the target invalidated with its answer.
    pub(crate) const REMOTE_INVALIDATIONS: u16 = 14;

    /// Keys that the target left to us to invalidate.
    pub(crate) const LOCAL_INVALIDATIONS: u16 = 15;

    /// Calls that posted send work requests.
    pub(crate) const DOORBELLS: u16 = 16;

    /// Send work requests, which are registrations, sends and invalidations.
    pub(crate) const WORK_REQUESTS: u16 = 17;

    /// Completions, of sends, invalidations and receives.
    pub(crate) const COMPLETIONS: u16 = 18;

    /// Polls of the completion queue that found something.
    pub(crate) const POLLS: u16 = 19;

    /// Whether the time that reads and writes take is measured, 1, or not, 0.
    pub(crate) const LATENCY: u16 = 20;

    /// Reads by the time from being posted to being over, shortest first.
    pub(crate) const READ_LATENCY: u16 = 21;

    /// Writes, likewise.
    pub(crate) const WRITE_LATENCY: u16 = 22;
}

/// A namespace that has no disk, and why.
pub(crate) mod refusal {
    /// Namespace identifier.
    pub(crate) const NSID: u16 = 1;

    /// The reason, for a person to read.
    pub(crate) const REASON: u16 = 2;
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
    Attribute {
        id: ctrl::RECONNECT_DELAY,
        kind: Kind::U32 { min: 1, max: 3600 },
    },
    Attribute {
        id: ctrl::CTRL_LOSS_TMO,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
        },
    },
    Attribute {
        id: ctrl::FAST_IO_FAIL_TMO,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
        },
    },
    Attribute {
        id: ctrl::NR_WRITE_QUEUES,
        kind: Kind::U32 { min: 1, max: 65535 },
    },
    Attribute {
        id: ctrl::NR_POLL_QUEUES,
        kind: Kind::U32 { min: 1, max: 65535 },
    },
    Attribute {
        id: ctrl::DISABLE_SQFLOW,
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

/// What the do request of ctrl-reset takes.
pub(crate) const CTRL_RESET_DO: &[Attribute] = &[Attribute {
    id: ctrl::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the do request of ctrl-set takes.
pub(crate) const CTRL_SET_DO: &[Attribute] = &[
    Attribute {
        id: ctrl::CTRL_ID,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
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
        id: ctrl::RECONNECT_DELAY,
        kind: Kind::U32 { min: 1, max: 3600 },
    },
    Attribute {
        id: ctrl::CTRL_LOSS_TMO,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
        },
    },
    Attribute {
        id: ctrl::FAST_IO_FAIL_TMO,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
        },
    },
];

/// What the do request of discover takes.
pub(crate) const DISCOVER_DO: &[Attribute] = &[
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
        id: ctrl::RECONNECT_DELAY,
        kind: Kind::U32 { min: 1, max: 3600 },
    },
    Attribute {
        id: ctrl::PERSISTENT,
        kind: Kind::Flag,
    },
];

/// What the do request of discover-get takes.
pub(crate) const DISCOVER_GET_DO: &[Attribute] = &[Attribute {
    id: discovery::DISCOVERY_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the dump request of discover-get takes.
pub(crate) const DISCOVER_GET_DUMP: &[Attribute] = &[Attribute {
    id: discovery::DISCOVERY_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the do request of stats-get takes.
pub(crate) const STATS_GET_DO: &[Attribute] = &[Attribute {
    id: stats::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the dump request of stats-get takes.
pub(crate) const STATS_GET_DUMP: &[Attribute] = &[Attribute {
    id: stats::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];

/// What the do request of stats-set takes.
pub(crate) const STATS_SET_DO: &[Attribute] = &[
    Attribute {
        id: stats::CTRL_ID,
        kind: Kind::U32 {
            min: 0,
            max: u32::MAX,
        },
    },
    Attribute {
        id: stats::LATENCY,
        kind: Kind::U8 { min: 0, max: 1 },
    },
];

/// What the do request of ctrl-rescan takes.
pub(crate) const CTRL_RESCAN_DO: &[Attribute] = &[Attribute {
    id: ctrl::CTRL_ID,
    kind: Kind::U32 {
        min: 0,
        max: u32::MAX,
    },
}];
