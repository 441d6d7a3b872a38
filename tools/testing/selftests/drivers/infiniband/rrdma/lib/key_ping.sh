# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The sample key_ping, and its peers: rping, and key_peer, which does it wrongly.

PEER=$HERE/key_peer
PORT=7174

# Milliseconds that the sample waits for a step. The connection manager sends again what was lost
# after more than 4 s: with loss the sample has to wait longer than that.
STEP_MS=$((3000 * SLOWDOWN))

# serves ADDRESS [PARAMETER=VALUE...]: the sample is the server.
serves() {
	serves_in "" "$@"
}

# serves_in NETNS ADDRESS [PARAMETER=VALUE...]: likewise, in a network namespace.
serves_in() {
	sample_load_in "$1" key_ping "listen=$2" "timeout=$STEP_MS" "${@:3}"
	sample_waits '^listens'
}

# peer_serves NAME PROGRAM ARGUMENT...: a program is the server. It may not say that it is.
peer_serves() {
	peer_start "$@"
	wait_until 15 somebody_listens ip netns exec "$PEER_NETNS" || fail "the peer does not listen"
}

somebody_listens() {
	grep -q 'state LISTEN' < <("$@" rdma resource show cm_id)
}

# to_rping ADDRESS SIZE...: the sample is the client.
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

# from_rping ADDRESS SIZE...: the sample is the server; rping validates what comes back.
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

# wrong_client TWIST PATTERN: the server fails like this.
wrong_client() {
	serves "$OWN4" size=4096
	peer_start peer "$PEER" client "$OWN4" $PORT 4096 "$1"
	sample_fails "$2"
	sample_unload
	peer_stop peer
}
