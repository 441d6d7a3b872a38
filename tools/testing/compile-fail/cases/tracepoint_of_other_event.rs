// SPDX-License-Identifier: GPL-2.0

//! A tracepoint takes only the structure of its C prototype.
//!
//! refused: E0308: mismatched types

rrdma::tracepoints! { //~
    // SAFETY: As in rust/rnvmf/tracepoints.rs.
    unsafe bindings: concat!(env!("RNVMF_GENERATED"), "/trace_generated.rs");

    #[cfg(not(misuse))]
    fn rnvmf_cm_event(rnvmf_trace_cm_event);
    #[cfg(misuse)]
    fn rnvmf_cm_event(rnvmf_trace_state);
}

pub(crate) fn trace() {
    // Of any type.
    rnvmf_cm_event(|| loop {});
}
