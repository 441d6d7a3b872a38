// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::uapi::LOSS_TMO_NEVER;
use clap::CommandFactory;

fn connect(options: &[&str]) -> Result<Connect, clap::Error> {
    let line = ["rnvmf", "connect", "-a", "10.0.0.9", "-n", "nqn.x"];
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
        "-W",
        "2",
        "-P",
        "1",
        "-Q",
        "64",
        "-k",
        "30",
        "-T",
        "8",
        "-c",
        "2",
        "-l",
        "-1",
        "-F",
        "5",
        "-D",
        "-I",
        "00112233-4455-6677-8899-aabbccddeeff",
    ])
    .unwrap();
    assert_eq!(options.fabrics.trsvcid, 4421);
    assert_eq!(options.fabrics.tos, Some(8));
    assert_eq!(options.ctrl.nr_io_queues, Some(4));
    assert_eq!(options.ctrl.nr_write_queues, Some(2));
    assert_eq!(options.ctrl.nr_poll_queues, Some(1));
    assert_eq!(options.ctrl.queue_size, Some(64));
    assert_eq!(options.ctrl.keep_alive_tmo, Some(30));
    assert_eq!(options.ctrl.reconnect.reconnect_delay, Some(2));
    assert_eq!(options.ctrl.reconnect.ctrl_loss_tmo, Some(LOSS_TMO_NEVER));
    assert_eq!(options.ctrl.reconnect.fast_io_fail_tmo, Some(5));
    assert!(options.duplicate_connect);
}

/// In nvme-cli 2 the letter is that of --device.
#[test]
fn the_letter_d_is_for_devices() {
    assert!(connect(&["-d"]).is_err());
    assert!(connect(&["--disable-sqflow"]).unwrap().ctrl.disable_sqflow);
}

#[test]
fn defaults_are_those_of_the_interface() {
    let options = connect(&[]).unwrap();
    let fabrics = &options.fabrics;
    assert_eq!(u32::from(fabrics.trsvcid), crate::uapi::TRSVCID_DEFAULT);
    assert_eq!(fabrics.timeout, 10);
    assert_eq!(options.ctrl.queue_size, None);
}

#[test]
fn help_tells_the_limits_of_the_interface() {
    use crate::uapi::*;
    let mut command = Arguments::command();
    let connect = command.find_subcommand_mut("connect").unwrap();
    let help = connect.render_help().to_string();
    for text in [
        format!("{QUEUE_SIZE_MIN} to {QUEUE_SIZE_MAX} [default: {QUEUE_SIZE_DEFAULT}]"),
        format!(
            "0 to {KEEP_ALIVE_TMO_MAX}; 0 disables keep-alive [default: {KEEP_ALIVE_TMO_DEFAULT}]"
        ),
        format!("1 to {}", CONNECT_TIMEOUT_MAX / 1000),
        format!("1 to {NR_IO_QUEUES_MAX} [default: one for each online CPU]"),
        format!("1 to {RECONNECT_DELAY_MAX} [default: {RECONNECT_DELAY_DEFAULT}]"),
        format!("0 to {LOSS_TMO_MAX}; -1 for no limit [default: {CTRL_LOSS_TMO_DEFAULT}]"),
        format!("0 to {LOSS_TMO_MAX}; -1: when reconnecting ends. With 0, "),
    ] {
        assert!(help.contains(&text), "{text}\n{help}");
    }
}

#[test]
fn the_format_may_stand_anywhere() {
    for line in [
        &["rnvmf", "-o", "json", "list"][..],
        &["rnvmf", "list", "-o", "json"],
        &["rnvmf", "show", "--output-format=json", "rnvmf0"],
    ] {
        let arguments = Arguments::try_parse_from(line).unwrap();
        assert_eq!(arguments.format, Format::Json, "{line:?}");
    }
    let arguments = Arguments::try_parse_from(["rnvmf", "list"]).unwrap();
    assert_eq!(arguments.format, Format::Normal);
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
        ["-c", "0"],
        ["-c", "3601"],
        ["-l", "-2"],
        ["-l", "4294968"],
        ["-F", "-2"],
        ["-F", "4294968"],
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
fn connect_all_takes_a_file_or_a_discovery_controller() {
    let parse =
        |more: &[&str]| Arguments::try_parse_from(["rnvmf", "connect-all"].iter().chain(more));
    for more in [
        &[] as &[&str],
        &["-f", "x"],
        &["-o", "json"],
        &["-a", "10.0.0.9"],
        &["-p"],
        &["-p", "-f", "x"],
        &["--persistent", "-a", "10.0.0.9"],
        &[
            "-a", "10.0.0.9", "-s", "8009", "-k", "5", "-l", "-1", "-n", "nqn.x",
        ],
    ] {
        assert!(parse(more).is_ok(), "{more:?}");
    }
    for more in [
        &["-f", "x", "-a", "10.0.0.9"] as &[&str],
        &["-s", "8009"],
        &["--timeout", "5"],
        &["-k", "5"],
        &["-l", "5"],
        &["-n", "nqn.x"],
    ] {
        assert!(parse(more).is_err(), "{more:?}");
    }
}

#[test]
fn set_takes_what_can_be_changed() {
    let parse =
        |more: &[&str]| Arguments::try_parse_from(["rnvmf", "set", "rnvmf0"].iter().chain(more));
    match parse(&["-c", "2", "-l", "-1", "--fast_io_fail_tmo", "5"]) {
        Ok(Arguments {
            verb: Verb::Set(options),
            ..
        }) => {
            assert_eq!(options.reconnect.reconnect_delay, Some(2));
            assert_eq!(options.reconnect.ctrl_loss_tmo, Some(LOSS_TMO_NEVER));
            assert_eq!(options.reconnect.fast_io_fail_tmo, Some(5));
            assert_eq!(options.timeout, None);
        }
        other => panic!("{other:?}"),
    }
    for seconds in ["1", "600"] {
        assert!(parse(&["--timeout", seconds]).is_ok(), "{seconds}");
    }
    for options in [
        &[] as &[&str],
        &["-c", "0"],
        &["-c", "3601"],
        &["-l", "-2"],
        &["-F", "4294968"],
        &["-k", "5"],
        &["--timeout", "0"],
        &["--timeout", "601"],
        &["--timeout", "-1"],
        &["--nr-io-queues", "2"],
        &["rnvmf1", "-c", "2"],
    ] {
        assert!(parse(options).is_err(), "{options:?}");
    }
}

#[test]
fn a_device_is_no_interval() {
    let parse = |more: &[&str]| {
        let line = ["rnvmf", "stats"].iter().chain(more);
        Arguments::try_parse_from(line).map_err(|error| error.to_string())
    };
    assert!(parse(&["rnvmf0", "--watch"]).is_ok());
    assert!(parse(&["rnvmf0", "--watch", "86400"]).is_ok());
    let error = parse(&["--watch", "rnvmf0"]).unwrap_err();
    assert!(error.contains("a device comes before"), "{error}");
    let error = parse(&["--watch", "86401"]).unwrap_err();
    assert!(error.contains("not in 1..=86400"), "{error}");
}

#[test]
fn devices_are_separated_by_commas_too() {
    let line = ["rnvmf", "disconnect", "-d", "rnvmf0,rnvmf1", "rnvmf2"];
    match Arguments::try_parse_from(line).unwrap().verb {
        Verb::Disconnect(options) => {
            assert_eq!(options.device, ["rnvmf0", "rnvmf1", "rnvmf2"]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn disconnect_needs_one_way_to_choose() {
    let parse = |line: &[&str]| Arguments::try_parse_from(line);
    assert!(parse(&["rnvmf", "disconnect"]).is_err());
    assert!(parse(&["rnvmf", "disconnect", "-n", "nqn.x", "-d", "rnvmf0"]).is_err());
    assert!(parse(&["rnvmf", "disconnect", "-d", "rnvmf0", "rnvmf1"]).is_ok());
}
