# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Entry point of the tests of rrdma, which load samples and test modules. A test file sources this
# file, defines functions and calls `main`:
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
#	../lib/harness.sh	how tests are written; `run`, `expect`, `same`, `has`, `wait_until`
#	lib/network.sh		two RDMA devices and the link between them
#	lib/sample.sh		loading modules, and their log lines
#	lib/peer.sh		programs at the other end of the link
#	lib/removal.sh		removal of devices in use
#	lib/after.sh		checks after each test: no module loaded, no RDMA object left, and no
#				unexpected line in the kernel log

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

# need_sample NAME [PROGRAM...]: skip the file unless the module rrdma_NAME and the programs exist.
need_sample() {
	need_root && need_modules "rrdma_$1" rdma_rxe veth &&
		need_programs rdma ip tc ping "${@:2}"
}
