// SPDX-License-Identifier: GPL-2.0

//! The command line: the one definition that help, man pages and completions are made from.

use crate::address::{Address, Endpoint};
use crate::host::{check_nqn, DISCOVERY_NQN};
use crate::model::options::Switch;
use crate::output::Format;
use crate::uapi::{
    CONNECT_TIMEOUT_DEFAULT, CONNECT_TIMEOUT_MAX, KEEP_ALIVE_TMO_MAX, LOSS_TMO_MAX,
    NR_IO_QUEUES_MAX, QUEUE_SIZE_MAX, QUEUE_SIZE_MIN, RECONNECT_DELAY_MAX,
};
use clap::builder::RangedI64ValueParser;
use clap::{value_parser, Arg, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;
use uuid::Uuid;

const EXIT_STATUS: &str = "\
EXIT STATUS:
  0  success
  1  the operation failed
  2  the command line is wrong, or the file of connect-all
  3  there is no such controller
  4  the controller exists already
  5  the operation took too long
  6  the caller may not do that
  7  the kernel module is not loaded
  130, 143  SIGINT or SIGTERM ended it, before all was done
  141  nobody reads the output any more";

const HOST_IDENTITY: &str = "\
HOST IDENTITY:
  Without --hostnqn the name is that in /etc/nvme/hostnqn; else it is made of
  the UUID in /sys/class/dmi/id/product_uuid; else of /etc/machine-id.
  Without --hostid the identifier is that in /etc/nvme/hostid, unless --hostnqn
  is another name; else the UUID at the end of the host's name; else one that
  is made of another name, or the same that the name is made of.
  No two controllers may have only one of the two in common.";

const CONFIG_FILE: &str = "\
FILE:
  Each line has the options of one rnvmf connect, but neither -D nor -o:
    -a 10.0.0.9 -n nqn.2014-08.org.example:disk --ctrl-loss-tmo -1
  or, after the word discover, those of a discovery controller: all subsystems
  of which it knows are connected, with the other options of the line.
    discover -a 10.0.0.9 --ctrl-loss-tmo -1
  Words are separated by spaces. A line that begins with # is none.
  Nothing is connected if a line is wrong; that ends with status 2.

DISCOVERY:
  With --traddr all subsystems are connected of which the discovery controller
  there knows, and those to which it refers, with the other options. Of
  discovery controllers 32 are asked at most.

  With --persistent the program stays, and does the same with what they know
  of later, whether they are those of --traddr or of the file: each that is new
  is connected, once. What they name no more is told and stays connected. A
  connection to a discovery controller that is lost, or cannot be made, is
  tried again, with pauses of up to --reconnect-delay; what could not be
  connected of that which they know of, too, every 30 seconds. SIGINT and
  SIGTERM end this with status 0, and all that is connected stays so.";

const FINDINGS: &str = "\
FINDINGS:
  Each line begins with one of
    ok       nothing is wrong
    warning  it works, but perhaps not as it should
    fault    a connection cannot be made; the status is 1
    unknown  it could not be looked at
  and ends with the command that mends it, where there is one.
  Nothing is changed, and nothing is sent, but for a question about a host name.";

/// Connect and watch NVMe over RDMA block devices
#[derive(Debug, Parser)]
#[command(name = "rnvmf", version, after_long_help = EXIT_STATUS)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Connect a controller, and wait until its disks are there
    #[command(after_long_help = HOST_IDENTITY)]
    Connect(Connect),
    /// Print what a discovery controller knows of
    #[command(after_long_help = HOST_IDENTITY)]
    Discover(Discover),
    /// Connect what a file lists, or a discovery controller knows of, and is not connected
    #[command(after_long_help = CONFIG_FILE)]
    ConnectAll(ConnectAll),
    /// Disconnect controllers, and wait until they are gone
    Disconnect(Disconnect),
    /// Disconnect every controller, or those that are not in use, and wait until they are gone
    DisconnectAll(DisconnectAll),
    /// Reset a controller: connect it anew, while the I/O of its disks waits
    Reset(Reset),
    /// Look what namespaces the target of a controller has, and wait until its disks are those
    Rescan(Rescan),
    /// Change what a controller does when its connection is lost
    #[command(after_help = "What is not given stays as it is: the defaults are those of connect.")]
    Set(Set),
    /// List the disks
    List(List),
    /// Show the controllers, or all about one
    Show(Show),
    /// Print what controllers have done, or do: commands, bytes, work requests
    Stats(Stats),
    /// Print what happens to controllers and disks, until SIGINT or SIGTERM
    Monitor(Monitor),
    /// Look for what stands in the way of connections, and tell how to mend it
    #[command(after_long_help = FINDINGS)]
    Doctor(Doctor),
    /// Print a completion script for a shell
    Completion(Completion),
    /// Print a man page in roff
    Man(Man),
}

impl Verb {
    /// How the verb prints, errors included.
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Connect(options) => options.output.format,
            Self::Discover(options) => options.output.format,
            Self::ConnectAll(options) => options.output.format,
            Self::Disconnect(options) => options.output.format,
            Self::DisconnectAll(options) => options.output.format,
            Self::Reset(options) => options.output.format,
            Self::Rescan(options) => options.output.format,
            Self::Set(options) => options.output.format,
            Self::List(options) => options.output.format,
            Self::Show(options) => options.output.format,
            Self::Stats(options) => options.output.format,
            Self::Monitor(options) => options.output.format,
            Self::Doctor(options) => options.output.format,
            Self::Completion(_) | Self::Man(_) => Format::Normal,
        }
    }
}

/// The option that every verb has.
#[derive(Debug, Args)]
pub(crate) struct Output {
    /// How to print results and errors
    #[arg(
        short = 'o',
        long = "output-format",
        value_name = "FORMAT",
        default_value = "normal"
    )]
    pub(crate) format: Format,
}

/// Transports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// InfiniBand, RoCE and iWARP.
    Rdma,
}

/// Options of `connect`.
#[derive(Debug, Args)]
pub(crate) struct Connect {
    /// Address of the target: IPv4, IPv6 (with %scope where it needs one) or a host name
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: String,

    /// NVMe Qualified Name of the subsystem
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// How the target is reached.
    #[command(flatten)]
    pub(crate) fabrics: FabricsArgs,

    /// Options of the controller.
    #[command(flatten)]
    pub(crate) ctrl: CtrlArgs,

    /// Connect even where the same controller exists
    #[arg(short = 'D', long, conflicts_with = "idempotent")]
    pub(crate) duplicate_connect: bool,

    /// Succeed where the same controller is connected already
    #[arg(long)]
    pub(crate) idempotent: bool,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Connect {
    /// Returns where the subsystem is.
    pub(crate) fn subsystem(&self) -> SubsystemArgs<'_> {
        SubsystemArgs {
            traddr: &self.traddr,
            nqn: &self.nqn,
            fabrics: &self.fabrics,
        }
    }
}

/// A subsystem and how it is reached, whichever verb's arguments name it.
#[derive(Clone, Copy)]
pub(crate) struct SubsystemArgs<'a> {
    /// Address of the target, or its host name.
    pub(crate) traddr: &'a str,
    /// NVMe Qualified Name of the subsystem.
    pub(crate) nqn: &'a str,
    /// How the target is reached.
    pub(crate) fabrics: &'a FabricsArgs,
}

impl SubsystemArgs<'_> {
    /// Returns the address and port as the user wrote them.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.traddr, self.fabrics.trsvcid)
    }
}

/// How a target is reached, and by which host.
#[derive(Debug, Args)]
pub(crate) struct FabricsArgs {
    /// Transport, always rdma
    #[arg(short, long, default_value = "rdma")]
    pub(crate) transport: Transport,

    /// Port of the target
    #[arg(short = 's', long, value_name = "PORT", default_value_t = 4420,
          value_parser = value_parser!(u16).range(1..))]
    pub(crate) trsvcid: u16,

    /// NVMe Qualified Name of this host
    #[arg(short = 'q', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) hostnqn: Option<String>,

    /// Identifier of this host
    #[arg(short = 'I', long, value_name = "UUID")]
    pub(crate) hostid: Option<Uuid>,

    /// Numeric address to connect from
    #[arg(short = 'w', long, value_name = "ADDRESS")]
    pub(crate) host_traddr: Option<Address>,

    /// Type of service of the connections, 0 to 255
    #[arg(short = 'T', long, value_name = "TOS")]
    pub(crate) tos: Option<u8>,

    /// Seconds that connecting may take, and finding a host name before, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = CONNECT_TIMEOUT_DEFAULT / 1000,
          value_parser = connect_timeout())]
    pub(crate) timeout: u32,
}

/// Options of the I/O queues of a controller.
#[derive(Debug, Args)]
pub(crate) struct QueueArgs {
    /// Number of I/O queues [default: one for each online CPU]
    #[arg(short = 'i', long, value_name = "N",
          value_parser = value_parser!(u32).range(1..=i64::from(NR_IO_QUEUES_MAX)))]
    pub(crate) nr_io_queues: Option<u32>,

    /// Number of queues for writes only; those of -i are then for reads [default: none]
    #[arg(short = 'W', long, value_name = "N",
          value_parser = value_parser!(u32).range(1..=i64::from(NR_IO_QUEUES_MAX)))]
    pub(crate) nr_write_queues: Option<u32>,

    /// Number of queues for polled I/O only, as io_uring can do [default: none]
    #[arg(short = 'P', long, value_name = "N",
          value_parser = value_parser!(u32).range(1..=i64::from(NR_IO_QUEUES_MAX)))]
    pub(crate) nr_poll_queues: Option<u32>,

    /// Entries of each I/O queue, 16 to 1024 [default: 128]
    #[arg(short = 'Q', long, value_name = "N",
          value_parser = value_parser!(u32)
              .range(i64::from(QUEUE_SIZE_MIN)..=i64::from(QUEUE_SIZE_MAX)))]
    pub(crate) queue_size: Option<u32>,

    /// Ask the target not to tell how far it is in its queues
    #[arg(long)]
    pub(crate) disable_sqflow: bool,
}

/// Options of a controller.
#[derive(Debug, Args)]
pub(crate) struct CtrlArgs {
    /// Its I/O queues.
    #[command(flatten)]
    pub(crate) queues: QueueArgs,

    /// Keep-alive timeout in seconds, 0 for none [default: 5]
    #[arg(short = 'k', long, value_name = "SECONDS",
          value_parser = value_parser!(u32).range(..=i64::from(KEEP_ALIVE_TMO_MAX)))]
    pub(crate) keep_alive_tmo: Option<u32>,

    /// What to do when the connection is lost.
    #[command(flatten)]
    pub(crate) reconnect: ReconnectArgs,
}

/// Options of a controller for the time after the loss of its connection.
#[derive(Debug, Args)]
pub(crate) struct ReconnectArgs {
    /// Longest pause between attempts to connect again, 1 to 3600 seconds [default: 10]
    #[arg(short = 'c', long, value_name = "SECONDS",
          value_parser = value_parser!(u32).range(1..=i64::from(RECONNECT_DELAY_MAX)))]
    pub(crate) reconnect_delay: Option<u32>,

    /// Seconds after a loss that attempts go on for; 0 for none, -1 for no end [default: 600]
    #[arg(short = 'l', long, value_name = "SECONDS", allow_negative_numbers = true,
          value_parser = loss_tmo())]
    pub(crate) ctrl_loss_tmo: Option<i64>,

    /// Seconds after a loss that I/O waits before it fails; -1 for as long as attempts go on
    /// [default: -1]
    #[arg(short = 'F', long, visible_alias = "fast_io_fail_tmo", value_name = "SECONDS",
          allow_negative_numbers = true, value_parser = loss_tmo())]
    pub(crate) fast_io_fail_tmo: Option<i64>,
}

/// Seconds after a loss, or -1.
fn loss_tmo() -> RangedI64ValueParser<i64> {
    value_parser!(i64).range(-1..=i64::from(LOSS_TMO_MAX))
}

/// Seconds that connecting may take.
fn connect_timeout() -> RangedI64ValueParser<u32> {
    value_parser!(u32).range(1..=i64::from(CONNECT_TIMEOUT_MAX / 1000))
}

/// A discovery controller.
#[derive(Debug, Args)]
pub(crate) struct DiscoveryCtrlArgs {
    /// Address of the target: IPv4, IPv6 (with %scope where it needs one) or a host name
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: String,

    /// NVMe Qualified Name of the discovery subsystem, if it has one of its own
    #[arg(short = 'n', long, value_name = "NQN", default_value = DISCOVERY_NQN,
          value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// How the target is reached.
    #[command(flatten)]
    pub(crate) fabrics: FabricsArgs,
}

impl DiscoveryCtrlArgs {
    /// Returns where the discovery subsystem is.
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
    /// Whose log to print.
    #[command(flatten)]
    pub(crate) controller: DiscoveryCtrlArgs,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A discovery controller, all of whose subsystems are to be connected.
#[derive(Debug, Args)]
pub(crate) struct DiscoverArgs {
    /// Where to ask for them.
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
    /// The file
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

    /// NVMe Qualified Name of the discovery subsystem, if it has one of its own
    #[arg(short = 'n', long, value_name = "NQN", default_value = DISCOVERY_NQN,
          value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// Stay connected to the discovery controllers, and connect what they come to know of, until
    /// SIGINT or SIGTERM
    #[arg(short = 'p', long)]
    pub(crate) persistent: bool,

    /// How the targets are reached.
    #[command(flatten)]
    pub(crate) fabrics: FabricsArgs,

    /// Options of the controllers.
    #[command(flatten)]
    pub(crate) ctrl: CtrlArgs,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// All but these say something of a discovery controller, and need one.
fn requires_discovery(option: Arg) -> Arg {
    match option.get_id().as_str() {
        "config" | "traddr" | "persistent" | "format" => option,
        _ => option.requires("traddr"),
    }
}

/// Options of `disconnect`.
#[derive(Debug, Args)]
pub(crate) struct Disconnect {
    /// Which controllers.
    #[command(flatten)]
    pub(crate) selection: Selection,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Controllers by subsystem or by name.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Selection {
    /// Every controller of the subsystem with this NVMe Qualified Name
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: Option<String>,

    /// The controllers with these names, such as rnvmf0
    #[arg(short = 'd', long, value_name = "DEVICE", num_args = 1.., value_delimiter = ',')]
    pub(crate) device: Vec<String>,
}

/// Options of `disconnect-all`.
#[derive(Debug, Args)]
pub(crate) struct DisconnectAll {
    /// Leave those that have a disk in use, as one that is mounted, or of LVM
    #[arg(long)]
    pub(crate) unused: bool,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `reset`.
#[derive(Debug, Args)]
pub(crate) struct Reset {
    /// Name of the controller, such as rnvmf0
    pub(crate) device: String,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `rescan`.
#[derive(Debug, Args)]
pub(crate) struct Rescan {
    /// Name of the controller, such as rnvmf0
    pub(crate) device: String,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `set`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("settings").required(true).multiple(true)
    .args(["reconnect_delay", "ctrl_loss_tmo", "fast_io_fail_tmo", "timeout"]))]
pub(crate) struct Set {
    /// Name of the controller, such as rnvmf0
    pub(crate) device: String,

    /// What to change.
    #[command(flatten)]
    pub(crate) reconnect: ReconnectArgs,

    /// Seconds that an attempt to connect may take, from the next one on, 1 to 600 [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = connect_timeout())]
    pub(crate) timeout: Option<u32>,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `list`.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `show`.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// Name of a controller, such as rnvmf0
    pub(crate) device: Option<String>,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `stats`.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// Name of a controller, such as rnvmf0
    pub(crate) device: Option<String>,

    /// Print a row for each queue; queue 0 is the admin queue
    #[arg(long)]
    pub(crate) queues: bool,

    /// Print how many a second, every so many seconds, until SIGINT or SIGTERM [default: 1]
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "1",
          value_parser = interval)]
    pub(crate) watch: Option<u32>,

    /// Print how long reads and writes took while that was measured
    #[arg(long, conflicts_with_all = ["queues", "watch"])]
    pub(crate) histogram: bool,

    /// Measure how long reads and writes take from now on, or do not; by default it is off
    #[arg(long, value_name = "on|off", requires = "device",
          conflicts_with_all = ["queues", "watch", "histogram"])]
    pub(crate) latency: Option<Switch>,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `monitor`.
#[derive(Debug, Args)]
pub(crate) struct Monitor {
    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Address of the target to look for the way to
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: Option<String>,

    /// Port of the target
    #[arg(short = 's', long, value_name = "PORT", default_value_t = 4420,
          requires = "traddr", value_parser = value_parser!(u16).range(1..))]
    pub(crate) trsvcid: u16,

    /// Numeric address to connect from
    #[arg(short = 'w', long, value_name = "ADDRESS", requires = "traddr")]
    pub(crate) host_traddr: Option<Address>,

    /// NVMe Qualified Name of the subsystem to be connected
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: Option<String>,

    /// NVMe Qualified Name of this host
    #[arg(short = 'q', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) hostnqn: Option<String>,

    /// Identifier of this host
    #[arg(short = 'I', long, value_name = "UUID")]
    pub(crate) hostid: Option<Uuid>,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `completion`.
#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: Shell,
}

/// Seconds between two looks; they may be left out, so what follows may be meant as something else.
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
