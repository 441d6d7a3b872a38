#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample disk: a disk in the memory of memory_server, and what ends it.

. "$(dirname "$0")/lib.sh"

DISK=/dev/rrdma_disk
MIB=1048576

requirements() {
	need_sample disk dd cmp blockdev
}

setup() {
	network 4200
	DATA=$SCRATCH/data
	head -c $((4 * MIB)) /dev/urandom >"$DATA"
}

# serve [BYTES [ADVERTISED]]: start the peer, with 8 MiB by default.
serve() {
	peer_start memory "$HERE/memory_server" "$PEER4" 7471 "${1:-$((8 * MIB))}" "${@:2}"
	peer_waits memory '^ready$'
}

# disk_load PARAMETER...: load the module, and wait until there is the disk.
disk_load() {
	sample_load disk "server=$PEER4" "$@"
	sample_waits '^done: '
}

# Programs of the system may have the disk open for a moment.
disk_unload() {
	wait_until 10 disk_unloads || fail "$SAMPLE is not unloaded: $ERRORS"
}

disk_unloads() {
	try modprobe -r "$SAMPLE"
	[ "$STATUS" = 0 ]
}

# The requests that fail, and the reason.
losses_are_told() {
	explain '(Buffer I/O|I/O|recoverable transport) error(,| on) dev rrdma_disk'
	explain '[a-z_]+: [0-9]+ callbacks suppressed'
	explain "$DEVICE: qp#[0-9]+ [a-z_]+: non-flush error status = "
}

# disk_is_lost: wait until the disk has ended because of its connection.
disk_is_lost() {
	sample_waits '^failed: the connection is lost$'
	[ ! -e "/sys/block/${DISK#/dev/}" ] || fail "the disk is still there"
	sample_unload
}

keeps_data() {
	serve
	disk_load
	sample_done
	same sectors '16384 sectors' "$RESULT"
	same size $((8 * MIB)) "$(blockdev --getsize64 "$DISK")"
	run dd if="$DATA" of="$DISK" conv=nocreat bs=1M seek=3 oflag=direct
	run dd if="$DISK" of="$SCRATCH/back" bs=64k skip=48 count=64 iflag=direct
	run cmp "$DATA" "$SCRATCH/back"
	disk_unload
	# The peer has the data, not the module.
	disk_load
	run cmp -n $((4 * MIB)) -i 0:$((3 * MIB)) "$DATA" "$DISK"
	disk_unload
}

writes_back_when_unloaded() {
	serve
	disk_load
	run dd if="$DATA" of="$DISK" conv=nocreat bs=1M
	disk_unload
	disk_load
	run cmp -n $((4 * MIB)) "$DATA" "$DISK"
	disk_unload
}

is_not_unloaded_in_use() {
	serve
	disk_load
	exec 7<"$DISK"
	expect 1 modprobe -r "$SAMPLE"
	exec 7<&-
	disk_unload
}

ends_with_the_peer() {
	losses_are_told
	serve
	disk_load
	peer_stop memory
	expect 1 dd if="$DATA" of="$DISK" conv=nocreat bs=1M oflag=direct
	disk_is_lost
}

# A request beyond the memory of the peer is refused by its device.
ends_with_a_refused_request() {
	losses_are_told
	serve $MIB $((8 * MIB))
	disk_load
	expect 1 dd if="$DATA" of="$DISK" conv=nocreat bs=1M seek=4 oflag=direct
	disk_is_lost
}

ends_with_the_link() {
	losses_are_told
	serve
	disk_load
	network_loss 100
	expect 1 dd if="$DATA" of="$DISK" conv=nocreat bs=1M count=1 oflag=direct
	disk_is_lost
}

# The sample has no `removing`: the removal of the device wakes the owner of the connection.
ends_with_its_device() {
	local began
	losses_are_told
	serve
	disk_load
	defer device_again
	dd if="$DISK" of=/dev/null bs=4k iflag=direct 2>"$SCRATCH/reader" &
	defer end_process $!
	began=$(now)
	run rdma link delete "$DEVICE"
	at_most "removing the device took" $(($(now) - began)) 3000
	disk_is_lost
}

# The step of the connection manager fails by itself, long before its time-out.
device_is_removed_while_it_connects() {
	local began
	network_loss 100
	sample_load disk "server=$PEER4" timeout=600000
	wait_until 15 disk_has_queue_pair || fail "no queue pair: $(sample_log)"
	defer device_again
	began=$(now)
	run rdma link delete "$DEVICE"
	at_most "removing the device took" $(($(now) - began)) 1000
	sample_fails '^connecting: the RDMA device was removed$'
	sample_unload
}

disk_has_queue_pair() {
	[[ $(rdma resource show qp) == *"comm [rrdma_disk]"* ]]
}

unloads_while_it_connects() {
	network_loss 100
	sample_load disk "server=$PEER4" timeout=600000
	wait_until 15 disk_has_queue_pair || fail "no queue pair: $(sample_log)"
	sample_unload
	sample_says '^failed: connecting: cancelled$' || fail "$(sample_log)"
}

without_a_peer() {
	sample_load disk
	sample_fails '^address: EINVAL$'
	sample_unload
	sample_load disk "server=$PEER4"
	sample_fails '^connecting: rejected: '
	sample_unload
}

# The sample disk is not used: two disks of a test module share the memory of their requests.
gets_no_request_of_another_disk() {
	sample_load test_foreign_request
	sample_waits '^two disks$'
	local disk
	for disk in first other; do
		echo none >"/sys/block/rrdma_$disk/queue/scheduler"
	done
	other_is_read 2>/dev/null &
	defer end_process $!
	run dd if=/dev/rrdma_first of=/dev/null bs=4k skip=8 count=1 iflag=direct
	sample_done
	same result 'returned a request of the other disk' "$RESULT"
	# The request that was returned, and each later one.
	run dd if=/dev/rrdma_other of=/dev/null bs=4k skip=8 count=1 iflag=direct
	run dd if=/dev/rrdma_first of=/dev/null bs=4k skip=8 count=1 iflag=direct
	! sample_says '^failed' || fail "$SAID"
	disk_unload
}

# Read the sector of the test from the other disk, until the test has ended.
other_is_read() {
	until sample_says '^(done|failed)'; do
		dd if=/dev/rrdma_other of=/dev/null bs=4k skip=8 count=1 iflag=direct
	done
}

main setup \
	keeps_data \
	writes_back_when_unloaded \
	is_not_unloaded_in_use \
	ends_with_the_peer \
	ends_with_a_refused_request \
	ends_with_the_link \
	ends_with_its_device \
	device_is_removed_while_it_connects \
	unloads_while_it_connects \
	without_a_peer \
	gets_no_request_of_another_disk
