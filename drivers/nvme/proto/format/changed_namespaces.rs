// SPDX-License-Identifier: GPL-2.0

//! Changed Attached Namespace List log page: the namespaces that a host scans after an event.
//!
//! Source: NVMe Base 2.3, section 5.2.12.1.5.

use crate::format::layout::numbers;
use crate::format::sqe::ALL_NAMESPACES;

/// The namespaces that changed, in a buffer with the log page; empty by default.
#[derive(Clone, Copy, Default, Debug)]
pub struct ChangedNamespaces<'a>(&'a [u8]);

impl<'a> ChangedNamespaces<'a> {
    /// Returns the list in `page`. Every content is valid.
    pub const fn new(page: &'a [u8]) -> Self {
        Self(page)
    }

    /// Iterates over the NSIDs. There are none if more namespaces changed than the page has room
    /// for: then its first entry is FFFFFFFFh.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        numbers(self.0).take_while(|nsid| ![0, ALL_NAMESPACES].contains(nsid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(entries: &[u32]) -> Vec<u32> {
        let page: Vec<u8> = entries.iter().flat_map(|nsid| nsid.to_le_bytes()).collect();
        ChangedNamespaces::new(&page).iter().collect()
    }

    #[test]
    fn names_some_or_none() {
        assert_eq!(named(&[]), []);
        assert_eq!(named(&[0, 7]), []);
        assert_eq!(named(&[7, 3, 0, 5]), [7, 3]);
        assert_eq!(named(&[7; 1024]), [7; 1024]);
        assert_eq!(named(&[ALL_NAMESPACES, 0]), []);
    }

    #[test]
    fn what_is_no_entry_names_none() {
        let odd = ChangedNamespaces::new(&[1, 0, 0, 0, 9, 9, 9]);
        assert_eq!(odd.iter().collect::<Vec<_>>(), [1]);
        assert_eq!(ChangedNamespaces::default().iter().count(), 0);
    }
}
