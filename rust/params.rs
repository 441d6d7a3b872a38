// SPDX-License-Identifier: GPL-2.0

//! Module parameters: text, numbers with a range, flags.
//!
//! [`parameters!`](crate::parameters) declares them, next to `module!`:
//!
//! ```ignore
//! rrdma::parameters! {
//!     server: Text<64> = "", "address of the peer; empty: be the server";
//!     size: Number<1, 1048576> = 4096, "bytes of a message";
//!     events: Bool = false, "sleep for completions instead of polling";
//! }
//! ```
//!
//! and makes a module `parameters` of them, of which
//!
//! - `parameters::server.get()` is a [`Text<64>`](Text), a `str` by dereference,
//! - `parameters::size.get()` is a `u32` from 1 to 1048576,
//! - `parameters::events.get()` is a `bool`.
//!
//! What a user gives is checked before the module's `init` runs. A value that is
//! not allowed refuses the load with `EINVAL`, and the log says which parameter it
//! was, what it was and what is allowed. A default that is not allowed does not
//! compile. Of several values for one parameter the last counts, so that a command
//! line overrides `/etc/modprobe.d`.
//!
//! `modinfo` shows the descriptions and what is allowed, and
//! `/sys/module/MODULE/parameters` the values, for everyone to read and nobody to
//! write. They are for modules that are loaded; a module built into the kernel
//! would have to prefix all this with its name.
//!
//! The kernel crate has parameters in `module!`: of integers only in 7.2, without
//! text, and of any value.
//!
//! C header: [`include/linux/moduleparam.h`](srctree/include/linux/moduleparam.h)

use crate::bindings;
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
        kstrtobool,
        BStr,
        CStr,
        Formatter, //
    }, //
};

/// Declares the parameters of a module, see [`params`](crate::params).
///
/// Each is `NAME: KIND = DEFAULT, "description";` where the kind is one of
/// [`Text<BYTES>`](crate::params::Text), [`Number<MIN, MAX>`](crate::params::Number)
/// and [`Bool`], and all of it is literal. May be used several
/// times in a module, once in each of its Rust modules.
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
                    // SAFETY: The name ends with a NUL, and `__this_module` is the
                    // module that this is in, which the loader fills in.
                    unsafe {
                        $crate::params::Parameter::new(
                            ::core::concat!(::core::stringify!($name), "\0").as_bytes(),
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

/// The bytes of a text, of which there are `N`.
#[doc(hidden)]
pub const fn bytes<const N: usize>(text: &str) -> [u8; N] {
    match text.as_bytes().first_chunk() {
        Some(bytes) => *bytes,
        None => panic!("the text is shorter"),
    }
}

/// A kind of parameter.
///
/// Implemented here only: what a user can give is an interface, and there should
/// be few of them.
pub trait Kind: Copy + Send + Sync + fmt::Display + private::Sealed + 'static {
    /// What a parameter of this kind is to the module.
    type Value;

    /// As the module gets it.
    fn value(self) -> Self::Value;
}

mod private {
    use super::*;

    pub trait Sealed: Sized {
        /// For `struct kernel_param_ops`.
        const FLAGS: u32 = 0;

        /// What the user gave as a value, which is nothing only if `FLAGS` allow it;
        /// `None` if that is not allowed.
        fn parse(text: Option<&CStr>) -> Option<Self>;

        /// Says what is allowed.
        fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result;
    }
}

/// Text of at most `BYTES` bytes, all of them printable ASCII.
#[derive(Clone, Copy)]
pub struct Text<const BYTES: usize> {
    bytes: [u8; BYTES],
    /// At most `BYTES`.
    length: usize,
}

impl<const BYTES: usize> Text<BYTES> {
    /// A default; anything longer, or not printable, does not compile.
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
        // It is ASCII.
        from_utf8(bytes).unwrap_or_default()
    }
}

impl<const BYTES: usize> fmt::Display for Text<BYTES> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self)
    }
}

impl<const BYTES: usize> private::Sealed for Text<BYTES> {
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
        write!(f, "at most {BYTES} printable bytes are allowed")
    }
}

impl<const BYTES: usize> Kind for Text<BYTES> {
    type Value = Self;

    fn value(self) -> Self {
        self
    }
}

/// A number from `MIN` to `MAX`, both included. Users give it in decimal or, as
/// everywhere in the kernel, with `0x` or `0` in front of it.
#[derive(Clone, Copy)]
pub struct Number<const MIN: u32, const MAX: u32>(u32);

impl<const MIN: u32, const MAX: u32> Number<MIN, MAX> {
    /// A default; one outside of the range does not compile.
    pub const fn new(number: u32) -> Self {
        assert!(
            MIN <= number && number <= MAX,
            "the default is out of range"
        );
        Self(number)
    }
}

impl<const MIN: u32, const MAX: u32> fmt::Display for Number<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl<const MIN: u32, const MAX: u32> private::Sealed for Number<MIN, MAX> {
    fn parse(text: Option<&CStr>) -> Option<Self> {
        let mut number = 0;
        // SAFETY: The text is a C string, and `number` is writable.
        to_result(unsafe { bindings::kstrtouint(text?.as_char_ptr(), 0, &mut number) }).ok()?;
        (MIN..=MAX).contains(&number).then_some(Self(number))
    }

    fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a number from {MIN} to {MAX} is allowed")
    }
}

impl<const MIN: u32, const MAX: u32> Kind for Number<MIN, MAX> {
    type Value = u32;

    fn value(self) -> u32 {
        self.0
    }
}

/// Yes or no, as `kstrtobool` has it; the name alone is yes.
#[derive(Clone, Copy)]
pub struct Bool(bool);

impl Bool {
    /// A default.
    pub const fn new(flag: bool) -> Self {
        Self(flag)
    }
}

impl fmt::Display for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "Y" } else { "N" })
    }
}

impl private::Sealed for Bool {
    const FLAGS: u32 = bindings::KERNEL_PARAM_OPS_FL_NOARG;

    fn parse(text: Option<&CStr>) -> Option<Self> {
        Some(Self(text.map_or(Ok(true), kstrtobool).ok()?))
    }

    fn allowed(f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("y or n is allowed")
    }
}

impl Kind for Bool {
    type Value = bool;

    fn value(self) -> bool {
        self.0
    }
}

/// What a kind allows, as text.
struct Allowed<K>(core::marker::PhantomData<K>);

impl<K: Kind> fmt::Display for Allowed<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        K::allowed(f)
    }
}

/// A parameter of a module.
///
/// # Invariants
///
/// - `name` ends with a NUL.
/// - `module` is the module that has the parameter, for as long as its code runs.
/// - `value` is used only under the lock of the module's parameters.
pub struct Parameter<K: Kind> {
    name: &'static [u8],
    module: *mut bindings::module,
    value: UnsafeCell<K>,
}

// SAFETY: By the type invariants the value is behind a lock; all else is constant.
unsafe impl<K: Kind> Sync for Parameter<K> {}

impl<K: Kind> Parameter<K> {
    /// Makes one with its default.
    ///
    /// # Safety
    ///
    /// `name` must end with a NUL, and `module` be the module that this is in.
    #[doc(hidden)]
    pub const unsafe fn new(
        name: &'static [u8],
        module: *mut bindings::module,
        default: K,
    ) -> Self {
        // INVARIANT: By the contract.
        Self {
            name,
            module,
            value: UnsafeCell::new(default),
        }
    }

    /// The value: the default if the user gave none. May sleep.
    pub fn get(&self) -> K::Value {
        // SAFETY: By the type invariants the module is there.
        unsafe { bindings::kernel_param_lock(self.module) };
        // SAFETY: The lock is held.
        let value = unsafe { *self.value.get() };
        // SAFETY: As above.
        unsafe { bindings::kernel_param_unlock(self.module) };
        value.value()
    }

    const OPS: &'static bindings::kernel_param_ops = &bindings::kernel_param_ops {
        flags: K::FLAGS,
        set: Some(Self::set_callback),
        get: Some(Self::get_callback),
        free: None,
    };

    /// # Safety
    ///
    /// `entry` must be one that [`Entry::new`] made of a parameter of this kind.
    unsafe fn of(entry: *const bindings::kernel_param) -> &'static Self {
        // SAFETY: By the contract, `arg` is what `Entry::new` put there.
        unsafe { &*(*entry).__bindgen_anon_1.arg.cast() }
    }

    /// # Safety
    ///
    /// Called with an entry of this kind, under the lock of the module's
    /// parameters, with a C string, or with NULL if the flags allow it.
    unsafe extern "C" fn set_callback(
        text: *const c_char,
        entry: *const bindings::kernel_param,
    ) -> c_int {
        // SAFETY: By the contract.
        let parameter = unsafe { Self::of(entry) };
        // SAFETY: By the contract it is a C string where it is not NULL.
        let text = (!text.is_null()).then(|| unsafe { CStr::from_char_ptr(text) });
        match K::parse(text) {
            Some(value) => {
                // SAFETY: By the contract, the lock is held.
                unsafe { *parameter.value.get() = value };
                0
            }
            None => {
                parameter.refuse(text.unwrap_or_default());
                EINVAL.to_errno()
            }
        }
    }

    /// # Safety
    ///
    /// Called with an entry of this kind, under the lock of the module's
    /// parameters, with a page of initialised memory to write to.
    unsafe extern "C" fn get_callback(
        page: *mut c_char,
        entry: *const bindings::kernel_param,
    ) -> c_int {
        // SAFETY: By the contract.
        let parameter = unsafe { Self::of(entry) };
        // SAFETY: By the contract, the lock is held.
        let value = unsafe { *parameter.value.get() };
        // SAFETY: By the contract.
        let page = unsafe { core::slice::from_raw_parts_mut(page.cast(), PAGE_SIZE) };
        let mut out = Formatter::new(page);
        match out.write_fmt(fmt!("{value}\n")) {
            // No more than the page.
            Ok(()) => out.bytes_written() as c_int,
            Err(_) => ENOSPC.to_errno(),
        }
    }

    fn refuse(&self, text: &CStr) {
        let name = self.name.split_last().map_or(self.name, |(_, name)| name);
        let name = BStr::from_bytes(name);
        let text = BStr::from_bytes(text.to_bytes());
        let allowed = Allowed::<K>(core::marker::PhantomData);
        // SAFETY: By the type invariants the module is there; its name is a C
        // string that does not change.
        let module = unsafe { CStr::from_char_ptr((&raw const (*self.module).name).cast()) };
        // SAFETY: The format is one of those, and the name ends with a NUL.
        unsafe {
            call_printk(
                &format_strings::ERR,
                module.to_bytes_with_nul(),
                fmt!("{name}={text} is refused: {allowed}\n"),
            )
        };
    }
}

/// A parameter as the loader of modules finds it.
#[doc(hidden)]
#[repr(transparent)]
pub struct Entry(bindings::kernel_param);

// SAFETY: It is constant, and what it points to may be used by any thread.
unsafe impl Sync for Entry {}

impl Entry {
    /// The entry of a parameter, which everybody can read.
    pub const fn new<K: Kind>(parameter: &'static Parameter<K>) -> Self {
        Self(bindings::kernel_param {
            name: parameter.name.as_ptr().cast(),
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
