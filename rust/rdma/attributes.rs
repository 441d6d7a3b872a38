// SPDX-License-Identifier: GPL-2.0

//! Structures of attributes, copied from those of C.

/// Declares a structure with public fields, and its conversion from a structure of C. Each field
/// has the expression that it is made with.
macro_rules! attributes {
    (
        $(#[$meta:meta])*
        pub struct $name:ident from |$raw:ident: $c:ty| {
            $($(#[$doc:meta])* $field:ident: $type:ty = $value:expr,)+
        }
    ) => {
        $(#[$meta])*
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)+
        }

        impl From<$c> for $name {
            fn from($raw: $c) -> Self {
                Self {
                    $($field: $value,)+
                }
            }
        }
    };
}

pub(super) use attributes;
