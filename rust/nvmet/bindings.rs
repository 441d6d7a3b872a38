// SPDX-License-Identifier: GPL-2.0

//! Raw bindings: those of the kernel crate, and those that bindgen generates for the private headers
//! of nvmet. A type that the kernel crate has in full is not generated again.

#![allow(
    clippy::all,
    clippy::as_underscore,
    clippy::cast_lossless,
    clippy::ptr_as_ptr,
    clippy::ref_as_ptr,
    clippy::undocumented_unsafe_blocks,
    dead_code,
    missing_docs,
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    improper_ctypes,
    unreachable_pub,
    unsafe_op_in_unsafe_fn
)]

// Inlining them takes rustdoc longer than the rest of the crate.
#[doc(no_inline)]
pub(crate) use kernel::bindings::*;
use kernel::ffi;
use pin_init::MaybeZeroable;

// Blocklisted in bindgen; the kernel crate has it under another name.
#[allow(dead_code)]
type __kernel_size_t = usize;

include!(concat!(env!("NVMET_GENERATED"), "/bindings_generated.rs"));
