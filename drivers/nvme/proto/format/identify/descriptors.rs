// SPDX-License-Identifier: GPL-2.0

//! Identify Namespace Identification Descriptor List.

use super::{Namespace, ShortData};
use crate::format::property::Version;
use crate::format::sqe::Identify;
use crate::format::uuid::Uuid;
use core::fmt;

/// What identifies a namespace whatever path leads to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamespaceIds {
    /// IEEE extended unique identifier.
    pub eui64: Option<[u8; 8]>,
    /// Globally unique identifier.
    pub nguid: Option<[u8; 16]>,
    /// UUID.
    pub uuid: Option<Uuid>,
    /// Command set: 0 for NVM, also where nothing is said of it.
    pub command_set: u8,
}

impl NamespaceIds {
    /// Reads what the Identify command returned. Descriptors of unknown types
    /// are passed over; identifiers of nothing but zeroes are none.
    pub fn parse(data: &[u8]) -> Result<Self, InvalidDescriptors> {
        let short = InvalidDescriptors::Short(ShortData(data.len()));
        let mut rest = data.get(..Identify::DATA_SIZE).ok_or(short)?;
        let mut ids = Self::default();
        // Less than a header is left where the last descriptor ends the list.
        while let Some(([kind, len, _, _], after)) = rest.split_first_chunk() {
            if *len == 0 {
                break;
            }
            let truncated = InvalidDescriptors::Truncated {
                kind: *kind,
                len: *len,
            };
            let (value, next) = after.split_at_checked(usize::from(*len)).ok_or(truncated)?;
            ids.take(*kind, *len, value)?;
            rest = next;
        }
        Ok(ids)
    }

    /// Whether there is an identifier: the command set is none.
    #[must_use]
    pub const fn is_identified(&self) -> bool {
        self.uuid.is_some() || self.nguid.is_some() || self.eui64.is_some()
    }

    /// Whether an identifier of both is the same.
    #[must_use]
    pub fn shares_id_with(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_some() && one == other
        }
        same(&self.uuid, &other.uuid)
            || same(&self.nguid, &other.nguid)
            || same(&self.eui64, &other.eui64)
    }

    /// Takes the identifiers that Identify Namespace has, where the
    /// descriptors had none.
    #[must_use]
    pub fn or_from(mut self, namespace: &Namespace, version: Version) -> Self {
        if version >= Version::new(1, 1, 0) {
            self.eui64 = self.eui64.or(non_zero(namespace.eui64));
        }
        if version >= Version::new(1, 2, 0) {
            self.nguid = self.nguid.or(non_zero(namespace.nguid));
        }
        self
    }

    fn take(&mut self, kind: u8, len: u8, value: &[u8]) -> Result<(), InvalidDescriptors> {
        let wrong = InvalidDescriptors::Length { kind, len };
        match kind {
            1 => self.eui64 = non_zero(value.try_into().map_err(|_| wrong)?),
            2 => self.nguid = non_zero(value.try_into().map_err(|_| wrong)?),
            3 => self.uuid = non_zero(value.try_into().map_err(|_| wrong)?).map(Uuid::from_bytes),
            4 => {
                let [set]: [u8; 1] = value.try_into().map_err(|_| wrong)?;
                self.command_set = set;
            }
            _ => {}
        }
        Ok(())
    }
}

fn non_zero<const N: usize>(id: [u8; N]) -> Option<[u8; N]> {
    (id != [0; N]).then_some(id)
}

/// Why a list cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidDescriptors {
    /// It is too short.
    Short(ShortData),
    /// A descriptor goes on after the end of the list.
    Truncated {
        /// Type of the descriptor.
        kind: u8,
        /// Length of its identifier.
        len: u8,
    },
    /// A descriptor has not the length of its type.
    Length {
        /// Type of the descriptor.
        kind: u8,
        /// Length of its identifier.
        len: u8,
    },
}

impl fmt::Display for InvalidDescriptors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short(short) => fmt::Display::fmt(short, f),
            Self::Truncated { kind, len } => {
                write!(
                    f,
                    "descriptor of type {kind} and length {len} exceeds the list"
                )
            }
            Self::Length { kind, len } => {
                write!(f, "descriptor of type {kind} has the wrong length {len}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
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
        // What follows the list is not part of it.
        assert_eq!(
            NamespaceIds::parse(&[data, vec![0xff; 9]].concat()),
            Ok(expected)
        );
    }

    /// A target that learns to tell has no other namespaces than before.
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
            // Types that are known, so that the walk gets on.
            for byte in &mut data[..used] {
                if random.below(3) == 0 {
                    *byte %= 17;
                }
            }
            let _any_answer = NamespaceIds::parse(&data);
        }
    }
}
