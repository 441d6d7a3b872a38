# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Entry point of the tests of rnvmf. A test file sources this file, defines functions and calls
# `main` of ../../infiniband/lib/harness.sh.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The files below read these.
# shellcheck disable=SC2034
SELFTESTS=$(cd "$HERE/../../.." && pwd)
# shellcheck disable=SC2034
TEST_FILE=${0##*/}
# shellcheck disable=SC2034
ARGUMENTS=("$@")

RDMA_LIB=$SELFTESTS/drivers/infiniband/lib

. "$RDMA_LIB/harness.sh"
. "$RDMA_LIB/processes.sh"
. "$RDMA_LIB/interfaces.sh"
. "$RDMA_LIB/resources.sh"
. "$RDMA_LIB/callers.sh"
. "$HERE/lib/network.sh"
. "$HERE/lib/target.sh"
. "$HERE/lib/backend.sh"
. "$HERE/lib/host.sh"
. "$HERE/lib/trace.sh"
. "$HERE/lib/load.sh"

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma dummy veth null_blk loop &&
		need_programs rnvmf rdma ip fio nvme nft
}
