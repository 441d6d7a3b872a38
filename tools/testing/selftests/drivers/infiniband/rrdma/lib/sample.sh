# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Samples and test modules, and what they say in the log.

# sample_load NAME [PARAMETER=VALUE...]: load rrdma_NAME, which is a test module if NAME begins with
# "test_"; the test unloads it at its end. The functions below are about this one.
sample_load() {
	sample_load_in "" "$@"
}

# sample_load_in NETNS NAME [PARAMETER=VALUE...]: the same, by who is in that network namespace.
sample_load_in() {
	local where=(${1:+ip netns exec "$1"}) limits
	sample_mark "$2"
	mapfile -t limits < <(sample_limits)
	run "${where[@]}" modprobe "$SAMPLE" "${limits[@]}" "${@:3}"
	defer sample_unload_if_loaded "$SAMPLE"
}

# The sample's own limits of time, if it has them: they are meant for a stock kernel.
sample_limits() {
	local limit
	[ "$SLOWDOWN" -gt 1 ] || return 0
	for limit in timeout patience; do
		! grep -q "^$limit:" < <(modinfo -F parm "$SAMPLE") || echo "$limit=$((10000 * SLOWDOWN))"
	done
}

# sample_refused NAME PARAMETER=VALUE...: loading it must fail for a value that is not allowed.
sample_refused() {
	sample_mark "$1"
	shift
	expect 1 modprobe "$SAMPLE" "$@"
	has "$ERRORS" 'Invalid argument'
	[ ! -d "/sys/module/$SAMPLE" ] || fail "$SAMPLE is loaded with $*"
	explain "$SAMPLE: .* (invalid for parameter|is refused: .* allowed)"
}

# What the sample says from here on is its own, and not of a load before.
sample_mark() {
	SAMPLE=rrdma_$1
	SAMPLE_MARK="selftest loads $SAMPLE $EPOCHREALTIME"
	echo "$SAMPLE_MARK" >/dev/kmsg
}

sample_unload() {
	run modprobe -r "$SAMPLE"
	[ ! -d "/sys/module/$SAMPLE" ] || fail "$SAMPLE is still there"
}

sample_unload_if_loaded() {
	[ ! -d "/sys/module/$1" ] || timeout "$COMMAND_SECONDS" modprobe -r "$1"
}

# sample_log: what it said since it was loaded, without times.
sample_log() {
	dmesg | sed -n "1,/$SAMPLE_MARK/d; s/^\[[^]]*\] $SAMPLE: //p"
}

# sample_says PATTERN: whether it said this.
sample_says() {
	grep -qE "$1" < <(sample_log)
}

# sample_waits PATTERN: it must say this soon.
sample_waits() {
	wait_until 15 sample_says "$1" || fail "$SAMPLE does not say '$1' but: $(sample_log | tail -5)"
}

# sample_result [SECONDS]: wait for the end of its task; the line of it is in RESULT, beginning with
# "done: ", "failed: " or "stopped at ".
sample_result() {
	wait_until "${1:-30}" sample_says '^(done|failed|stopped)' ||
		fail "$SAMPLE does not end but says: $(sample_log | tail -5)"
	RESULT=$(sample_log | grep -E '^(done|failed|stopped)')
}

# sample_done [SECONDS]: its task must end well; what it has to say is in RESULT.
sample_done() {
	sample_result "$@"
	[[ $RESULT == "done: "* ]] || fail "$SAMPLE says: $RESULT"
	RESULT=${RESULT#done: }
}

# sample_fails PATTERN [SECONDS]: its task must fail, with "STEP: CAUSE" like this.
sample_fails() {
	sample_result "${@:2}"
	[[ $RESULT == "failed: "* ]] || fail "$SAMPLE says: $RESULT"
	has "${RESULT#failed: }" "$1"
}

# sample_loses_device STEP [DEVICE]: when its device is removed, its task must end at this step.
# DEVICE, unless it is another one, comes back when the test ends.
sample_loses_device() {
	local device=${2:-$DEVICE}
	[ "$device" != "$DEVICE" ] || defer device_again
	rdma_delete "$device"
	sample_result
	has "$RESULT" "^stopped at $1: the device is removed$"
	sample_unload
}
