// SPDX-License-Identifier: GPL-2.0

//! Tables of attributes for C.
//!
//! C header: [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h)

use super::{
    attribute::Purpose,
    Attribute, //
};
use crate::{
    bindings,
    text::FromFn, //
};
use core::{
    fmt::Write,
    marker::PhantomData,
    ptr,
    slice, //
};
use kernel::{
    fmt,
    page::PAGE_SIZE,
    prelude::*,
    str::Formatter, //
};

/// Maximum number of attributes of a type.
const MAX: usize = 32;

/// Owner of attributes.
///
/// # Safety
///
/// [`data`](Self::data) returns a valid reference if its safety requirements are met.
pub(crate) unsafe trait HasAttributes: Sized + 'static {
    /// Data that the attributes show or act on, concurrently.
    type Data: Sync + 'static;

    /// The attributes: at most 32.
    const ATTRIBUTES: &'static [Attribute<Self::Data>];

    /// Returns the data of a device.
    ///
    /// # Safety
    ///
    /// `dev` was added, or is being added, with the [groups](Table::groups) of this type, and is
    /// not removed for `'a`.
    unsafe fn data<'a>(dev: *mut bindings::device) -> &'a Self::Data;
}

/// An attribute for C, with its Rust counterpart.
#[repr(C)]
struct Entry<D: 'static> {
    raw: bindings::device_attribute,
    attribute: Option<&'static Attribute<D>>,
}

impl<D> Entry<D> {
    const NONE: Self = Self {
        raw: pin_init::zeroed(),
        attribute: None,
    };
}

/// Constant tables of a type for C.
///
/// # Invariants
///
/// Each pointer in `LIST` points to the first field of a complete `Entry<O::Data>` whose
/// `attribute` is `Some`.
pub(crate) struct Table<O>(PhantomData<O>);

impl<O: HasAttributes> Table<O> {
    const ENTRIES: &'static [Entry<O::Data>; MAX] = &Self::entries();

    const LIST: &'static [*mut bindings::attribute; MAX + 1] = &Self::list();

    const GROUP: &'static bindings::attribute_group = &bindings::attribute_group {
        __bindgen_anon_1: bindings::attribute_group__bindgen_ty_1 {
            is_visible: Some(Self::is_visible),
        },
        __bindgen_anon_2: bindings::attribute_group__bindgen_ty_2 {
            attrs: Self::LIST.as_ptr().cast_mut(),
        },
        ..pin_init::zeroed()
    };

    const GROUPS: &'static [*const bindings::attribute_group; 2] =
        &[&raw const *Self::GROUP, ptr::null()];

    /// Returns the groups, for the functions of C that add a device.
    pub(crate) const fn groups() -> *mut *const bindings::attribute_group {
        Self::GROUPS.as_ptr().cast_mut()
    }

    // Evaluated at compile time, with the assertion.
    #[allow(clippy::indexing_slicing)]
    const fn entries() -> [Entry<O::Data>; MAX] {
        let mut entries = [const { Entry::NONE }; MAX];
        let mut index = 0;

        assert!(O::ATTRIBUTES.len() <= MAX, "too many attributes");
        while index < O::ATTRIBUTES.len() {
            let attribute = &O::ATTRIBUTES[index];
            let entry = &mut entries[index];

            entry.raw.attr.name = attribute.name.to_bytes_with_nul().as_ptr().cast();
            entry.raw.attr.mode = attribute.purpose.mode();
            match attribute.purpose {
                Purpose::Show(_) => entry.raw.__bindgen_anon_1.show = Some(Self::show),
                Purpose::Act(_) => entry.raw.__bindgen_anon_2.store = Some(Self::store),
            }
            entry.attribute = Some(attribute);
            index += 1;
        }
        entries
    }

    // Evaluated at compile time: every index is below `MAX`.
    #[allow(clippy::indexing_slicing)]
    const fn list() -> [*mut bindings::attribute; MAX + 1] {
        let mut list = [ptr::null_mut(); MAX + 1];
        let mut index = 0;

        while index < O::ATTRIBUTES.len() {
            // INVARIANT: `entries` filled this entry.
            list[index] = (&raw const Self::ENTRIES[index]).cast_mut().cast();
            index += 1;
        }
        list
    }

    /// Returns the attribute of an entry.
    ///
    /// # Safety
    ///
    /// `attr` is from `LIST`.
    unsafe fn attribute(attr: *const c_void) -> Option<&'static Attribute<O::Data>> {
        // SAFETY: By the safety requirements of this function and the type invariants, `attr`
        // points to an `Entry<O::Data>`.
        unsafe { (*attr.cast::<Entry<O::Data>>()).attribute }
    }

    /// `is_visible` of the group. C calls it for each attribute while it adds a device.
    ///
    /// # Safety
    ///
    /// `kobj` belongs to a device that is being added with the groups of this type. `attr` is from
    /// `LIST`.
    unsafe extern "C" fn is_visible(
        kobj: *mut bindings::kobject,
        attr: *mut bindings::attribute,
        _index: c_int,
    ) -> bindings::umode_t {
        // SAFETY: By the safety requirements of this function, `kobj` is part of a device.
        let dev = unsafe { kernel::container_of!(kobj, bindings::device, kobj) };
        // SAFETY: By the safety requirements of this function, `attr` is from `LIST`, and the
        // device is being added until this returns.
        let (attribute, data) = unsafe { (Self::attribute(attr.cast()), O::data(dev)) };

        match attribute {
            Some(attribute) if (attribute.visible)(data) => attribute.purpose.mode(),
            _ => 0,
        }
    }

    /// `show` of an attribute. C does not remove the device before it returns, because the file is
    /// in use (`kernfs_get_active()`).
    ///
    /// # Safety
    ///
    /// `dev` was added with the groups of this type, and is not removed before this returns. `attr`
    /// is from `LIST`. `buf` is a page that belongs to the caller.
    unsafe extern "C" fn show(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *mut c_char,
    ) -> isize {
        // SAFETY: By the safety requirements of this function, `attr` is from `LIST`, and `dev` has
        // the groups of this type.
        let (attribute, data) = unsafe { (Self::attribute(attr.cast()), O::data(dev)) };
        // C accepts less than a page.
        //
        // SAFETY: By the safety requirements of this function, `buf` is a page for this call.
        let page = unsafe { slice::from_raw_parts_mut(buf.cast(), PAGE_SIZE - 1) };
        let mut line = Formatter::new(page);
        let Some(Purpose::Show(show)) = attribute.map(|attribute| &attribute.purpose) else {
            return EIO.to_errno() as isize;
        };
        let text = FromFn(|f: &mut fmt::Formatter<'_>| show(data, f));

        match line.write_fmt(fmt!("{text}\n")) {
            Ok(()) => line.bytes_written() as isize,
            Err(_) => EFBIG.to_errno() as isize,
        }
    }

    /// `store` of an attribute. C does not remove the device before it returns, as for
    /// [`show`](Self::show).
    ///
    /// # Safety
    ///
    /// `dev` was added with the groups of this type, and is not removed before this returns. `attr`
    /// is from `LIST`. `buf` has `count` bytes.
    unsafe extern "C" fn store(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *const c_char,
        count: usize,
    ) -> isize {
        // SAFETY: By the safety requirements of this function, `attr` is from `LIST`, and `dev` has
        // the groups of this type.
        let (attribute, data) = unsafe { (Self::attribute(attr.cast()), O::data(dev)) };
        // SAFETY: By the safety requirements of this function, `buf` has `count` bytes. It is a
        // copy for this call, which nobody changes.
        let text: &[u8] = unsafe { slice::from_raw_parts(buf.cast(), count) };
        let done = match attribute.map(|attribute| &attribute.purpose) {
            Some(Purpose::Act(act)) if matches!(text, b"1" | b"1\n") => act(data),
            Some(Purpose::Act(_)) => Err(EINVAL),
            _ => Err(EIO),
        };

        match done {
            // All bytes are consumed; C passes at most a page.
            Ok(()) => count as isize,
            Err(error) => error.to_errno() as isize,
        }
    }
}
