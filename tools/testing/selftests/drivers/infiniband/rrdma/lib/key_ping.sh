# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs the sample key_ping against its peers: rping, and key_peer, which violates the protocol.

PEER=$HERE/key_peer
PORT=7174

# Time-out of one step of the sample, in ms. The connection manager resends a lost message after more
# than 4 s, so tests with packet loss need a longer time-out.
STEP_MS=$((3000 * SLOWDOWN))

# serves ADDRESS [PARAMETER=VALUE...]: load the sample as server and wait until it listens.
serves() {
	serves_in "" "$@"
}

# serves_in NETNS ADDRESS [PARAMETER=VALUE...]: like `serves`, in a network namespace.
serves_in() {
	sample_load_in "$1" key_ping "listen=$2" "timeout=$STEP_MS" "${@:3}"
	sample_waits '^listening$'
}

# peer_serves NAME PROGRAM ARGUMENT...: start a program as server and wait until it listens. The
# program may print nothing, so the kernel's list of CM IDs is read.
peer_serves() {
	peer_start "$@"
	wait_until 15 somebody_listens ip netns exec "$PEER_NETNS" || fail "the peer does not listen"
}

somebody_listens() {
	grep -q 'state LISTEN' < <("$@" rdma resource show cm_id)
}

# to_rping ADDRESS SIZE...: run the sample as client of rping, for each size.
to_rping() {
	local address=$1 size
	shift
	for size; do
		peer_serves rping rping -s -a "$address" -S "$size"
		sample_load key_ping "server=$address" "size=$size" count=3 "timeout=$STEP_MS"
		sample_done 60
		same result "3 pings of $size bytes" "$RESULT"
		sample_unload
		peer_stop rping
	done
}

# from_rping ADDRESS SIZE...: run the sample as server of rping, for each size. rping validates the
# data that it gets back.
from_rping() {
	local address=$1 size
	shift
	for size; do
		serves "$address" size=65536
		peer_run rping -c -a "$address" -S "$size" -C 3 -V
		sample_done 60
		has "$RESULT" "^3 pings, the last of $size bytes,"
		sample_unload
	done
}

# wrong_client TWIST PATTERN: run key_peer as client with a protocol violation TWIST; the sample must
# fail with a message that matches.
wrong_client() {
	serves "$OWN4" size=4096
	peer_start peer "$PEER" client "$OWN4" $PORT 4096 "$1"
	sample_fails "$2"
	sample_unload
	peer_stop peer
}
