// SPDX-License-Identifier: GPL-2.0

//! Tracepoints: what perf, bpftrace and tracefs can see of a module.
//!
//! The events are C, as everywhere in the kernel: a header of the module has a `TRACE_EVENT` for
//! each, and a C file of the module makes them of it, with `CREATE_TRACE_POINTS` and
//! `CREATE_RUST_TRACE_POINTS`. What an event is about is a structure of that header, and its
//! prototype takes a pointer to one:
//!
//! ```c
//! struct hello_trace_greeting { u32 peer; char text[32]; };
//!
//! TRACE_EVENT(hello_greeting,
//!     TP_PROTO(const struct hello_trace_greeting *greeting),
//!     ...
//! ```
//!
//! Kbuild lets bindgen read the header, and [`tracepoints!`](crate::tracepoints) makes of the
//! result a function for each event:
//!
//! ```ignore
//! // drivers/nvme/host/trace.rs
//! rrdma::tracepoints! {
//!     bindings: concat!(env!("RNVMF_GENERATED"), "/trace_generated.rs");
//!
//!     /// A command is about to go to the target.
//!     fn rnvmf_queue_command(rnvmf_trace_command);
//! }
//! ```
//!
//! The function takes a closure, which makes the structure. While nobody traces the event, there
//! is an instruction in its place that does nothing (a static branch), and the closure is not run.
//! What the closure borrows is kept in memory for it all the same: let it take values.
//! The declaration is checked against C when the module is built: an event that is not there, or
//! whose prototype is another, does not compile.
//!
//! The kernel crate has `declare_trace!`, of which users are `unsafe`, and which finds tracepoints
//! of the kernel's own headers only.
//!
//! C header: [`include/linux/tracepoint.h`](srctree/include/linux/tracepoint.h)

/// Declares the tracepoints of a module, see [`trace`](crate::trace).
///
/// `bindings` is the path of what bindgen made of the header: the functions
/// `rust_do_trace_NAME`, the variables `__tracepoint_NAME`, and the structures, without `struct
/// tracepoint`. Each `fn NAME(STRUCTURE);` becomes a function that takes what makes a `STRUCTURE`,
/// and may be called in any context but NMI. The structures are in the module `bindings`.
///
/// What is left to C, as no compiler sees it: to use the structure during the call only, and no
/// memory beyond it.
#[macro_export]
macro_rules! tracepoints {
    (
        bindings: $path:expr;
        $( $(#[$attribute:meta])* fn $name:ident($event:ident); )+
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
        mod bindings {
            use ::kernel::{
                bindings::tracepoint,
                ffi, //
            };
            include!($path);
        }

        $(
            $(#[$attribute])*
            #[inline(always)]
            fn $name(event: impl FnOnce() -> bindings::$event) {
                ::kernel::macros::paste! {
                    #[cfg(CONFIG_TRACEPOINTS)]
                    {
                        const RECORD: unsafe extern "C" fn(*const bindings::$event) =
                            bindings::[<rust_do_trace_ $name>];

                        // SAFETY: C defined the tracepoint, whose key is a static key.
                        let is_traced = unsafe {
                            ::kernel::jump_label::static_branch_unlikely!(
                                bindings::[<__tracepoint_ $name>],
                                ::kernel::bindings::tracepoint,
                                key
                            )
                        };
                        if is_traced {
                            // SAFETY: `RECORD` is what C made for Rust to trace the event. It
                            // may be called in any context, and uses the structure as the macro
                            // asks of C.
                            //
                            // What `event` has taken moves to a closure of its own, so that it is
                            // put in memory here only.
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

/// Makes an event and gives it to who traces it.
///
/// # Safety
///
/// `record` must use no more than what it is pointed to, and that during the call only.
#[doc(hidden)]
#[cold]
#[inline(never)]
pub unsafe fn record<E>(event: impl FnOnce() -> E, record: unsafe extern "C" fn(*const E)) {
    let event = event();
    // SAFETY: The event lives until the call is over, and by the contract nothing else is used.
    unsafe { record(&event) };
}
