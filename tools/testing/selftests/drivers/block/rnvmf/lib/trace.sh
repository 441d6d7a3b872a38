# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the target saw, from the kernel's trace events.

TRACE=/sys/kernel/tracing/instances/rnvmf

# The commands that the target got.
# shellcheck disable=SC2034 # read by the tests
COMMANDS=nvmet/nvmet_req_init

# What the target asked of the backends.
# shellcheck disable=SC2034 # read by the tests
BACKEND_IO=block/block_bio_queue

# trace_start EVENT...: record these events from now on; the test stops it at its end.
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

# Forget what was recorded.
trace_clear() {
	: >"$TRACE/trace"
}

trace_end() {
	rmdir "$TRACE"
}

# traced PATTERN: the number of events recorded that match.
traced() {
	grep -cE "$1" "$TRACE/trace" || true
}

# trace_has PATTERN: at least one event recorded must match.
trace_has() {
	[ "$(traced "$1")" -gt 0 ] ||
		fail "the target did not see '$1' but: $(grep -v '^#' "$TRACE/trace" | tail -20)"
}

# trace_lacks PATTERN
trace_lacks() {
	[ "$(traced "$1")" = 0 ] || fail "the target saw: $(grep -E "$1" "$TRACE/trace" | head -5)"
}
