#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample rc_pingpong (reliable connection) against ibv_rc_pingpong.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pingpong.sh"

requirements() {
	need_sample rc_pingpong ibv_rc_pingpong nft
}

setup() {
	network 4200
}

plays_with_the_program() {
	pingpong rc server 4 100 4096 1024 "" ""
	pingpong rc client 4 100 4096 1024 "" ""
	pingpong rc server 6 50 4096 4096 events=1 -e
	pingpong rc client 6 50 4096 4096 "events=1 sl=3" "-e -l 3"
}

# All packets of the sample have the traffic class and the hop limit of its parameters.
packets_travel_as_told() {
	local all
	defer nft destroy table inet rrdma_told
	run nft "table inet rrdma_told {
		counter every { }
		counter told { }
		chain sent {
			type filter hook output priority 0;
			udp dport 4791 counter name every
			udp dport 4791 ip dscp 10 ip ttl 7 counter name told
			udp dport 4791 ip6 dscp 10 ip6 hoplimit 7 counter name told
		}
	}"
	pingpong rc client 4 20 4096 1024 "tclass=40 hops=7" ""
	pingpong rc server 6 20 4096 1024 "tclass=40 hops=7" ""
	all=$(packets every)
	[ "$all" -ge 40 ] || fail "$all packets were sent"
	same "packets as told" "$all" "$(packets told)"
}

# packets NAME: print the number of packets of a counter.
packets() {
	nft list counter inet rrdma_told "$1" | awk '$1 == "packets" { print $2 }'
}

# ibv_rc_pingpong checks the data only as server, the sample in both roles.
every_byte_is_right() {
	pingpong rc server 4 20 1 1024 "check=1" -c
	pingpong rc client 6 20 1 4096 "check=1" -c
	# An end that polls takes the CPU from the other one while it copies.
	pingpong rc server 6 20 65537 1024 "check=1 events=1" "-c -e"
	pingpong rc client 4 20 65537 4096 "check=1 events=1" "-c -e"
	pingpong rc server 4 8 1048576 4096 "check=1 events=1" "-c -e"
	pingpong rc client 6 8 1048576 1024 "check=1 events=1" "-c -e"
	[[ $OUTPUT != *invalid* ]] || fail "$OUTPUT"
}

wrong_bytes_are_seen() {
	pingpong_start rc server 4 5 4096 1024 "check=1" ""
	sample_fails '^message: got 0x7b, expected 0x00 at byte 0$'
	peer_stop ping
}

wrong_lengths_are_seen() {
	explain 'rrdma_rxe[01]: qp#[0-9]+ [a-z_]+: non-flush error status'
	pingpong_start rc server 4 5 4096 1024 "size=4000" ""
	# soft-RoCE may report a message that is too long as a QP operation error.
	sample_fails '^receive: local (length|QP operation) error$'
	sample_unload
	peer_stop ping
	pingpong_start rc server 4 5 4096 1024 "size=5000" ""
	sample_fails '^message: got 4096 bytes, expected 5000$'
	peer_stop ping
}

loss_is_repaired() {
	network_loss 1
	pingpong rc server 4 50 16384 1024 "check=1" -c
	pingpong rc client 6 50 16384 4096 "check=1" -c
	network_has_lost
}

# The program resends its last message until it gets an acknowledgement.
last_acknowledgement_is_repeated() {
	pingpong_drops_acks output
	pingpong_start rc server 4 1 4096 1024 "" ""
	sample_done
	pingpong_passes_acks
	peer_end ping
	has "$OUTPUT" "1 iters in "
	sample_unload
}

peer_that_disappears_is_left_in_time() {
	pingpong_peer_disappears rc 4096 1024 patience=3000
	sample_fails '^(send: transport retry counter exceeded|peer: timed out after [0-9]+ of 1000000 messages)'
	explain 'rrdma_rxe[01]: qp#[0-9]+ [a-z_]+: non-flush error status'
}

can_be_unloaded_at_any_moment() {
	pingpong_unloads rc 4096 1024
}

survives_its_device() {
	pingpong_survives_its_device rc 4096 1024 events=1
	pingpong_sample rc 4
	wait_until 15 pingpong_listens || fail "the sample does not listen"
	sample_loses_device accept
}

parameters_are_checked() {
	sample_refused rc_pingpong size=0
	sample_refused rc_pingpong size=1048577
	sample_refused rc_pingpong sl=16
	sample_refused rc_pingpong iters=0
	sample_load rc_pingpong mtu=1000
	sample_fails '^parameters: mtu=1000 is not an RDMA MTU$'
	sample_unload
	sample_load rc_pingpong size=1048576
	sample_fails '^parameters: rx_depth=500 receives of size=1048576 exceed 67108864 bytes$'
	sample_unload
	sample_load rc_pingpong device=nowhere
	sample_fails '^device: nowhere not found$'
	sample_unload
	sample_load rc_pingpong ib_port=2
	sample_fails '^port: ENODEV$'
	sample_unload
	sample_load rc_pingpong gid_index=200
	sample_fails '^GID: E'
}

mtu_above_the_port_is_refused() {
	network_mtu 1500
	pingpong_start rc client 4 5 4096 4096 "" ""
	sample_fails "^connection: INIT to RTR: path MTU 4096 exceeds the port's active MTU 1024$"
	peer_stop ping
}

main setup \
	plays_with_the_program \
	packets_travel_as_told \
	every_byte_is_right \
	wrong_bytes_are_seen \
	wrong_lengths_are_seen \
	loss_is_repaired \
	last_acknowledgement_is_repeated \
	peer_that_disappears_is_left_in_time \
	can_be_unloaded_at_any_moment \
	survives_its_device \
	parameters_are_checked \
	mtu_above_the_port_is_refused
