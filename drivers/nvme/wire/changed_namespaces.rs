// SPDX-License-Identifier: GPL-2.0

//! Changed Namespace List: the log page in which a target says where to look.

use crate::sqe::ALL_NAMESPACES;

/// The namespaces that a page of the log names. Of more than it has room for it names none.
pub fn changed_namespaces(page: &[u8]) -> impl Iterator<Item = u32> + '_ {
    page.chunks_exact(4)
        .filter_map(|entry| entry.first_chunk().copied())
        .map(u32::from_le_bytes)
        .take_while(|nsid| ![0, ALL_NAMESPACES].contains(nsid))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(entries: &[u32]) -> Vec<u32> {
        let page: Vec<u8> = entries.iter().flat_map(|nsid| nsid.to_le_bytes()).collect();
        changed_namespaces(&page).collect()
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
        assert_eq!(
            changed_namespaces(&[1, 0, 0, 0, 9, 9, 9]).collect::<Vec<_>>(),
            [1]
        );
    }
}
