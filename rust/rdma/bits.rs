// SPDX-License-Identifier: GPL-2.0

//! Numbers that have fewer bits on the wire than the type that holds them.

/// Declares a number of at most so many bits: what does not fit cannot be made,
/// so that nothing is cut off in silence where it is used.
macro_rules! number_of_bits {
    ($(#[$doc:meta])* $name:ident($type:ty), $bits:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name($type);

        impl $name {
            /// The largest one.
            pub const MAX: Self = Self((1 << $bits) - 1);

            /// The number; `None` if it has more bits than fit.
            #[inline]
            pub const fn new(value: $type) -> Option<Self> {
                if value > Self::MAX.0 {
                    return None;
                }
                Some(Self(value))
            }

            /// Its value.
            #[inline]
            pub const fn get(self) -> $type {
                self.0
            }
        }
    };
}

pub(crate) use number_of_bits;
