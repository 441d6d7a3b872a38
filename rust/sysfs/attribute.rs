// SPDX-License-Identifier: GPL-2.0

//! sysfs attributes.

use crate::bindings;
use kernel::{
    fmt,
    prelude::*,
    str::CStr, //
};

/// A sysfs file of data of type `D`: a line of text that everyone may read and nobody may write, or
/// an [action](Self::action).
///
/// ```ignore
/// const ATTRIBUTES: &'static [Attribute<Self>] = &[
///     Attribute::new(c"size", |disk, f| write!(f, "{}", disk.size)),
///     Attribute::optional(c"label", |disk| disk.label.is_some(), |disk, f| {
///         f.write_str(disk.label.unwrap_or_default())
///     }),
///     Attribute::action(c"rescan", |disk| disk.rescan()),
/// ];
/// ```
pub struct Attribute<D: 'static> {
    pub(super) name: &'static CStr,
    pub(super) purpose: Purpose<D>,
    pub(super) visible: fn(&D) -> bool,
}

/// Functions of an attribute.
pub(super) enum Purpose<D: 'static> {
    /// Writes the line that is read.
    Show(fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result),
    /// Runs the action.
    Act(fn(&D) -> Result),
}

impl<D> Purpose<D> {
    /// Returns the mode: everyone may read (`0444`), only root may write (`0200`).
    pub(super) const fn mode(&self) -> bindings::umode_t {
        match self {
            Self::Show(_) => 0o444,
            Self::Act(_) => 0o200,
        }
    }
}

impl<D> Attribute<D> {
    /// Creates an attribute that can be read. `show` writes the line, without the newline. A line
    /// of a page or more fails the read with `EFBIG`.
    ///
    /// `show` may sleep, and runs concurrently for several readers. The [module](crate::sysfs) says
    /// what it must not wait for. Text of a peer must be sanitised by `show`; nothing else checks
    /// it.
    pub const fn new(
        name: &'static CStr,
        show: fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> Self {
        Self::optional(name, |_| true, show)
    }

    /// Creates an attribute that can be read and is present only if `visible` returns true.
    /// `visible` is called once, when the disk or device is added.
    pub const fn optional(
        name: &'static CStr,
        visible: fn(&D) -> bool,
        show: fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> Self {
        Self {
            name,
            purpose: Purpose::Show(show),
            visible,
        }
    }

    /// Creates an action: a file to which root writes `1` to run `act`. Other input fails with
    /// `EINVAL`, and an error of `act` is the error of the write.
    ///
    /// `act` may sleep and may run concurrently. It must not wait for the removal of its disk or
    /// device, but may request the removal.
    pub const fn action(name: &'static CStr, act: fn(&D) -> Result) -> Self {
        Self {
            name,
            purpose: Purpose::Act(act),
            visible: |_| true,
        }
    }
}
