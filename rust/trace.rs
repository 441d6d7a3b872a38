// SPDX-License-Identifier: GPL-2.0

//! Tracepoints of modules, for perf, bpftrace and tracefs.
//!
//! Events are defined in C, as everywhere in the kernel. A header of the module has a `TRACE_EVENT`
//! for each event. A C file of the module includes it with `CREATE_TRACE_POINTS` and
//! `CREATE_RUST_TRACE_POINTS`. The data of an event is a structure in that header, and the
//! prototype of the event takes a pointer to it:
//!
//! ```c
//! struct hello_trace_greeting { u32 peer; char text[32]; };
//!
//! TRACE_EVENT(hello_greeting,
//!     TP_PROTO(const struct hello_trace_greeting *greeting),
//!     ...
//! ```
//!
//! Kbuild runs bindgen on the header. From the result, [`tracepoints!`](crate::tracepoints)
//! generates a function for each event:
//!
//! ```ignore
//! // rust/rnvmf/tracepoints.rs
//! rrdma::tracepoints! {
//!     // SAFETY: The file is what bindgen made of trace.h, whose events copy what they record.
//!     unsafe bindings: concat!(env!("RNVMF_GENERATED"), "/trace_generated.rs");
//!
//!     /// A command is about to be sent to the target.
//!     pub(super) fn rnvmf_queue_command(rnvmf_trace_command);
//! }
//! ```
//!
//! The function takes a closure that returns the structure. While the event is not traced, it costs
//! a no-op instruction (a static branch), and the closure does not run. Variables that the closure
//! borrows are kept in memory even then, so let it take values.
//!
//! The declaration is checked against C at compile time: an unknown event or another prototype is
//! an error.
//!
//! `declare_trace!` of the kernel crate generates `unsafe` functions, and supports only tracepoints
//! of the kernel's own headers.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

/// Declares the tracepoints of a module; see [`trace`](crate::trace).
///
/// `bindings` is the path of the output of bindgen for the header: the functions
/// `rust_do_trace_NAME`, the variables `__tracepoint_NAME`, and the structures, without `struct
/// tracepoint`. Each `fn NAME(STRUCTURE);` becomes a function that takes a closure which returns a
/// `STRUCTURE`. It may be called in any context but NMI. The structures are in the module
/// `bindings`.
///
/// # Safety
///
/// No compiler checks these, so the declaration says `unsafe`:
///
/// - The file of `bindings` is the output of bindgen for the header of the tracepoints.
/// - The C code of an event uses the structure only during the call, and no memory beyond it.
#[macro_export]
macro_rules! tracepoints {
    (
        unsafe bindings: $path:expr;
        $( $(#[$attribute:meta])* $visibility:vis fn $name:ident($event:ident); )+
    ) => {
        #[allow(
            clippy::all,
            clippy::cast_lossless,
            clippy::ptr_as_ptr,
            clippy::ref_as_ptr,
            clippy::undocumented_unsafe_blocks,
            dead_code,
            improper_ctypes,
            missing_docs,
            non_camel_case_types,
            non_upper_case_globals,
            unreachable_pub,
            unsafe_op_in_unsafe_fn
        )]
        pub(crate) mod bindings {
            use ::kernel::{
                bindings::tracepoint,
                ffi, //
            };
            include!($path);
        }

        $(
            $(#[$attribute])*
            #[inline(always)]
            $visibility fn $name(event: impl FnOnce() -> bindings::$event) {
                ::kernel::macros::paste! {
                    #[cfg(CONFIG_TRACEPOINTS)]
                    {
                        const RECORD: unsafe extern "C" fn(*const bindings::$event) =
                            bindings::[<rust_do_trace_ $name>];

                        // SAFETY: By the safety requirements of the macro, C defined the tracepoint. `key`
                        // is its static key.
                        let is_traced = unsafe {
                            ::kernel::jump_label::static_branch_unlikely!(
                                bindings::[<__tracepoint_ $name>],
                                ::kernel::bindings::tracepoint,
                                key
                            )
                        };
                        if is_traced {
                            // SAFETY: By the safety requirements of the macro, `RECORD` is the function of
                            // the tracepoint for Rust, and uses the structure only during the call. It may
                            // be called in any context.
                            //
                            // The variables that `event` has captured move into a closure of its
                            // own, so that they are stored in memory only here.
                            unsafe { $crate::trace::record(move || event(), RECORD) };
                        }
                    }
                    #[cfg(not(CONFIG_TRACEPOINTS))]
                    let _ = event;
                }
            }
        )+
    };
}

/// Creates the data of an event and traces it.
///
/// # Safety
///
/// `record` uses only the memory that its argument points to, and only during the call.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub unsafe fn record<E>(event: impl FnOnce() -> E, record: unsafe extern "C" fn(*const E)) {
    let event = event();
    // SAFETY: `event` is valid during the call. By the safety requirements of this function,
    // `record` uses nothing else.
    unsafe { record(&event) };
}
