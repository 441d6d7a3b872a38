#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests `disconnect-all --unused`: it removes no disk that anybody has open, wherever that is visible.

. "$(dirname "$0")/lib.sh"

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma dummy null_blk loop dm_mod &&
		need_programs rnvmf rdma ip mkfs.ext4 mkswap dmsetup unshare python3
}

# Subsystems with a disk each.
KINDS=(mounted partition swap mapped looped)

setup() {
	local kind
	modprobe rnvmf && network_single && target_load && target_port 4420 "$TARGET4" || return 1
	for kind in "${KINDS[@]}" free; do
		backend_memory "$kind" 16 512 && target_subsystem "$NQN-$kind" &&
			target_namespace "$NQN-$kind" 1 "$BACKEND" && target_export 4420 "$NQN-$kind" || return 1
	done
}

# connect_disk KIND: connect, and set DISK to the path of the disk.
connect_disk() {
	connect_to "$NQN-$1" "$TARGET4" -i 1
	DISK=$(disk "$CTRL" 1)
}

# disconnect_unused: run it in a mount namespace whose /dev has no disk, as in a container.
disconnect_unused() {
	run unshare --mount --propagation private bash -c '
		mount -t tmpfs none /dev && mknod /dev/null c 1 3 && exec rnvmf disconnect-all --unused -o json'
}

# The file system is in a mount namespace that is not ours.
mounted_elsewhere_stays() {
	connect_disk mounted
	run mkfs.ext4 -q "$DISK"
	mkdir "$SCRATCH/here"
	# shellcheck disable=SC2016 # expands in the shell that it starts
	unshare --mount --propagation private bash -c '
		mount "$0" "$1/here" && touch "$1/mounted" && exec sleep 1000' "$DISK" "$SCRATCH" &
	defer end_process $!
	wait_until "$SOON" [ -e "$SCRATCH/mounted" ] || fail "$DISK is not mounted"
	! mountpoint -q "$SCRATCH/here" || fail "$DISK is mounted here, too"
	disconnect_unused
	[ -b "$DISK" ] || fail "$DISK was removed: $OUTPUT"
	has "$OUTPUT" "\"in_use\":\[\"${DISK#/dev/}\"\]"
	has "$OUTPUT" '"disconnected":\[\]'
	run touch "/proc/$!/root$SCRATCH/here/file"
	end_process $!
	disconnect_unused
	same "standard output" "{\"schema\":1,\"disconnected\":[\"$CTRL\"]}" "$OUTPUT"
}

# use_partition DISK: mount a partition. The kernel reads the partition table when the disk is connected anew.
use_partition() {
	run python3 "$HERE/gpt.py" "$1" $((16 << 20)) 512 5e1f7e57-0003-4000-8000-0000000000dd rnvmf-part
	run blockdev --rereadpt "$1"
	wait_until "$SOON" [ -b "${1}p1" ] || fail "no ${1}p1"
	run mkfs.ext4 -q "${1}p1"
	mkdir "$SCRATCH/partition"
	run mount "${1}p1" "$SCRATCH/partition"
	defer umount "$SCRATCH/partition"
}

use_swap() {
	run mkswap "$1"
	run swapon "$1"
	defer swapoff "$1"
}

use_mapped() {
	run dmsetup create rnvmf_in_use --noudevsync --noudevrules --table "0 2048 linear $1 0"
	defer dmsetup remove --noudevsync rnvmf_in_use
}

# A loop device opens the disk, and does not claim it.
use_looped() {
	local loop
	run modprobe loop
	loop=$(losetup --find --show "$1" 2>&1) || fail "losetup: $loop"
	defer losetup --detach "$loop"
}

# Of several disks in use each is named, and only what is free goes.
each_use_is_seen() {
	local kind used='' free
	for kind in "${KINDS[@]:1}"; do
		connect_disk "$kind"
		"use_$kind" "$DISK"
		used+=" ${DISK#/dev/}"
	done
	connect_disk free
	free=$CTRL
	disconnect_unused
	for kind in $used; do
		[ -b "/dev/$kind" ] || fail "/dev/$kind was removed"
		has "$OUTPUT" "\"in_use\":\[.*\"$kind\""
	done
	has "$OUTPUT" "\"disconnected\":\[\"$free\"\]"
}

# A disk that is only open counts, for as long as it is open.
open_one_goes_when_it_is_closed() {
	connect_disk free
	exec 5<"$DISK"
	disconnect_unused
	has "$OUTPUT" "\"in_use\":\[\"${DISK#/dev/}\"\]"
	exec 5<&-
	exec 5<"$DISK"
	( sleep 0.2; exec 5<&- ) 5<&5 &
	exec 5<&-
	disconnect_unused
	same "standard output" "{\"schema\":1,\"disconnected\":[\"$CTRL\"]}" "$OUTPUT"
	wait $!
}

# Nobody can use a disk whose namespace is gone, although a process still has it open.
removed_disk_does_not_count() {
	connect_disk free
	exec 5<"$DISK"
	echo 0 >"$NVMET/subsystems/$NQN-free/namespaces/1/enable"
	wait_until "$SOON" no_disks || fail "$DISK was not removed"
	disconnect_unused
	same "standard output" "{\"schema\":1,\"disconnected\":[\"$CTRL\"]}" "$OUTPUT"
	exec 5<&-
	echo 1 >"$NVMET/subsystems/$NQN-free/namespaces/1/enable"
}

# An exclusive open at the same time either keeps the disk or fails.
racing_claim_keeps_its_disk_or_fails() {
	local i kept=0
	for ((i = 0; i < 20; i++)); do
		connect_disk free
		rm -f "$SCRATCH/go" "$SCRATCH/result"
		claim "$DISK" &
		defer end_process $!
		wait_until "$SOON" [ -e "$SCRATCH/ready" ] || fail "no claim"
		rm "$SCRATCH/ready"
		touch "$SCRATCH/go"
		run "${RNVMF[@]}" disconnect-all --unused
		wait_until "$SOON" [ -s "$SCRATCH/result" ] || fail "the open did not end"
		if grep -qx claimed "$SCRATCH/result"; then
			[ -b "$DISK" ] || fail "round $i: $DISK was removed under its holder"
			kept=$((kept + 1))
		else
			[ ! -b "$DISK" ] || fail "round $i: $DISK stays, but was not opened: $(<"$SCRATCH/result")"
		fi
		end_process $!
		run "${RNVMF[@]}" disconnect-all
	done
	note "$kept of $i were kept"
}

# claim DISK: open it exclusively a moment after "go", hold it, and write "claimed" or the error to "result".
claim() {
	exec python3 - "$1" "$SCRATCH" <<-'PYTHON'
		import os, random, signal, sys, time
		disk, scratch = sys.argv[1:]
		open(f"{scratch}/ready", "w").close()
		while not os.path.exists(f"{scratch}/go"):
		    time.sleep(0.001)
		time.sleep(random.random() * 0.05)
		try:
		    os.open(disk, os.O_RDONLY | os.O_EXCL)
		    result = "claimed"
		except OSError as error:
		    result = error.strerror
		with open(f"{scratch}/result.new", "w") as file:
		    print(result, file=file)
		os.rename(f"{scratch}/result.new", f"{scratch}/result")
		signal.pause()
	PYTHON
}

main setup \
	mounted_elsewhere_stays \
	each_use_is_seen \
	open_one_goes_when_it_is_closed \
	removed_disk_does_not_count \
	racing_claim_keeps_its_disk_or_fails
