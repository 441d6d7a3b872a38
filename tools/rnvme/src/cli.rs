// SPDX-License-Identifier: GPL-2.0

//! The command line: the one definition that help, man pages and completions are made from.

use crate::address::Address;
use crate::host::check_nqn;
use crate::uapi::{
    CONNECT_TIMEOUT_DEFAULT, CONNECT_TIMEOUT_MAX, KEEP_ALIVE_TMO_MAX, NR_IO_QUEUES_MAX,
    QUEUE_SIZE_MAX, QUEUE_SIZE_MIN,
};
use clap::{value_parser, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use uuid::Uuid;

const STATUSES: &str = "\
EXIT STATUS:
  0  success
  1  the operation failed
  2  the command line is wrong
  3  there is no such controller
  4  the controller exists already
  5  the operation took too long
  6  the caller may not do that
  7  the kernel module is not loaded";

const IDENTITY: &str = "\
HOST IDENTITY:
  Without --hostnqn the name is that in /etc/nvme/hostnqn; else it is made of
  the UUID in /sys/class/dmi/id/product_uuid; else of /etc/machine-id.
  Without --hostid the identifier is that in /etc/nvme/hostid; else the UUID
  at the end of the host's name; else the same that the name is made of.";

/// Connect and watch NVMe over RDMA block devices
#[derive(Debug, Parser)]
#[command(name = "rnvme", version, after_long_help = STATUSES)]
pub(crate) struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Connect a controller, and wait until its disks are there
    #[command(after_long_help = IDENTITY)]
    Connect(Connect),
    /// Disconnect controllers, and wait until they are gone
    Disconnect(Disconnect),
    /// Disconnect every controller, and wait until they are gone
    DisconnectAll(DisconnectAll),
    /// List the disks
    List(List),
    /// Show the controllers, or all about one
    Show(Show),
    /// Print what happens to controllers and disks, until SIGINT or SIGTERM
    Monitor(Monitor),
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
            Self::Disconnect(options) => options.output.format,
            Self::DisconnectAll(options) => options.output.format,
            Self::List(options) => options.output.format,
            Self::Show(options) => options.output.format,
            Self::Monitor(options) => options.output.format,
            Self::Completion(_) | Self::Man(_) => Format::Normal,
        }
    }
}

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    Normal,
    /// For programs, with a stable schema.
    Json,
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
    /// Transport, always rdma
    #[arg(short, long, default_value = "rdma")]
    pub(crate) transport: Transport,

    /// Address of the target: IPv4, IPv6 (with %scope where it needs one) or a host name
    #[arg(short = 'a', long, value_name = "ADDRESS")]
    pub(crate) traddr: String,

    /// Port of the target
    #[arg(short = 's', long, value_name = "PORT", default_value_t = 4420,
          value_parser = value_parser!(u16).range(1..))]
    pub(crate) trsvcid: u16,

    /// NVMe Qualified Name of the subsystem
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: String,

    /// NVMe Qualified Name of this host
    #[arg(short = 'q', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) hostnqn: Option<String>,

    /// Identifier of this host
    #[arg(short = 'I', long, value_name = "UUID")]
    pub(crate) hostid: Option<Uuid>,

    /// Numeric address to connect from
    #[arg(short = 'w', long, value_name = "ADDRESS")]
    pub(crate) host_traddr: Option<Address>,

    /// Number of I/O queues [default: one for each online CPU]
    #[arg(short = 'i', long, value_name = "N",
          value_parser = value_parser!(u32).range(1..=i64::from(NR_IO_QUEUES_MAX)))]
    pub(crate) nr_io_queues: Option<u32>,

    /// Entries of each I/O queue, 16 to 1024 [default: 128]
    #[arg(short = 'Q', long, value_name = "N",
          value_parser = value_parser!(u32)
              .range(i64::from(QUEUE_SIZE_MIN)..=i64::from(QUEUE_SIZE_MAX)))]
    pub(crate) queue_size: Option<u32>,

    /// Keep-alive timeout in seconds, 0 for none [default: 5]
    #[arg(short = 'k', long, value_name = "SECONDS",
          value_parser = value_parser!(u32).range(..=i64::from(KEEP_ALIVE_TMO_MAX)))]
    pub(crate) keep_alive_tmo: Option<u32>,

    /// Type of service of the connections, 0 to 255
    #[arg(short = 'T', long, value_name = "TOS")]
    pub(crate) tos: Option<u8>,

    /// Connect even where the same controller exists
    #[arg(short = 'D', long, conflicts_with = "idempotent")]
    pub(crate) duplicate_connect: bool,

    /// Seconds that connecting may take, 1 to 600
    #[arg(long, value_name = "SECONDS", default_value_t = CONNECT_TIMEOUT_DEFAULT / 1000,
          value_parser = value_parser!(u32).range(1..=i64::from(CONNECT_TIMEOUT_MAX / 1000)))]
    pub(crate) timeout: u32,

    /// Succeed where the same controller is connected already
    #[arg(long)]
    pub(crate) idempotent: bool,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Options of `disconnect`.
#[derive(Debug, Args)]
pub(crate) struct Disconnect {
    /// Which controllers.
    #[command(flatten)]
    pub(crate) which: Which,

    /// How to print.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// Controllers by subsystem or by name.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct Which {
    /// Every controller of the subsystem with this NVMe Qualified Name
    #[arg(short = 'n', long, value_name = "NQN", value_parser = check_nqn)]
    pub(crate) nqn: Option<String>,

    /// The controllers with these names, such as rnvme0
    #[arg(short = 'd', long, value_name = "DEVICE", num_args = 1..)]
    pub(crate) device: Vec<String>,
}

/// Options of `disconnect-all`.
#[derive(Debug, Args)]
pub(crate) struct DisconnectAll {
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
    /// Name of a controller, such as rnvme0
    pub(crate) device: Option<String>,

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

/// Options of `completion`.
#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell
    pub(crate) shell: Shell,
}

/// Options of `man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The verb to document [default: the program]
    pub(crate) verb: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn connect(options: &[&str]) -> Result<Connect, clap::Error> {
        let line = ["rnvme", "connect", "-a", "10.0.0.9", "-n", "nqn.x"];
        let parsed = Arguments::try_parse_from(line.iter().chain(options))?;
        match parsed.verb {
            Verb::Connect(options) => Ok(options),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn nvme_cli_letters_work() {
        let options = connect(&[
            "-t",
            "rdma",
            "-s",
            "4421",
            "-q",
            "nqn.h",
            "-w",
            "10.0.0.1",
            "-i",
            "4",
            "-Q",
            "64",
            "-k",
            "30",
            "-T",
            "8",
            "-D",
            "-I",
            "00112233-4455-6677-8899-aabbccddeeff",
        ])
        .unwrap();
        assert_eq!(options.trsvcid, 4421);
        assert_eq!(options.nr_io_queues, Some(4));
        assert_eq!(options.queue_size, Some(64));
        assert_eq!(options.keep_alive_tmo, Some(30));
        assert_eq!(options.tos, Some(8));
        assert!(options.duplicate_connect);
    }

    #[test]
    fn defaults_are_those_of_the_interface() {
        let options = connect(&[]).unwrap();
        assert_eq!(u32::from(options.trsvcid), crate::uapi::TRSVCID_DEFAULT);
        assert_eq!(options.timeout, 10);
        assert_eq!(options.queue_size, None);
        assert_eq!(options.output.format, Format::Normal);
    }

    #[test]
    fn help_tells_the_limits_of_the_interface() {
        use crate::uapi::{KEEP_ALIVE_TMO_DEFAULT, QUEUE_SIZE_DEFAULT};
        let mut command = Arguments::command();
        let connect = command.find_subcommand_mut("connect").unwrap();
        let help = connect.render_help().to_string();
        for text in [
            format!("{QUEUE_SIZE_MIN} to {QUEUE_SIZE_MAX} [default: {QUEUE_SIZE_DEFAULT}]"),
            format!("0 for none [default: {KEEP_ALIVE_TMO_DEFAULT}]"),
            format!("1 to {}", CONNECT_TIMEOUT_MAX / 1000),
        ] {
            assert!(help.contains(&text), "{text}\n{help}");
        }
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for options in [
            ["-s", "0"],
            ["-s", "65536"],
            ["-i", "0"],
            ["-i", "65536"],
            ["-Q", "15"],
            ["-Q", "1025"],
            ["-k", "4294968"],
            ["-T", "256"],
            ["--timeout", "0"],
            ["--timeout", "601"],
            ["-t", "tcp"],
            ["-q", ""],
            ["-I", "12"],
            ["-w", "example"],
            ["-o", "xml"],
        ] {
            assert!(connect(&options).is_err(), "{options:?}");
        }
    }

    #[test]
    fn disconnect_needs_one_way_to_choose() {
        let parse = |line: &[&str]| Arguments::try_parse_from(line);
        assert!(parse(&["rnvme", "disconnect"]).is_err());
        assert!(parse(&["rnvme", "disconnect", "-n", "nqn.x", "-d", "rnvme0"]).is_err());
        assert!(parse(&["rnvme", "disconnect", "-d", "rnvme0", "rnvme1"]).is_ok());
    }
}
