#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests ext4 and XFS on a disk: files are compared after a remount and after a new connection.

. "$(dirname "$0")/lib.sh"

MOUNT=

# XFS needs 300 MB. null_blk allocates memory only for written blocks.
setup() {
	modprobe rnvmf && network_single && backend_memory disk 320 512 &&
		target_simple "$BACKEND" || return 1
	MOUNT=$SCRATCH/mount
	FILES=$SCRATCH/files
	mkdir "$MOUNT" && files "$FILES"
}

# files DIRECTORY: create files of different sizes, links and a sparse file, some megabytes in all.
files() {
	local size
	mkdir -p "$1/deep/er" || return 1
	for size in 0 1 511 512 513 4095 4096 4097 65536 100001 1048577 4194304; do
		head -c $size /dev/urandom >"$1/deep/$size" || return 1
	done
	for size in {1..60}; do
		echo "file $size" >"$1/deep/er/$size" || return 1
	done
	truncate -s 1M "$1/hole" && ln -s deep/512 "$1/link" && ln "$1/deep/513" "$1/same"
}

same_files() {
	run diff -r --no-dereference "$FILES" "$MOUNT/files"
}

# keeps_files TYPE FORCE CHECK...: test a file system. FORCE is an option of mkfs. The command
# CHECK, with the disk as last argument, must find no error.
keeps_files() {
	local type=$1 force=$2 disk
	shift 2
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run "mkfs.$type" -q "$force" "$disk"
	run mount -t "$type" "$disk" "$MOUNT"
	defer unmount_if_mounted "$MOUNT"
	run cp -a "$FILES" "$MOUNT"
	run sync -f "$MOUNT/files"
	run umount "$MOUNT"
	run "$@" "$disk"

	run mount -t "$type" "$disk" "$MOUNT"
	same_files
	run umount "$MOUNT"
	disconnect "$CTRL"

	connect "$TARGET6"
	disk=$(disk "$CTRL" 1)
	run mount -t "$type" "$disk" "$MOUNT"
	same_files
	run rm -r "$MOUNT/files"
	trims_what_is_free
	run umount "$MOUNT"
	run "$@" "$disk"
}

trims_what_is_free() {
	trace_start "$COMMANDS"
	run fstrim -v "$MOUNT"
	has "$OUTPUT" '[(][1-9][0-9]+ bytes[)] trimmed'
	trace_has 'nvme_cmd_dsm.*attributes=4'
}

ext4_keeps_files() {
	keeps_files ext4 -F e2fsck -fn
}

xfs_keeps_files() {
	keeps_files xfs -f xfs_repair -n
}

main setup \
	ext4_keeps_files \
	xfs_keeps_files
