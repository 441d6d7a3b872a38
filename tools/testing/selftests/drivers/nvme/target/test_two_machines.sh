#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a target on a second machine with each host: verified I/O, and a crash of the target's machine
# under I/O. The test runner starts and kills that machine; see `neighbour`.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/second_machine.sh"

requirements() {
	need_root && need_modules nvme-rdma nvme_rdma_rust rnvmf rdma_rxe &&
		need_programs rnvmf nvme rdma ip fio ping && need_wire
}

setup() {
	rdma_load && wire_up "$HOST4/24" && rdma_add "" rnvmf_rxe1 "$WIRE"
}

# serves HOST_DRIVER: the target serves this host.
serves() {
	local size
	HOST_DRIVER=$1
	. "$TARGET_HERE/lib.sh"
	. "$HERE/lib/second_machine.sh"
	# The host detects a loss and reconnects quickly.
	CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)
	load_driver
	start_neighbour
	connect "$TARGET4"
	for size in 512 4k 16k 1m; do
		verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=$size --size=1m --iodepth=8
	done
	start_verify
	neighbour kill
	loses
	neighbour start
	comes_back
	is_verified
	disconnect "$CTRL"
	neighbour kill
}

serves_nvme_rdma() {
	serves nvme-rdma
}

serves_nvme_rdma_rust() {
	serves nvme_rdma_rust
}

serves_rnvmf() {
	serves rnvmf
}

main setup serves_nvme_rdma serves_nvme_rdma_rust serves_rnvmf
