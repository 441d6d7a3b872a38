#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests flushes, FUA, discards, Write Zeroes, queue limits and errors, as the target receives them.

. "$(dirname "$0")/lib.sh"

# NSIDs, named by their backend. BACKENDS has the backend's path by NSID.
PLAIN=1
CACHED=2
LOOP=3
FILE=4
BROKEN=5

# The first 64 KiB of the second MiB of BROKEN are bad blocks.
BAD_START=$((1 << 20))
BAD_SIZE=$((64 << 10))

# Log message of a failed read of a bad block.
WHY='internal error \(sct 0x0, sc 0x06\), more in the error log, do not retry, after 0 retries$'

setup() {
	FILLED=$SCRATCH/filled
	head -c 4M /dev/zero | tr '\0' x >"$FILLED" || return 1
	modprobe rnvmf && network_single || return 1
	backend_memory plain 16 512 && BACKENDS[PLAIN]=$BACKEND &&
		backend_memory cached 16 4096 cache_size=4 && BACKENDS[CACHED]=$BACKEND &&
		backend_loop loop 16 4096 && BACKENDS[LOOP]=$BACKEND &&
		backend_file file 16 && BACKENDS[FILE]=$BACKEND &&
		backend_memory broken 16 512 \
			"badblocks=+$((BAD_START / 512))-$(((BAD_START + BAD_SIZE) / 512 - 1))" &&
		BACKENDS[BROKEN]=$BACKEND &&
		target_simple "${BACKENDS[@]}"
}

# fill DISK: fill the first 4 MiB with bytes other than zero.
fill() {
	dd if="$FILLED" of="$1" bs=1M oflag=direct status=none
}

# bytes_at FILE START LENGTH: print a checksum of the backend's contents, past the page cache.
bytes_at() {
	dd if="$1" bs=4k skip=$(($2 / 4096)) count=$(($3 / 4096)) iflag=direct status=none | sha256sum
}

zeroes() {
	head -c "$1" /dev/zero | sha256sum
}

filled() {
	head -c "$1" "$FILLED" | sha256sum
}

# only_second_mib_is_zero FILE: the second MiB must be zero, and its neighbours unchanged.
only_second_mib_is_zero() {
	same "checksum of the second MiB" "$(zeroes 1M)" "$(bytes_at "$1" $((1 << 20)) $((1 << 20)))"
	same "checksum of the first MiB" "$(filled 1M)" "$(bytes_at "$1" 0 $((1 << 20)))"
	same "checksum after the second MiB" "$(filled 2M)" "$(bytes_at "$1" $((2 << 20)) $((2 << 20)))"
}

discards() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $PLAIN)
	fill "$disk"
	trace_start "$COMMANDS" "$BACKEND_IO"
	run blkdiscard -o $((1 << 20)) -l $((1 << 20)) "$disk"
	trace_has 'nvme_cmd_dsm.*nr=0, attributes=4'
	trace_has 'block_bio_queue: [0-9,]+ D[A-Z]* 2048 \+ 2048'
	only_second_mib_is_zero "${BACKENDS[PLAIN]}"
}

# A discard punches a hole into the backing file.
discards_into_a_file() {
	local disk before after
	connect "$TARGET4"
	disk=$(disk "$CTRL" $FILE)
	fill "$disk"
	before=$(stat -c %b "${BACKENDS[FILE]}")
	run blkdiscard -o $((1 << 20)) -l $((1 << 20)) "$disk"
	after=$(stat -c %b "${BACKENDS[FILE]}")
	same "blocks of the file" $((before - 2048)) "$after"
	only_second_mib_is_zero "${BACKENDS[FILE]}"
}

writes_zeroes() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $LOOP)
	fill "$disk"
	trace_start "$COMMANDS"
	run blkdiscard -z -o $((1 << 20)) -l $((1 << 20)) "$disk"
	trace_has 'nvme_cmd_write_zeroes'
	trace_lacks 'nvme_cmd_write,'
	only_second_mib_is_zero "${BACKENDS[LOOP]}"
}

flushes() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $CACHED)
	same "write cache" "write back" "$(queue_limit "$disk" write_cache)"
	trace_start "$COMMANDS" "$BACKEND_IO"
	run dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct
	trace_lacks 'nvme_cmd_flush'
	run dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct conv=fsync
	trace_has 'nvme_cmd_flush'
	trace_has 'block_bio_queue: [0-9,]+ F'
}

# A write with FUA is one command with the FUA bit, without a flush.
forces_unit_access() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $CACHED)
	same "FUA" 1 "$(queue_limit "$disk" fua)"
	trace_start "$COMMANDS" "$BACKEND_IO"
	run dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct,dsync
	trace_has 'nvme_cmd_write, slba=0, len=0, ctrl=0x4000'
	trace_has 'block_bio_queue: [0-9,]+ W(S)?F'
	trace_clear
	run dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct
	trace_has 'nvme_cmd_write, slba=0, len=0, ctrl=0x0'
}

# The host sends no flush to a namespace without a volatile write cache.
flushes_no_cache_that_is_not() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $PLAIN)
	same "write cache" "write through" "$(queue_limit "$disk" write_cache)"
	trace_start "$COMMANDS"
	run dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct conv=fsync
	trace_has 'nvme_cmd_write'
	trace_lacks 'nvme_cmd_flush'
}

# A read at the end of the disk is short, a write beyond it fails with ENOSPC.
ends_where_it_ends() {
	local disk size
	connect "$TARGET4"
	disk=$(disk "$CTRL" $PLAIN)
	size=$(blockdev --getsize64 "$disk")
	same size "$(blockdev --getsize64 "${BACKENDS[PLAIN]}")" "$size"
	run dd if="$disk" of="$SCRATCH/end" bs=512 skip=$((size / 512 - 1)) count=2 iflag=direct
	same "bytes read at the end" 512 "$(stat -c %s "$SCRATCH/end")"
	expect 1 dd if=/dev/zero of="$disk" bs=512 seek=$((size / 512)) count=1 oflag=direct
	has "$ERRORS" 'No space left'
}

# allow NSID 0|1: disable or enable a namespace of the target.
allow() {
	echo "$2" >"$NVMET/subsystems/$NQN/namespaces/$1/enable"
}

# When the target removes a namespace, no data can be read from it; the controller and the other
# disks keep working. The read fails, unless it opened the disk just before the removal: the removed
# disk has capacity 0, so the read is at its end.
reports_a_namespace_that_is_gone() {
	local gone
	connect "$TARGET4"
	gone=$(disk "$CTRL" $FILE)
	allow $FILE 0
	defer allow $FILE 1
	try dd if="$gone" of="$SCRATCH/gone" bs=4k count=1 iflag=direct
	[ "$STATUS" = 1 ] || has "$ERRORS" '^0\+0 records in'
	[ ! -s "$SCRATCH/gone" ] || fail "data was read from the removed namespace: $ERRORS"
	run dd if="$(disk "$CTRL" $PLAIN)" of=/dev/null bs=4k count=1 iflag=direct
	same state live "$(ctrl_field "$CTRL" state)"
}

# A media error fails only requests for the bad blocks.
reports_bad_blocks() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $BROKEN)
	expect 1 dd if="$disk" of=/dev/null bs=4k skip=$((BAD_START / 4096)) count=1 iflag=direct
	expect 1 dd if=/dev/zero of="$disk" bs=4k seek=$((BAD_START / 4096)) count=1 oflag=direct
	run dd if="$disk" of=/dev/null bs=4k count=$((BAD_START / 4096)) iflag=direct
	run dd if="$disk" of=/dev/null bs=4k skip=$(((BAD_START + BAD_SIZE) / 4096)) count=8 iflag=direct
	same state live "$(ctrl_field "$CTRL" state)"
}

read_bad_block() {
	expect 1 dd if="$1" of=/dev/null bs=512 skip=$((BAD_START / 512)) count=1 iflag=direct
}

# read_bad_blocks DISK: read each bad block with a separate request.
read_bad_blocks() {
	try dd if="$1" of=/dev/null bs=512 skip=$((BAD_START / 512)) count=1 iflag=direct conv=noerror
	same "number of failed requests" $((BAD_SIZE / 512)) "$(grep -c 'error reading' <<<"$ERRORS")"
}

# The kernel log has the target's status of each failed request, ratelimited, but not of failed
# passthrough commands.
logs_why_a_request_failed() {
	local disk name began lines most
	connect "$TARGET4"
	disk=$(disk "$CTRL" $BROKEN)
	name=${disk##*/}
	try nvme read "$disk" -s $((BAD_START / 512)) -c 0 -z 512 -d "$SCRATCH/back"
	[ "$STATUS" != 0 ] || fail "a read of a bad block succeeded"
	same "number of failures in the log" 0 "$(logged "$name: .* failed: ")"
	began=$(now)
	read_bad_block "$disk"
	has "$(kernel_log | grep -F "$name: ")" \
		"$name: read of 1 block at $((BAD_START / 512)) failed: $WHY"
	same "number of warnings" 1 "$(logged_as warn "$name: .* failed: ")"
	read_bad_blocks "$disk"
	# The ratelimit is 10 lines in 5 s.
	most=$((10 * (($(now) - began) / 5000 + 1)))
	lines=$(logged "$name: .* failed: ")
	note "$lines log lines for $((BAD_SIZE / 512)) failures"
	[ "$lines" -le $most ] || fail "$lines log lines, expected at most $most"
	wait_until "$SOON" tells_how_many "$disk" || fail "the log lacks the number of suppressed lines"
}

# tells_how_many DISK: cause a failure. The first one after a ratelimit interval logs the number of
# suppressed lines.
tells_how_many() {
	read_bad_block "$1"
	[ "$(logged 'rnvmf: failed I/O: [0-9]+ callbacks suppressed$')" -gt 0 ]
}

# limit DISK NAME VALUE: check a queue limit.
limit() {
	same "$2 of $1" "$3" "$(queue_limit "$1" "$2")"
}

limits_are_the_targets() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" $PLAIN)
	limit "$disk" logical_block_size 512
	limit "$disk" physical_block_size "$(queue_limit "${BACKENDS[PLAIN]}" physical_block_size)"
	# Both MDTS and the size of a memory region allow 1 MiB.
	limit "$disk" max_hw_sectors_kb 1024
	limit "$disk" virt_boundary_mask 4095
	limit "$disk" dma_alignment 3
	limit "$disk" rotational 0
	disk=$(disk "$CTRL" $LOOP)
	limit "$disk" logical_block_size 4096
	limit "$disk" physical_block_size 4096
	limit "$disk" minimum_io_size 4096
	[ "$(queue_limit "$disk" discard_max_bytes)" -gt 0 ] || fail "discard_max_bytes is 0"
	[ "$(queue_limit "$disk" discard_granularity)" -ge 4096 ] ||
		fail "discard_granularity is less than the block size, 4096"
	[ "$(queue_limit "$disk" write_zeroes_max_bytes)" -gt 0 ] || fail "write_zeroes_max_bytes is 0"
	[ "$(queue_limit "$disk" max_segments)" -gt 1 ] || fail "max_segments is less than 2"
}

# protect CONTROLLER NSID VALUE: set write protection of a namespace with the C host.
protect() {
	nvme set-feature "$1" -n "$2" -f 0x84 --value="$3" >"$SCRATCH/protect"
}

respects_write_protection() {
	local other disk
	modprobe nvme-rdma
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -q "$HOSTNQN.other" -o json
	[[ $OUTPUT =~ nvme[0-9]+ ]] || fail "no controller in: $OUTPUT"
	other=/dev/${BASH_REMATCH[0]}
	defer nvme disconnect -d "$other"
	protect "$other" $PLAIN 1
	defer protect "$other" $PLAIN 0
	connect "$TARGET4"
	disk=$(disk "$CTRL" $PLAIN)
	same "read-only" 1 "$(blockdev --getro "$disk")"
	has "$("${RNVMF[@]}" list -o json)" "\"nsid\":$PLAIN,[^}]*\"read_only\":true"
	run dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	expect 1 dd if=/dev/zero of="$disk" bs=4k count=1 oflag=direct
	same "read-only" 0 "$(blockdev --getro "$(disk "$CTRL" $FILE)")"
}

main setup \
	discards \
	discards_into_a_file \
	writes_zeroes \
	flushes \
	forces_unit_access \
	flushes_no_cache_that_is_not \
	ends_where_it_ends \
	reports_a_namespace_that_is_gone \
	reports_bad_blocks \
	logs_why_a_request_failed \
	limits_are_the_targets \
	respects_write_protection
