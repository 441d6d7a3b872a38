#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample key_ping, which transfers data by RDMA read and write, against rping in both
# roles. key_peer violates the protocol in many ways; the sample must report each one distinctly.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/key_ping.sh"

requirements() {
	need_sample key_ping rping "$PEER" && need_modules rdma_ucm
}

setup() {
	network 4200 && modprobe rdma_ucm
}

to_rping_over_ipv4() { to_rping "$PEER4" 26 4096 65535; }
to_rping_over_ipv6() { to_rping "$PEER6" 64; }
from_rping_over_ipv4() { from_rping "$OWN4" 26 4097 65535; }
from_rping_over_ipv6() { from_rping "$OWN6" 64; }

with_packets_of_1024() {
	network_mtu 1500
	to_rping "$PEER6" 65535
	from_rping "$OWN4" 65535
}

under_loss() {
	local STEP_MS=$((20000 * SLOWDOWN))
	network_loss 1
	to_rping "$PEER4" 20000
	from_rping "$OWN6" 20000
	network_has_lost
}

# rping limits the size; key_peer does not.
of_any_size() {
	local size
	for size in 1 1048576; do
		serves "$OWN4" size=1048576
		peer_run "$PEER" client "$OWN4" $PORT "$size" none
		same "result of the comparison" same "$OUTPUT"
		sample_done
		sample_unload
		peer_serves peer "$PEER" server "$PEER4" $PORT "$size" none
		sample_load key_ping "server=$PEER4" "size=$size" count=1
		sample_done
		sample_unload
		peer_stop peer
	done
}

# Without memory regions a work request has at most 32 SGEs, so 64 pages need two requests.
pieces_are_gathered() {
	serves "$OWN4" size=262144
	peer_run "$PEER" client "$OWN4" $PORT 262144 none
	sample_done
	has "$RESULT" 'in 2 requests$'
}

wrong_clients_are_told_apart() {
	explain 'rxe[0-9]*: qp#|rrdma_rxe[0-9]: qp#'
	wrong_client empty '^source: got 0 bytes, expected 16$'
	wrong_client short '^source: got 15 bytes, expected 16$'
	wrong_client long '^source: got 17 bytes, expected 16$'
	wrong_client longer '^source: receive: local '
	wrong_client nothing '^source: got 0 bytes, expected 1 to 4096$'
	wrong_client beyond '^source: got 4097 bytes, expected 1 to 4096$'
	wrong_client wrap '^read: EINVAL$'
	wrong_client key '^read: read or write: remote access error'
	wrong_client unreadable '^read: read or write: remote access error'
	wrong_client unwritable '^write: read or write: remote access error'
	wrong_client small-sink '^sink: got 4095 bytes, needs 4096$'
	wrong_client no-sink "^sink: timed out after $STEP_MS ms\$"
	wrong_client no-reads '^accept: the client allows no RDMA reads$'
	wrong_client vanish '^(read|sink): '
}

# wrong_server TWIST PATTERN: run key_peer as server with a protocol violation TWIST; the sample
# must fail with a message that matches.
wrong_server() {
	peer_serves peer "$PEER" server "$PEER4" $PORT 4096 "$1"
	sample_load key_ping "server=$PEER4" size=4096 "timeout=$STEP_MS"
	sample_fails "$2"
	sample_unload
	peer_stop peer
}

wrong_servers_are_told_apart() {
	explain 'rxe[0-9]*: qp#|rrdma_rxe[0-9]: qp#'
	wrong_server empty '^source: got 0 bytes, expected 16$'
	wrong_server short '^source: got 15 bytes, expected 16$'
	wrong_server long '^source: got 17 bytes, expected 16$'
	wrong_server corrupt '^compare: ping 0: got 0x.., expected 0x.. at byte 2048$'
	wrong_server silent '^source: '
	wrong_server vanish '^source: '
	wrong_server reject '^connect: connecting: rejected: '
}

# The device must refuse each access that the sample did not grant.
memory_is_reached_as_allowed_only() {
	local twist
	explain 'rxe[0-9]*: qp#|rrdma_rxe[0-9]: qp#'
	for twist in beyond write-source key late read-sink; do
		peer_serves peer "$PEER" server "$PEER4" $PORT 4096 "$twist"
		sample_load key_ping "server=$PEER4" size=4096 "timeout=$STEP_MS"
		sample_fails '^(source|sink): QP access error: the peer violated memory access rights$'
		peer_result peer
		# The sample disconnects at once, so the peer may see the flush first.
		has "$OUTPUT" '(read|write): (remote access error|Work Request Flushed Error)'
		sample_unload
	done
}

nobody_is_there() {
	sample_load key_ping "server=$PEER4" "timeout=$STEP_MS"
	sample_fails '^connect: connecting: rejected: '
	sample_unload
	sample_load key_ping "server=$NOBODY4" timeout=1000
	sample_fails '^resolve: '
	sample_unload
	sample_load key_ping server=192.0.2.x
	sample_fails '^address: 192.0.2.x is not an IP address$'
	sample_unload
}

parameters_are_checked() {
	sample_refused key_ping size=0
	sample_refused key_ping size=1048577
	sample_refused key_ping count=0
	sample_refused key_ping port=65536
	sample_refused key_ping timeout=0
}

unloads_at_any_moment() {
	local delay
	serves "$OWN4"
	sample_unload
	for delay in 0 0.1 0.3 0.6; do
		peer_serves rping rping -s -a "$PEER4" -S 65535
		sample_load key_ping "server=$PEER4" size=65535 count=100000
		sleep "$delay"
		sample_unload
		peer_stop rping
	done
	serves "$OWN4" size=65535
	peer_start rping rping -c -a "$OWN4" -S 65535 -C 100000
	sleep 0.5
	sample_unload
	peer_stop rping
}

ends_with_its_device() {
	network_spare
	timeout $((60 * SLOWDOWN)) rping -s -a "$SPARE4" -S 65535 >"$SCRATCH/rping" 2>&1 &
	defer end_process $!
	wait_until 15 somebody_listens || fail "rping does not listen"
	sample_load key_ping "server=$SPARE4" size=65535 count=100000
	wait_until 15 sample_has_queue_pairs || fail "$SAMPLE has no queue pair: $(sample_log)"
	sample_loses_device '.*' "$SPARE_DEVICE"
}

main setup \
	to_rping_over_ipv4 \
	to_rping_over_ipv6 \
	from_rping_over_ipv4 \
	from_rping_over_ipv6 \
	with_packets_of_1024 \
	under_loss \
	of_any_size \
	pieces_are_gathered \
	wrong_clients_are_told_apart \
	wrong_servers_are_told_apart \
	memory_is_reached_as_allowed_only \
	nobody_is_there \
	parameters_are_checked \
	unloads_at_any_moment \
	ends_with_its_device
