#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample ud_pingpong (unreliable datagrams) against ibv_ud_pingpong.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pingpong.sh"

requirements() {
	need_sample ud_pingpong ibv_ud_pingpong
}

setup() {
	network 4200
}

plays_with_the_program() {
	pingpong ud server 4 100 2048 "" "check=1" ""
	pingpong ud client 4 100 2048 "" "check=1" ""
	pingpong ud server 6 50 4096 "" "check=1 events=1" -e
	pingpong ud client 6 50 4096 "" "check=1 events=1" -e
	pingpong ud server 6 20 1 "" "check=1" ""
	pingpong ud client 4 20 1 "" "check=1" ""
}

small_packets_hold_less() {
	network_mtu 1500
	pingpong ud server 6 20 1024 "" "check=1" ""
	pingpong ud client 4 20 1024 "" "check=1 events=1" ""
	sample_load ud_pingpong "device=$DEVICE" size=1025
	sample_fails "^parameters: size=1025 exceeds the port's active MTU 1024$"
}

loss_is_told() {
	pingpong_tells_loss ud 60 2048 "" check=1
}

peer_that_disappears_is_left_in_time() {
	pingpong_peer_is_missed ud 2048 ""
}

# Unload in each state of the queue pair. The drain waits for the posted sends without the marker
# work request of ib_drain_qp().
can_be_unloaded_at_any_moment() {
	pingpong_unloads ud 2048 ""
}

survives_its_device() {
	local events
	for events in 0 1; do
		pingpong_survives_its_device ud 2048 "" "events=$events"
	done
}

main setup \
	plays_with_the_program \
	small_packets_hold_less \
	loss_is_told \
	peer_that_disappears_is_left_in_time \
	can_be_unloaded_at_any_moment \
	survives_its_device
