# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Loading samples and test modules, and reading their log lines.

# sample_load NAME [PARAMETER=VALUE...]: load rrdma_NAME, a test module if NAME begins with "test_".
# It is unloaded when the test ends. The functions below refer to the module loaded last.
sample_load() {
	sample_load_in "" "$@"
}

# sample_load_in NETNS NAME [PARAMETER=VALUE...]: like `sample_load`, from a network namespace.
sample_load_in() {
	local where=(${1:+ip netns exec "$1"}) limits
	sample_mark "$2"
	mapfile -t limits < <(sample_limits)
	run "${where[@]}" modprobe "$SAMPLE" "${limits[@]}" "${@:3}"
	defer sample_unload_if_loaded "$SAMPLE"
}

# Print longer time-outs for a slow kernel, or CPUs that run freely, for those of the sample's parameters that are
# time-outs.
sample_limits() {
	local limit
	[ "$SLOWDOWN" -gt 1 ] || return 0
	for limit in timeout patience; do
		! grep -q "^$limit:" < <(modinfo -F parm "$SAMPLE") || echo "$limit=$((10000 * SLOWDOWN))"
	done
}

# sample_refused NAME PARAMETER=VALUE...: loading must fail because of an invalid value.
sample_refused() {
	sample_mark "$1"
	shift
	expect 1 modprobe "$SAMPLE" "$@"
	has "$ERRORS" 'Invalid argument'
	[ ! -d "/sys/module/$SAMPLE" ] || fail "$SAMPLE is loaded with $*"
	explain "$SAMPLE: .* (invalid for parameter|invalid value: must be )"
}

# sample_mark NAME: mark the kernel log, so that lines of an earlier load are ignored.
sample_mark() {
	SAMPLE=rrdma_$1
	SAMPLE_MARK="selftest loads $SAMPLE $EPOCHREALTIME"
	echo "$SAMPLE_MARK" >/dev/kmsg
}

sample_unload() {
	run modprobe -r "$SAMPLE"
	[ ! -d "/sys/module/$SAMPLE" ] || fail "$SAMPLE is still loaded"
}

sample_unload_if_loaded() {
	[ ! -d "/sys/module/$1" ] || timeout "$COMMAND_SECONDS" modprobe -r "$1"
}

# sample_lines: set LOG to the log lines of the module since it was loaded, without prefix.
sample_lines() {
	local line lines=()
	log_after "$SAMPLE_MARK" || return 1
	for line in "${LOG[@]}"; do
		[[ $line != *"] $SAMPLE: "* ]] || lines+=("${line#*"] $SAMPLE: "}")
	done
	LOG=("${lines[@]}")
}

# sample_log: print the log lines of the module since it was loaded, without prefix.
sample_log() {
	local LOG
	sample_lines || return 1
	[ ${#LOG[@]} = 0 ] || printf '%s\n' "${LOG[@]}"
}

# sample_says PATTERN: whether log lines of the module match. SAID is set to these lines.
sample_says() {
	local LOG line
	SAID=
	sample_lines || return 1
	for line in "${LOG[@]}"; do
		[[ ! $line =~ $1 ]] || SAID+=${SAID:+$'\n'}$line
	done
	[ -n "$SAID" ]
}

# sample_will_say SECONDS PATTERN: wait until a log line of the module matches; fail after SECONDS * SLOWDOWN. SAID is set
# to the lines that match then.
sample_will_say() {
	local pattern=$2
	[[ $pattern = ^* ]] || pattern="^.*$pattern"
	wait_for_log_after "$SAMPLE_MARK" "$1" "\\] $SAMPLE: (${pattern#^})" && sample_says "$2"
}

# sample_waits PATTERN: wait until a log line of the module matches; fail after 15 s.
sample_waits() {
	sample_will_say 15 "$1" || fail "$SAMPLE did not log '$1': $(sample_log | tail -5)"
}

# sample_result [SECONDS]: wait until the module has ended its task. RESULT is its last line, which
# begins with "done: ", "failed: " or "stopped at ".
sample_result() {
	sample_will_say "${1:-30}" '^(done|failed|stopped)' ||
		fail "$SAMPLE did not end its task: $(sample_log | tail -5)"
	RESULT=$SAID
}

# sample_done [SECONDS]: wait until the task has succeeded. RESULT is the text after "done: ".
sample_done() {
	sample_result "$@"
	[[ $RESULT == "done: "* ]] || fail "$SAMPLE did not succeed: $RESULT"
	RESULT=${RESULT#done: }
}

# sample_fails PATTERN [SECONDS]: wait until the task has failed; "STEP: CAUSE" must match.
sample_fails() {
	sample_result "${@:2}"
	[[ $RESULT == "failed: "* ]] || fail "$SAMPLE did not fail: $RESULT"
	has "${RESULT#failed: }" "$1"
}

# sample_loses_device STEP [DEVICE]: remove the device; the task must stop at STEP. The default device
# is added again when the test ends, another one is not.
sample_loses_device() {
	local device=${2:-$DEVICE}
	[ "$device" != "$DEVICE" ] || defer device_again
	rdma_delete "$device"
	sample_result
	has "$RESULT" "^stopped at $1: the device is removed$"
	sample_unload
}
