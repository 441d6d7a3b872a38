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

/// Longest numeric address, an IPv6 one with a scope included.
pub const TRADDR_MAX_LEN: usize = 64;

/// Longest name of a controller or of a disk.
pub const NAME_MAX_LEN: usize = 31;

/// Longest text that an error carries.
pub const MESSAGE_MAX_LEN: usize = 255;

/// Size of a host identifier, in bytes.
pub const HOSTID_LEN: usize = 16;

/// Size of a namespace globally unique identifier, in bytes.
pub const NGUID_LEN: usize = 16;

/// Size of an IEEE extended unique identifier, in bytes.
pub const EUI64_LEN: usize = 8;

/// Size of a universally unique identifier, in bytes.
pub const UUID_LEN: usize = 16;

/// Port used where a connect names none.
pub const TRSVCID_DEFAULT: u32 = 4420;

/// Most I/O queues that NVMe can number.
pub const NR_IO_QUEUES_MAX: u32 = 65535;

/// Smallest queue that a connect may ask for.
pub const QUEUE_SIZE_MIN: u32 = 16;

/// Largest queue that a connect may ask for.
pub const QUEUE_SIZE_MAX: u32 = 1024;

/// Queue size used where a connect names none.
pub const QUEUE_SIZE_DEFAULT: u32 = 128;

/// Longest keep-alive timeout in seconds; NVMe counts it in 32 bits of milliseconds.
pub const KEEP_ALIVE_TMO_MAX: u32 = 4_294_967;

/// Keep-alive timeout in seconds where a connect names none.
pub const KEEP_ALIVE_TMO_DEFAULT: u32 = 5;

/// Longest time to connect, in milliseconds.
pub const CONNECT_TIMEOUT_MAX: u32 = 600_000;

/// Time to connect where a connect names none, in milliseconds.
pub const CONNECT_TIMEOUT_DEFAULT: u32 = 10000;

/// Longest pause between attempts to connect again, in seconds.
pub const RECONNECT_DELAY_MAX: u32 = 3600;

/// Longest pause between attempts where a connect names none, in seconds.
pub const RECONNECT_DELAY_DEFAULT: u32 = 10;

/// Longest time that a loss may take, in seconds.
pub const LOSS_TMO_MAX: u32 = 4_294_967;

/// A time that is never over.
pub const LOSS_TMO_NEVER: u32 = 4_294_967_295;

/// Time to connect again where a connect names none, in seconds.
pub const CTRL_LOSS_TMO_DEFAULT: u32 = 600;

/// Most entries of a discovery log that are read.
pub const DISCOVERY_ENTRIES_MAX: u32 = 1024;

/// Size of an entry of a discovery log, in bytes.
pub const DISCOVERY_ENTRY_LEN: usize = 1024;

/// Most namespaces without a disk that a controller names.
pub const NO_DISK_MAX: u32 = 16;

/// Longest text of why a namespace has no disk; what is longer is cut.
pub const REASON_MAX_LEN: usize = 111;

enumeration! {
    /// Commands of requests, replies and events.
    Command: u8 {
        /// Start to connect a controller, and reply with its number and name at once. Whether it
        /// succeeds comes as events of the controller; the state live is success, and the states
        /// deleting and dead are failure. The event that tells of live comes after the disks of the
        /// namespaces were made.
        Connect = 1, "connect";
        /// Start to remove a controller in whatever state it is. The event ctrl-del-ntf tells that
        /// it is gone.
        Disconnect = 2, "disconnect";
        /// Read one controller, or all of the caller's network namespace.
        CtrlGet = 3, "ctrl-get";
        /// A controller was made.
        CtrlAddNtf = 4, "ctrl-add-ntf";
        /// The state of a controller or its last error changed, or a look at its namespaces is
        /// over.
        CtrlChangeNtf = 5, "ctrl-change-ntf";
        /// A controller is gone.
        CtrlDelNtf = 6, "ctrl-del-ntf";
        /// Read one namespace, or all of one controller, or all.
        NsGet = 7, "ns-get";
        /// A namespace got its disk.
        NsAddNtf = 8, "ns-add-ntf";
        /// The disk of a namespace is gone.
        NsDelNtf = 9, "ns-del-ntf";
        /// Start to reset a live controller: it is shut down and connected again, with its disks,
        /// whose I/O waits. Its state is resetting when this returns, and it has no error; live
        /// means that it was reset, and an error that it could not be connected at once, and why.
        CtrlReset = 10, "ctrl-reset";
        /// Change what a controller does when its connection is lost, at least one of the
        /// attributes. It counts at once, also while the controller connects again; connect-timeout
        /// does for attempts that begin from then on. The event ctrl-change-ntf tells of it.
        CtrlSet = 11, "ctrl-set";
        /// Start to ask a discovery controller, and reply with a number at once. The kernel
        /// connects to it, reads its log and disconnects. The event discover-ntf tells when that is
        /// done. The connect-timeout is for all of it. The discovery belongs to the socket that
        /// asked for it: it ends, and what was read is forgotten, when that is closed, or asks for
        /// another. A persistent one stays connected, reads the log again whenever the controller
        /// says that it changed, and connects again after a loss, with pauses of up to
        /// reconnect-delay. Each log that was read, and each failure, has an event. Without
        /// persistent, keep-alive-tmo and reconnect-delay mean nothing.
        Discover = 12, "discover";
        /// Read how a discovery of this socket went, or dump the entries of the log that it has
        /// read, each in a message of its own.
        DiscoverGet = 13, "discover-get";
        /// A discovery is done, or a persistent one has a new log or has failed.
        DiscoverNtf = 14, "discover-ntf";
        /// Read what the queues of one controller have done together, or what each queue has done,
        /// of one controller or of all of the caller's network namespace.
        StatsGet = 15, "stats-get";
        /// Choose whether the time is measured that the commands of a controller take. It is not at
        /// first, as it costs a look at the clock at either end.
        StatsSet = 16, "stats-set";
        /// Start to look at the namespaces of a live controller, and reply with the number of that
        /// look: new ones get a disk, the disks of those that are gone or others go, the others
        /// follow in size and protection. The controller has no error when this returns. It is over
        /// when scan has come to that number; an error tells that it failed, and why.
        CtrlRescan = 17, "ctrl-rescan";
        /// The size of a namespace, or whether it can be written to, changed.
        NsChangeNtf = 18, "ns-change-ntf";
    }
}

enumeration! {
    /// State of a controller.
    CtrlState: u32 {
        /// Made; nothing has been sent to the target yet.
        New = 0, "new";
        /// Its queues are being connected and set up.
        Connecting = 1, "connecting";
        /// Ready for I/O.
        Live = 2, "live";
        /// An error or a reset stopped it; its queues are being torn down.
        Resetting = 3, "resetting";
        /// Being removed.
        Deleting = 4, "deleting";
        /// Failed for good; the error attribute tells why.
        Dead = 5, "dead";
    }
}

enumeration! {
    /// Where a controller was when it failed.
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
        /// Agreeing on the number of I/O queues and setting them up.
        Queues = 7, "queues";
        /// Finding the namespaces and making their disks.
        Namespaces = 8, "namespaces";
        /// Keeping an idle connection alive.
        KeepAlive = 9, "keep-alive";
        /// A command to a live controller.
        Io = 10, "io";
        /// The connection of a live controller.
        Transport = 11, "transport";
        /// The RDMA device went away.
        Removal = 12, "removal";
        /// Reading the discovery log.
        Discovery = 13, "discovery";
    }
}

attribute_set! {
    /// Why a controller failed. Only what is known is present; the stage, the errno and the message
    /// always are.
    error {
        /// Where it failed.
        STAGE = 1, "stage", Reply;
        /// The error number, positive.
        ERRNO = 2, "errno", Reply;
        /// Reason with which the connection manager's peer rejected the connection.
        REJECT_REASON = 3, "reject-reason", Reply;
        /// NVMe/RDMA status in the private data of that rejection.
        CM_STATUS = 4, "cm-status", Reply;
        /// NVMe status field without the phase bit, as a command returned it.
        NVME_STATUS = 5, "nvme-status", Reply;
        /// Queue that failed; 0 is the admin queue.
        QID = 6, "qid", Reply;
        /// The cause, for a person to read.
        MESSAGE = 7, "message", Reply;
    }
}

attribute_set! {
    /// A controller, and what a connect asks of one.
    ctrl {
        /// Number of the controller, which is not the one in its name: no other controller gets it
        /// until 2^32 more have been made.
        CTRL_ID = 1, "ctrl-id", U32(0..=u32::MAX);
        /// Name of the controller, such as rnvmf0.
        NAME = 2, "name", Reply;
        /// State of the controller.
        STATE = 3, "state", Reply;
        /// Numeric IPv4 or IPv6 address of the target; IPv6 may end in %scope.
        TRADDR = 4, "traddr", Str(TRADDR_MAX_LEN);
        /// Port of the target.
        TRSVCID = 5, "trsvcid", U16(1..=u16::MAX);
        /// Numeric address to connect from.
        HOST_TRADDR = 6, "host-traddr", Str(TRADDR_MAX_LEN);
        /// NVMe Qualified Name of the subsystem.
        SUBSYSNQN = 7, "subsysnqn", Str(NQN_MAX_LEN);
        /// NVMe Qualified Name of the host.
        HOSTNQN = 8, "hostnqn", Str(NQN_MAX_LEN);
        /// Identifier of the host, a UUID in the byte order of its text.
        HOSTID = 9, "hostid", Bytes(HOSTID_LEN);
        /// Number of I/O queues, those below not counted. A connect asks for it, and gets no more
        /// than the target and the RDMA device offer, nor than there are CPUs; the default is one
        /// for each online CPU.
        NR_IO_QUEUES = 10, "nr-io-queues", U32(1..=NR_IO_QUEUES_MAX);
        /// Entries of each I/O queue; a connect asks for it, and may get fewer.
        QUEUE_SIZE = 11, "queue-size", U32(QUEUE_SIZE_MIN..=QUEUE_SIZE_MAX);
        /// Keep-alive timeout in seconds; 0 switches keep-alive off.
        KEEP_ALIVE_TMO = 12, "keep-alive-tmo", U32(0..=KEEP_ALIVE_TMO_MAX);
        /// Milliseconds that an attempt to connect may take, the first as well as those after a
        /// loss or a reset.
        CONNECT_TIMEOUT = 13, "connect-timeout", U32(1..=CONNECT_TIMEOUT_MAX);
        /// Type of service of the connections, as the connection manager takes it.
        TOS = 14, "tos", U8(0..=u8::MAX);
        /// Connect even where a controller of the same host, subsystem and address exists.
        DUPLICATE_CONNECT = 15, "duplicate-connect", Flag;
        /// Identifier that the target gave to the controller.
        CNTLID = 16, "cntlid", Reply;
        /// RDMA device that the controller uses.
        RDMA_DEVICE = 17, "rdma-device", Reply;
        /// Model number that the target reports.
        MODEL = 18, "model", Reply;
        /// Serial number that the target reports.
        SERIAL = 19, "serial", Reply;
        /// Firmware revision that the target reports.
        FIRMWARE = 20, "firmware", Reply;
        /// Number of namespaces that have a disk.
        NR_NAMESPACES = 21, "nr-namespaces", Reply;
        /// Most bytes that one command may move.
        MAX_TRANSFER = 22, "max-transfer", Reply;
        /// Most bytes of data that a command capsule carries itself.
        INLINE_SIZE = 23, "inline-size", Reply;
        /// The last error of the controller.
        ERROR = 24, "error", Reply;
        /// Longest pause between attempts to connect again, in seconds.
        RECONNECT_DELAY = 25, "reconnect-delay", U32(1..=RECONNECT_DELAY_MAX);
        /// Seconds after a loss that attempts to connect again go on for; 0 for none,
        /// loss-tmo-never for no end. After that the controller is dead.
        CTRL_LOSS_TMO = 26, "ctrl-loss-tmo", U32(0..=u32::MAX);
        /// Seconds after a loss that I/O is held back for; then it fails at once until the
        /// controller is live again. Without it, I/O is held back as long as attempts go on.
        FAST_IO_FAIL_TMO = 27, "fast-io-fail-tmo", U32(0..=u32::MAX);
        /// Attempts to connect again since the loss, while they go on.
        ATTEMPTS = 28, "attempts", Reply;
        /// Milliseconds until the next attempt, while none is under way.
        NEXT_ATTEMPT = 29, "next-attempt", Reply;
        /// Number of I/O queues for writes only, beside nr-io-queues, which are then for reads. A
        /// connect gets some only if it gets all of those.
        NR_WRITE_QUEUES = 30, "nr-write-queues", U32(1..=NR_IO_QUEUES_MAX);
        /// Number of I/O queues for polled requests only, beside the others. A connect gets some
        /// only if it gets all of the others.
        NR_POLL_QUEUES = 31, "nr-poll-queues", U32(1..=NR_IO_QUEUES_MAX);
        /// Number of the discovery that was begun, unique while it exists.
        DISCOVERY_ID = 32, "discovery-id", Reply;
        /// Number of the last look at the namespaces of the live controller that is over. It counts
        /// up.
        SCAN = 33, "scan", Reply;
        /// Stay connected to the discovery controller, and follow its log.
        PERSISTENT = 34, "persistent", Flag;
        /// Milliseconds until no more attempts are made, while the connection is lost; where it is
        /// absent they have no end.
        GIVE_UP = 35, "give-up", Reply;
        /// Ask the target not to tell how far it is in its queues. The host does not look at that
        /// in any case.
        DISABLE_SQFLOW = 36, "disable-sqflow", Flag;
        /// Number of namespaces that have no disk, as they were found last.
        NR_NO_DISK = 37, "nr-no-disk", Reply;
        /// A namespace that has no disk. Of more than no-disk-max there are as many.
        NO_DISK = 38, "no-disk", Reply;
        /// How often the controller was connected anew by a reset, at its first attempt. It counts
        /// up from 0, and wraps around.
        NR_RESETS = 39, "nr-resets", Reply;
        /// How often it was connected anew after a loss, or after a reset whose first attempt
        /// failed, likewise.
        NR_RECONNECTS = 40, "nr-reconnects", Reply;
    }
}

attribute_set! {
    /// A namespace that has a disk.
    ns {
        /// Controller of the namespace.
        CTRL_ID = 1, "ctrl-id", U32(0..=u32::MAX);
        /// Namespace identifier.
        NSID = 2, "nsid", U32(1..=u32::MAX);
        /// Name of the disk, such as rnvmf0n1.
        NAME = 3, "name", Reply;
        /// Capacity in bytes.
        SIZE = 4, "size", Reply;
        /// Logical block size in bytes.
        BLOCK_SIZE = 5, "block-size", Reply;
        /// Physical block size in bytes.
        PHYSICAL_BLOCK_SIZE = 6, "physical-block-size", Reply;
        /// Namespace globally unique identifier, where it has one.
        NGUID = 7, "nguid", Reply;
        /// IEEE extended unique identifier, where it has one.
        EUI64 = 8, "eui64", Reply;
        /// Universally unique identifier, where it has one.
        UUID = 9, "uuid", Reply;
        /// The namespace refuses writes.
        READ_ONLY = 10, "read-only", Reply;
        /// The target has a volatile write cache.
        WRITE_CACHE = 11, "write-cache", Reply;
    }
}

attribute_set! {
    /// What a discovery controller knows of. While neither the error nor the generation is there it
    /// is being asked.
    discovery {
        /// Number of the discovery.
        DISCOVERY_ID = 1, "discovery-id", U32(0..=u32::MAX);
        /// Generation of the log, which changes with it.
        GENERATION = 2, "generation", Reply;
        /// How many entries the log has, as the controller says. No more than discovery-entries-max
        /// are read.
        NR_ENTRIES = 3, "nr-entries", Reply;
        /// Why the log could not be read.
        ERROR = 4, "error", Reply;
        /// An entry of the log as the controller sent it, a Discovery Log Page Entry of NVMe Base.
        /// The kernel checked it: TRSVCID, SUBNQN and TRADDR are printable ASCII and end within
        /// their fields, and SUBNQN is a valid NVMe Qualified Name. TRTYPE is at byte 0, ADRFAM at
        /// 1, SUBTYPE at 2, TREQ at 3, PORTID at 4, CNTLID at 6, ASQSZ at 8, EFLAGS at 10, TRSVCID
        /// at 32 with 32 bytes, SUBNQN at 256 and TRADDR at 512 with 256 bytes each, and TSAS at
        /// 768. Numbers are little-endian. A NUL ends a text; spaces may pad TRSVCID and TRADDR.
        ENTRY = 5, "entry", Reply;
        /// Milliseconds until the persistent discovery goes on, after an error. Where it is absent
        /// the discovery is over.
        NEXT_ATTEMPT = 6, "next-attempt", Reply;
    }
}

attribute_set! {
    /// How many commands took how long.
    latency_bucket {
        /// Nanoseconds that they took less than, but not less than those of the bucket before; not
        /// there for the last bucket, of all that took longer.
        BELOW = 1, "below", Reply;
        /// How many there were, which is never 0.
        COUNT = 2, "count", Reply;
    }
}

attribute_set! {
    /// What a queue of a controller has done, or all of them together, since the controller was
    /// made; connections that were lost are included. A command counts when the target has answered
    /// it. Numbers only grow, and have 64 bits.
    stats {
        /// Controller of the queue.
        CTRL_ID = 1, "ctrl-id", U32(0..=u32::MAX);
        /// Name of the controller, such as rnvmf0.
        NAME = 2, "name", Reply;
        /// Number of the queue, 0 is the admin queue; not there for all together.
        QID = 3, "qid", Reply;
        /// Read commands.
        READS = 4, "reads", Reply;
        /// Write commands.
        WRITES = 5, "writes", Reply;
        /// Flush commands.
        FLUSHES = 6, "flushes", Reply;
        /// Commands of other kinds, all those of the admin queue included.
        OTHERS = 7, "others", Reply;
        /// Bytes that reads without an error returned.
        READ_BYTES = 8, "read-bytes", Reply;
        /// Bytes of writes without an error.
        WRITTEN_BYTES = 9, "written-bytes", Reply;
        /// Commands that the target answered with an error.
        ERRORS = 10, "errors", Reply;
        /// Requests that are sent again, for an error that may pass or a connection that was lost.
        RETRIES = 11, "retries", Reply;
        /// Commands whose data was sent in their capsule.
        IN_CAPSULE = 12, "in-capsule", Reply;
        /// Commands whose data the target was given a key for.
        REGISTRATIONS = 13, "registrations", Reply;
        /// Keys that the target invalidated with its answer.
        REMOTE_INVALIDATIONS = 14, "remote-invalidations", Reply;
        /// Keys that the target left to us to invalidate.
        LOCAL_INVALIDATIONS = 15, "local-invalidations", Reply;
        /// Calls that posted send work requests.
        DOORBELLS = 16, "doorbells", Reply;
        /// Send work requests, which are registrations, sends and invalidations.
        WORK_REQUESTS = 17, "work-requests", Reply;
        /// Completions, of sends, invalidations and receives.
        COMPLETIONS = 18, "completions", Reply;
        /// Polls of the completion queue that found something.
        POLLS = 19, "polls", Reply;
        /// Whether the time that reads and writes take is measured, 1, or not, 0.
        LATENCY = 20, "latency", U8(0..=1);
        /// Reads by the time from being posted to being over, shortest first.
        READ_LATENCY = 21, "read-latency", Reply;
        /// Writes, likewise.
        WRITE_LATENCY = 22, "write-latency", Reply;
    }
}

attribute_set! {
    /// A namespace that has no disk, and why.
    refusal {
        /// Namespace identifier.
        NSID = 1, "nsid", Reply;
        /// The reason, for a person to read.
        REASON = 2, "reason", Reply;
    }
}

requests! {
    /// The do request of connect.
    CONNECT_DO: Connect, admin: true, ctrl [
        TRADDR TRSVCID HOST_TRADDR SUBSYSNQN HOSTNQN HOSTID NR_IO_QUEUES QUEUE_SIZE KEEP_ALIVE_TMO
        CONNECT_TIMEOUT TOS DUPLICATE_CONNECT RECONNECT_DELAY CTRL_LOSS_TMO FAST_IO_FAIL_TMO
        NR_WRITE_QUEUES NR_POLL_QUEUES DISABLE_SQFLOW
    ];

    /// The do request of disconnect.
    DISCONNECT_DO: Disconnect, admin: true, ctrl [CTRL_ID];

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
        CTRL_ID CONNECT_TIMEOUT RECONNECT_DELAY CTRL_LOSS_TMO FAST_IO_FAIL_TMO
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
