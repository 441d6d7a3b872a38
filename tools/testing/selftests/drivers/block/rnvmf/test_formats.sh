#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests that written data is read back, with different block sizes, backends, buffer alignments and
# in-capsule data sizes.

. "$(dirname "$0")/lib.sh"

# NSIDs, named by their backend. BACKENDS has the backend's path by NSID.
MEMORY_512=1
MEMORY_4K=2
LOOP_4K=3
FILE=4

# Subsystems on ports without in-capsule data, and with 16 KiB of it.
NO_INLINE=$NQN.no-inline
MUCH_INLINE=$NQN.much-inline

setup() {
	modprobe rnvmf && network_single || return 1
	backend_memory 512 64 512 && BACKENDS[MEMORY_512]=$BACKEND &&
		backend_memory 4k 64 4096 && BACKENDS[MEMORY_4K]=$BACKEND &&
		backend_loop loop 16 4096 && BACKENDS[LOOP_4K]=$BACKEND &&
		backend_file file 16 && BACKENDS[FILE]=$BACKEND &&
		target_simple "${BACKENDS[@]}" &&
		port_with_inline 4422 0 "$NO_INLINE" && port_with_inline 4423 16384 "$MUCH_INLINE"
}

# port_with_inline PORT BYTES SUBSYSTEM: create a subsystem on a port with this in-capsule data
# size.
port_with_inline() {
	target_subsystem "$3" && target_namespace "$3" 1 "${BACKENDS[MEMORY_512]}" &&
		target_port "$1" "$TARGET4" "$1" &&
		echo "$2" >"$NVMET/ports/$1/param_inline_data_size" &&
		target_export "$1" "$3"
}

# block_size DISK BYTES: check the logical block size.
block_size() {
	same "block size of $1" "$2" "$(queue_limit "$1" logical_block_size)"
}

# same_contents DISK BACKEND: both must have the same contents.
same_contents() {
	local backend
	backend=$(contents "$2")
	same "contents of $1" "$backend" "$(contents "$1")"
}

# contents PATH: print a checksum of the contents. Direct I/O, because the page cache may be stale.
contents() {
	dd if="$1" bs=1M iflag=direct status=none | sha256sum
}

unaligned_buffers_of_512() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $MEMORY_512)
	block_size "$disk" 512
	run python3 "$HERE/unaligned.py" "$disk" "${BACKENDS[MEMORY_512]}"
	has "$OUTPUT" '^[1-9][0-9]* transfers$'
}

unaligned_buffers_of_4096() {
	local disk
	connect "$TARGET6"
	disk=$(disk "$CTRL" $MEMORY_4K)
	run python3 "$HERE/unaligned.py" "$disk" "${BACKENDS[MEMORY_4K]}"
	has "$OUTPUT" '^[1-9][0-9]* transfers$'
}

format_of_4096() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $MEMORY_4K)
	block_size "$disk" 4096
	verify "$disk" --rw=randwrite --bsrange=4k-256k --size=4m --iodepth=8
	expect 1 dd if="$disk" of=/dev/null bs=512 count=1 iflag=direct
	has "$ERRORS" 'Invalid argument'
}

loop_backend() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $LOOP_4K)
	block_size "$disk" 4096
	verify "$disk" --rw=randwrite --bsrange=4k-256k --size=4m --iodepth=8
	same_contents "$disk" "${BACKENDS[LOOP_4K]}"
}

file_backend() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $FILE)
	same "size of $disk" $((16 << 20)) "$(blockdev --getsize64 "$disk")"
	verify "$disk" --rw=randwrite --bsrange=4k-256k --size=4m --iodepth=8
	same_contents "$disk" "${BACKENDS[FILE]}"
}

# inline_data PORT BYTES SUBSYSTEM: connect, and verify I/O with sizes around the in-capsule limit.
inline_data() {
	local disk
	SERVICE=$1 connect_to "$3" "$TARGET4"
	same "inline size" "$2" "$(ctrl_field "$CTRL" inline_size)"
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bsrange=512-20k --size=512k --iodepth=8
	run python3 "$HERE/unaligned.py" "$disk" "${BACKENDS[MEMORY_512]}"
}

without_inline_data() {
	inline_data 4422 0 "$NO_INLINE"
}

with_much_inline_data() {
	inline_data 4423 16384 "$MUCH_INLINE"
}

main setup \
	unaligned_buffers_of_512 \
	unaligned_buffers_of_4096 \
	format_of_4096 \
	loop_backend \
	file_backend \
	without_inline_data \
	with_much_inline_data
