#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests commands of programs over nvme_rdma_rust: ioctls, io_uring passthrough, reservations, zones,
# file systems, and time-outs.

. "$(dirname "$0")/lib.sh"

requirements() {
	need_root && need_modules nvme-core nvme-rdma "$DRIVER" rdma_rxe nvmet-rdma dummy null_blk ext4 xfs &&
		need_programs rdma ip fio nvme blkzone mkfs.ext4 mkfs.xfs
}

setup() {
	load_driver && network_single && backend_memory disk 320 512 && target_load &&
		target_subsystem "$NQN" || return 1
	mkdir "$NVMET/subsystems/$NQN/namespaces/1" || return 1
	defer target_namespace_delete "$NQN" 1
	echo -n "$BACKEND" >"$NVMET/subsystems/$NQN/namespaces/1/device_path" &&
		echo 1 >"$NVMET/subsystems/$NQN/namespaces/1/resv_enable" &&
		echo 1 >"$NVMET/subsystems/$NQN/namespaces/1/enable" &&
		target_port 4420 "$TARGET4" && target_export 4420 "$NQN"
}

# start [OPTION...]: connect; DISK is the disk.
start() {
	connect "$TARGET4" "$@"
	wait_until "$SOON" has_disk "$CTRL" 1 || fail "$CTRL has no namespace 1"
}

# generic: print the path of the character device of DISK.
generic() {
	echo "${DISK/nvme/ng}"
}

ioctls() {
	start
	head -c 65536 /dev/urandom >"$SCRATCH/wrote"
	run nvme write "$DISK" --start-block=8 --block-count=127 --data-size=65536 --data="$SCRATCH/wrote"
	run nvme read "$DISK" --start-block=8 --block-count=127 --data-size=65536 --data="$SCRATCH/read"
	run cmp "$SCRATCH/wrote" "$SCRATCH/read"
	run nvme flush "$DISK" -n 1
	run nvme dsm "$DISK" -n 1 --ad --slbs=0 --blocks=8
	run nvme write-zeroes "$DISK" -n 1 --start-block=8 --block-count=7
	run nvme smart-log "/dev/$CTRL"
	run nvme id-ns "$DISK"
	run nvme get-feature "/dev/$CTRL" -f 7
	run nvme error-log "/dev/$CTRL"
	run nvme effects-log "/dev/$CTRL"
	# An opcode that the target does not know.
	expect 1 nvme admin-passthru "/dev/$CTRL" --opcode=0xfe -n 1
	has "$ERRORS$OUTPUT" 'Invalid Command Opcode|INVALID_OPCODE'
	same state live "$(ctrl_field "$CTRL" state)"
}

io_uring_passthrough() {
	local generic
	start -i 1 -P 1
	generic=$(generic)
	[ -c "$generic" ] || fail "$generic does not exist"
	uring --rw=randwrite --bs=16k --size=4m --iodepth=8
	uring --rw=randread --bs=4k --size=4m --iodepth=32 --fixedbufs=1
	uring --rw=randrw --bs=4k --size=2m --iodepth=4 --hipri=1
}

# uring OPTION...: verified passthrough I/O with io_uring.
uring() {
	local verify=(--verify=crc32c --verify_fatal=1 --verify_state_save=0)
	[[ $* != *randread* ]] || verify=()
	run fio --name=uring --filename="$(generic)" --ioengine=io_uring_cmd --cmd_type=nvme \
		"${verify[@]}" --output-format=terse "$@"
}

uring_under_reset() {
	start
	fio --name=uring --filename="$(generic)" --ioengine=io_uring_cmd --cmd_type=nvme --rw=randread \
		--bs=4k --size=4m --iodepth=8 --time_based --runtime=600 >"$SCRATCH/fio" 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until "$SOON" reads_flow || fail "fio reads nothing: $(<"$SCRATCH/fio")"
	run nvme reset "/dev/$CTRL"
	wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	# Passthrough commands are not repeated: fio may see errors.
	end_process $IO
	uring --rw=randwrite --bs=16k --size=1m --iodepth=8
}

# Whether fio has opened its device: the statistics do not count passthrough commands.
reads_flow() {
	local files=("/proc/$IO/fd/"*)
	[ ${#files[@]} -gt 4 ]
}

reservations() {
	start
	run nvme resv-register "$DISK" --nrkey=0x1234 --rrega=0
	run nvme resv-acquire "$DISK" --crkey=0x1234 --rtype=1 --racqa=0
	run nvme resv-report "$DISK" -o json
	has "$OUTPUT" '"regctl" *: *1'
	has "$OUTPUT" '"rtype" *: *1'
	HOSTNQN=$HOSTNQN-other HOSTID=5e1f7e57-0000-4000-8000-000000000002 start
	# Write Exclusive: the other host may only read.
	run dd if="$DISK" of=/dev/null bs=4k count=1 iflag=direct
	disconnect "$CTRL"
	start -D
	run nvme resv-release "$DISK" --crkey=0x1234 --rtype=1 --rrela=0
	run nvme resv-register "$DISK" --crkey=0x1234 --rrega=1
}

# disk_has_zones NUMBER: $DISK has so many zones.
disk_has_zones() {
	[ "$(<"/sys/block/${DISK##*/}/queue/nr_zones")" -eq "$1" ]
}

# The kernel's target passes zoned devices on. Zones have 4 MiB.
zoned() {
	backend_memory zoned 32 4096 zoned=1 zone_size=4
	target_namespace "$NQN" 2 "$BACKEND"
	connect "$TARGET4"
	wait_until "$SOON" has_disk "$CTRL" 2 || fail "$CTRL has no namespace 2"
	same "model" host-managed "$(<"/sys/block/${DISK##*/}/queue/zoned")"
	# nvme_mpath_add_disk() sets the number of zones after the disk is added.
	wait_until "$SOON" disk_has_zones 8 || fail "zones: $(<"/sys/block/${DISK##*/}/queue/nr_zones")"
	# fio writes at the write pointers, and verifies.
	run fio --name=zones --filename="$DISK" --direct=1 --ioengine=libaio --zonemode=zbd --rw=write \
		--bs=64k --size=16m --iodepth=4 --verify=crc32c --verify_fatal=1 --verify_state_save=0
	run blkzone reset "$DISK"
	head -c 8192 /dev/urandom >"$SCRATCH/wrote"
	run nvme zns zone-append "$DISK" --zslba=0 --data-size=8192 --data="$SCRATCH/wrote"
	run dd if="$DISK" of="$SCRATCH/read" bs=8k count=1 iflag=direct
	run cmp "$SCRATCH/wrote" "$SCRATCH/read"
	run blkzone report --count 1 "$DISK"
	# In sectors of 512 bytes.
	has "$OUTPUT" 'wptr 0x0*10 '
	# Not at the write pointer.
	expect 1 dd if="$SCRATCH/wrote" of="$DISK" bs=8k seek=3 oflag=direct conv=notrunc
	run nvme reset "/dev/$CTRL"
	wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	run dd if="$SCRATCH/wrote" of="$DISK" bs=8k seek=1 oflag=direct conv=notrunc
}

# keeps_files TYPE FORCE CHECK...: files must be the same after another connect, a reset and a loss.
keeps_files() {
	local type=$1 force=$2 mount=$SCRATCH/mount
	shift 2
	mkdir -p "$mount"
	start -c 1
	run "mkfs.$type" -q "$force" "$DISK"
	run mount -t "$type" "$DISK" "$mount"
	defer unmount_if_mounted "$mount"
	cp -a "$RDMA_LIB" "$mount/files"
	run nvme reset "/dev/$CTRL"
	run sync -f "$mount/files"
	run umount "$mount"
	disconnect "$CTRL"
	start -c 1
	run "$@" "$DISK"
	run mount -t "$type" "$DISK" "$mount"
	run diff -r "$RDMA_LIB" "$mount/files"
	run fstrim "$mount"
	run umount "$mount"
	disconnect "$CTRL"
}

ext4() {
	keeps_files ext4 -F fsck.ext4 -fn
}

xfs() {
	keeps_files xfs -f xfs_repair -n
}

# A mounted file system whose controller goes away must be unmountable.
unmounts_afterwards() {
	local mount=$SCRATCH/mount
	mkdir -p "$mount"
	start
	run mkfs.ext4 -q -F "$DISK"
	run mount -t ext4 "$DISK" "$mount"
	defer unmount_if_mounted "$mount"
	disconnect "$CTRL"
	run umount "$mount"
	wait_until "$SOON" no_disks || fail "a disk remains"
}

main setup \
	ioctls \
	io_uring_passthrough \
	uring_under_reset \
	reservations \
	zoned \
	ext4 \
	xfs \
	unmounts_afterwards
