#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Over soft-iWARP, whose connections are made by TCP and whose service is a stream's.

RDMA_TYPE=siw

. "$(dirname "$0")/lib.sh"

setup() {
	modprobe rnvme && network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

connects_and_disconnects() {
	local objects
	objects=$(rdma_objects)
	for _ in 1 2 3; do
		connect "$TARGET4"
		disk "$CTRL" 1
		disconnect "$CTRL"
	done
	rdma_back_to "$objects"
}

connects_over_ipv6() {
	connect "$TARGET6"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=256k --iodepth=4
}

# From one block, which goes in the capsule, to more than one command can carry.
data_of_all_sizes() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bs=512 --size=64k --iodepth=8
	verify "$disk" --rw=randwrite --bs=16k --size=2m --iodepth=8
	verify "$disk" --rw=write --bs=2m --size=8m --iodepth=2
}

# A peer can end a registration there ahead of its time, so who registered ends it himself.
target_is_not_believed_to_invalidate() {
	connect "$TARGET4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=4 iflag=direct
	run rnvme stats "$CTRL" -o json
	has "$OUTPUT" '"local_invalidations":[1-9]'
	[[ ! $OUTPUT =~ \"remote_invalidations\":[1-9] ]] || fail "the target is believed: $OUTPUT"
}

nobody_listens() {
	SERVICE=4499
	try rnvme connect -t rdma -a "$TARGET4" -s 4499 -n "$NQN" -q "$HOSTNQN"
	same status 1 "$STATUS"
	has "$ERRORS" '^rnvme: connect to .*: .+$'
}

modprobe -qn siw || {
	ktap_print_header
	ktap_skip_all "there is no module siw"
	exit "$KSFT_SKIP"
}

main setup \
	connects_and_disconnects \
	connects_over_ipv6 \
	data_of_all_sizes \
	target_is_not_believed_to_invalidate \
	nobody_listens
