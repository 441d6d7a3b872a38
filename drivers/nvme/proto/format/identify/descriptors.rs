// SPDX-License-Identifier: GPL-2.0

//! Namespace Identification Descriptor list (CNS 03h).
//!
//! Source: NVMe Base 2.3, section 5.2.13.2.3. C structure: `struct nvme_ns_id_desc`.

use super::{Namespace, ShortData};
use crate::format::property::Version;
use crate::format::sqe::Identify;
use crate::format::uuid::Uuid;
use core::fmt;

/// Identifiers of a namespace, which are the same on each path to it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NamespaceIds {
    /// IEEE Extended Unique Identifier (EUI64).
    pub eui64: Option<[u8; 8]>,
    /// Namespace Globally Unique Identifier (NGUID).
    pub nguid: Option<[u8; 16]>,
    /// UUID.
    pub uuid: Option<Uuid>,
    /// I/O command set (CSI); 0, NVM, also if the list does not tell.
    pub command_set: u8,
}

impl NamespaceIds {
    /// Decodes the data of an Identify command.
    ///
    /// Skips descriptors of unknown types, and identifiers that are all zeroes.
    ///
    /// # Errors
    ///
    /// [`InvalidDescriptors`] if the data is short, or a descriptor has an invalid length.
    pub fn parse(data: &[u8]) -> Result<Self, InvalidDescriptors> {
        let short = InvalidDescriptors::Short(ShortData(data.len()));
        let mut rest = data.get(..Identify::DATA_SIZE).ok_or(short)?;
        let mut ids = Self::default();
        // If less than a header is left, the last descriptor ends the list.
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

    /// Returns whether the namespace has an identifier. The command set is not one.
    pub const fn is_identified(&self) -> bool {
        self.uuid.is_some() || self.nguid.is_some() || self.eui64.is_some()
    }

    /// Returns whether both have an identifier of one type in common.
    pub fn shares_id_with(&self, other: &Self) -> bool {
        fn same<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.is_some() && one == other
        }
        same(&self.uuid, &other.uuid)
            || same(&self.nguid, &other.nguid)
            || same(&self.eui64, &other.eui64)
    }

    /// Adds identifiers from Identify Namespace that the descriptors do not have.
    ///
    /// `version` is that of the controller: EUI64 is defined since NVMe 1.1, and NGUID since NVMe
    /// 1.2.
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

/// Reason why a list is invalid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InvalidDescriptors {
    /// The data is too short.
    Short(ShortData),
    /// A descriptor extends beyond the end of the list.
    Truncated {
        /// Type of the descriptor.
        kind: u8,
        /// Length of its identifier.
        len: u8,
    },
    /// A descriptor has the wrong length for its type.
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
mod tests;
