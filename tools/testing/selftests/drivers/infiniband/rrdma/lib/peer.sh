# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Programs at the other end of the cable.

# A program that runs longer is ended, in seconds.
PEER_SECONDS=$((60 * SLOWDOWN))

# peer_start NAME PROGRAM ARGUMENT...: start a program; the test ends it at its end.
peer_start() {
	local name=$1
	shift
	# Of one of this name that has ended.
	rm -f "$SCRATCH/peer-$name" "$SCRATCH/strace-$name"
	# Its lines come when they are said, not when it ends.
	ip netns exec "$PEER_NETNS" stdbuf -oL -eL timeout -k 5 "$PEER_SECONDS" "$@" \
		>"$SCRATCH/peer-$name" 2>&1 &
	declare -g "PEER_$name=$!"
	defer end_process $!
}

# peer_start_until NAME LINE PROGRAM ARGUMENT...: the same, but when it has said so many lines it is
# stopped, and does nothing more until `peer_continue`.
peer_start_until() {
	local name=$1 line=$2
	shift 2
	peer_start "$name" strace -o "$SCRATCH/strace-$name" -P "$SCRATCH/peer-$name" \
		-e "inject=write:signal=STOP:when=$line" "$@"
}

# peer_stops NAME PATTERN: it must be stopped soon, and its last line be this.
peer_stops() {
	wait_until 15 peer_is_stopped "$1" || fail "the peer does not stop: $(<"$SCRATCH/peer-$1")"
	has "$(tail -n 1 "$SCRATCH/peer-$1")" "$2"
}

peer_is_stopped() {
	grep -qs 'stopped by SIGSTOP' "$SCRATCH/strace-$1"
}

# peer_continue NAME
peer_continue() {
	local pid=PEER_$1
	# It is one of a group, with `timeout` and the tracer.
	kill -CONT -- "-${!pid}"
}

# peer_says NAME PATTERN: whether it said this.
peer_says() {
	grep -qsE "$2" "$SCRATCH/peer-$1"
}

# peer_waits NAME PATTERN: it must say this soon.
peer_waits() {
	wait_until 15 peer_says "$@" || fail "the peer does not say '$2' but: $(<"$SCRATCH/peer-$1")"
}

# peer_listens PORT: a program at the other end must listen at this TCP port soon.
peer_listens() {
	wait_until 15 peer_has_listener "$1" || fail "nobody listens at the peer's port $1"
}

peer_has_listener() {
	[ -n "$(ip netns exec "$PEER_NETNS" ss -Htln "sport = :$1")" ]
}

# peer_end NAME: wait for its end, like `run`.
peer_end() {
	peer_result "$1"
	[ "$STATUS" = 0 ] || fail "status $STATUS from the peer: $OUTPUT"
}

# peer_result NAME: wait for its end; its status is in STATUS, what it said in OUTPUT.
peer_result() {
	local pid=PEER_$1
	STATUS=0
	wait "${!pid}" 2>/dev/null || STATUS=$?
	OUTPUT=$(<"$SCRATCH/peer-$1")
	[ "$STATUS" != 124 ] || fail "the peer took longer than $PEER_SECONDS s: $OUTPUT"
}

# peer_stop NAME: end it.
peer_stop() {
	local pid=PEER_$1
	end_process "${!pid}"
}

# peer_run PROGRAM ARGUMENT...: like `run`, at the other end.
peer_run() {
	run ip netns exec "$PEER_NETNS" "$@"
}
