#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests nvme_rdma_rust on devices that break the rules of the verbs. The module test_liar replaces an operation of
# the host's soft-RoCE.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/broken_device.sh"

CONNECT_OPTIONS=(-c 1 -i 1)
HASTY=(-k "$SLOWDOWN")
PATIENT=("${LASTING[@]}")

NO_EVENTS='Asynchronous Event Request not posted on queue 0: error -12: starting error recovery'

# nvme-core sends the write again.
WRITE_ENDS=0

setup() {
	load_driver
}

# host_lies LIE: as in lib/broken_device.sh.
eval "any_$(declare -f host_lies)"
host_lies() {
	! driver_is_c || skip "nvme-rdma gets no more events, or frees memory that the device uses"
	any_host_lies "$@"
}

has_a_second_disk() {
	has_disk "$CTRL" 2
}

# The device cannot map a request, which fails. nvme-core no longer counts it among those of the path.
mapping_fails() {
	local subsystem path
	start_pair
	connect "$TARGET4" "${PATIENT[@]}"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	subsystem=$(echo /sys/class/nvme-subsystem/nvme-subsys*)
	path=$(echo "/sys/class/nvme/$CTRL"/nvme*n1)
	[ -e "$path/queue_depth" ] || skip "nvme-core has no policy by queue depth"
	echo queue-depth >"$subsystem/iopolicy"
	host_lies map
	expect 1 dd if=/dev/zero of="$(<"$SCRATCH/disk")" bs=64k count=1 oflag=direct
	has "$ERRORS" 'Input/output error'
	run dd if=/dev/zero of="$(<"$SCRATCH/disk")" bs=64k count=1 oflag=direct
	same "requests of the path" 0 "$(<"$path/queue_depth")"
}

main setup \
	mapping_fails \
	event_request_is_refused \
	completions_come_late
