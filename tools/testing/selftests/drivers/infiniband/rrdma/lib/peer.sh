# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# User-space programs in PEER_NETNS, at the other end of the link.

# Time limit of a program, in seconds.
PEER_SECONDS=$((60 * SLOWDOWN))

# peer_start NAME PROGRAM ARGUMENT...: start a program in the background; it is killed when the test
# ends. NAME names it for the functions below.
peer_start() {
	local name=$1
	shift
	# Files of an earlier program with this name.
	rm -f "$SCRATCH/peer-$name" "$SCRATCH/strace-$name"
	# Line buffering: the output must be readable while the program runs.
	ip netns exec "$PEER_NETNS" stdbuf -oL -eL timeout -k 5 "$PEER_SECONDS" "$@" \
		>"$SCRATCH/peer-$name" 2>&1 &
	declare -g "PEER_$name=$!"
	defer end_process $!
}

# peer_start_until NAME LINE PROGRAM ARGUMENT...: like `peer_start`, but stop the program with SIGSTOP
# at its LINEth line of output. `peer_continue` resumes it.
peer_start_until() {
	local name=$1 line=$2
	shift 2
	peer_start "$name" strace -o "$SCRATCH/strace-$name" -P "$SCRATCH/peer-$name" \
		-e "inject=write:signal=STOP:when=$line" "$@"
}

# peer_stops NAME PATTERN: wait until the program is stopped; its last line must match.
peer_stops() {
	wait_until 15 peer_is_stopped "$1" || fail "the peer is not stopped: $(<"$SCRATCH/peer-$1")"
	has "$(tail -n 1 "$SCRATCH/peer-$1")" "$2"
}

peer_is_stopped() {
	grep -qs 'stopped by SIGSTOP' "$SCRATCH/strace-$1"
}

# peer_continue NAME
peer_continue() {
	local pid=PEER_$1
	# `timeout` and strace are in the same process group.
	kill -CONT -- "-${!pid}"
}

# peer_says NAME PATTERN: whether a line of the program's output matches.
peer_says() {
	grep -qsE "$2" "$SCRATCH/peer-$1"
}

# peer_waits NAME PATTERN: wait until a line of the program's output matches; fail after 15 s.
peer_waits() {
	wait_until 15 peer_says "$@" || fail "the peer did not print '$2': $(<"$SCRATCH/peer-$1")"
}

# peer_listens PORT: wait until a program at the other end listens on this TCP port.
peer_listens() {
	wait_until 15 peer_has_listener "$1" || fail "no listener on TCP port $1 of the peer"
}

peer_has_listener() {
	[ -n "$(ip netns exec "$PEER_NETNS" ss -Htln "sport = :$1")" ]
}

# peer_end NAME: wait until the program exits; fail unless it exits with 0.
peer_end() {
	peer_result "$1"
	[ "$STATUS" = 0 ] || fail "the peer exited with status $STATUS: $OUTPUT"
}

# peer_result NAME: wait until the program exits. Sets STATUS and OUTPUT.
peer_result() {
	local pid=PEER_$1
	STATUS=0
	wait "${!pid}" 2>/dev/null || STATUS=$?
	OUTPUT=$(<"$SCRATCH/peer-$1")
	[ "$STATUS" != 124 ] || fail "the peer timed out after $PEER_SECONDS s: $OUTPUT"
}

# peer_stop NAME: kill the program.
peer_stop() {
	local pid=PEER_$1
	end_process "${!pid}"
}

# peer_run PROGRAM ARGUMENT...: like `run`, in PEER_NETNS.
peer_run() {
	run ip netns exec "$PEER_NETNS" "$@"
}
