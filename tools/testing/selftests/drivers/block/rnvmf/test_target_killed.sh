#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a crash of the target's machine under verified I/O: after its restart the host reconnects
# and the data is correct. The test runner starts and kills that machine; see `neighbour`.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/second_machine.sh"

# The host detects a loss and reconnects quickly.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

requirements() {
	need_root && need_modules rnvmf rdma_rxe && need_programs rnvmf rdma ip fio ping && need_wire
}

setup() {
	modprobe rnvmf && rdma_load && wire_up "$HOST4/24" && rdma_add "" rnvmf_rxe1 "$WIRE"
}

target_dies_under_io() {
	start_neighbour
	connect "$TARGET4"
	start_verify
	neighbour kill
	loses
	neighbour start
	comes_back
	is_verified
}

main setup target_dies_under_io
