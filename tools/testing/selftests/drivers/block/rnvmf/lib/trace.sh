# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Commands and I/O of the kernel's target, recorded by trace events.

TRACE=/sys/kernel/tracing/instances/rnvmf

# Trace event of commands that the target received.
# shellcheck disable=SC2034 # read by the tests
COMMANDS=nvmet/nvmet_req_init

# Trace event of I/O that the target sent to its backends.
# shellcheck disable=SC2034 # read by the tests
BACKEND_IO=block/block_bio_queue

# trace_start EVENT...: start recording these events. The trace instance is removed when the test
# ends.
trace_start() {
	local event
	[ -d "$TRACE" ] || { mkdir "$TRACE" && defer trace_end; }
	echo 0 >"$TRACE/tracing_on"
	echo 4096 >"$TRACE/buffer_size_kb"
	for event; do
		echo 1 >"$TRACE/events/$event/enable"
	done
	: >"$TRACE/trace"
	echo 1 >"$TRACE/tracing_on"
}

# Discard the recorded events.
trace_clear() {
	: >"$TRACE/trace"
}

trace_end() {
	rmdir "$TRACE"
}

# traced PATTERN: print how many recorded events match.
traced() {
	grep -cE "$1" "$TRACE/trace" || true
}

# trace_has PATTERN: fail unless a recorded event matches.
trace_has() {
	[ "$(traced "$1")" -gt 0 ] ||
		fail "no trace event matches '$1': $(grep -v '^#' "$TRACE/trace" | tail -20)"
}

# trace_lacks PATTERN: fail if a recorded event matches.
trace_lacks() {
	[ "$(traced "$1")" = 0 ] || fail "unexpected trace events: $(grep -E "$1" "$TRACE/trace" | head -5)"
}
