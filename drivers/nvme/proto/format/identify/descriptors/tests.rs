// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

fn list(descriptors: &[(u8, &[u8])]) -> Vec<u8> {
    let mut data = vec![];
    for (kind, value) in descriptors {
        data.extend([*kind, u8::try_from(value.len()).unwrap(), 0, 0]);
        data.extend(*value);
    }
    data.resize(4096, 0);
    data
}

#[test]
fn lists() {
    assert_eq!(NamespaceIds::parse(&list(&[])), Ok(NamespaceIds::default()));
    let data = list(&[
        (3, &[3; 16]),
        (9, &[1; 200]),
        (1, &[1; 8]),
        (2, &[2; 16]),
        (4, &[7]),
    ]);
    let expected = NamespaceIds {
        eui64: Some([1; 8]),
        nguid: Some([2; 16]),
        uuid: Some(Uuid::from_bytes([3; 16])),
        command_set: 7,
    };
    assert_eq!(NamespaceIds::parse(&data), Ok(expected));
    // Bytes after the list are ignored.
    assert_eq!(
        NamespaceIds::parse(&[data, vec![0xff; 9]].concat()),
        Ok(expected)
    );
}

/// Namespaces stay the same when a target begins to report their command set.
#[test]
fn a_command_set_that_is_not_told_is_nvm() {
    let silent = NamespaceIds::parse(&list(&[(3, &[3; 16])]));
    let told = |set: u8| NamespaceIds::parse(&list(&[(3, &[3; 16]), (4, &[set])]));
    assert_eq!(silent, told(0));
    assert_ne!(silent, told(2));
}

#[test]
fn zeroes_identify_nothing() {
    let data = list(&[(1, &[0; 8]), (2, &[0; 16]), (3, &[0; 16])]);
    assert_eq!(NamespaceIds::parse(&data), Ok(NamespaceIds::default()));
}

#[test]
fn wrong_lengths() {
    for (kind, right) in [(1, 8), (2, 16), (3, 16), (4, 1)] {
        for len in (1..=255).filter(|len| *len != right) {
            let data = list(&[(kind, &vec![1; usize::from(len)])]);
            let refused = InvalidDescriptors::Length { kind, len };
            assert_eq!(NamespaceIds::parse(&data), Err(refused));
        }
    }
}

#[test]
fn ends_of_the_list() {
    // 15 descriptors of 4 + 255 bytes leave 211: one of 4 + 207 fits.
    let filler: (u8, &[u8]) = (9, &[1; 255]);
    let mut descriptors = vec![filler; 15];
    descriptors.push((9, &[1; 207]));
    let mut data = list(&descriptors);
    assert_eq!(data.len(), 4096);
    assert!(NamespaceIds::parse(&data).is_ok());
    data[15 * 259 + 1] = 208;
    let truncated = InvalidDescriptors::Truncated { kind: 9, len: 208 };
    assert_eq!(NamespaceIds::parse(&data), Err(truncated));
    // Three bytes are too few for another header.
    data[15 * 259 + 1] = 204;
    data[4093..].fill(0xff);
    assert!(NamespaceIds::parse(&data).is_ok());
    let short = InvalidDescriptors::Short(ShortData(4095));
    assert_eq!(NamespaceIds::parse(&data[..4095]), Err(short));
}

#[test]
fn identify_namespace_fills_gaps() {
    let mut data = [0; 4096];
    data[104..120].fill(7);
    data[120..128].fill(8);
    let namespace = Namespace::parse(&data).unwrap();
    let none = NamespaceIds::default();
    assert_eq!(none.or_from(&namespace, Version::new(1, 0, 0)), none);
    let eui64 = none.or_from(&namespace, Version::new(1, 1, 0));
    assert_eq!((eui64.eui64, eui64.nguid), (Some([8; 8]), None));
    let both = none.or_from(&namespace, Version::new(1, 2, 0));
    assert_eq!((both.eui64, both.nguid), (Some([8; 8]), Some([7; 16])));
    let own = NamespaceIds {
        eui64: Some([1; 8]),
        ..none
    };
    assert_eq!(
        own.or_from(&namespace, Version::new(2, 0, 0)).eui64,
        Some([1; 8])
    );
}

#[test]
fn any_bytes() {
    let mut random = Random::new(7);
    let mut data = [0; 4096];
    for _ in 0..2000 {
        let used = random.below(data.len());
        data.fill(0);
        random.fill(&mut data[..used]);
        // Known types, so that parsing continues.
        for byte in &mut data[..used] {
            if random.below(3) == 0 {
                *byte %= 17;
            }
        }
        let _any_answer = NamespaceIds::parse(&data);
    }
}

#[test]
fn errors_name_their_cause() {
    for (error, text) in [
        (
            InvalidDescriptors::Short(ShortData(9)),
            "9 bytes are too short for identify data",
        ),
        (
            InvalidDescriptors::Truncated { kind: 3, len: 16 },
            "descriptor of type 3 and length 16 exceeds the list",
        ),
        (
            InvalidDescriptors::Length { kind: 1, len: 4 },
            "descriptor of type 1 has the wrong length 4",
        ),
    ] {
        assert_eq!(error.to_string(), text);
    }
}
