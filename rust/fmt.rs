// SPDX-License-Identifier: GPL-2.0

//! Text of the crate's types, in both of the worlds that there are.
//!
//! The kernel's own [`kernel::fmt::Display`] is what `pr_info!` asks for; plain
//! crates, which know nothing of the kernel, know [`core::fmt::Display`] only.

/// Implements [`kernel::fmt::Display`] by means of [`core::fmt::Display`].
macro_rules! kernel_display {
    ($($type:ty),+ $(,)?) => {
        $(
            impl ::kernel::fmt::Display for $type {
                fn fmt(&self, f: &mut ::core::fmt::Formatter<'_>) -> ::core::fmt::Result {
                    ::core::fmt::Display::fmt(self, f)
                }
            }
        )+
    };
}

pub(crate) use kernel_display;
