#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a crash of the target's machine under verified I/O: after its restart the host reconnects
# and the data is correct. The test runner starts and kills that machine; see `neighbour`.

. "$(dirname "$0")/lib.sh"

# The host detects a loss and reconnects quickly.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

# Allows for the start of a machine.
SOON=90

requirements() {
	need_root && need_modules rnvmf rdma_rxe && need_programs rnvmf rdma ip fio ping && need_wire
}

need_wire() {
	if ! modprobe virtio_net || [ ! -e "/sys/class/net/$WIRE" ]; then
		ktap_skip_all "no interface $WIRE to a second machine"
		return 1
	fi
}

setup() {
	modprobe rnvmf && rdma_load && wire_up "$HOST4/24" && rdma_add "" rnvmf_rxe1 "$WIRE"
}

# neighbour start|kill: make the test runner, which reads this line, start or kill the second
# machine.
neighbour() {
	note "neighbour: $1"
}

neighbour_is_ready() {
	try ping -q -c 1 -W 1 "$READY4"
	[ "$STATUS" = 0 ]
}

target_dies_under_io() {
	neighbour start
	wait_until "$SOON" neighbour_is_ready || fail "the target of the second machine is not ready"
	connect "$TARGET4"
	start_verify
	neighbour kill
	loses
	neighbour start
	comes_back
	is_verified
}

main setup target_dies_under_io
