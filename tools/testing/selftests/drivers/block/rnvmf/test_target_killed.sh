#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A target's machine that dies under I/O: when it is there again the I/O goes on by itself, and what
# was written is there. Who runs this starts and kills that machine, see `neighbour`.

. "$(dirname "$0")/lib.sh"

# A host that is quick to see a loss, and to try again.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

# A machine starts meanwhile.
SOON=90

requirements() {
	need_root && need_modules rnvmf rdma_rxe && need_programs rnvmf rdma ip fio ping && need_wire
}

need_wire() {
	if ! modprobe virtio_net || [ ! -e "/sys/class/net/$WIRE" ]; then
		ktap_skip_all "there is no second machine"
		return 1
	fi
}

setup() {
	modprobe rnvmf && rdma_load && wire_up "$HOST4/24" && rdma_add "" rnvmf_rxe1 "$WIRE"
}

# neighbour start|kill: the other machine, by who reads our output.
neighbour() {
	note "neighbour: $1"
}

neighbour_is_ready() {
	try ping -q -c 1 -W 1 "$READY4"
	[ "$STATUS" = 0 ]
}

target_dies_under_io() {
	neighbour start
	wait_until "$SOON" neighbour_is_ready || fail "the other machine does not come up"
	connect "$TARGET4"
	start_verify
	neighbour kill
	loses
	neighbour start
	comes_back
	is_verified
}

main setup target_dies_under_io
