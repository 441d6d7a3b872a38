#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests namespaces whose lists, identifiers or formats violate the protocol, or change at a reconnect:
# the host reports why a namespace has no disk, and nothing leaks.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile_host.sh"

# without_disk PATTERN ARGUMENT...: the namespace must be rejected. The reason must be in the output
# of connect, in `rnvmf show` and in the kernel log.
without_disk() {
	local pattern=$1
	shift
	hostile "$@"
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 1: .*($pattern)"
	no_disks || fail "the rejected namespace has a disk"
	refuses "$pattern"
	# A rescan rejects it again, without another log line.
	run "${RNVMF[@]}" rescan "$CTRL"
	refuses "$pattern"
	leave
}

# refuses PATTERN: the only namespace must have no disk, for this reason, which is logged once.
refuses() {
	run "${RNVMF[@]}" show "$CTRL" -o json
	has "$OUTPUT" "\"nr_refused_namespaces\":1,\"refused_namespaces\":\[\{\"nsid\":1,\"reason\":\"[^\"]*($1)[^\"]*\"\}\]"
	run "${RNVMF[@]}" show "$CTRL"
	has "$OUTPUT" "no disk +namespace 1: .*($1)"
	same warnings 1 "$(logged_as warn "$CTRL: namespace 1: no disk: .*($1)")"
}

unusable_namespaces() {
	without_disk 'not attached' namespace poke 0 8 8
	without_disk '9223372036854775808 blocks' namespace poke 0x8000000000000000 0 8
	without_disk 'blocks of 2.0 ' namespace poke 0 130 1
	without_disk 'blocks of 2.8 ' namespace poke 8 130 1
	without_disk 'blocks of 2.63 ' namespace poke 63 130 1
	without_disk '8 bytes of metadata' namespace poke 8 128 2
	without_disk 'command set 2' descriptors poke 0x0200000104 0 8
	refused 1 namespaces 'listed after' list poke 0x100000001 0 8
	refused 1 namespaces 'listed after' list poke 0xffffffff 0 4
	without_disk 'type 1 has the wrong length 15' descriptors poke 0x0f01 0 4
	without_disk 'type 3 has the wrong length 15' descriptors poke 0x0f03 0 4
}

# A namespace without blocks gets a disk of size 0, whose I/O sends no command.
namespace_without_blocks() {
	local path
	hostile namespace poke 0 0 8
	connect_hostile
	path=$(disk "$CTRL" 1)
	same size 0 "$(blockdev --getsize64 "$path")"
	run dd if="$path" of="$SCRATCH/read" bs=4k count=1 iflag=direct
	[ ! -s "$SCRATCH/read" ] || fail "data was read from an empty disk"
	expect 1 dd if=/dev/zero of="$path" bs=4k count=1 oflag=direct
	has "$ERRORS" 'No space left'
	same "number of reads and writes" 0 "$(grep -cE ' (read|write)$' "$SCRATCH/seen" || true)"
	same state live "$(ctrl_field "$CTRL" state)"
	leave
}

# A namespace without identifiers is identified by its controller; with another serial number it is
# another namespace.
comes_back_as_another() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile descriptors status 0x4002
	connect_hostile
	first=$(disk_number)
	goes_and_is_back descriptors status 0x4002
	same disk "$first" "$(disk_number)"
	SERIAL=x goes_and_is_back descriptors status 0x4002
	wait_until "$SOON" other_disk "$first" || fail "no new disk for the other controller's namespace"
	leave
}

# The capacity of a namespace is 0 while it is inaccessible on the path. Its disk stays.
comes_back_inaccessible() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first size
	export ANATT=1
	hostile
	connect_hostile
	first=$(disk_number)
	size=$(blockdev --getsize64 "$(disk "$CTRL" 1)")
	goes_and_is_back namespace poke 0 8 8
	same disk "$first" "$(disk_number)"
	goes_and_is_back namespace flood 0 0
	same disk "$first" "$(disk_number)"
	same size "$size" "$(blockdev --getsize64 "$(disk "$CTRL" 1)")"
	goes_and_is_back
	same disk "$first" "$(disk_number)"
	leave
}

# Write cache and preferred boundary may change without a new disk; the block size may not.
comes_back_with_other_abilities() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile controller poke 0 525 1
	connect_hostile
	first=$(disk_number)
	caches 'write through'
	goes_and_is_back controller poke 1 525 1
	caches 'write back'
	# NOIOB: an optimal I/O boundary of 64 blocks of 512 bytes.
	goes_and_is_back namespace poke 64 46 2
	wait_until "$SOON" limit_is chunk_sectors 64 || fail "chunk_sectors is not 64"
	same disk "$first" "$(disk_number)"
	compare "$(disk "$CTRL" 1)" 65536
	# Another block size makes a new disk.
	goes_and_is_back namespace poke 12 130 1
	wait_until "$SOON" other_disk "$first" || fail "another block size made no new disk"
	leave
}

caches() {
	wait_until "$SOON" limit_is write_cache "$1" ||
		fail "write_cache is '$(queue_limit "$(disk "$CTRL" 1)" write_cache)', expected '$1'"
}

# A disk takes over that the target supports less: no in-capsule data, transfers of 8 KiB. A reconnect
# fails if queues have only 32 entries, because requests have tags beyond these.
comes_back_with_less() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first less
	hostile
	connect_hostile
	first=$(disk_number)
	for less in 'controller poke 4 1792 4' 'controller poke 1 77 1'; do
		# shellcheck disable=SC2086 # words of a command line
		goes_and_is_back $less
		same disk "$first" "$(disk_number)"
		compare "$(disk "$CTRL" 1)" 65536
	done
	wait_until "$SOON" limit_is max_hw_sectors_kb 8 || fail "max_hw_sectors_kb is not 8"
	comes_back_after 'the target no longer supports the queue size of the disks' 0 \
		capabilities result 0x200101001f
	same disk "$first" "$(disk_number)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# The reason of a rejected namespace may change, until it gets a disk.
comes_back_with_another_refusal() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	hostile namespace poke 8 128 2
	connect_hostile
	refuses '8 bytes of metadata'
	goes_and_is_back namespace poke 0 8 8
	refuses 'not attached'
	goes_and_is_back
	wait_until "$SOON" test -b "/dev/${CTRL}n1" || fail "no disk was added"
	same refusals 0 "$(ctrl_field "$CTRL" nr_refused_namespaces)"
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT != *"no disk"* ]] || fail "the namespace is still shown as rejected: $OUTPUT"
	leave
}

# One malformed namespace of three costs neither of the others its disk, at the first connect and
# after a loss.
one_of_three_is_malformed() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	NAMESPACES=3 AFTER=1 hostile descriptors poke 0x0f01 0 4
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 2: .*wrong length 15"
	compare "$(disk "$CTRL" 1)" 65536
	end_process "$TARGET"
	loses
	NAMESPACES=3 AFTER=1 hostile descriptors poke 0x0f01 0 4
	comes_back
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# An endless namespace list, in which only namespace 1 is active.
endless_list() {
	local began took
	hostile list fill
	began=$(now)
	connect "$TARGET4" --timeout $((60 * SLOWDOWN)) -k $((2 * SLOWDOWN))
	took=$(($(now) - began))
	# One is due each half of the timeout.
	[ "$(count keep-alive)" -ge $((took / (1000 * SLOWDOWN) - 1)) ] ||
		fail "only $(count keep-alive) Keep Alive commands in $took ms"
	has "$ERRORS" "no disk: 1007 more namespaces"
	same namespaces 1 "$(ctrl_field "$CTRL" nr_namespaces)"
	same refusals 1023 "$(ctrl_field "$CTRL" nr_refused_namespaces)"
	same "number of reasons" 16 "$(rnvmf show "$CTRL" -o json | grep -o '"reason":' | wc -l)"
	same "number of warnings of a namespace" 16 "$(logged_as warn "$CTRL: namespace [0-9]+: no disk: ")"
	same "number of warnings of the others" 1 "$(logged_as warn "$CTRL: 1007 more namespaces have no disk")"
	same "number of warnings of the limit" 1 "$(logged_as warn "$CTRL: more than 1024 namespaces")"
	same "number of identified namespaces" 1024 "$(count namespace)"
	same "number of read pages of the list" 2 "$(count list)"
	leave
}

# Reads without a response, as of the partition table, do not keep the disk from being added.
silent_partition_table() {
	local began took
	hostile read silent
	began=$(now)
	connect_hostile
	took=$(($(now) - began))
	# The connect waits a second for the partition table.
	at_most "the connect took" $took 1500
	disk "$CTRL" 1
	has "$(kernel_log)" "$CTRL: namespace 1: partition table not read within"
	end_process "$TARGET"
	is_dead 'disconnected'
}

# The target inserts and strips protection information of 8 bytes, and checks that the commands say so.
leaves_protection_to_the_target() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	for PROTECTION in 1 2 3; do
		export PROTECTION
		hostile controller poke 0x0c 520 2
		connect_hostile
		same metadata_bytes 8 "$(<"/sys/block/${CTRL}n1/metadata_bytes")"
		compare "$(disk "$CTRL" 1)" 65536
		run blkdiscard --zeroout --offset 65536 --length 65536 "$(disk "$CTRL" 1)"
		leave
	done
	hostile
	connect_hostile
	first=$(disk_number)
	PROTECTION=0 goes_and_is_back
	wait_until "$SOON" other_disk "$first" || fail "no new disk without protection information"
	compare "$(disk "$CTRL" 1)" 65536
	leave
	unset PROTECTION
}

# A namespace with an EUI-64 as its only identifier.
knows_an_eui() {
	local sysfs
	EUI=0x1122334455667788 hostile
	connect_hostile
	sysfs=/sys/block/${CTRL}n1
	same eui '11 22 33 44 55 66 77 88' "$(<"$sysfs/eui")"
	same wwid eui.1122334455667788 "$(<"$sysfs/wwid")"
	[ ! -e "$sysfs/uuid" ] || fail "unexpected UUID: $(<"$sysfs/uuid")"
	has "$(rnvmf list -o json)" '"eui64":"1122334455667788"'
	leave
}

main hostile_setup \
	unusable_namespaces \
	namespace_without_blocks \
	comes_back_as_another \
	comes_back_inaccessible \
	comes_back_with_other_abilities \
	comes_back_with_less \
	comes_back_with_another_refusal \
	one_of_three_is_malformed \
	endless_list \
	silent_partition_table \
	leaves_protection_to_the_target \
	knows_an_eui
