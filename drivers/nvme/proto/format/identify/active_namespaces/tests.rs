// SPDX-License-Identifier: GPL-2.0

use super::*;
use crate::testing::Random;

fn page(nsids: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut data: Vec<u8> = nsids.into_iter().flat_map(u32::to_le_bytes).collect();
    data.resize(4096, 0);
    data
}

#[test]
fn errors_name_their_cause() {
    let order = InvalidList::Order { nsid: 3, after: 7 };
    assert_eq!(order.to_string(), "namespace 0x3 is listed after 0x7");
    assert_eq!(
        InvalidList::Short(ShortData(9)).to_string(),
        "9 bytes are too short for identify data"
    );
}

#[test]
fn lists() {
    for (nsids, after) in [
        (vec![], 0),
        (vec![1], 0),
        (vec![1, 2, 7], 0),
        (vec![8, 0xffff_fffe], 7),
    ] {
        let data = page(nsids.clone());
        let list = ActiveNamespaces::parse(&data, after).unwrap();
        assert_eq!(list.iter().collect::<Vec<_>>(), nsids);
        assert_eq!(list.next_page(), None);
    }
}

#[test]
fn nothing_follows_a_zero() {
    let data = page([1, 0, 1, 5]);
    let list = ActiveNamespaces::parse(&data, 0).unwrap();
    assert_eq!(list.iter().collect::<Vec<_>>(), [1]);
}

#[test]
fn full_pages_go_on() {
    let data = page(1..=1024);
    let list = ActiveNamespaces::parse(&data, 0).unwrap();
    assert_eq!(list.iter().count(), 1024);
    assert_eq!(list.next_page(), Some(1024));

    let data = page(0xffff_fbff..=0xffff_fffe);
    let list = ActiveNamespaces::parse(&data, 5).unwrap();
    assert_eq!(list.next_page(), None);
}

#[test]
fn order() {
    let cases = [
        (vec![1, 1], 0, 1, 1),
        (vec![3, 2], 0, 2, 3),
        (vec![4, 5], 4, 4, 4),
        (vec![1, u32::MAX], 0, u32::MAX, 1),
    ];
    for (nsids, asked_after, nsid, after) in cases {
        let data = page(nsids);
        let refused = ActiveNamespaces::parse(&data, asked_after);
        assert_eq!(refused, Err(InvalidList::Order { nsid, after }));
    }
    let short = ActiveNamespaces::parse(&[0; 4095], 0);
    assert_eq!(short, Err(InvalidList::Short(ShortData(4095))));
}

#[test]
fn any_bytes_ascend_or_are_refused() {
    let mut random = Random::new(6);
    let mut data = vec![0; 4096];
    for _ in 0..500 {
        let used = random.below(32);
        data.fill(0);
        random.fill(&mut data[..used]);
        let after = random.next() as u32 >> random.below(32);
        if let Ok(list) = ActiveNamespaces::parse(&data, after) {
            let nsids: Vec<u32> = list.iter().collect();
            assert!(nsids.windows(2).all(|pair| pair[0] < pair[1]));
            assert!(nsids.iter().all(|nsid| *nsid > after));
        }
    }
}
