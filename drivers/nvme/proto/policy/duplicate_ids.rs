// SPDX-License-Identifier: GPL-2.0

//! Namespaces of one controller that report the same identifier.
//!
//! A search for a disk by that identifier could find either namespace, and they have different
//! data. So only one of them gets a disk.

use crate::format::identify::NamespaceIds;

/// Identifiers of a namespace, to be compared with those of others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IdCheck {
    /// NSID.
    pub nsid: u32,
    /// Identifiers.
    pub ids: NamespaceIds,
    /// The namespace has a disk with these identifiers.
    pub has_disk: bool,
    /// NSID of the namespace that keeps the identifiers, once [`check_duplicate_ids`] has decided.
    owner: Option<u32>,
}

impl IdCheck {
    /// Returns the check of a namespace.
    pub const fn new(nsid: u32, ids: NamespaceIds, has_disk: bool) -> Self {
        Self {
            nsid,
            ids,
            has_disk,
            owner: None,
        }
    }

    /// Returns the NSID of the other namespace that keeps an identifier of this one; `None` if this
    /// one keeps its identifiers, or before [`check_duplicate_ids`].
    pub fn duplicate_of(&self) -> Option<u32> {
        self.owner.filter(|owner| *owner != self.nsid)
    }

    fn owns_ids(&self) -> bool {
        self.owner == Some(self.nsid)
    }
}

/// Decides which namespaces keep their identifiers: those with disks before those without, and the
/// first of several. NSIDs must be unique.
pub fn check_duplicate_ids(claims: &mut [IdCheck]) {
    for has_disk in [true, false] {
        for at in 0..claims.len() {
            let Some(claim) = claims.get(at).filter(|claim| claim.has_disk == has_disk) else {
                continue;
            };
            let mut good = claims.iter().filter(|other| other.owns_ids());
            let other = good.find(|other| other.ids.shares_id_with(&claim.ids));
            let owner = other.unwrap_or(claim).nsid;
            if let Some(claim) = claims.get_mut(at) {
                claim.owner = Some(owner);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::uuid::Uuid;

    fn ids(eui64: u8, nguid: u8, uuid: u8) -> NamespaceIds {
        let one = |byte| (byte != 0).then_some(byte);
        NamespaceIds {
            eui64: one(eui64).map(|byte| [byte; 8]),
            nguid: one(nguid).map(|byte| [byte; 16]),
            uuid: one(uuid).map(|byte| Uuid::from_bytes([byte; 16])),
            command_set: 0,
        }
    }

    /// Checks namespaces with these identifiers and disks, whose NSIDs count from 1. Returns for
    /// each the namespace that it duplicates, or 0.
    fn others(claims: &[(NamespaceIds, bool)]) -> Vec<u32> {
        let claims = (1..).zip(claims);
        let mut claims: Vec<IdCheck> = claims
            .map(|(nsid, (ids, has_disk))| IdCheck::new(nsid, *ids, *has_disk))
            .collect();
        assert!(claims.iter().all(|claim| claim.duplicate_of().is_none()));
        check_duplicate_ids(&mut claims);
        claims
            .iter()
            .map(|claim| claim.duplicate_of().unwrap_or(0))
            .collect()
    }

    #[test]
    fn each_kind_of_identifier_counts() {
        for twin in [ids(1, 0, 0), ids(0, 2, 0), ids(0, 0, 3), ids(9, 2, 9)] {
            assert_eq!(others(&[(ids(1, 2, 3), false), (twin, false)]), [0, 1]);
        }
    }

    #[test]
    fn what_is_not_there_is_not_the_same() {
        let (none, own) = (ids(0, 0, 0), ids(4, 5, 6));
        // Equal bytes in identifiers of different types are not the same, either.
        let list = [none, none, ids(1, 2, 0), ids(0, 1, 2), own];
        assert_eq!(others(&list.map(|ids| (ids, false))), [0; 5]);
        assert_eq!(others(&[]), []);
    }

    #[test]
    fn who_has_a_disk_keeps_it() {
        let same = ids(0, 1, 0);
        assert_eq!(others(&[(same, false), (same, true)]), [2, 0]);
        assert_eq!(others(&[(same, true), (same, true)]), [0, 1]);
        let list = [(same, false), (same, false), (same, true), (same, false)];
        assert_eq!(others(&list), [3, 3, 0, 3]);
    }

    #[test]
    fn who_is_refused_takes_nothing() {
        // The second shares an identifier with the first and one with the third.
        let list = [ids(0, 1, 0), ids(0, 1, 2), ids(0, 0, 2)];
        assert_eq!(others(&list.map(|ids| (ids, false))), [0, 1, 0]);
    }
}
