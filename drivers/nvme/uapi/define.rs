// SPDX-License-Identifier: GPL-2.0

//! Data types of the interface, and the macros that define its parts.

/// An attribute of a set.
#[derive(Clone, Copy, Debug)]
pub struct Attribute {
    /// Its number, from 1.
    pub id: u16,
    /// Its name in the specification.
    pub name: &'static str,
    /// Its type and limits.
    pub kind: Kind,
}

/// Type and limits of an attribute. Limits are inclusive.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // `min` and `max`
pub enum Kind {
    /// An unsigned 8-bit number.
    U8 { min: u8, max: u8 },
    /// An unsigned 16-bit number.
    U16 { min: u16, max: u16 },
    /// An unsigned 32-bit number.
    U32 { min: u32, max: u32 },
    /// A string of at most so many bytes, without its NUL.
    Str(usize),
    /// Exactly so many bytes.
    Bytes(usize),
    /// No value: the attribute is present or absent.
    Flag,
    /// A signed 32-bit number; in replies only.
    S32,
    /// An unsigned number of four or eight bytes; in replies only.
    Uint,
    /// Attributes of a set; in replies only.
    Nest(&'static [Attribute]),
    /// The same, any number of times; in replies only.
    Nests(&'static [Attribute]),
}

/// A request, to do or to dump an operation.
#[derive(Debug)]
pub struct Request {
    /// The command of the operation.
    pub command: u8,
    /// Whether the operation has the flag `admin-perm`.
    pub admin: bool,
    /// The attributes that the request takes.
    pub attributes: &'static [Attribute],
    /// The set that these attributes and those of replies belong to.
    pub set: &'static [Attribute],
}

/// Defines an enum: number and name of each entry.
macro_rules! enumeration {
    (
        $(#[$doc:meta])*
        $enum:ident: $raw:ident { $($(#[$entry_doc:meta])* $entry:ident = $value:literal, $name:literal;)* }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr($raw)]
        pub enum $enum {
            $($(#[$entry_doc])* $entry = $value,)*
        }

        impl $enum {
            /// Returns the entry of a number; `None` if only a newer kernel knows it.
            #[inline]
            pub fn from_raw(raw: $raw) -> Option<Self> {
                match raw {
                    $($value => Some(Self::$entry),)*
                    _ => None,
                }
            }

            /// Returns the name in the specification.
            #[inline]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$entry => $name,)*
                }
            }
        }
    };
}
pub(crate) use enumeration;

/// Defines a set of attributes: number, name and [`Kind`] of each.
macro_rules! attribute_set {
    (
        $(#[$doc:meta])*
        $set:ident { $($(#[$id_doc:meta])* $id:ident = $value:literal, $name:literal, $kind:expr;)* }
    ) => {
        $(#[$doc])*
        pub mod $set {
            $($(#[$id_doc])* pub const $id: u16 = $value;)*

            /// The attributes by number, from 1.
            pub const ATTRIBUTES: &[$crate::Attribute] = {
                #[allow(unused_imports)]
                use $crate::{Kind::*, spec::*};
                &[$($crate::Attribute { id: $value, name: $name, kind: $kind }),*]
            };
        }
    };
}
pub(crate) use attribute_set;

/// Defines requests: command, whether it needs `admin-perm`, and attributes of a set.
macro_rules! requests {
    ($(
        $(#[$doc:meta])*
        $request:ident: $command:ident, admin: $admin:literal, $set:ident [$($id:ident)*];
    )*) => {
        $(
            $(#[$doc])*
            pub const $request: $crate::Request = $crate::Request {
                command: Command::$command as u8,
                admin: $admin,
                attributes: &[$($set::ATTRIBUTES[$set::$id as usize - 1]),*],
                set: $set::ATTRIBUTES,
            };
        )*
    };
}
pub(crate) use requests;
