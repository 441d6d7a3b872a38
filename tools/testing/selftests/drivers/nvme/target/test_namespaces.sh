#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests namespaces of a target that come, go and change under I/O.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-c 1)

setup() {
	load_driver && network_single && backend_memory disk 64 512 && target_simple "$BACKEND" &&
		backend_memory second 32 512 || return 1
	OBJECTS=$(rdma_objects)
}

after_test() {
	(rdma_back_to "$OBJECTS")
}

enabled() {
	echo "$1" >"$NVMET/subsystems/$NQN/namespaces/${2:-1}/enable"
}

# Another namespace is added and removed while I/O goes on.
another_comes_and_goes_under_io() {
	local _
	connect "$TARGET4"
	start_verify
	target_namespace "$NQN" 2 /dev/rnvmf_second
	for _ in 1 2 3; do
		rescan
		verify "$(disk "$CTRL" 2)" --rw=randwrite --bs=16k --size=1m --iodepth=4
		enabled 0 2
		wait_until "$SOON" has_no_disk 2 || fail "the disk of namespace 2 remains"
		enabled 1 2
	done
	is_verified
	disconnect "$CTRL"
}

# has_no_disk NSID: whether CTRL has no disk of this namespace.
has_no_disk() {
	if host_is_rnvmf; then
		[ ! -e "/dev/${CTRL}n$1" ]
	elif has_disk "$CTRL" "$1"; then
		return 1
	fi
}

# rescan: let the host look at the namespaces of CTRL. It may have looked too early when one was enabled:
# nvmet_ns_enable() sends the event before it lists the namespace.
rescan() {
	if host_is_rnvmf; then
		run rnvmf rescan "$CTRL"
	else
		run nvme ns-rescan "/dev/$CTRL"
	fi
}

goes_under_io() {
	connect "$TARGET4"
	start_io
	enabled 0
	defer enabled 1
	wait_until "$SOON" process_ended "$IO" || fail "fio did not exit"
	has "$(<"$SCRATCH/fio")" "$REMOVED"
	enabled 1
	rescan
	compare 65536
	disconnect "$CTRL"
}

is_writable() {
	[ "$(<"/sys/block/${DISK##*/}/ro")" = 0 ]
}

write_protection() {
	need_core "has no command for it"
	connect "$TARGET4"
	DISK=$(disk "$CTRL" 1)
	run nvme set-feature "$DISK" -n 1 -f 0x84 -V 1
	expect 1 dd if=/dev/zero of="$DISK" bs=4k count=1 oflag=direct
	run dd if="$DISK" of=/dev/null bs=4k count=1 iflag=direct
	run nvme set-feature "$DISK" -n 1 -f 0x84 -V 0
	# The host learns of it by an event.
	wait_until "$SOON" is_writable || fail "the disk remains read-only"
	compare 4096 "$DISK"
	disconnect "$CTRL"
}

# Commands other than reads and writes: flush, discard, write zeroes.
other_commands() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run dd if=/dev/urandom of="$disk" bs=64k count=4 oflag=direct conv=fsync
	run blkdiscard -z -o 0 -l 65536 "$disk"
	run cmp -n 65536 "$disk" /dev/zero
	run blkdiscard -o 65536 -l 65536 "$disk"
	disconnect "$CTRL"
}

# A file as backend.
file_backend() {
	local file
	backend_file disk.img 32
	file=$BACKEND
	target_subsystem "$NQN-file"
	target_namespace "$NQN-file" 1 "$file"
	target_export 4420 "$NQN-file"
	connect_to "$NQN-file" "$TARGET4"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bsrange=4k-256k --size=8m --iodepth=8
	disconnect "$CTRL"
}

main_with_known setup \
	another_comes_and_goes_under_io \
	goes_under_io \
	write_protection \
	other_commands \
	file_backend
