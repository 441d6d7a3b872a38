# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Storage for the target's namespaces. Each backend_* function creates one and sets BACKEND to its
# path; it is deleted when the test ends.

NULLB=/sys/kernel/config/nullb

# backend_memory NAME MIB BLOCKSIZE [ATTRIBUTE=VALUE...]: create a memory-backed null_blk device.
backend_memory() {
	local name=rnvmf_$1 path=$NULLB/rnvmf_$1 setting
	load_module null_blk nr_devices=0 && mkdir "$path" || return 1
	defer backend_memory_delete "$name"
	local settings=(memory_backed=1 discard=1 "size=$2" "blocksize=$3")
	shift 3
	for setting in "${settings[@]}" "$@" power=1; do
		echo "${setting#*=}" >"$path/${setting%%=*}" || return 1
	done
	BACKEND=/dev/$name
}

backend_memory_delete() {
	rmdir "$NULLB/$1"
}

# backend_file NAME MIB: create a sparse file.
backend_file() {
	BACKEND=$SCRATCH/$1
	truncate -s "$2M" "$BACKEND" || return 1
	defer rm -f "$BACKEND"
}

# backend_loop NAME MIB BLOCKSIZE: create a loop device on a file.
backend_loop() {
	load_module loop && backend_file "$1" "$2" || return 1
	BACKEND=$(losetup --find --show --direct-io=off --sector-size "$3" "$BACKEND") || return 1
	defer losetup --detach "$BACKEND"
}
