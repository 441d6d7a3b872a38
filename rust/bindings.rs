// SPDX-License-Identifier: GPL-2.0

//! Raw bindings: the kernel crate's own, and over them those of the headers it
//! leaves out (RDMA, generic netlink), made by bindgen for the kernel at hand.
//!
//! A local item shadows the glob, so a type that the kernel crate only knows by
//! name is found here in full; a type it has in full is not generated again and
//! is the same Rust type in both worlds (see `bindings/bindgen_parameters`).

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

pub(crate) use kernel::bindings::*;
use kernel::ffi;
use pin_init::MaybeZeroable;

// bindgen is told to leave it to the kernel crate, which names it otherwise.
#[allow(dead_code)]
type __kernel_size_t = usize;

// SAFETY: An integer array with accessors; all its bits may be zero.
unsafe impl<S: pin_init::Zeroable> pin_init::Zeroable for __BindgenBitfieldUnit<S> {}

include!(concat!(env!("RRDMA_GENERATED"), "/bindings_generated.rs"));
