// SPDX-License-Identifier: GPL-2.0

//! Identifiers of a namespace, as the kernel shows them in sysfs.

use super::{NamespaceIds, Text};
use core::fmt;

/// Worldwide identifier of a namespace.
///
/// Its text is that of the C host's attribute `wwid` (`wwid_show()`), so that udev makes the same
/// names: the best identifier of the namespace or, without identifiers, vendor, serial number and
/// model of the controller with the NSID.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wwid {
    /// NSID of the namespace.
    pub nsid: u32,
    /// Identifiers of the namespace.
    pub ids: NamespaceIds,
    /// PCI vendor identifier of the controller.
    pub vendor_id: u16,
    /// Serial number of the controller.
    pub serial: Text<20>,
    /// Model of the controller.
    pub model: Text<40>,
}

impl Wwid {
    /// Returns whether both identify the same namespace.
    ///
    /// Controllers are compared only if the namespace has no identifiers, because another path
    /// leads to another controller.
    pub fn is_same_namespace(&self, other: &Self) -> bool {
        if self.ids.is_identified() {
            self.ids == other.ids
        } else {
            self == other
        }
    }

    /// Returns whether a search for one of them by an identifier may find the other.
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

/// Formats bytes as hexadecimal digits, with a separator between two bytes.
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
