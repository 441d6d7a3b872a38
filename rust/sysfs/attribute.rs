// SPDX-License-Identifier: GPL-2.0

//! One attribute.

use crate::bindings;
use kernel::{
    fmt,
    prelude::*,
    str::CStr, //
};

/// A file in sysfs, of data of type `D`: with one line of text, which everyone may read and
/// nobody write, or [the other way round](Self::action).
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

/// What an attribute is for.
pub(super) enum Purpose<D: 'static> {
    /// Writes the line that is read.
    Show(fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result),
    /// Does what is asked for.
    Act(fn(&D) -> Result),
}

impl<D> Purpose<D> {
    /// Everyone may read: `0444`. Only root may ask: `0200`.
    pub(super) const fn mode(&self) -> bindings::umode_t {
        match self {
            Self::Show(_) => 0o444,
            Self::Act(_) => 0o200,
        }
    }
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
            purpose: Purpose::Show(show),
            visible,
        }
    }

    /// A file that cannot be read, for root to write a `1` to: then `act` runs. It may sleep,
    /// and may run any number of times at once; like who shows something, it must not wait for
    /// the end of its disk or device, but may ask for it. Its error is that of the write;
    /// whoever writes something else gets `EINVAL`.
    pub const fn action(name: &'static CStr, act: fn(&D) -> Result) -> Self {
        Self {
            name,
            purpose: Purpose::Act(act),
            visible: |_| true,
        }
    }
}
