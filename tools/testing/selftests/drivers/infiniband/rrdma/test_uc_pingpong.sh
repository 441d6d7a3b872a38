#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample uc_pingpong (unreliable connection) against ibv_uc_pingpong.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pingpong.sh"

requirements() {
	need_sample uc_pingpong ibv_uc_pingpong
}

setup() {
	network 4200
}

plays_with_the_program() {
	pingpong uc server 4 100 4096 1024 "" ""
	pingpong uc client 6 100 4096 4096 "events=1" -e
	pingpong uc server 6 20 1 4096 "" ""
	pingpong uc client 4 20 1 1024 "" ""
	pingpong uc server 6 8 1048576 1024 "events=1" ""
	pingpong uc client 4 8 1048576 4096 "" ""
}

loss_is_told() {
	pingpong_tells_loss uc 40 8192 1024
}

peer_that_disappears_is_left_in_time() {
	pingpong_peer_is_missed uc 4096 1024
}

can_be_unloaded_at_any_moment() {
	pingpong_unloads uc 4096 1024
}

survives_its_device() {
	pingpong_survives_its_device uc 4096 1024
}

main setup \
	plays_with_the_program \
	loss_is_told \
	peer_that_disappears_is_left_in_time \
	can_be_unloaded_at_any_moment \
	survives_its_device
