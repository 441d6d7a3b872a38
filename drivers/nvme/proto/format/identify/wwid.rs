// SPDX-License-Identifier: GPL-2.0

//! Identifiers of a namespace as the kernel shows them in sysfs.

use super::{NamespaceIds, Text};
use core::fmt;

/// The worldwide identifier of a namespace.
///
/// Its text is what the kernel's own host has in the attribute `wwid`, so that a name made
/// from it stays the same: the best identifier that the namespace has, or where it has none,
/// the controller's serial number and model with the namespace's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wwid {
    /// Number of the namespace.
    pub nsid: u32,
    /// What identifies it whatever path leads to it.
    pub ids: NamespaceIds,
    /// PCI vendor identifier of the controller.
    pub vendor_id: u16,
    /// Serial number of the controller.
    pub serial: Text<20>,
    /// Model of the controller.
    pub model: Text<40>,
}

impl Wwid {
    /// Whether both are of the same namespace. The controller counts only where the namespace
    /// has no identifiers of its own: another path leads to another controller.
    #[must_use]
    pub fn is_same_namespace(&self, other: &Self) -> bool {
        if self.ids.is_identified() {
            self.ids == other.ids
        } else {
            self == other
        }
    }

    /// Whether who looks for one of them by an identifier may find the other one.
    #[must_use]
    pub fn shares_id_with(&self, other: &Self) -> bool {
        self.ids.shares_id_with(&other.ids) || self.is_same_namespace(other)
    }
}

impl fmt::Display for Wwid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NamespaceIds {
            uuid, nguid, eui64, ..
        } = &self.ids;
        if let Some(uuid) = uuid {
            return write!(f, "uuid.{uuid}");
        }
        if let Some(nguid) = nguid {
            return write!(f, "eui.{}", Hex(nguid, ""));
        }
        if let Some(eui64) = eui64 {
            return write!(f, "eui.{}", Hex(eui64, ""));
        }
        let serial = Hex(self.serial.as_str().as_bytes(), "");
        let model = Hex(self.model.as_str().as_bytes(), "");
        let (vendor, nsid) = (self.vendor_id, self.nsid);
        write!(f, "nvme.{vendor:04x}-{serial}-{model}-{nsid:08x}")
    }
}

/// Bytes in hexadecimal digits, and what is between two bytes.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8], pub &'a str);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut between = "";
        for byte in self.0 {
            write!(f, "{between}{byte:02x}")?;
            between = self.1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
