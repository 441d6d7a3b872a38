#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests connects, I/O and disconnects of nvme_rdma_rust with nvme-cli.

. "$(dirname "$0")/lib.sh"

setup() {
	load_driver && network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

connects() {
	nvme_connect
	state_is live || fail "$CTRL is not live"
	nvme_disk 1
	run nvme disconnect -d "$CTRL"
	[ ! -e "/sys/class/nvme/$CTRL" ] || fail "$CTRL still exists"
}

reads_what_it_wrote() {
	nvme_connect
	nvme_disk 1
	run fio --name=verify --filename="$DISK" --rw=randwrite --bsrange=512-256k --size=16m \
		--verify=crc32c --do_verify=1 --ioengine=libaio --iodepth=16 --direct=1
}

main setup connects reads_what_it_wrote
