#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests that written data is read back, with different I/O orders, sizes, depths and queues.

. "$(dirname "$0")/lib.sh"

setup() {
	modprobe rnvmf && network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

sequential() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=write --bs=128k --size=8m --iodepth=8
	verify "$disk" --rw=write --bs=1m --size=8m --iodepth=2
}

random() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bs=4k --size=2m --iodepth=16
	verify "$disk" --rw=randwrite --bs=512 --size=128k --iodepth=16
	verify "$disk" --rw=randrw --bs=8k --size=2m --iodepth=8
}

# Sizes from one block to more than the largest command.
mixed_sizes() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bsrange=512-4m --size=48m --io_size=12m --iodepth=4
	verify "$disk" --rw=randwrite --bsrange=512-20k --size=1m --iodepth=8
}

depths_1_to_64() {
	local disk depth
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	for depth in 1 2 32 64; do
		verify "$disk" --rw=randwrite --bs=4k --size=256k --iodepth=$depth \
			--iodepth_batch_submit=$depth
	done
}

# Jobs on all CPUs use all queues; the target must receive commands on each.
several_queues() {
	local disk qid
	trace_start rdma_core/cq_alloc
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	# Each queue has its own completion vector, as far as there are enough. The target's CQs do
	# not use IB_POLL_SOFTIRQ, so these events are the host's.
	for ((qid = 1; qid <= $(nproc); qid++)); do
		trace_has "comp_vector=$((qid - 1)) poll_ctx=SOFTIRQ"
	done
	trace_start "$COMMANDS"
	verify "$disk" --rw=randwrite --bs=4k --size=256k --iodepth=16 --numjobs=4 \
		--offset_increment=8m --cpus_allowed="0-$(($(nproc) - 1))" --cpus_allowed_policy=split
	for ((qid = 1; qid <= $(nproc); qid++)); do
		trace_has "qid=$qid,.*nvme_cmd_write"
		trace_has "qid=$qid,.*nvme_cmd_read"
	done
}

# More requests than the 16 entries of a queue: requests wait for tags, and none is lost.
more_requests_than_tags() {
	local disk
	connect "$TARGET4" -i 1 -Q 16
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bs=4k --size=256k --iodepth=32 --numjobs=2 --offset_increment=8m
}

main setup \
	sequential \
	random \
	mixed_sizes \
	depths_1_to_64 \
	several_queues \
	more_requests_than_tags
