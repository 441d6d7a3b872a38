// SPDX-License-Identifier: GPL-2.0

//! Active Namespace ID list (CNS 02h).
//!
//! Source: NVMe Base 2.3, section 5.2.13.2.2.

use super::ShortData;
use crate::format::layout::numbers;
use crate::format::sqe::{Identify, ALL_NAMESPACES};
use core::fmt;

/// One page of the list: NSIDs in ascending order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveNamespaces<'a> {
    page: &'a [u8; Identify::DATA_SIZE],
    len: usize,
    last: u32,
}

impl<'a> ActiveNamespaces<'a> {
    const ENTRY_SIZE: usize = 4;

    /// Decodes a page that was requested with the NSID `after`.
    ///
    /// # Errors
    ///
    /// [`InvalidList`] if the data is short, or the NSIDs do not ascend.
    pub fn parse(data: &'a [u8], after: u32) -> Result<Self, InvalidList> {
        let page = data
            .first_chunk()
            .ok_or(InvalidList::Short(ShortData(data.len())))?;
        let mut list = Self {
            page,
            len: 0,
            last: after,
        };
        for nsid in numbers(page).take_while(|nsid| *nsid != 0) {
            // A list that does not ascend would have no last page.
            if nsid <= list.last || nsid == ALL_NAMESPACES {
                return Err(InvalidList::Order {
                    nsid,
                    after: list.last,
                });
            }
            list.last = nsid;
            list.len = list.len.saturating_add(1);
        }
        Ok(list)
    }

    /// Iterates over the NSIDs.
    pub fn iter(&self) -> impl Iterator<Item = u32> + 'a {
        numbers(self.page).take(self.len)
    }

    /// Returns the NSID to request the next page with; `None` if this is the last page.
    pub const fn next_page(&self) -> Option<u32> {
        /// The largest valid NSID.
        const LAST: u32 = ALL_NAMESPACES - 1;
        let full = self.len == Identify::DATA_SIZE / Self::ENTRY_SIZE;
        if full && self.last < LAST {
            Some(self.last)
        } else {
            None
        }
    }
}

/// Why a list is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidList {
    /// The data is too short.
    Short(ShortData),
    /// An NSID is not greater than the one before it.
    Order {
        /// The NSID.
        nsid: u32,
        /// The NSID before it, or the one that the page was requested with.
        after: u32,
    },
}

impl fmt::Display for InvalidList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => fmt::Display::fmt(short, f),
            Self::Order { nsid, after } => {
                write!(f, "namespace {nsid:#x} is listed after {after:#x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    fn page(nsids: impl IntoIterator<Item = u32>) -> Vec<u8> {
        let mut data: Vec<u8> = nsids.into_iter().flat_map(u32::to_le_bytes).collect();
        data.resize(4096, 0);
        data
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
}
