// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the tracepoints of trace.h, and what Rust calls to trace.
 */

#define CREATE_TRACE_POINTS
#define CREATE_RUST_TRACE_POINTS
#include "trace.h"
