// SPDX-License-Identifier: GPL-2.0

//! Module parameters: text, numbers with a range, booleans.
//!
//! [`parameters!`](crate::parameters) declares them, next to `module!`:
//!
//! ```ignore
//! rrdma::parameters! {
//!     server: Text<64> = "", "IP address of the server; empty: run as server";
//!     size: Number<1, 1048576> = 4096, "size of a message in bytes";
//!     events: Bool = false, "wait for completions instead of polling";
//! }
//! ```
//!
//! and generates a module `parameters`:
//!
//! - `parameters::server.get()` is a [`Text<64>`](Text), a `str` by dereference,
//! - `parameters::size.get()` is a `u32` from 1 to 1048576,
//! - `parameters::events.get()` is a `bool`.
//!
//! Values are checked before the module's `init` runs. An invalid value fails the load with
//! `EINVAL`, and the log shows the parameter, the value and the valid range. An invalid default is
//! a compile error. The last of several values is used, so the command line overrides
//! `/etc/modprobe.d`.
//!
//! `modinfo` shows the description and the range of each parameter, and
//! `/sys/module/MODULE/parameters` the values, read-only. Only for loadable modules: in a built-in
//! module, the names would need a prefix.
//!
//! The `module!` macro of the kernel crate supports only integers in 7.2, without a range.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

use crate::{
    bindings,
    text::FromFn, //
};
use core::{
    cell::UnsafeCell,
    ffi::c_int,
    fmt::Write,
    ops::Deref,
    str::from_utf8, //
};
use kernel::{
    error::to_result,
    ffi::c_char,
    fmt,
    page::PAGE_SIZE,
    prelude::*,
    print::{
        call_printk,
        format_strings, //
    },
    str::{
        as_char_ptr_in_const_context,
        kstrtobool,
        BStr,
        CStr,
        Formatter, //
    }, //
};

/// Declares the parameters of a module; see [`params`](crate::params).
///
/// Each is `NAME: KIND = DEFAULT, "description";`, all of it literal. The kinds are
/// [`Text<BYTES>`](crate::params::Text), [`Number<MIN, MAX>`](crate::params::Number) and [`Bool`].
/// May be used once per Rust module.
#[macro_export]
macro_rules! parameters {
    ($(
        $name:ident: $kind:ident $(<$($limit:literal),+>)? = $default:literal,
        $description:literal;
    )+) => {
        #[allow(non_upper_case_globals)]
        pub(crate) mod parameters {
            $(
                #[doc = concat!("The parameter `", stringify!($name), "`: ", $description, ".")]
                pub(crate) static $name: $crate::params::Parameter<
                    $crate::params::$kind $(<$($limit),+>)?
                > =
                    // SAFETY: `__this_module` is the module that contains the parameter; the module
                    // loader initialises it.
                    unsafe {
                        $crate::params::Parameter::new(
                            ::kernel::c_str!(::core::stringify!($name)),
                            &raw mut ::kernel::bindings::__this_module,
                            $crate::params::$kind::new($default),
                        )
                    };

                const _: () = {
                    #[link_section = "__param"]
                    #[used(compiler)]
                    static ENTRY: $crate::params::Entry = $crate::params::Entry::new(&$name);

                    $crate::parameters!(@modinfo "parm", $name, $description);
                    $crate::parameters!(@modinfo "parmtype", $name,
                        $crate::parameters!(@type $kind $(, $($limit),+)?));
                };
            )+
        }
    };

    (@modinfo $field:literal, $name:ident, $content:expr) => {
        const _: () = {
            const TEXT: &str =
                ::core::concat!($field, "=", ::core::stringify!($name), ":", $content, "\0");

            #[link_section = ".modinfo"]
            #[used(compiler)]
            static BYTES: [u8; TEXT.len()] = $crate::params::bytes(TEXT);
        };
    };

    (@type Text, $bytes:literal) => {
        ::core::concat!("string of at most ", $bytes, " bytes")
    };
    (@type Number, $min:literal, $max:literal) => {
        ::core::concat!("uint from ", $min, " to ", $max)
    };
    (@type Bool) => {
        "bool"
    };
}

/// Returns the `N` bytes of a text.
#[doc(hidden)]
pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    assert!(text.len() >= N, "the text is shorter than `N` bytes");
    match text.as_bytes().first_chunk() {
        Some(bytes) => *bytes,
        // Unreachable: see the assertion.
        None => [0; N],
    }
}

/// A kind of parameter. Values are part of the user interface, so there are few kinds.
pub trait Kind: Copy + Send + Sync + 'static {
    /// Type of the value that the module gets.
    type Value;

    /// `flags` of `struct kernel_param_ops`.
    const FLAGS: u32 = 0;

    /// Returns the value for the module.
    fn value(self) -> Self::Value;

    /// Writes the value for user space.
    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result;

    /// Parses a value; `None` if it is invalid. `text` is `None` if the user gave a name without a
    /// value, which only some `FLAGS` permit.
    fn parse(text: Option<&CStr>) -> Option<Self>;

    /// Writes what a valid value is.
    fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

/// Text of at most `BYTES` printable ASCII characters.
#[derive(Clone, Copy)]
pub struct Text<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// At most `BYTES`.
    length: usize,
}

impl<const BYTES: usize> Text<BYTES> {
    /// Creates a default; an invalid one is a compile error.
    pub const fn new(text: &str) -> Self {
        assert!(text.len() <= BYTES, "the default is too long");
        let mut bytes = [0; BYTES];
        let mut length = 0;
        while length < text.len() {
            bytes[length] = text.as_bytes()[length];
            assert!(printable(bytes[length]), "the default is not printable");
            length += 1;
        }
        Self { bytes, length }
    }
}

const fn printable(byte: u8) -> bool {
    matches!(byte, b' '..=b'~')
}

impl<const BYTES: usize> Deref for Text<BYTES> {
    type Target = str;

    fn deref(&self) -> &str {
        let bytes = self.bytes.get(..self.length).unwrap_or_default();
        // The bytes are printable ASCII.
        from_utf8(bytes).unwrap_or_default()
    }
}

impl<const BYTES: usize> Kind for Text<BYTES> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }

    fn parse(text: Option<&CStr>) -> Option<Self> {
        let text = text?.to_bytes();
        let mut bytes = [0; BYTES];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        let length = text.len();
        text.iter()
            .all(|b| printable(*b))
            .then_some(Self { bytes, length })
    }

    fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be at most {BYTES} printable characters")
    }
}

/// A number from `MIN` to `MAX`, inclusive. Decimal, or with the prefix `0x` or `0`, as for other
/// module parameters.
#[derive(Clone, Copy)]
pub struct Number<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Number<MIN, MAX> {
    /// Creates a default; one out of range is a compile error.
    pub const fn new(number: u32) -> Self {
        assert!(
            MIN <= number && number <= MAX,
            "the default is out of range"
        );
        Self(number)
    }
}

impl<const MIN: u32, const MAX: u32> Kind for Number<MIN, MAX> {
    type Value = u32;

    fn value(self) -> u32 {
        self.0
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }

    fn parse(text: Option<&CStr>) -> Option<Self> {
        let mut number = 0;
        // SAFETY: The text is a C string, and `number` is writable.
        to_result(unsafe { bindings::kstrtouint(text?.as_char_ptr(), 0, &mut number) }).ok()?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "must be a number from {MIN} to {MAX}")
    }
}

/// A boolean, parsed by `kstrtobool()`; the name without a value is true.
#[derive(Clone, Copy)]
pub struct Bool(bool);

impl Bool {
    /// Creates a default.
    pub const fn new(flag: bool) -> Self {
        Self(flag)
    }
}

impl Kind for Bool {
    type Value = bool;

    const FLAGS: u32 = bindings::KERNEL_PARAM_OPS_FL_NOARG;

    fn value(self) -> bool {
        self.0
    }

    fn show(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "Y" } else { "N" })
    }

    fn parse(text: Option<&CStr>) -> Option<Self> {
        Some(Self(text.map_or(Ok(true), kstrtobool).ok()?))
    }

    fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be y or n")
    }
}

/// A module parameter.
///
/// # Invariants
///
/// - `module` is the module that contains the parameter. It is valid while code of the module runs.
/// - `value` is accessed only under the parameter lock of the module.
pub struct Parameter<K: Kind> {
    name: &'static CStr,
    module: *mut bindings::module,
    value: UnsafeCell<K>,
}

// SAFETY: By the type invariants, the value is protected by a lock. All else is constant.
unsafe impl<K: Kind> Sync for Parameter<K> {}

impl<K: Kind> Parameter<K> {
    /// Creates a parameter with its default.
    ///
    /// # Safety
    ///
    /// `module` is the module that contains the parameter.
    #[doc(hidden)]
    pub const unsafe fn new(
        name: &'static CStr,
        module: *mut bindings::module,
        default: K,
    ) -> Self {
        // INVARIANT: By the safety requirements of this function.
        Self {
            name,
            module,
            value: UnsafeCell::new(default),
        }
    }

    /// Returns the value: that of the user, or the default. May sleep.
    pub fn get(&self) -> K::Value {
        // SAFETY: By the type invariants, the module is valid.
        unsafe { bindings::kernel_param_lock(self.module) };
        // SAFETY: The parameter lock is held.
        let value = unsafe { *self.value.get() };
        // SAFETY: The parameter lock is held by this thread.
        unsafe { bindings::kernel_param_unlock(self.module) };
        value.value()
    }

    const OPS: &'static bindings::kernel_param_ops = &bindings::kernel_param_ops {
        flags: K::FLAGS,
        set: Some(Self::set_callback),
        get: Some(Self::get_callback),
        free: None,
    };

    /// Returns the parameter of an entry.
    ///
    /// # Safety
    ///
    /// [`Entry::new`] created `entry` for a parameter of this kind.
    unsafe fn of(entry: *const bindings::kernel_param) -> &'static Self {
        // SAFETY: By the safety requirements of this function, `arg` is the parameter.
        unsafe { &*(*entry).__bindgen_anon_1.arg.cast() }
    }

    /// `set` of `struct kernel_param_ops`.
    ///
    /// # Safety
    ///
    /// `entry` is of this kind, and the parameter lock is held. `text` is a C string, or null if
    /// the flags permit that.
    unsafe extern "C" fn set_callback(
        text: *const c_char,
        entry: *const bindings::kernel_param,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function, `entry` is of this kind.
        let parameter = unsafe { Self::of(entry) };
        // SAFETY: By the safety requirements of this function, `text` is a C string unless it is
        // null.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) });
        let Some(value) = K::parse(text) else {
            parameter.refuse(text.unwrap_or_default());
            return EINVAL.to_errno();
        };
        // SAFETY: By the safety requirements of this function, the lock is held.
        unsafe { *parameter.value.get() = value };
        0
    }

    /// `get` of `struct kernel_param_ops`.
    ///
    /// # Safety
    ///
    /// `entry` is of this kind, and the parameter lock is held. `page` is a writable, initialised
    /// page.
    unsafe extern "C" fn get_callback(
        page: *mut c_char,
        entry: *const bindings::kernel_param,
    ) -> c_int {
        // SAFETY: By the safety requirements of this function, `entry` is of this kind.
        let parameter = unsafe { Self::of(entry) };
        // SAFETY: By the safety requirements of this function, the lock is held.
        let value = unsafe { *parameter.value.get() };
        // SAFETY: By the safety requirements of this function, `page` is a writable, initialised
        // page.
        let page = unsafe { core::slice::from_raw_parts_mut(page.cast(), PAGE_SIZE) };
        let mut out = Formatter::new(page);
        let value = FromFn(|f: &mut fmt::Formatter<'_>| value.show(f));
        match out.write_fmt(fmt!("{value}\n")) {
            // At most a page, so it fits.
            Ok(()) => out.bytes_written() as c_int,
            Err(_) => ENOSPC.to_errno(),
        }
    }

    fn refuse(&self, text: &CStr) {
        let name = self.name;
        let text = BStr::from_bytes(text.to_bytes());
        let allowed = FromFn(K::allowed);
        // SAFETY: By the type invariants, the module is valid. Its name is a constant C string.
        let module = unsafe { CStr::from_char_ptr((&raw const (*self.module).name).cast()) };
        // SAFETY: The format is one of `format_strings`, and the name ends with a NUL.
        unsafe {
            call_printk(
                &format_strings::ERR,
                module.to_bytes_with_nul(),
                fmt!("{name}={text}: invalid value: {allowed}\n"),
            )
        };
    }
}

/// A parameter in the `__param` section, for the module loader.
#[doc(hidden)]
#[repr(transparent)]
pub struct Entry(bindings::kernel_param);

// SAFETY: The entry is constant, and `Parameter` is `Sync`.
unsafe impl Sync for Entry {}

impl Entry {
    /// Creates the read-only entry of a parameter.
    pub const fn new<K: Kind>(parameter: &'static Parameter<K>) -> Self {
        Self(bindings::kernel_param {
            name: as_char_ptr_in_const_context(parameter.name),
            mod_: parameter.module,
            ops: Parameter::<K>::OPS,
            perm: 0o444,
            level: -1,
            flags: 0,
            __bindgen_anon_1: bindings::kernel_param__bindgen_ty_1 {
                arg: core::ptr::from_ref(parameter).cast_mut().cast(),
            },
        })
    }
}
