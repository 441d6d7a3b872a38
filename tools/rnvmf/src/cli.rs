// SPDX-License-Identifier: GPL-2.0

//! The command line. Help, man pages and completion scripts are generated from this definition.

use crate::address::{Address, Endpoint};
use crate::host::{check_nqn, DISCOVERY_NQN};
use crate::model::options::{range, CtrlArgs, ReconnectOptions, Switch};
use crate::output::Format;
use crate::uapi::{CONNECT_TIMEOUT_DEFAULT, CONNECT_TIMEOUT_MAX};
use clap::builder::RangedI64ValueParser;
use clap::{value_parser, Arg, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use uuid::Uuid;

const EXIT_STATUS: &str = "\
EXIT STATUS:
  0  success
  1  the operation failed
  2  the command line or the file of connect-all is invalid
  3  there is no such controller
  4  the controller exists already
  5  the operation timed out
  6  permission denied
  7  the kernel module is not loaded
  130, 143  ended by SIGINT or SIGTERM before completion
  141  the reader closed the standard output";

/// Position of an option in the help that is after the options of all verbs.
const LAST: usize = 100;

const HOST_IDENTITY: &str = "\
HOST IDENTITY:
  The host NQN is that of --hostnqn; else that in /etc/nvme/hostnqn; else made
  of the UUID in /sys/class/dmi/id/product_uuid; else made of /etc/machine-id.
  The host identifier is that of --hostid; else that in /etc/nvme/hostid, unless
  --hostnqn names another host; else the UUID at the end of the host NQN; else a
  UUID made of what the host NQN is made of, or of the NQN of --hostnqn.
  The kernel refuses a connect if another controller uses only one of the two.";

const SET_NOTE: &str = "\
An option that is not given keeps its value; the defaults are those of connect.";

const CONFIG_FILE: &str = "\
FILE:
  Each line has the options of one rnvmf connect, without -D and -o:
    -a 10.0.0.9 -n nqn.2014-08.org.example:disk --ctrl-loss-tmo -1
  A line that begins with the word discover has the options of a discovery
  controller. The subsystems in its log are connected with the line's options:
    discover -a 10.0.0.9 --ctrl-loss-tmo -1
  Spaces separate words. Lines that begin with # are comments.
  An invalid line is an error, and the other lines are connected. If no line is
  valid, the exit status is 2.

DISCOVERY:
  With --traddr, the subsystems in the log of that discovery controller are
  connected with the given options, and those in the logs of the discovery
  controllers that it refers to. There are at most 32 discovery controllers.

  With --persistent, the program stays connected to the discovery controllers of
  the command line or the file, and connects a subsystem when it appears in a
  log. A subsystem that disappears from a log is reported and stays connected.
  A discovery controller is reconnected with delays of up to --reconnect-delay;
  a failed connection to a subsystem is retried every 30 seconds. SIGINT and
  SIGTERM end the program with status 0; the subsystems stay connected.";

const FINDINGS: &str = "\
FINDINGS:
  Each line begins with a level:
    ok       no problem
    warning  a connection can be made, but something is not as it should be
    fault    no connection can be made; the exit status is 1
    unknown  the check could not be made
  A line ends with a command that fixes the problem, if there is one.
  The doctor runs ip and rdma (package iproute2) and nft (package nftables). It
  changes nothing, and sends no packet except to resolve a host name.";

/// Connect and monitor NVMe over RDMA block devices
#[derive(Debug, Parser)]
#[command(name = "rnvmf", version, after_long_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// The verb with its options.
    #[command(subcommand)]
    pub(crate) verb: Verb,

    /// Format of results and errors
    #[arg(
        short = 'o',
        long = "output-format",
        value_name = "FORMAT",
        default_value = "normal",
        global = true,
        display_order = LAST
    )]
    pub(crate) format: Format,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Connect a controller and wait for its disks
    #[command(after_long_help = HOST_IDENTITY)]
    Connect(Connect),
    /// Print the log of a discovery controller
    #[command(after_long_help = HOST_IDENTITY)]
    Discover(Discover),
    /// Connect the subsystems of a file or a discovery log that are not connected
    #[command(after_long_help = CONFIG_FILE)]
    ConnectAll(ConnectAll),
    /// Disconnect controllers and wait for their removal
    ///
    /// Data in the page cache of the disks is written back first. I/O that the target does not answer
    /// within 2 s of the disconnect fails, write-back included, whatever its time-out is.
    Disconnect(Disconnect),
    /// Disconnect all controllers, or all unused ones, and wait for their removal
    ///
    /// Data in the page cache of the disks is written back first. I/O that the target does not answer
    /// within 2 s of the disconnect fails, write-back included, whatever its time-out is.
    DisconnectAll(DisconnectAll),
    /// Reset a controller: disconnect and reconnect it while I/O waits
    Reset(Device),
    /// Rescan namespaces and wait until the disks match
    Rescan(Device),
    /// Change the reconnect options of a controller
    #[command(after_help = SET_NOTE)]
    Set(Set),
    /// List the disks
    List,
    /// Show all controllers, or one in detail
    Show(Show),
    /// Print counters or rates: commands, bytes, work requests
    Stats(Stats),
    /// Print events of controllers and disks until SIGINT or SIGTERM
    Monitor,
    /// Diagnose the RDMA set-up and suggest fixes
    #[command(after_long_help = FINDINGS)]
    Doctor(Doctor),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Print a man page in roff
    Man(Man),
}

/// Transport types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// InfiniBand, RoCE and iWARP.
    Rdma,
}

/// Options of `connect`.
#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Address of the target: IPv4, IPv6 (link-local: with %INTERFACE) or a host name
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: String,

    /// NVMe Qualified Name (NQN) of the subsystem
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// The target and the host.
    #[command(flatten)]
    pub(crate) fabrics: FabricsArgs,

    /// Options of the controller.
    #[command(flatten)]
    pub(crate) ctrl: CtrlArgs,

    /// Connect even if the same host is connected to this subsystem at this address
    #[arg(short = 'D', long, conflicts_with = "idempotent")]
    pub(crate) duplicate_connect: bool,

    /// Succeed if the same host is connected to this subsystem at this address
    #[arg(long)]
    pub(crate) idempotent: bool,
}

impl Connect {
    /// Returns the subsystem.
    pub(crate) fn subsystem(&self) -> SubsystemArgs<'_> {
        SubsystemArgs {
            traddr: &self.traddr,
            nqn: &self.nqn,
            fabrics: &self.fabrics,
        }
    }
}

/// A subsystem and how to reach it, for all verbs that name one.
#[derive(Clone, Copy)]
pub(crate) struct SubsystemArgs<'a> {
    /// Address or host name of the target.
    pub(crate) traddr: &'a str,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) nqn: &'a str,
    /// The target and the host.
    pub(crate) fabrics: &'a FabricsArgs,
}

impl SubsystemArgs<'_> {
    /// Returns the address and port as the user wrote them.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.traddr, self.fabrics.trsvcid)
    }
}

/// How to reach a target, and the identity of the host.
#[derive(Debug, Args)]
pub(crate) struct FabricsArgs {
    /// Transport type
    #[arg(short, long, default_value = "rdma")]
    pub(crate) transport: Transport,

    /// Port of the target, 1 to 65535
    #[arg(short = 's', long, value_name = "PORT", default_value_t = 4420,
          value_parser = value_parser!(u16).range(1..))]
    pub(crate) trsvcid: u16,

    /// NQN of this host [default: that of this machine]
    #[arg(short = 'q', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) hostnqn: Option<String>,

    /// Identifier of this host [default: that of this machine]
    #[arg(short = 'I', long, value_name = "UUID")]
    pub(crate) hostid: Option<Uuid>,

    /// Source address, numeric [default: that of the route]
    #[arg(short = 'w', long, value_name = "ADDRESS",
          value_parser = Address::parse_scoped)]
    pub(crate) host_traddr: Option<Address>,

    /// Type of service of the connections, 0 to 255 [default: that of the RDMA device]
    #[arg(short = 'T', long, value_name = "TOS")]
    pub(crate) tos: Option<u8>,

    /// Time limit in seconds, 1 to 600: for the resolution of a host name, to connect all queues, then for each
    /// command that looks for namespaces, and for each disk
    #[arg(long, value_name = "SECONDS", default_value_t = CONNECT_TIMEOUT_DEFAULT / 1000,
          value_parser = connect_timeout())]
    pub(crate) timeout: u32,
}

/// Parses seconds for a connect attempt.
fn connect_timeout() -> RangedI64ValueParser<u32> {
    range(1, CONNECT_TIMEOUT_MAX / 1000)
}

/// A discovery controller.
#[derive(Debug, Args)]
pub(crate) struct DiscoveryCtrlArgs {
    /// Address of the target: IPv4, IPv6 (link-local: with %INTERFACE) or a host name
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: String,

    /// NQN of the discovery subsystem
    #[arg(short = 'n', long, value_name = "NQN", default_value = DISCOVERY_NQN,
          value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// The target and the host.
    #[command(flatten)]
    pub(crate) fabrics: FabricsArgs,
}

impl DiscoveryCtrlArgs {
    /// Returns the discovery subsystem.
    pub(crate) fn subsystem(&self) -> SubsystemArgs<'_> {
        SubsystemArgs {
            traddr: &self.traddr,
            nqn: &self.nqn,
            fabrics: &self.fabrics,
        }
    }
}

/// Options of `discover`.
#[derive(Debug, Args)]
pub(crate) struct Discover {
    /// The discovery controller.
    #[command(flatten)]
    pub(crate) controller: DiscoveryCtrlArgs,
}

/// A discovery controller, and the options of the controllers for the subsystems in its log.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// The discovery controller.
    #[command(flatten)]
    pub(crate) controller: DiscoveryCtrlArgs,

    /// Options of the controllers.
    #[command(flatten)]
    pub(crate) ctrl: CtrlArgs,
}

/// Options of `connect-all`.
#[derive(Debug, Args)]
#[command(mut_args(requires_discovery))]
pub(crate) struct ConnectAll {
    /// File with the connections
    #[arg(
        short = 'f',
        long,
        value_name = "FILE",
        conflicts_with = "traddr",
        default_value = "/etc/rnvmf/connections.conf"
    )]
    pub(crate) config: PathBuf,

    /// Address of a discovery controller, instead of a file
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: Option<String>,

    /// NQN of the discovery subsystem
    #[arg(short = 'n', long, value_name = "NQN", default_value = DISCOVERY_NQN,
          value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// Follow the discovery controllers and connect new subsystems, until SIGINT or SIGTERM
    #[arg(short = 'p', long)]
    pub(crate) persistent: bool,

    /// The targets and the host.
    #[command(flatten)]
    pub(crate) fabrics: FabricsArgs,

    /// Options of the controllers.
    #[command(flatten)]
    pub(crate) ctrl: CtrlArgs,
}

/// Makes an option depend on `--traddr` if it is an option of a discovery controller.
fn requires_discovery(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "config" | "traddr" | "persistent" => option,
        _ => option.requires("traddr"),
    }
}

/// Options of `disconnect`: controllers by subsystem or by name.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Disconnect {
    /// Disconnect all controllers of the subsystem with this NQN
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: Option<String>,

    /// Disconnect the controllers with these names, such as rnvmf0
    #[arg(short = 'd', long, value_name = "DEVICE", num_args = 1.., value_delimiter = ',')]
    pub(crate) device: Vec<String>,
}

/// Options of `disconnect-all`.
#[derive(Debug, Args)]
pub(crate) struct DisconnectAll {
    /// Keep controllers with a disk in use: mounted, swap, part of LVM, RAID or a mapping, or open
    #[arg(long)]
    pub(crate) unused: bool,
}

/// The argument of verbs on one controller.
#[derive(Debug, Args)]
pub(crate) struct Device {
    /// Name of the controller, such as rnvmf0
    pub(crate) device: String,
}

/// Options of `set`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("settings").required(true).multiple(true)
    .args(["reconnect_delay", "ctrl_loss_tmo", "fast_io_fail_tmo", "cqt", "timeout"]))]
pub(crate) struct Set {
    /// Name of the controller, such as rnvmf0
    pub(crate) device: String,

    /// The reconnect options.
    #[command(flatten)]
    pub(crate) reconnect: ReconnectOptions,

    /// Time limit in seconds to connect all queues, then for each command of the namespace scan, from
    /// the next attempt on, 1 to 600
    /// [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = connect_timeout())]
    pub(crate) timeout: Option<u32>,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name of a controller, such as rnvmf0 [default: all controllers]
    pub(crate) device: Option<String>,
}

/// Options of `stats`.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Name of a controller, such as rnvmf0 [default: all controllers]
    pub(crate) device: Option<String>,

    /// Print a row for each queue; queue 0 is the admin queue
    #[arg(long)]
    pub(crate) queues: bool,

    /// Print rates per second at this interval in seconds, 1 to 86400, until SIGINT or SIGTERM
    /// [default: 1]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = interval)]
    pub(crate) watch: Option<u32>,

    /// Print histograms of the measured latencies of reads and writes
    #[arg(long, conflicts_with_all = ["queues", "watch"])]
    pub(crate) histogram: bool,

    /// Enable or disable the measurement of latencies [default: off]
    #[arg(long, value_name = "on|off", requires = "device",
          conflicts_with_all = ["queues", "watch", "histogram"])]
    pub(crate) latency: Option<Switch>,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Address or host name of the target; without it only the devices of this host are checked
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: Option<String>,

    /// Port of the target, 1 to 65535
    #[arg(short = 's', long, value_name = "PORT", default_value_t = 4420,
          requires = "traddr", value_parser = value_parser!(u16).range(1..))]
    pub(crate) trsvcid: u16,

    /// Source address, numeric [default: that of the route]
    #[arg(short = 'w', long, value_name = "ADDRESS", requires = "traddr",
          value_parser = Address::parse_scoped)]
    pub(crate) host_traddr: Option<Address>,

    /// NQN of the subsystem to connect
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: Option<String>,

    /// NQN of this host [default: that of this machine]
    #[arg(short = 'q', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) hostnqn: Option<String>,

    /// Identifier of this host [default: that of this machine]
    #[arg(short = 'I', long, value_name = "UUID")]
    pub(crate) hostid: Option<Uuid>,
}

/// Options of `completion`.
#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: Shell,
}

/// Parses the interval of `stats --watch`. The interval is optional, so the next argument may be
/// meant as a device.
fn interval(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(seconds @ 1..=86400) => Ok(seconds),
        Ok(other) => Err(format!("{other} is not in 1..=86400")),
        Err(_) => Err("not a number of seconds; a device comes before this option".into()),
    }
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb to document [default: the program]
    pub(crate) verb: Option<String>,
}

#[cfg(test)]
mod tests;
