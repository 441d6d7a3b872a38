# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests by samples and test modules share. A test sources this, defines functions, and calls
# `main`:
#
#	. "$(dirname "$0")/lib.sh"
#
#	setup() {
#		network 4200
#	}
#
#	answers_the_program() {
#		peer_start ping ibv_rc_pingpong -d "$PEER_DEVICE" -g "$(gid_index "$PEER_DEVICE" "$PEER4")"
#		sample_load rc_pingpong "server=$PEER4" "gid_index=$(gid_index "$DEVICE" "$OWN4")"
#		sample_done 30
#		has "$RESULT" '^1000 iterations'
#		peer_end ping
#		has "$OUTPUT" '8192000 bytes in'
#	}
#
#	main setup answers_the_program
#
# ../lib/harness.sh tells how tests are written and has `run`, `expect`, `same`, `has`, `wait_until`;
# lib/network.sh has the network, lib/sample.sh the modules and what they log, lib/peer.sh the programs
# that they talk to, lib/removal.sh lets devices go. After each test none of the modules may be
# loaded, no RDMA object be left, and the kernel have said nothing that is not explained.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The files below read these.
# shellcheck disable=SC2034
SELFTESTS=$(cd "$HERE/../../.." && pwd)
RDMA_LIB=$SELFTESTS/drivers/infiniband/lib
# shellcheck disable=SC2034
TEST_FILE=${0##*/}
# shellcheck disable=SC2034
ARGUMENTS=("$@")

. "$RDMA_LIB/harness.sh"
. "$RDMA_LIB/processes.sh"
. "$RDMA_LIB/interfaces.sh"
. "$RDMA_LIB/resources.sh"
. "$HERE/lib/network.sh"
. "$HERE/lib/sample.sh"
. "$HERE/lib/peer.sh"
. "$HERE/lib/removal.sh"
. "$HERE/lib/after.sh"

requirements() {
	need_sample handshake ibv_devinfo
}

# need_sample NAME [PROGRAM...]: what a test of the sample needs, with these programs.
need_sample() {
	need_root && need_modules "rrdma_$1" rdma_rxe veth &&
		need_programs rdma ip tc ping "${@:2}"
}
