// SPDX-License-Identifier: GPL-2.0

use super::*;

#[test]
fn what_is_no_text_is_known_by_its_line() {
    let error = LineError {
        number: 2,
        why: "not UTF-8".into(),
    };
    let [read] = &super::parse(b"# good\n-a B\xfcro -n nqn.x\n")[..] else {
        panic!("not one line");
    };
    assert_eq!(read.as_ref().unwrap_err(), &error);
}

#[test]
fn a_comment_may_have_any_bytes() {
    let read = super::parse(b"# B\xfcro\r\n-a 10.0.0.9 -n nqn.x\r\n");
    assert!(matches!(read[..], [Ok(_)]));
}

fn parse(text: &str) -> Result<Vec<ConfigLine>, LineError> {
    super::parse(text.as_bytes()).into_iter().collect()
}

#[test]
fn lines_are_options_of_connect() {
    let text =
        "# the first\n\n  -a 10.0.0.9 -n nqn.x\n\t# and\n-a fe80::1%rxe0\t-n  nqn.y -l -1 -s 4421";
    let read = parse(text).unwrap();
    let [ConfigLine::Connect(first), ConfigLine::Connect(second)] = &read[..] else {
        panic!("{read:?}");
    };
    assert_eq!((&*first.traddr, &*first.nqn), ("10.0.0.9", "nqn.x"));
    assert_eq!((&*second.traddr, &*second.nqn), ("fe80::1%rxe0", "nqn.y"));
    assert_eq!(
        (first.fabrics.trsvcid, second.fabrics.trsvcid),
        (4420, 4421)
    );
    assert_eq!(
        second.ctrl.reconnect.ctrl_loss_tmo,
        Some(crate::uapi::LOSS_TMO_NEVER)
    );
    assert!(parse("").unwrap().is_empty());
}

#[test]
fn a_line_may_be_of_a_discovery_controller() {
    let read = parse("discover -a 10.0.0.9 -s 8009 -k 30\n\tdiscover -a 10.0.0.8 -n nqn.own");
    let read = read.unwrap();
    let [ConfigLine::Discover(first), ConfigLine::Discover(second)] = &read[..] else {
        panic!("{read:?}");
    };
    let (at, ctrl) = (&first.controller, &first.ctrl);
    assert_eq!(at.nqn, "nqn.2014-08.org.nvmexpress.discovery");
    assert_eq!((at.fabrics.trsvcid, ctrl.keep_alive_tmo), (8009, Some(30)));
    let at = &second.controller;
    assert_eq!((&*at.traddr, &*at.nqn), ("10.0.0.8", "nqn.own"));
}

#[test]
fn lines_differ_by_what_is_connected_to_what() {
    for other in [
        "-n nqn.y",
        "-n nqn.x -s 4421",
        "-n nqn.x -w 10.0.0.1",
        "-n nqn.x -q nqn.h",
    ] {
        let text = format!("-a 10.0.0.9 -n nqn.x\n-a 10.0.0.9 {other}\ndiscover -a 10.0.0.9");
        assert_eq!(parse(&text).unwrap().len(), 3, "{other}");
    }
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    assert_eq!(parse("\u{feff}-a 10.0.0.9 -n nqn.x").unwrap().len(), 1);
    assert_eq!(
        parse("\u{feff}# one\n-a 10.0.0.9 -n nqn.x").unwrap().len(),
        1
    );
}

#[test]
fn what_is_wrong_is_told_by_line() {
    for (text, line, why) in [
        (
            "\n-a 10.0.0.9",
            2,
            "the following required arguments were not provided: --nqn <NQN>",
        ),
        (
            "#\n#\nconnect -a 10.0.0.9 -n nqn.x",
            3,
            "unexpected argument 'connect' found",
        ),
        (
            "-a 10.0.0.9 -n nqn.x -D",
            1,
            "--duplicate-connect would connect another controller each time",
        ),
        (
            "-a 10.0.0.9 -n nqn.x -o json",
            1,
            "unexpected argument '-o' found",
        ),
        (
            "discover",
            1,
            "the following required arguments were not provided: --traddr <ADDRESS>",
        ),
        (
            "discover -a 10.0.0.9 --idempotent",
            1,
            "unexpected argument '--idempotent' found",
        ),
        ("--help", 1, "unexpected argument '--help' found"),
        (
            "-a a.example -n nqn.x\n\n-i 2 -a A.example -n nqn.x",
            3,
            "the same as line 1",
        ),
        (
            "-a 2001:DB8::1 -n nqn.x\n-a 2001:db8:0::1 -n nqn.x -i 2",
            2,
            "the same as line 1",
        ),
        (
            "discover -a 10.0.0.9\ndiscover -a 10.0.0.9 -s 4420",
            2,
            "the same as line 1",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.number, error.why.as_str()), (line, why));
    }
}

#[test]
fn the_file_is_named() {
    let error = read(Path::new("/nowhere/connections.conf")).unwrap_err();
    assert_eq!(
        error.message,
        "/nowhere/connections.conf: No such file or directory"
    );
    assert_eq!(error.status, Status::Usage);
    let error = read(Path::new("/dev/zero")).unwrap_err();
    assert_eq!(error.message, "/dev/zero: more than 1048576 bytes");
}
