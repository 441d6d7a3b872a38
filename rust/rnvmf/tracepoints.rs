// SPDX-License-Identifier: GPL-2.0

//! The tracepoints of `drivers/nvme/disk/trace.h`, for `drivers/nvme/disk/trace.rs`.

rrdma::tracepoints! {
    // SAFETY: The file is what bindgen made of trace.h, whose events copy what they record.
    unsafe bindings: concat!(env!("RNVMF_GENERATED"), "/trace_generated.rs");

    /// A command is about to be sent to the target.
    pub(super) fn rnvmf_queue_command(rnvmf_trace_command);
    /// A command has ended.
    pub(super) fn rnvmf_complete_command(rnvmf_trace_completion);
    /// A controller has changed its state.
    pub(super) fn rnvmf_controller_state(rnvmf_trace_state);
    /// The connection manager has reported an event.
    pub(super) fn rnvmf_cm_event(rnvmf_trace_cm_event);
}
