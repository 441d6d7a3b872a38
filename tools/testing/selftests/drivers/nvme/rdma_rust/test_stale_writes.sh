#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests writes that were in flight on a path that was lost. The hostile target ignores the lost
# controller, and executes its write late, unless the association has ended before. nvme-core sends the
# write on the other path at once; nvme_rdma_rust with the parameter quiesce_time delays that.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# A lost controller is detected within 1.5 times the first, and connects again after a second.
CONNECT_OPTIONS=(-k $((2 * SLOWDOWN)) -c 1 -D -i 1)
# Time in seconds after which the target executes no old write, and the parameter.
QUIESCE=$((15 * SLOWDOWN))
# Where the target keeps a write, in units of 64 KiB.
TRAP=64

setup() {
	load_driver && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

# start TWIST [VALUE]: start the target, and connect two controllers, both paths of DISK. CTRL1 and
# CTRL2 are their names.
start() {
	export SHARED=yes
	hostile trap-write "$@"
	connect "$TARGET4"
	CTRL1=$CTRL
	connect "$TARGET4"
	CTRL2=$CTRL
	both_paths "$CTRL1" "$CTRL2"
}

# put old|new: write this data to the disk.
put() {
	head -c 65536 /dev/zero | tr '\0' "${1:0:1}" >"$SCRATCH/$1"
	run dd if="$SCRATCH/$1" of="$DISK" bs=64k seek=$TRAP oflag=direct conv=notrunc
}

# reads old|new: fail unless the disk has this data.
reads() {
	run dd if="$DISK" of="$SCRATCH/read" bs=64k skip=$TRAP count=1 iflag=direct
	cmp "$SCRATCH/read" "$SCRATCH/$1" || fail "the data is not the $1 one"
}

leave() {
	disconnect "$CTRL1"
	disconnect "$CTRL2"
	end_process "$TARGET"
}

# The old write lands on the new one: the data is stale.
lands_late() {
	start outlive $((QUIESCE * 1000))
	put old
	put new
	seen '- landed' || fail "the target did not execute the old write"
	reads old
	leave
}

is_held() {
	hold $QUIESCE
	start outlive $((QUIESCE * 1000))
	put old
	put new
	seen '- ended' || fail "the write was sent again before the old association had ended"
	reads new
	leave
}

# A target that disconnects executes nothing any more.
is_not_held_after_a_disconnect() {
	local began
	hold 100
	FIRST=1 start hang-up
	began=$(now)
	put old
	at_most "the write took" $(($(now) - began)) 2000
	reads old
	leave
}

# start_held: have a write held. LOST and OTHER are the controllers, WRITER is the PID.
start_held() {
	hold $QUIESCE
	start outlive $((QUIESCE * 1000))
	put old &
	WRITER=$!
	defer end_process "$WRITER"
	wait_until "$SOON" one_is_lost || fail "no controller has detected the loss"
}

# Whether one controller is not live.
one_is_lost() {
	LOST=$CTRL1
	OTHER=$CTRL2
	state_is "$CTRL1" live || return 0
	LOST=$CTRL2
	OTHER=$CTRL1
	! state_is "$CTRL2" live
}

# writer_ends: wait until the write was sent on the other path.
writer_ends() {
	wait_until $((QUIESCE / SLOWDOWN + SOON)) process_ended "$WRITER" || fail "the write did not end"
	wait "$WRITER"
	[ "$(count trap-write)" = 2 ] || fail "the target has $(count trap-write) writes"
}

disconnect_while_held() {
	start_held
	disconnect "$LOST"
	writer_ends
	disconnect "$OTHER"
}

reset_while_held() {
	start_held
	# It is being reset.
	try nvme reset "/dev/$LOST"
	writer_ends
	wait_until "$SOON" state_is "$LOST" live || fail "$LOST is in state $(ctrl_field "$LOST" state)"
	reads old
	leave
}

unload_while_held() {
	start_held
	run modprobe -r nvme_rdma_rust
	[ ! -e "/sys/class/nvme/$LOST" ] || fail "$LOST remains"
	wait_until "$SOON" process_ended "$WRITER" || fail "the write did not end"
	run modprobe nvme_rdma_rust
}

# For the last test: nvmet listens on a new device only after a delay.
device_goes_while_held() {
	start_held
	device_goes wait_until $((QUIESCE / SLOWDOWN + SOON)) is_gone "$LOST"
	is_gone "$LOST" || fail "$LOST is in state $(ctrl_field "$LOST" state)"
	wait_until "$SOON" process_ended "$WRITER" || fail "the write did not end"
}

main setup \
	lands_late \
	is_held \
	is_not_held_after_a_disconnect \
	disconnect_while_held \
	reset_while_held \
	unload_while_held \
	device_goes_while_held
