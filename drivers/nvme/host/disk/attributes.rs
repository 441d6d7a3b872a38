// SPDX-License-Identifier: GPL-2.0

//! What a disk shows in sysfs: attributes with the names and in the formats of the C host.

use super::NsDisk;
use kernel::fmt;
use nvme_proto::format::{identify::Hex, uuid::Uuid};
use rrdma::sysfs::Attribute;

/// The identifiers of the disk's namespace.
pub(super) const DISK: &[Attribute<NsDisk>] = &[
    Attribute::new(c"wwid", |disk, f| write!(f, "{}", disk.wwid)),
    Attribute::new(c"nsid", |disk, f| write!(f, "{}", disk.wwid.nsid)),
    Attribute::optional(
        c"uuid",
        |disk| disk.wwid.ids.uuid.is_some(),
        |disk, f| show(f, disk.wwid.ids.uuid),
    ),
    Attribute::optional(
        c"nguid",
        |disk| disk.wwid.ids.nguid.is_some(),
        |disk, f| show(f, disk.wwid.ids.nguid.map(Uuid::from_bytes)),
    ),
    Attribute::optional(
        c"eui",
        |disk| disk.wwid.ids.eui64.is_some(),
        |disk, f| show(f, disk.wwid.ids.eui64.as_ref().map(|eui64| Hex(eui64, " "))),
    ),
];

fn show(f: &mut fmt::Formatter<'_>, value: Option<impl core::fmt::Display>) -> fmt::Result {
    match value {
        Some(value) => write!(f, "{value}"),
        None => Ok(()),
    }
}
