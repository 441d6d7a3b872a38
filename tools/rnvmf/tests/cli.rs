// SPDX-License-Identifier: GPL-2.0

//! Runs the program without the kernel module.

use serde_json::Value;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::process::{Command, Output, Stdio};

fn rnvmf(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rnvmf"))
        .args(words)
        .output()
        .expect("the program runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("output is UTF-8")
}

/// Runs a command line that must fail. Returns the exit status and the only line of the error
/// output.
fn fail(words: &[&str]) -> (Option<i32>, String) {
    let output = rnvmf(words);
    assert_eq!(text(&output.stdout), "", "{words:?}");
    let message = text(&output.stderr);
    assert_eq!(message.lines().count(), 1, "{words:?}: {message}");
    (output.status.code(), message.trim_end().to_owned())
}

#[test]
fn wrong_lines_are_one_line_and_status_2() {
    for words in [
        &[] as &[&str],
        &["frob"],
        &["--frob"],
        &["list", "--frob"],
        &["list", "extra"],
        &["connect"],
        &["connect", "-a", "10.0.0.9"],
        &["connect", "-a", "10.0.0.9", "-n", "nqn.x", "-t", "tcp"],
        &["connect", "-a", "10.0.0.9", "-n", "nqn.x", "-s", "0"],
        &["connect", "-a", "10.0.0.9", "-n", "nqn.x", "-Q", "15"],
        &[
            "connect",
            "-a",
            "10.0.0.9",
            "-n",
            "nqn.x",
            "--timeout",
            "601",
        ],
        &["connect", "-a", "10.0.0.9", "-n", "nqn.x", "-I", "no-uuid"],
        &["connect", "-a", "10.0.0.9", "-n", "nqn.x", "-w", "name"],
        &["discover"],
        &["discover", "-a", "10.0.0.9", "-t", "tcp"],
        &["discover", "-a", "10.0.0.9", "-i", "1"],
        &["connect-all", "-s", "4421"],
        &["connect-all", "-a", "10.0.0.9", "-f", "/dev/null"],
        &["disconnect"],
        &["disconnect", "-n", "nqn.x", "-d", "rnvmf0"],
        &["show", "rnvmf0", "rnvmf1"],
        &["stats", "rnvmf0", "rnvmf1"],
        &["stats", "--watch", "0"],
        &["reset"],
        &["reset", "rnvmf0", "rnvmf1"],
        &["rescan"],
        &["rescan", "rnvmf0", "rnvmf1"],
        &["set"],
        &["set", "rnvmf0"],
        &["set", "rnvmf0", "-k", "5"],
        &["set", "rnvmf0", "-c", "0"],
        &["doctor", "10.0.0.9"],
        &["doctor", "-s", "0"],
        &["doctor", "-n", ""],
        &["doctor", "-w", "10.0.0.1"],
        &["list", "-o", "xml"],
        &["completion", "csh"],
        &["man", "frob"],
    ] {
        let (status, message) = fail(words);
        assert_eq!(status, Some(2), "{words:?}: {message}");
        assert!(message.starts_with("rnvmf: "), "{message}");
        assert!(message.contains("--help"), "{message}");
    }
}

#[test]
fn what_is_wrong_is_told() {
    for (words, message) in [
        (&[] as &[&str], "no verb is given; see rnvmf --help"),
        (
            &["connect", "-a", "[::1]", "-n", "nqn.x"],
            "connect to [::1]:4420: invalid address [::1]: write it without brackets",
        ),
        (
            &["doctor", "-a", "[::1]"],
            "doctor: invalid address [::1]: write it without brackets",
        ),
    ] {
        assert_eq!(fail(words), (Some(2), format!("rnvmf: {message}")));
    }
}

#[test]
fn wrong_lines_are_json_where_json_is_wanted() {
    let (status, message) = fail(&["list", "--frob", "-o", "json"]);
    assert_eq!(status, Some(2));
    let document: Value = serde_json::from_str(&message).expect("JSON");
    assert_eq!(document["schema"], 1);
    assert_eq!(document["error"]["status"], 2);
    assert!(document["error"]["message"].is_string());
}

/// The first request loads the module if it is installed, so the test handles both cases.
#[test]
fn the_module_is_missed_or_used() {
    if rnvmf(&["show"]).status.success() {
        let (status, message) = fail(&["show", "no-such"]);
        assert_eq!(status, Some(3));
        assert_eq!(message, "rnvmf: no controller no-such: see rnvmf show");
        return;
    }
    let identity = [
        "-q",
        "nqn.2014-08.org.example:host",
        "-I",
        "00112233-4455-6677-8899-aabbccddeeff",
    ];
    let target = ["connect", "-a", "192.0.2.1", "-n", "nqn.x"];
    for words in [
        &[&target[..], &identity].concat()[..],
        &[&["discover", "-a", "192.0.2.1"], &identity[..]].concat(),
        &["connect-all", "-a", "192.0.2.1"],
        &["disconnect", "-d", "rnvmf0"],
        &["disconnect-all"],
        &["reset", "rnvmf0"],
        &["rescan", "rnvmf0"],
        &["set", "rnvmf0", "-c", "2"],
        &["list"],
        &["show"],
        &["monitor"],
    ] {
        let (status, message) = fail(words);
        assert_eq!(status, Some(7), "{words:?}: {message}");
        assert_eq!(
            message,
            "rnvmf: the rnvmf module is not loaded: modprobe rnvmf"
        );
    }
}

/// The file is checked before the module is needed.
#[test]
fn a_file_of_connections_is_read_first() {
    let wrong = concat!(env!("CARGO_TARGET_TMPDIR"), "/wrong.conf");
    std::fs::write(wrong, "-a 10.0.0.9 -n nqn.x -s frob\n").expect("a file");
    for (file, why) in [
        ("/nowhere/connections.conf", ": No such file or directory"),
        (wrong, ":1: invalid value 'frob' for '--trsvcid <PORT>'"),
    ] {
        let (status, message) = fail(&["connect-all", "-f", file]);
        assert_eq!(status, Some(2), "{message}");
        let start = format!("rnvmf: {file}{why}");
        assert!(message.starts_with(&start), "{message}");
    }
}

#[test]
fn a_name_that_does_not_resolve_is_a_failure() {
    let words = ["connect", "-a", "no such name", "-n", "nqn.x"];
    let (status, message) = fail(&words);
    assert_eq!(status, Some(1));
    let start = "rnvmf: connect to no such name:4420: cannot resolve host name no such name: ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn help_and_version_are_no_errors() {
    for words in [
        &["--help"] as &[&str],
        &["connect", "--help"],
        &["--version"],
    ] {
        let output = rnvmf(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert_eq!(text(&output.stderr), "");
        assert!(text(&output.stdout).contains("rnvmf"));
    }
    let help = rnvmf(&["connect", "--help"]);
    assert!(text(&help.stdout).contains("/etc/nvme/hostnqn"));
}

/// The checks run on any machine, and a fault makes the exit status 1.
#[test]
fn the_doctor_needs_no_module() {
    let output = rnvmf(&["doctor", "-a", "127.0.0.1", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["schema"], 1);
    let findings = document["findings"].as_array().expect("an array");
    let route = findings.iter().find(|each| each["check"] == "route");
    assert_eq!(route.expect("a route")["level"], "fault");
    for check in ["module", "host"] {
        assert!(
            findings.iter().any(|each| each["check"] == check),
            "{check}"
        );
    }
}

#[test]
fn a_name_that_does_not_resolve_is_a_finding() {
    let output = rnvmf(&["doctor", "-a", "no such name"]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output.stdout);
    let fault = "fault    route      cannot resolve host name no such name: ";
    assert!(told.contains(fault), "{told}");
    assert!(told.contains("module"), "{told}");
}

#[test]
fn documents_need_no_kernel() {
    for words in [
        &["man"] as &[&str],
        &["man", "connect"],
        &["completion", "bash"],
    ] {
        let output = rnvmf(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        assert!(!output.stdout.is_empty());
    }
}

#[test]
fn what_is_no_text_is_a_wrong_line() {
    let output = Command::new(env!("CARGO_BIN_EXE_rnvmf"))
        .args(["show", "-x"])
        .arg(OsStr::from_bytes(b"\xff"))
        .output()
        .expect("the program runs");
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(text(&output.stderr).lines().count(), 1);
}

/// Returns an output without a reader.
fn unread() -> Stdio {
    let (writer, reader) = UnixStream::pair().expect("a pair of sockets");
    drop(reader);
    Stdio::from(OwnedFd::from(writer))
}

#[test]
fn nobody_need_read_on() {
    for words in [&["--help"] as &[&str], &["doctor"], &["man"]] {
        let output = Command::new(env!("CARGO_BIN_EXE_rnvmf"))
            .args(words)
            .stdout(unread())
            .output()
            .expect("the program runs");
        assert_eq!(text(&output.stderr), "", "{words:?}");
        assert_eq!(output.status.code(), Some(141), "{words:?}");
    }
}

#[test]
fn nobody_need_listen_to_an_error() {
    let status = Command::new(env!("CARGO_BIN_EXE_rnvmf"))
        .arg("--frob")
        .stderr(unread())
        .status()
        .expect("the program runs");
    assert_eq!(status.code(), Some(2));
}
