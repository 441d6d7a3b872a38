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

# logged PATTERN: whether the kernel log of this test has a line of the disk that matches.
logged() {
	kernel_log | grep -q "${CTRL}n1: .*$1"
}

# A failover as an array does it, under verified writes.
changes_under_io() {
	local state
	start
	start_verify
	for state in change inaccessible change optimized change non-optimized; do
		ana "$state"
		sleep 0.5
	done
	is_verified
	logged 'asymmetric access .*: retrying' || fail "no line about the path errors"
	same state live "$(ctrl_field "$CTRL" state)"
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
	within "the read failed after" 2000 $took $((2000 + 2000 * SLOWDOWN))
	logged "$INACCESSIBLE .*after"
}

persistent_loss() {
	local began took
	start
	ana persistent-loss
	began=$(now)
	expect 1 dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
	took=$(($(now) - began))
	has "$ERRORS" "$LOST"
	[ $took -lt $((3000 * SLOWDOWN)) ] || fail "the read failed only after $took ms"
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
	[ $took -lt $((3000 * SLOWDOWN)) ] || fail "the connect took $took ms"
	[ ! -e "/dev/${CTRL}n1p1" ] || fail "a partition of an inaccessible namespace"
	ana optimized
	wait_until "$SOON" test -b "/dev/${CTRL}n1p1" || fail "no partition"
}

main setup \
	changes_under_io \
	inaccessible_too_long \
	persistent_loss \
	partitions_appear
