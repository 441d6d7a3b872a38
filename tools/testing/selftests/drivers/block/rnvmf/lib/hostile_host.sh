# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs the host at the target of lib/hostile.sh: connects, I/O and losses, and their expected results.
#
# The target is hostile_target.c. Arguments of the functions end with those of the target: the step at
# which it violates the protocol, the twist, and the value.

. "$HERE/lib/hostile.sh"

# hostile_setup: set-up of a file whose tests start the target themselves.
hostile_setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

# No reconnect: a lost connection makes the controller dead.
# shellcheck disable=SC2034 # read by `connect` of lib/host.sh
CONNECT_OPTIONS=(--ctrl-loss-tmo 0)

# Time limit of a disconnect, in milliseconds.
AT_ONCE=1000

# XOR mask that makes an rkey invalid. The upper 24 bits of an rkey are the index of the region,
# which soft-RoCE keeps below 2^20. A lower bit could give the key of another region, if their lower
# bytes, which start at random, are equal.
# shellcheck disable=SC2034 # read by the tests
NO_KEY=0x80000000

# Number of attempts of a command: the first and 5 retries.
# shellcheck disable=SC2034 # read by the tests
ATTEMPTS=6

# refused STATUS STAGE PATTERN ARGUMENT...: the connect must fail with this status, stage and
# message.
refused() {
	local status=$1 stage=$2 pattern=$3
	shift 3
	hostile "$@"
	expect "$status" rnvmf connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" \
		--timeout $((5 * SLOWDOWN)) -o json
	has "$ERRORS" "\"message\":\"[^\"]*($pattern)"
	has "$ERRORS" "\"stage\":\"$stage\""
	gone
}

connect_hostile() {
	connect "$TARGET4" --timeout $((5 * SLOWDOWN))
}

disconnects_at_once() {
	local began took
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	note "disconnect took $took ms, last commands: $(tail -n 3 "$SCRATCH/seen" | paste -sd ,)"
	at_most "the disconnect took" $took "$AT_ONCE"
}

leave() {
	disconnects_at_once
	gone
}

# compare DISK SIZE: write SIZE bytes in one request, read them back and compare.
compare() {
	local path=$1
	head -c "$2" /dev/urandom >"$SCRATCH/wrote"
	run dd if="$SCRATCH/wrote" of="$path" bs="$2" oflag=direct
	run dd if="$path" of="$SCRATCH/read" bs="$2" count=1 iflag=direct
	cmp "$SCRATCH/wrote" "$SCRATCH/read" || fail "read data differs from written data"
}

# works ARGUMENT...: connecting and I/O must succeed, because the reply is unusual but valid.
works() {
	hostile "$@"
	connect_hostile
	compare "$(disk "$CTRL" 1)" "${BYTES:-65536}"
	run "${RNVMF[@]}" stats "$CTRL" -o json
	# shellcheck disable=SC2034 # read by the tests
	STATS=$OUTPUT
	leave
}

# trap_io read|write: access the block that is the target's step trap-read or trap-write.
trap_io() {
	case $1 in
	read) try dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct ;;
	write) try dd if=/dev/zero of="/dev/${CTRL}n1" bs=64k seek=64 count=1 oflag=direct ;;
	esac
}

# comes_back_after PATTERN AFTER ARGUMENT...: restart the target with a twist, with which the
# reconnect must fail with PATTERN after the target has logged the line SEES. Then restart it
# without a twist; the reconnect must succeed.
comes_back_after() {
	local pattern=$1 after=$2
	shift 2
	end_process "$TARGET"
	loses
	AFTER=$after hostile "$@"
	wait_until "$SOON" says "$pattern" || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	is_not_live || fail "$CTRL is live"
	seen "${SEES:-0 controller}" || fail "the last command was: $(tail -1 "$SCRATCH/seen")"
	end_process "$TARGET"
	hostile
	comes_back
}

# goes_and_is_back [ARGUMENT...]: restart the target and wait for the reconnect.
goes_and_is_back() {
	end_process "$TARGET"
	loses
	hostile "$@"
	comes_back
}

# limit_is NAME VALUE: whether a queue limit of the first disk has this value.
limit_is() {
	[ "$(queue_limit "$(disk "$CTRL" 1)" "$1")" = "$2" ]
}
