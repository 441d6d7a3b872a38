// SPDX-License-Identifier: GPL-2.0
// Made by tools/netlink/gen-uapi from Documentation/netlink/specs/rnvmf.yaml; do not edit.

//! The interface as its specification defines it.

use crate::define::{attribute_set, enumeration, requests};
use core::ffi::CStr;

/// Name of the family.
pub const FAMILY: &str = "rnvmf";

/// Name of the family, with its NUL.
pub const FAMILY_CSTR: &CStr = c"rnvmf";

/// Version of the family.
pub const VERSION: u8 = 1;

/// Name of the multicast group of events.
pub const GROUP_EVENTS: &str = "events";

/// Name of the multicast group of events, with its NUL.
pub const GROUP_EVENTS_CSTR: &CStr = c"events";

/// Longest NVMe Qualified Name, in bytes.
pub const NQN_MAX_LEN: usize = 223;

/// Longest numeric address, including the scope of an IPv6 address, in bytes.
pub const TRADDR_MAX_LEN: usize = 64;

/// Longest name of a controller or a disk, in bytes.
pub const NAME_MAX_LEN: usize = 31;

/// Longest message of an error, in bytes.
pub const MESSAGE_MAX_LEN: usize = 255;

/// Size of a host identifier, in bytes.
pub const HOSTID_LEN: usize = 16;

/// Size of a namespace globally unique identifier, in bytes.
pub const NGUID_LEN: usize = 16;

/// Size of an IEEE extended unique identifier, in bytes.
pub const EUI64_LEN: usize = 8;

/// Size of a universally unique identifier, in bytes.
pub const UUID_LEN: usize = 16;

/// Default port of a connect.
pub const TRSVCID_DEFAULT: u32 = 4420;

/// Largest number of I/O queues; Queue Identifiers have 16 bits.
pub const NR_IO_QUEUES_MAX: u32 = 65535;

/// Smallest queue size of a connect, in entries.
pub const QUEUE_SIZE_MIN: u32 = 16;

/// Largest queue size of a connect, in entries.
pub const QUEUE_SIZE_MAX: u32 = 1024;

/// Default queue size of a connect, in entries.
pub const QUEUE_SIZE_DEFAULT: u32 = 128;

/// Longest keep-alive timeout in seconds; KATO has 32 bits of milliseconds.
pub const KEEP_ALIVE_TMO_MAX: u32 = 4_294_967;

/// Default keep-alive timeout of a connect, in seconds.
pub const KEEP_ALIVE_TMO_DEFAULT: u32 = 5;

/// Longest connect timeout, in milliseconds.
pub const CONNECT_TIMEOUT_MAX: u32 = 600_000;

/// Default connect timeout, in milliseconds.
pub const CONNECT_TIMEOUT_DEFAULT: u32 = 10000;

/// Longest reconnect delay, in seconds.
pub const RECONNECT_DELAY_MAX: u32 = 3600;

/// Default reconnect delay, in seconds.
pub const RECONNECT_DELAY_DEFAULT: u32 = 10;

/// Longest finite ctrl-loss-tmo or fast-io-fail-tmo, in seconds.
pub const LOSS_TMO_MAX: u32 = 4_294_967;

/// Value of ctrl-loss-tmo and fast-io-fail-tmo for no limit.
pub const LOSS_TMO_NEVER: u32 = 4_294_967_295;

/// Default ctrl-loss-tmo, in seconds.
pub const CTRL_LOSS_TMO_DEFAULT: u32 = 600;

/// Value of cqt for the Command Quiesce Time that the target reports.
pub const CQT_REPORTED: u32 = 4_294_967_295;

/// Largest number of entries of a discovery log that the kernel reads.
pub const DISCOVERY_ENTRIES_MAX: u32 = 1024;

/// Size of an entry of a discovery log, in bytes.
pub const DISCOVERY_ENTRY_LEN: usize = 1024;

/// Largest number of no-disk attributes of a controller.
pub const NO_DISK_MAX: u32 = 16;

/// Longest reason why a namespace has no disk, in bytes; longer ones are cut.
pub const REASON_MAX_LEN: usize = 111;

enumeration! {
    /// Commands of requests, replies and events.
    Command: u8 {
        /// Create a controller and start to connect it. The reply comes at once, with its number
        /// and name. Events of the controller report the result: the state live is success,
        /// deleting or dead is failure. The event with the state live follows after the disks were
        /// added.
        Connect = 1, "connect";
        /// Start to remove a controller, in any state. The event ctrl-del-ntf reports the end.
        Disconnect = 2, "disconnect";
        /// Read one controller, or dump all of the caller's network namespace.
        CtrlGet = 3, "ctrl-get";
        /// A controller was created.
        CtrlAddNtf = 4, "ctrl-add-ntf";
        /// The state, the settings or the last error of a controller changed, or a namespace scan
        /// ended.
        CtrlChangeNtf = 5, "ctrl-change-ntf";
        /// A controller was removed.
        CtrlDelNtf = 6, "ctrl-del-ntf";
        /// Read one namespace, or dump those of one controller or all of the caller's network
        /// namespace.
        NsGet = 7, "ns-get";
        /// The disk of a namespace was added.
        NsAddNtf = 8, "ns-add-ntf";
        /// The disk of a namespace was removed.
        NsDelNtf = 9, "ns-del-ntf";
        /// Start to reset a live controller: shut it down and connect it again, while I/O waits.
        /// When the request returns, the state is resetting and the last error is cleared. The
        /// state live is success. An error means that the first attempt to connect failed.
        CtrlReset = 10, "ctrl-reset";
        /// Change settings of a controller; at least one is needed. They take effect at once, also
        /// while reconnecting; connect-timeout applies to attempts that start later. The event
        /// ctrl-change-ntf follows.
        CtrlSet = 11, "ctrl-set";
        /// Start a discovery. The reply comes at once, with its number. The kernel connects to the
        /// discovery controller, reads the log and disconnects, all within connect-timeout; the
        /// event discover-ntf reports the end. The discovery belongs to the socket: the kernel
        /// cancels it and frees the log when the socket is closed or starts another discovery. With
        /// persistent, the kernel stays connected and reads the log after each change. After a
        /// connection loss it reconnects, with pauses of up to reconnect-delay. Each log and each
        /// failure causes an event. Without persistent, keep-alive-tmo and reconnect-delay are
        /// ignored.
        Discover = 12, "discover";
        /// Read the result of a discovery of this socket, or dump the entries of its log, one in
        /// each message.
        DiscoverGet = 13, "discover-get";
        /// A discovery ended, or a persistent discovery read the log or failed.
        DiscoverNtf = 14, "discover-ntf";
        /// Read the sum of the counters of one controller, or dump the counters of each queue, of
        /// one controller or all of the caller's network namespace.
        StatsGet = 15, "stats-get";
        /// Enable or disable the measurement of latencies of a controller. It is disabled at first,
        /// because it reads the clock twice for each command.
        StatsSet = 16, "stats-set";
        /// Start a namespace scan of a live controller; the reply has its number. The scan adds
        /// disks of new namespaces, removes those of namespaces that disappeared or were replaced,
        /// and updates size and write protection of the rest. When the request returns, the last
        /// error is cleared. The scan has ended when the attribute scan has reached the number; an
        /// error means that it failed.
        CtrlRescan = 17, "ctrl-rescan";
        /// The size or the write protection of a namespace changed.
        NsChangeNtf = 18, "ns-change-ntf";
    }
}

enumeration! {
    /// State of a controller.
    CtrlState: u32 {
        /// Created; nothing was sent to the target yet.
        New = 0, "new";
        /// Connecting its queues.
        Connecting = 1, "connecting";
        /// Ready for I/O.
        Live = 2, "live";
        /// Tearing down its queues after an error or for a reset.
        Resetting = 3, "resetting";
        /// Being removed.
        Deleting = 4, "deleting";
        /// Failed permanently; the error attribute has the cause.
        Dead = 5, "dead";
    }
}

enumeration! {
    /// What a controller was doing when it failed.
    ErrorStage: u32 {
        /// Resolving the target's address to an RDMA device.
        Address = 0, "address";
        /// Resolving the route to the target.
        Route = 1, "route";
        /// Setting up the RDMA device.
        Device = 2, "device";
        /// Connecting a queue pair through the RDMA connection manager.
        Connect = 3, "connect";
        /// The Fabrics Connect command of a queue.
        FabricsConnect = 4, "fabrics-connect";
        /// Reading the controller's properties and enabling it.
        Enable = 5, "enable";
        /// Identifying the controller.
        Identify = 6, "identify";
        /// Negotiating the number of I/O queues and creating them.
        Queues = 7, "queues";
        /// Scanning namespaces and adding disks.
        Namespaces = 8, "namespaces";
        /// Keep Alive.
        KeepAlive = 9, "keep-alive";
        /// A command of a live controller.
        Io = 10, "io";
        /// The connection of a live controller.
        Transport = 11, "transport";
        /// Removal of the RDMA device.
        Removal = 12, "removal";
        /// Reading the discovery log.
        Discovery = 13, "discovery";
    }
}

enumeration! {
    /// How a disk or its partitions are open.
    DiskUse: u32 {
        /// Nobody has them open.
        Closed = 0, "closed";
        /// Open, as by a process or a loop device, but not claimed.
        Open = 1, "open";
        /// Open exclusively (O_EXCL), as by a file system, swap, the device mapper or RAID, in any
        /// mount namespace.
        Claimed = 2, "claimed";
    }
}

attribute_set! {
    /// Why a controller failed. The stage, the errno and the message are always present.
    error {
        /// What the controller was doing.
        STAGE = 1, "stage", U32 { min: 0, max: u32::MAX };
        /// Positive error number.
        ERRNO = 2, "errno", S32;
        /// Reason of a reject by the connection manager of the peer.
        REJECT_REASON = 3, "reject-reason", U32 { min: 0, max: u32::MAX };
        /// NVMe/RDMA status in the private data of the reject.
        CM_STATUS = 4, "cm-status", U16 { min: 0, max: u16::MAX };
        /// Status field of the failed command, without the phase bit.
        NVME_STATUS = 5, "nvme-status", U16 { min: 0, max: u16::MAX };
        /// Queue that failed; 0: the admin queue.
        QID = 6, "qid", U16 { min: 0, max: u16::MAX };
        /// The cause in words.
        MESSAGE = 7, "message", Str(MESSAGE_MAX_LEN);
        /// Milliseconds since the failure, or 2^32 - 1 for more.
        AGE = 8, "age", U32 { min: 0, max: u32::MAX };
        /// The controller has become live since.
        OVER = 9, "over", Flag;
        /// A command was sent, and the target did not respond in time.
        UNANSWERED = 10, "unanswered", Flag;
    }
}

attribute_set! {
    /// A controller, or the parameters of a connect.
    ctrl {
        /// Number of the controller. Unlike the number in the name, it is reused only after 2^32
        /// connects.
        CTRL_ID = 1, "ctrl-id", U32 { min: 0, max: u32::MAX };
        /// Name of the controller, such as rnvmf0.
        NAME = 2, "name", Str(NAME_MAX_LEN);
        /// State of the controller.
        STATE = 3, "state", U32 { min: 0, max: u32::MAX };
        /// Numeric IPv4 or IPv6 address of the target; an IPv6 address may end in %scope.
        TRADDR = 4, "traddr", Str(TRADDR_MAX_LEN);
        /// Port of the target.
        TRSVCID = 5, "trsvcid", U16 { min: 1, max: u16::MAX };
        /// Numeric address of the host to connect from.
        HOST_TRADDR = 6, "host-traddr", Str(TRADDR_MAX_LEN);
        /// NVMe Qualified Name of the subsystem.
        SUBSYSNQN = 7, "subsysnqn", Str(NQN_MAX_LEN);
        /// NVMe Qualified Name of the host.
        HOSTNQN = 8, "hostnqn", Str(NQN_MAX_LEN);
        /// Host identifier: a UUID, in the byte order of its text form.
        HOSTID = 9, "hostid", Bytes(HOSTID_LEN);
        /// Number of I/O queues, without nr-write-queues and nr-poll-queues. A connect requests it;
        /// the target, the RDMA device and the number of CPUs limit what it gets. Default: one for
        /// each online CPU.
        NR_IO_QUEUES = 10, "nr-io-queues", U32 { min: 1, max: NR_IO_QUEUES_MAX };
        /// Entries of each I/O queue. A connect requests it; the target may limit it.
        QUEUE_SIZE = 11, "queue-size", U32 { min: QUEUE_SIZE_MIN, max: QUEUE_SIZE_MAX };
        /// Keep-alive timeout in seconds; 0 disables keep-alive.
        KEEP_ALIVE_TMO = 12, "keep-alive-tmo", U32 { min: 0, max: KEEP_ALIVE_TMO_MAX };
        /// Limit in milliseconds of a connect, reconnect or reset attempt to connect all queues;
        /// then of each command of its namespace scan. Of the first connect also for each disk.
        CONNECT_TIMEOUT = 13, "connect-timeout", U32 { min: 1, max: CONNECT_TIMEOUT_MAX };
        /// Type of service of the connections, for rdma_set_service_type().
        TOS = 14, "tos", U8 { min: 0, max: u8::MAX };
        /// Connect even if a controller with the same host, subsystem and address exists.
        DUPLICATE_CONNECT = 15, "duplicate-connect", Flag;
        /// Controller ID that the target assigned.
        CNTLID = 16, "cntlid", U16 { min: 0, max: u16::MAX };
        /// Name of the RDMA device.
        RDMA_DEVICE = 17, "rdma-device", Str(usize::MAX);
        /// Model number of the target.
        MODEL = 18, "model", Str(usize::MAX);
        /// Serial number of the target.
        SERIAL = 19, "serial", Str(usize::MAX);
        /// Firmware revision of the target.
        FIRMWARE = 20, "firmware", Str(usize::MAX);
        /// Number of namespaces with a disk.
        NR_NAMESPACES = 21, "nr-namespaces", U32 { min: 0, max: u32::MAX };
        /// Largest transfer of one command, in bytes.
        MAX_TRANSFER = 22, "max-transfer", U32 { min: 0, max: u32::MAX };
        /// Largest in-capsule data, in bytes.
        INLINE_SIZE = 23, "inline-size", U32 { min: 0, max: u32::MAX };
        /// Last error of the controller.
        ERROR = 24, "error", Nest(error::ATTRIBUTES);
        /// Longest pause between reconnect attempts, in seconds.
        RECONNECT_DELAY = 25, "reconnect-delay", U32 { min: 1, max: RECONNECT_DELAY_MAX };
        /// Seconds after a connection loss until reconnecting ends and the controller is dead; 0:
        /// no reconnect attempts; loss-tmo-never: no limit.
        CTRL_LOSS_TMO = 26, "ctrl-loss-tmo", U32 { min: 0, max: u32::MAX };
        /// Seconds after a connection loss until I/O fails instead of being held back;
        /// loss-tmo-never: I/O is held back while reconnect attempts go on. Default:
        /// loss-tmo-never.
        FAST_IO_FAIL_TMO = 27, "fast-io-fail-tmo", U32 { min: 0, max: u32::MAX };
        /// Reconnect attempts since the connection loss; present while reconnecting.
        ATTEMPTS = 28, "attempts", U32 { min: 0, max: u32::MAX };
        /// Milliseconds until the next reconnect attempt; present between attempts.
        NEXT_ATTEMPT = 29, "next-attempt", U32 { min: 0, max: u32::MAX };
        /// Number of additional I/O queues for writes; nr-io-queues are then for reads only. A
        /// connect gets some only if it gets all nr-io-queues.
        NR_WRITE_QUEUES = 30, "nr-write-queues", U32 { min: 1, max: NR_IO_QUEUES_MAX };
        /// Number of additional I/O queues for polled requests. A connect gets some only if it gets
        /// all nr-io-queues and nr-write-queues.
        NR_POLL_QUEUES = 31, "nr-poll-queues", U32 { min: 1, max: NR_IO_QUEUES_MAX };
        /// Number of the new discovery, unique while the discovery exists.
        DISCOVERY_ID = 32, "discovery-id", U32 { min: 0, max: u32::MAX };
        /// Number of the last namespace scan that ended; increases with each scan.
        SCAN = 33, "scan", U32 { min: 0, max: u32::MAX };
        /// Stay connected to the discovery controller and read the log after each change.
        PERSISTENT = 34, "persistent", Flag;
        /// Milliseconds until reconnecting ends; absent if it has no limit. Present only while
        /// reconnecting.
        GIVE_UP = 35, "give-up", U32 { min: 0, max: u32::MAX };
        /// Disable SQ flow control. The host ignores SQHD in any case.
        DISABLE_SQFLOW = 36, "disable-sqflow", Flag;
        /// Number of namespaces without a disk that the last scan found.
        NR_NO_DISK = 37, "nr-no-disk", U32 { min: 0, max: u32::MAX };
        /// A namespace without a disk; at most no-disk-max are present.
        NO_DISK = 38, "no-disk", Nests(refusal::ATTRIBUTES);
        /// Resets whose first attempt connected the controller; wraps around.
        NR_RESETS = 39, "nr-resets", U32 { min: 0, max: u32::MAX };
        /// Reconnects after a connection loss, or after a reset whose first attempt failed; wraps
        /// around.
        NR_RECONNECTS = 40, "nr-reconnects", U32 { min: 0, max: u32::MAX };
        /// Command Quiesce Time, in seconds. Writes that were in flight at a connection loss are
        /// sent again, or fail, only when the target has ended the old association and its
        /// commands: it has acknowledged the disconnect or its keep-alive timer has expired, and
        /// then this time has passed. 0: they are not held; cqt-reported: the time that the target
        /// reports; if it reports none, 0 after an acknowledgement, and otherwise the keep-alive
        /// timeout, but at most 10 seconds. Default: cqt-reported.
        CQT = 41, "cqt", U32 { min: 0, max: u32::MAX };
        /// Number of writes that are held after a connection loss; absent if there are none.
        HELD_WRITES = 42, "held-writes", U32 { min: 0, max: u32::MAX };
        /// Milliseconds until the held writes are released.
        HELD_WRITES_DUE = 43, "held-writes-due", U32 { min: 0, max: u32::MAX };
        /// Disconnect only if nobody has a disk of the controller, or a partition, open. Otherwise
        /// the request fails with EBUSY. In one step with the check, later opens of the disks are
        /// refused with ENXIO.
        IF_UNUSED = 44, "if-unused", Flag;
    }
}

attribute_set! {
    /// A namespace with a disk.
    ns {
        /// Number of the controller.
        CTRL_ID = 1, "ctrl-id", U32 { min: 0, max: u32::MAX };
        /// Namespace identifier.
        NSID = 2, "nsid", U32 { min: 1, max: u32::MAX };
        /// Name of the disk, such as rnvmf0n1.
        NAME = 3, "name", Str(NAME_MAX_LEN);
        /// Capacity in bytes.
        SIZE = 4, "size", Uint;
        /// Logical block size in bytes.
        BLOCK_SIZE = 5, "block-size", U32 { min: 0, max: u32::MAX };
        /// Physical block size in bytes.
        PHYSICAL_BLOCK_SIZE = 6, "physical-block-size", U32 { min: 0, max: u32::MAX };
        /// Namespace globally unique identifier, if the namespace has one.
        NGUID = 7, "nguid", Bytes(NGUID_LEN);
        /// IEEE extended unique identifier, if the namespace has one.
        EUI64 = 8, "eui64", Bytes(EUI64_LEN);
        /// Universally unique identifier, if the namespace has one.
        UUID = 9, "uuid", Bytes(UUID_LEN);
        /// The disk is read-only.
        READ_ONLY = 10, "read-only", Flag;
        /// The target has a volatile write cache.
        WRITE_CACHE = 11, "write-cache", Flag;
        /// How the disk or its partitions are open.
        USE = 12, "use", U32 { min: 0, max: u32::MAX };
    }
}

attribute_set! {
    /// A discovery. Neither error nor generation is present until the first result.
    discovery {
        /// Number of the discovery.
        DISCOVERY_ID = 1, "discovery-id", U32 { min: 0, max: u32::MAX };
        /// Generation counter of the log (GENCTR).
        GENERATION = 2, "generation", Uint;
        /// Number of entries in the header of the log (NUMREC). The kernel reads at most
        /// discovery-entries-max.
        NR_ENTRIES = 3, "nr-entries", Uint;
        /// Why the log could not be read.
        ERROR = 4, "error", Nest(error::ATTRIBUTES);
        /// An entry of the log as the controller sent it, a Discovery Log Page Entry of NVMe Base.
        /// The kernel does not check it. TRTYPE is at byte 0, ADRFAM at 1, SUBTYPE at 2, TREQ at 3,
        /// PORTID at 4, CNTLID at 6, ASQSZ at 8, EFLAGS at 10, TRSVCID at 32 with 32 bytes, SUBNQN
        /// at 256 and TRADDR at 512 with 256 bytes each, and TSAS at 768. Numbers are
        /// little-endian. A NUL ends a text; spaces may pad TRSVCID and TRADDR, which are ASCII.
        /// SUBNQN is UTF-8.
        ENTRY = 5, "entry", Bytes(DISCOVERY_ENTRY_LEN);
        /// Milliseconds until a persistent discovery reconnects after the error. Absent if the
        /// discovery ended.
        NEXT_ATTEMPT = 6, "next-attempt", U32 { min: 0, max: u32::MAX };
    }
}

attribute_set! {
    /// Number of commands in a range of latencies.
    latency_bucket {
        /// Upper limit of the range in nanoseconds, exclusive; the lower limit is that of the
        /// bucket before. Absent in the last bucket, which has no limit.
        BELOW = 1, "below", Uint;
        /// Number of commands, not 0.
        COUNT = 2, "count", Uint;
    }
}

attribute_set! {
    /// Counters of a queue, or the sum of all queues of a controller, since the controller was
    /// created; a reconnect does not reset them. A command counts when its response arrives.
    /// Counters have 64 bits.
    stats {
        /// Number of the controller.
        CTRL_ID = 1, "ctrl-id", U32 { min: 0, max: u32::MAX };
        /// Name of the controller, such as rnvmf0.
        NAME = 2, "name", Str(NAME_MAX_LEN);
        /// Queue identifier; 0: the admin queue. Absent for the sum of all queues.
        QID = 3, "qid", U16 { min: 0, max: u16::MAX };
        /// Read commands.
        READS = 4, "reads", Uint;
        /// Write commands.
        WRITES = 5, "writes", Uint;
        /// Flush commands.
        FLUSHES = 6, "flushes", Uint;
        /// Other commands, including all of the admin queue.
        OTHERS = 7, "others", Uint;
        /// Bytes read without error.
        READ_BYTES = 8, "read-bytes", Uint;
        /// Bytes written without error.
        WRITTEN_BYTES = 9, "written-bytes", Uint;
        /// Commands with an error status.
        ERRORS = 10, "errors", Uint;
        /// Requests that were sent again, after a transient error or a connection loss.
        RETRIES = 11, "retries", Uint;
        /// Commands with in-capsule data.
        IN_CAPSULE = 12, "in-capsule", Uint;
        /// Commands with a memory registration.
        REGISTRATIONS = 13, "registrations", Uint;
        /// Remote keys that the target invalidated with its response.
        REMOTE_INVALIDATIONS = 14, "remote-invalidations", Uint;
        /// Remote keys that the host had to invalidate.
        LOCAL_INVALIDATIONS = 15, "local-invalidations", Uint;
        /// Calls of ib_post_send().
        DOORBELLS = 16, "doorbells", Uint;
        /// Send work requests: registrations, sends and invalidations.
        WORK_REQUESTS = 17, "work-requests", Uint;
        /// Completions of sends, invalidations and receives.
        COMPLETIONS = 18, "completions", Uint;
        /// Polls of the completion queue that returned completions.
        POLLS = 19, "polls", Uint;
        /// 1 if latencies are measured, 0 if not.
        LATENCY = 20, "latency", U8 { min: 0, max: 1 };
        /// Reads by the time from post to completion, in ascending order; empty buckets are absent.
        READ_LATENCY = 21, "read-latency", Nests(latency_bucket::ATTRIBUTES);
        /// Writes, in the same form.
        WRITE_LATENCY = 22, "write-latency", Nests(latency_bucket::ATTRIBUTES);
    }
}

attribute_set! {
    /// A namespace without a disk.
    refusal {
        /// Namespace identifier.
        NSID = 1, "nsid", U32 { min: 0, max: u32::MAX };
        /// Why the namespace has no disk, in words.
        REASON = 2, "reason", Str(REASON_MAX_LEN);
    }
}

requests! {
    /// The do request of connect.
    CONNECT_DO: Connect, admin: true, ctrl [
        TRADDR TRSVCID HOST_TRADDR SUBSYSNQN HOSTNQN HOSTID NR_IO_QUEUES QUEUE_SIZE KEEP_ALIVE_TMO
        CONNECT_TIMEOUT TOS DUPLICATE_CONNECT RECONNECT_DELAY CTRL_LOSS_TMO FAST_IO_FAIL_TMO
        NR_WRITE_QUEUES NR_POLL_QUEUES DISABLE_SQFLOW CQT
    ];

    /// The do request of disconnect.
    DISCONNECT_DO: Disconnect, admin: true, ctrl [CTRL_ID IF_UNUSED];

    /// The do request of ctrl-get.
    CTRL_GET_DO: CtrlGet, admin: false, ctrl [CTRL_ID];

    /// The dump request of ctrl-get.
    CTRL_GET_DUMP: CtrlGet, admin: false, ctrl [];

    /// The do request of ns-get.
    NS_GET_DO: NsGet, admin: false, ns [CTRL_ID NSID];

    /// The dump request of ns-get.
    NS_GET_DUMP: NsGet, admin: false, ns [CTRL_ID];

    /// The do request of ctrl-reset.
    CTRL_RESET_DO: CtrlReset, admin: true, ctrl [CTRL_ID];

    /// The do request of ctrl-set.
    CTRL_SET_DO: CtrlSet, admin: true, ctrl [
        CTRL_ID CONNECT_TIMEOUT RECONNECT_DELAY CTRL_LOSS_TMO FAST_IO_FAIL_TMO CQT
    ];

    /// The do request of discover.
    DISCOVER_DO: Discover, admin: true, ctrl [
        TRADDR TRSVCID HOST_TRADDR SUBSYSNQN HOSTNQN HOSTID KEEP_ALIVE_TMO CONNECT_TIMEOUT TOS
        RECONNECT_DELAY PERSISTENT
    ];

    /// The do request of discover-get.
    DISCOVER_GET_DO: DiscoverGet, admin: false, discovery [DISCOVERY_ID];

    /// The dump request of discover-get.
    DISCOVER_GET_DUMP: DiscoverGet, admin: false, discovery [DISCOVERY_ID];

    /// The do request of stats-get.
    STATS_GET_DO: StatsGet, admin: false, stats [CTRL_ID];

    /// The dump request of stats-get.
    STATS_GET_DUMP: StatsGet, admin: false, stats [CTRL_ID];

    /// The do request of stats-set.
    STATS_SET_DO: StatsSet, admin: true, stats [CTRL_ID LATENCY];

    /// The do request of ctrl-rescan.
    CTRL_RESCAN_DO: CtrlRescan, admin: true, ctrl [CTRL_ID];
}
