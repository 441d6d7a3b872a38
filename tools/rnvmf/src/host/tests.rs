// SPDX-License-Identifier: GPL-2.0

use super::*;

const ID: &str = "00112233-4455-6677-8899-aabbccddeeff";
const OTHER: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/// A root directory with files, removed with the value.
struct Root(SystemEnv);

impl Root {
    fn new(name: &str, files: &[(&str, &str)]) -> Self {
        let top = std::env::temp_dir().join(format!("rnvmf-{}-{name}", std::process::id()));
        for (path, text) in files {
            let path = top.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        Self(SystemEnv {
            root: top,
            ..SystemEnv::default()
        })
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        // Without files the directory does not exist.
        let _ = std::fs::remove_dir_all(&self.0.root);
    }
}

#[test]
fn options_come_first() {
    let root = Root::new(
        "options",
        &[("etc/nvme/hostnqn", "nqn.file\n"), ("etc/nvme/hostid", ID)],
    );
    let host = root.0.identify(Some("nqn.x"), OTHER.parse().ok()).unwrap();
    assert_eq!(host.nqn, "nqn.x");
    assert_eq!(host.id.to_string(), OTHER);
}

#[test]
fn then_the_files_of_nvme_cli() {
    let root = Root::new(
        "files",
        &[("etc/nvme/hostnqn", "nqn.file\n"), ("etc/nvme/hostid", ID)],
    );
    let host = root.0.identify(None, None).unwrap();
    assert_eq!(host.nqn, "nqn.file");
    assert_eq!(host.id.to_string(), ID);
}

#[test]
fn an_identifier_may_come_from_the_name() {
    let root = Root::new("name", &[]);
    let nqn = format!("{NQN_OF_UUID}{OTHER}");
    let host = root.0.identify(Some(&nqn), None).unwrap();
    assert_eq!(host.id.to_string(), OTHER);
}

#[test]
fn the_identifier_in_a_file_is_of_the_name_of_the_machine() {
    let files = [
        ("etc/nvme/hostid", ID),
        ("sys/class/dmi/id/product_uuid", OTHER),
    ];
    let root = Root::new("own", &files);
    let own = format!("{NQN_OF_UUID}{OTHER}");
    for nqn in [None, Some(own.as_str())] {
        let host = root.0.identify(nqn, None).unwrap();
        assert_eq!((host.nqn, host.id.to_string()), (own.clone(), ID.into()));
    }
    let other = format!("{NQN_OF_UUID}fbd3831b-8da6-59a6-a4e4-8ba822c494fb");
    let host = root.0.identify(Some(&other), None).unwrap();
    assert_eq!(host.id.to_string(), "fbd3831b-8da6-59a6-a4e4-8ba822c494fb");
}

#[test]
fn another_name_has_an_identifier_of_its_own() {
    for files in [&[("etc/nvme/hostid", ID)][..], &[]] {
        let root = Root::new("another", files);
        let id = |nqn| root.0.identify(Some(nqn), None).unwrap().id.to_string();
        // Fixed: a later version of this program must return the same.
        assert_eq!(id("nqn.x"), "c55f5398-9b3c-54b0-853a-29cd61286956");
        assert_ne!(id("nqn.y"), id("nqn.x"));
    }
}

#[test]
fn then_the_firmware() {
    let root = Root::new(
        "firmware",
        &[("sys/class/dmi/id/product_uuid", &ID.to_uppercase())],
    );
    let host = root.0.identify(None, None).unwrap();
    assert_eq!(host.nqn, format!("{NQN_OF_UUID}{ID}"));
    assert_eq!(host.id.to_string(), ID);
}

#[test]
fn then_the_machine_id_which_stays_private() {
    let nil = Uuid::nil().to_string();
    let files = [
        ("sys/class/dmi/id/product_uuid", nil.as_str()),
        ("etc/machine-id", "00112233445566778899aabbccddeeff\n"),
    ];
    let host = Root::new("machine", &files).0.identify(None, None).unwrap();
    assert_eq!(host.nqn, format!("{NQN_OF_UUID}{}", host.id));
    assert_eq!(host.id.get_version_num(), 5);
    // Fixed: a later version of this program must return the same.
    assert_eq!(host.id.to_string(), "5240fabf-b3b8-55af-a71b-633ba37bab57");
}

#[test]
fn an_empty_file_is_no_identity() {
    let root = Root::new(
        "empty",
        &[("etc/machine-id", "\n"), ("etc/nvme/hostid", "")],
    );
    let error = root.0.identify(None, None).unwrap_err();
    assert!(error.message.starts_with("this host has no identity"));
}

#[test]
fn a_broken_file_is_named() {
    let root = Root::new(
        "broken",
        &[("etc/nvme/hostnqn", "nqn.x"), ("etc/nvme/hostid", "12")],
    );
    let error = root.0.identify(Some("nqn.x"), None).unwrap_err();
    assert!(error.message.starts_with("/etc/nvme/hostid: "));
    for file in ["hostnqn", "hostid"] {
        let path = format!("etc/nvme/{file}");
        let text = format!("{ID}\n{ID}\n");
        let root = Root::new(
            &format!("lines-{file}"),
            &[("etc/nvme/hostnqn", ID), (&path, &text)],
        );
        let error = root.0.identify(None, None).unwrap_err();
        assert_eq!(error.message, format!("/{path}: more than one line"));
    }
    let long = "x".repeat(NQN_MAX_LEN + 1);
    let root = Root::new("long", &[("etc/nvme/hostnqn", &long)]);
    let error = root.0.identify(None, None).unwrap_err();
    assert_eq!(
        error.message,
        "/etc/nvme/hostnqn: an NQN has at most 223 bytes"
    );
}

#[test]
fn names_are_checked() {
    for good in [&"x".repeat(NQN_MAX_LEN), "nqn.\u{e9}\u{6f22}"] {
        assert!(check_nqn(good).is_ok(), "{good:?}");
    }
    for bad in ["", "nqn.\n", "nqn.\u{9b}"] {
        assert!(check_nqn(bad).is_err(), "{bad:?}");
    }
}

#[test]
fn what_cannot_be_seen_in_a_name_is_named() {
    for (name, why) in [
        ("\u{feff}nqn.x", "byte-order mark (U+FEFF)"),
        ("nqn.x\u{feff}", "byte-order mark (U+FEFF)"),
        ("nqn\u{200b}.x", "invisible character (U+200B)"),
        ("nqn.x\u{a0}", "invisible character (U+00A0)"),
        ("nqn.x\u{202a}", "invisible character (U+202A)"),
    ] {
        let wanted = format!("it has a {why}: type the NQN anew");
        assert_eq!(check_nqn(name).unwrap_err(), wanted, "{name:?}");
    }
    let root = Root::new("mark", &[("etc/nvme/hostnqn", "\u{feff}nqn.x\n")]);
    assert_eq!(
        root.0.identify(None, None).unwrap_err().message,
        "/etc/nvme/hostnqn: it has a byte-order mark (U+FEFF): type the NQN anew"
    );
}
