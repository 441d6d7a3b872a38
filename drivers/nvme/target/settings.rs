// SPDX-License-Identifier: GPL-2.0

//! Parameters of the module.

rrdma::parameters! {
    use_srq: Bool = false, "share the receives of the queues on a device";
    srq_size: Number<256, 32768> = 1024, "receives of a shared receive queue; default 1024";
    auth_any_peer: Bool = false, "I/O queues may come from another peer than the one that authenticated";
    passthru_unknown: Bool = false, "pass on commands of unknown length: hosts can access all memory";
    probe_time: Number<0, 3600> = 120, "seconds between probes of a queue without keep-alive; 0: none";
}
