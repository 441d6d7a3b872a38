#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests changes of the ANA state: requests wait for the end of a change, for a limited time.

. "$(dirname "$0")/lib.sh"

# Status of a namespace that is inaccessible, and the error text of its I/O: ENOLINK.
INACCESSIBLE='asymmetric access inaccessible'

setup() {
	modprobe rnvmf && network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

# ana STATE: set the ANA state of the namespaces at the IPv4 port.
ana() {
	echo "$1" >"$NVMET/ports/4420/ana_groups/1/ana_state"
}

# start: connect in the state optimized, which the deferred command restores.
start() {
	ana optimized
	defer ana optimized
	connect "$TARGET4" "$@"
}

# A failover as an array does it, under verified writes.
changes_under_io() {
	local state
	start
	start_verify
	ana change
	wait_for_log "$SOON" "${CTRL}n1: .*asymmetric access .*: retrying" || fail "no line about the path errors"
	for state in optimized change inaccessible change optimized change non-optimized; do
		ana "$state"
		sleep 0.5
	done
	is_verified
	same state live "$(ctrl_field "$CTRL" state)"
}

# write_files DIRECTORY: write files, flush each and append its checksum to DIRECTORY.sums, until
# DIRECTORY.stop exists.
write_files() {
	local number
	for ((number = 0; ; number++)); do
		[ ! -e "$1.stop" ] || return 0
		dd if=/dev/urandom of="$1/$number" bs=16k count=4 conv=fsync status=none || return 1
		(cd "$1" && sha256sum "$number") >>"$1.sums" || return 1
	done
}

# writes_go_on DIRECTORY FILES: whether more than FILES files are written.
writes_go_on() {
	[ "$(wc -l <"$1.sums")" -gt "$2" ]
}

# ext4 DIRECTORY: make a file system on the disk of CTRL, and start a writer. WRITERS has its PID.
ext4() {
	local disk
	disk=$(disk "$CTRL" 1)
	mkdir "$1" && : >"$1.sums" || return 1
	run mkfs.ext4 -q -F "$disk"
	run mount "$disk" "$1"
	defer unmount_if_mounted "$1"
	write_files "$1" 2>"$1.errors" &
	WRITERS+=($!)
	defer end_process $!
}

# errors_of CONTROLLER: print how many of its commands the target completed with an error. The lines in the
# kernel log are ratelimited, for all disks together.
errors_of() {
	run rnvmf stats "$1" -o json
	[[ $OUTPUT =~ \"errors\":([0-9]+) ]] || fail "no errors in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# has_errors CONTROLLER NUMBER: whether it has more errors than NUMBER.
has_errors() {
	[ "$(errors_of "$1")" -gt "$2" ]
}

# The port's group has a namespace of each of two subsystems.
two_subsystems_under_ext4() {
	local other=$NQN:other first=$SCRATCH/first second=$SCRATCH/second number state where written disks
	local -A errors
	WRITERS=()
	start
	disks=("$(disk "$CTRL" 1)")
	ext4 "$first"
	backend_memory other 64 512
	target_subsystem "$other"
	target_namespace "$other" 1 "$BACKEND"
	target_export 4420 "$other"
	connect_to "$other" "$TARGET4"
	disks+=("$(disk "$CTRL" 1)")
	ext4 "$second"
	for where in "${disks[@]}"; do
		where=${where#/dev/} where=${where%n1}
		errors[$where]=$(errors_of "$where")
	done
	ana change
	for where in "${!errors[@]}"; do
		wait_until "$SOON" has_errors "$where" "${errors[$where]}" || fail "no path error of $where"
	done
	for state in optimized change inaccessible change optimized change inaccessible non-optimized; do
		ana "$state"
		sleep 0.5
	done
	for where in "$first" "$second"; do
		written=$(wc -l <"$where.sums")
		wait_until "$SOON" writes_go_on "$where" "$written" ||
			fail "$where is not written: $(<"$where.errors")"
	done
	touch "$first.stop" "$second.stop"
	for number in 0 1; do
		wait "${WRITERS[number]}" || fail "a writer failed: $(cat "$SCRATCH"/*.errors)"
	done
	for where in "$first" "$second"; do
		run umount "$where"
		run e2fsck -fn "${disks[0]}"
		run mount "${disks[0]}" "$where"
		(cd "$where" && sha256sum --quiet -c "$where.sums") || fail "$where has other data"
		run umount "$where"
		disks=("${disks[1]}")
	done
	! kernel_log | grep -E 'I/O error|EXT4-fs error' || fail "errors in the log"
}

# The change ends after the limit that ANATT sets, which fast_io_fail_tmo shortens.
inaccessible_too_long() {
	local began took
	start --fast-io-fail-tmo 2
	ana inaccessible
	began=$(now)
	expect 1 dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
	took=$(($(now) - began))
	has "$ERRORS" "$LOST"
	# ANATT is 10 s.
	within "the read failed after" 2000 $took 1500
	logged "$INACCESSIBLE .*after"
}

# An outage during a change is no path error: after it, requests wait for the change with a time of
# their own.
outage_in_a_change() {
	local reader before
	start --reconnect-delay 1
	before=$(errors_of "$CTRL")
	ana change
	dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct 2>"$SCRATCH/errors" &
	reader=$!
	wait_until "$SOON" has_errors "$CTRL" "$before" || fail "no path error"
	port_goes
	loses
	before=$(errors_of "$CTRL")
	# ANATT, which is the time of a path error.
	sleep 10
	# A new port begins in the state optimized.
	target_listen 4420 "$TARGET4"
	ana change
	target_offer 4420 "$NQN"
	comes_back
	wait_until "$SOON" has_errors "$CTRL" "$before" || fail "no path error after the outage"
	ana optimized
	wait $reader || fail "the read failed: $(<"$SCRATCH/errors")"
}

persistent_loss() {
	local began took
	start
	ana persistent-loss
	began=$(now)
	expect 1 dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
	took=$(($(now) - began))
	has "$ERRORS" "$LOST"
	at_most "the read failed only after" $took 500
}

# Partitions of a disk that was connected while its namespace was inaccessible.
partitions_appear() {
	local began took
	start
	run python3 "$HERE/gpt.py" "$(disk "$CTRL" 1)" $((64 << 20)) 512 \
		5e1f7e57-0000-4000-8000-0000000000aa part
	disconnect "$CTRL"
	ana inaccessible
	began=$(now)
	connect "$TARGET4"
	took=$(($(now) - began))
	# The connect waits a second for the partition table.
	at_most "the connect took" $took 1500
	[ ! -e "/dev/${CTRL}n1p1" ] || fail "a partition of an inaccessible namespace"
	ana optimized
	wait_until "$SOON" test -b "/dev/${CTRL}n1p1" || fail "no partition"
}

main setup \
	changes_under_io \
	two_subsystems_under_ext4 \
	inaccessible_too_long \
	outage_in_a_change \
	persistent_loss \
	partitions_appear
