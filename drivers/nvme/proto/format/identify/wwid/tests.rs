// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::format::uuid::Uuid;

fn field<const N: usize>(text: &str) -> Text<N> {
    let mut field = [b' '; N];
    field[..text.len()].copy_from_slice(text.as_bytes());
    Text::new(field)
}

fn wwid(ids: NamespaceIds) -> Wwid {
    Wwid {
        nsid: 0x1a,
        ids,
        vendor_id: 0x1d0,
        serial: field("S 1"),
        model: field("Linux"),
    }
}

#[test]
fn the_best_identifier_there_is() {
    let none = NamespaceIds::default();
    let eui64 = NamespaceIds {
        eui64: Some([0, 0x25, 0x38, 1, 2, 3, 4, 0xff]),
        ..none
    };
    let nguid = NamespaceIds {
        nguid: Some([0xab; 16]),
        ..eui64
    };
    let uuid = NamespaceIds {
        uuid: Some(Uuid::from_bytes([0xcd; 16])),
        ..nguid
    };
    assert_eq!(
        wwid(none).to_string(),
        "nvme.01d0-532031-4c696e7578-0000001a"
    );
    assert_eq!(wwid(eui64).to_string(), "eui.00253801020304ff");
    assert_eq!(
        wwid(nguid).to_string(),
        "eui.abababababababababababababababab"
    );
    assert_eq!(
        wwid(uuid).to_string(),
        "uuid.cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd"
    );
}

#[test]
fn a_namespace_is_the_same() {
    let here = |ids| wwid(ids);
    let elsewhere = |ids| Wwid {
        serial: field("S 2"),
        ..wwid(ids)
    };
    let anonymous = NamespaceIds::default();
    let command_set = NamespaceIds {
        command_set: 2,
        ..anonymous
    };
    for ids in [anonymous, command_set] {
        assert!(here(ids).is_same_namespace(&here(ids)));
        assert!(!here(ids).is_same_namespace(&elsewhere(ids)));
    }
    assert!(!here(anonymous).is_same_namespace(&here(command_set)));
    let identified = NamespaceIds {
        nguid: Some([0xab; 16]),
        ..anonymous
    };
    assert!(here(identified).is_same_namespace(&elsewhere(identified)));
    assert!(!here(identified).is_same_namespace(&here(anonymous)));
    assert!(!here(anonymous).is_same_namespace(&here(identified)));
}

#[test]
fn one_may_be_found_for_another() {
    let anonymous = NamespaceIds::default();
    let eui64 = NamespaceIds {
        eui64: Some([1; 8]),
        ..anonymous
    };
    let both = NamespaceIds {
        nguid: Some([2; 16]),
        ..eui64
    };
    let elsewhere = |ids| Wwid {
        nsid: 2,
        ..wwid(ids)
    };
    for (one, other) in [
        (wwid(anonymous), wwid(anonymous)),
        (wwid(eui64), elsewhere(both)),
    ] {
        assert!(one.shares_id_with(&other) && other.shares_id_with(&one));
    }
    for (one, other) in [
        (wwid(anonymous), elsewhere(anonymous)),
        (wwid(anonymous), wwid(eui64)),
    ] {
        assert!(!one.shares_id_with(&other) && !other.shares_id_with(&one));
    }
}

#[test]
fn bytes() {
    assert_eq!(Hex(&[], " ").to_string(), "");
    assert_eq!(Hex(&[0], " ").to_string(), "00");
    assert_eq!(Hex(&[0, 0x1f, 0xff], " ").to_string(), "00 1f ff");
}
