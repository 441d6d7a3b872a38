// SPDX-License-Identifier: GPL-2.0

//! One attribute.

use kernel::{
    fmt,
    str::CStr, //
};

/// A file in sysfs with one line of text, which everyone may read and nobody write, made
/// from data of type `D`.
///
/// ```ignore
/// const ATTRIBUTES: &'static [Attribute<Self>] = &[
///     Attribute::new(c"size", |disk, f| write!(f, "{}", disk.size)),
///     Attribute::optional(c"label", |disk| disk.label.is_some(), |disk, f| {
///         f.write_str(disk.label.unwrap_or_default())
///     }),
/// ];
/// ```
pub struct Attribute<D: 'static> {
    pub(super) name: &'static CStr,
    pub(super) show: fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result,
    pub(super) visible: fn(&D) -> bool,
}

impl<D> Attribute<D> {
    /// An attribute of this name. `show` writes the line, without its end: less than a page,
    /// or the reader gets `EFBIG`. It may sleep, and runs for many readers at once; see the
    /// [module](crate::sysfs) for what it must not wait for.
    ///
    /// What comes from a peer must be fit to be shown: nothing here looks at it.
    pub const fn new(
        name: &'static CStr,
        show: fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> Self {
        Self::optional(name, |_| true, show)
    }

    /// The same, of which there is a file only where `visible` says so. It is asked once,
    /// when the disk or device is made.
    pub const fn optional(
        name: &'static CStr,
        visible: fn(&D) -> bool,
        show: fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> Self {
        Self {
            name,
            show,
            visible,
        }
    }
}
