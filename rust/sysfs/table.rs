// SPDX-License-Identifier: GPL-2.0

//! The attributes of a type as tables for C.
//!
//! C header: [`include/linux/sysfs.h`](srctree/include/linux/sysfs.h)

use super::{
    attribute::Purpose,
    Attribute, //
};
use crate::bindings;
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

/// The most attributes of one type.
const MAX: usize = 32;

/// What has attributes.
///
/// # Safety
///
/// [`data`](Self::data) gives out what its requirements allow, and nothing that ends before.
pub(crate) unsafe trait Owner: Sized + 'static {
    /// What the attributes are of, for any number of readers and writers at once.
    type Data: Sync + 'static;

    /// The attributes: at most 32.
    const ATTRIBUTES: &'static [Attribute<Self::Data>];

    /// The data.
    ///
    /// # Safety
    ///
    /// `dev` was added with the [groups](Table::groups) of this type, or is about to be, and
    /// is not removed for `'a`.
    unsafe fn data<'a>(dev: *mut bindings::device) -> &'a Self::Data;
}

/// An attribute for C, and what it is of.
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

/// The tables of a type for C. They are constants: nobody frees or changes them.
///
/// # Invariants
///
/// Each pointer in `LIST` is to a whole `Entry<O::Data>`, of which `attribute` is `Some`, by
/// its first field.
pub(crate) struct Table<O>(PhantomData<O>);

impl<O: Owner> Table<O> {
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

    /// The attributes as C takes them when it adds a device.
    pub(crate) const fn groups() -> *mut *const bindings::attribute_group {
        Self::GROUPS.as_ptr().cast_mut()
    }

    // Runs when the module is compiled, and so does what it asserts.
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

    // As above.
    #[allow(clippy::indexing_slicing)]
    const fn list() -> [*mut bindings::attribute; MAX + 1] {
        let mut list = [ptr::null_mut(); MAX + 1];
        let mut index = 0;

        while index < O::ATTRIBUTES.len() {
            // INVARIANT: `entries` filled it.
            list[index] = (&raw const Self::ENTRIES[index]).cast_mut().cast();
            index += 1;
        }
        list
    }

    /// # Safety
    ///
    /// `attr` is from `LIST`.
    unsafe fn attribute(attr: *const c_void) -> Option<&'static Attribute<O::Data>> {
        // SAFETY: By the requirements of this function and the invariants of the type.
        unsafe { (*attr.cast::<Entry<O::Data>>()).attribute }
    }

    /// Called by C for each attribute while it adds a device.
    ///
    /// # Safety
    ///
    /// `kobj` is that of a device that is being added with the groups of this type; `attr` is
    /// from `LIST`.
    unsafe extern "C" fn is_visible(
        kobj: *mut bindings::kobject,
        attr: *mut bindings::attribute,
        _index: c_int,
    ) -> bindings::umode_t {
        // SAFETY: By the requirements of this function `kobj` is in a device.
        let dev = unsafe { kernel::container_of!(kobj, bindings::device, kobj) };
        // SAFETY: By the requirements of this function; C adds the device as long as this runs.
        let (attribute, data) = unsafe { (Self::attribute(attr.cast()), O::data(dev)) };

        match attribute {
            Some(attribute) if (attribute.visible)(data) => attribute.purpose.mode(),
            _ => 0,
        }
    }

    /// Called by C for a reader. C does not remove the device before this returns: its file
    /// is in use (`kernfs_get_active`).
    ///
    /// # Safety
    ///
    /// `dev` was added with the groups of this type and is not removed before this returns;
    /// `attr` is from `LIST`; `buf` is a page that only
    /// the caller has.
    unsafe extern "C" fn show(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *mut c_char,
    ) -> isize {
        // SAFETY: By the requirements of this function.
        let (attribute, data) = unsafe { (Self::attribute(attr.cast()), O::data(dev)) };
        // C wants less than a page.
        //
        // SAFETY: By the requirements of this function.
        let page = unsafe { slice::from_raw_parts_mut(buf.cast(), PAGE_SIZE - 1) };
        let mut line = Formatter::new(page);
        let Some(&Attribute {
            purpose: Purpose::Show(show),
            ..
        }) = attribute
        else {
            return EIO.to_errno() as isize;
        };
        let text = Line { show, data };

        match writeln!(line, "{text}") {
            Ok(()) => line.bytes_written() as isize,
            Err(_) => EFBIG.to_errno() as isize,
        }
    }

    /// Called by C for a writer. As for [`show`](Self::show), C does not remove the device
    /// before this returns.
    ///
    /// # Safety
    ///
    /// `dev` was added with the groups of this type and is not removed before this returns;
    /// `attr` is from `LIST`; there are `count` bytes at `buf`.
    unsafe extern "C" fn store(
        dev: *mut bindings::device,
        attr: *mut bindings::device_attribute,
        buf: *const c_char,
        count: usize,
    ) -> isize {
        // SAFETY: By the requirements of this function.
        let (attribute, data) = unsafe { (Self::attribute(attr.cast()), O::data(dev)) };
        // SAFETY: As above; they are a copy of what was written, which nobody changes.
        let text: &[u8] = unsafe { slice::from_raw_parts(buf.cast(), count) };
        let done = match attribute.map(|attribute| &attribute.purpose) {
            Some(Purpose::Act(act)) if matches!(text, b"1" | b"1\n") => act(data),
            Some(Purpose::Act(_)) => Err(EINVAL),
            _ => Err(EIO),
        };

        match done {
            // All of it was taken; C gives no more than a page.
            Ok(()) => count as isize,
            Err(error) => error.to_errno() as isize,
        }
    }
}

/// What `show` writes of the data.
struct Line<'a, D> {
    show: fn(&D, &mut fmt::Formatter<'_>) -> fmt::Result,
    data: &'a D,
}

impl<D> core::fmt::Display for Line<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.show)(self.data, f)
    }
}
