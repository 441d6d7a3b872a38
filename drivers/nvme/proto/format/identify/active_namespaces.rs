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

/// Reason why a list is invalid.
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
mod tests;
