#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The target, or the way to it, is not there or goes away: found out in time, with a reason and with
# errors.

. "$(dirname "$0")/lib.sh"

# What a silence is found out by: an answer that does not come, or the device that sends in vain.
NO_ANSWER='keep-alive: no response|transport retry counter exceeded|stopped by the RDMA device'

# A loss is for good here.
CONNECT_OPTIONS=(--ctrl-loss-tmo 0)

setup() {
	modprobe rnvmf
}

# The neighbour's link address is asked for when the connection is made.
neighbour_not_yet_known() {
	start_pair
	ip -n "$HOST_NETNS" neighbour flush dev rnvmf1
	connect "$TARGET4"
	disconnect "$CTRL"
	ip -n "$HOST_NETNS" neighbour flush dev rnvmf1
	connect "$TARGET6"
}

# The target drops all connections of the port, and listens no more.
port_removed_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	target_unexport 4420 "$NQN"
	target_port_delete 4420
	io_fails
	is_dead 'disconnected'
	expect 1 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN"
	has "$ERRORS" 'connection refused'
}

# The controller goes at the target while nothing is sent: the connection's end is noticed.
port_removed_while_idle() {
	start_pair
	connect "$TARGET4" -k 0
	target_unexport 4420 "$NQN"
	is_dead 'disconnected'
}

target_driver_unloaded_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	target_unexport 4420 "$NQN"
	target_unexport 4421 "$NQN"
	run rmmod nvmet-rdma
	io_fails
	is_dead 'disconnected'
}

# Its namespace is gone, its controller is not.
namespace_disabled_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	echo 0 >"$NVMET/subsystems/$NQN/namespaces/1/enable"
	wait_until "$SOON" process_ended "$IO" || fail "fio still waits"
	has "$(<"$SCRATCH/fio")" 'error'
	same state live "$(ctrl_field "$CTRL" state)"
	disconnect "$CTRL"
}

# A host finds out by its keep-alive: by twice its time and a second. With I/O under way its device
# may know before.
silence_under_io() {
	start_pair
	one_takes 5000 finds_out_under_io
}

finds_out_under_io() {
	connect "$TARGET4" -k 2
	start_io
	finds_out_in_silence
	io_fails
	is_dead "$NO_ANSWER"
	silence_ends
}

silence_while_idle() {
	start_pair
	one_takes 5000 finds_out_while_idle
}

finds_out_while_idle() {
	connect "$TARGET4" -k 2
	finds_out_in_silence
	is_dead "$NO_ANSWER"
	silence_ends
}

finds_out_in_silence() {
	local began
	began=$(now)
	silence
	wait_until "$SOON" state_is "$CTRL" dead || fail "still $(ctrl_field "$CTRL" state)"
	TOOK=$(($(now) - began))
	note "found out after $TOOK ms: $(ctrl_field "$CTRL" message)"
	has "$(ctrl_field "$CTRL" stage)" '^(keep-alive|transport)$'
}

# One that is live has its disks taken away and tells the target. That it takes less than a tenth of a
# second is seen where instructions are counted (the bench's guard): here others may be in the way.
disconnect_of_a_live_one() {
	local nsid
	start_pair
	for nsid in 2 3 4; do
		backend_memory "disk$nsid" 64 512
		target_namespace "$NQN" "$nsid" "$BACKEND"
	done
	one_takes 500 connects_and_disconnects
}

connects_and_disconnects() {
	connect "$TARGET4"
	[ -b "/dev/${CTRL}n4" ] || fail "a disk is missing"
	same state live "$(ctrl_field "$CTRL" state)"
	timed_disconnect "$CTRL"
	no_disks || fail "a disk is left"
}

# Taking away what is already cut off must not wait for the other side for long.
disconnect_in_silence() {
	start_pair
	one_takes 1000 disconnects_in_silence
}

disconnects_in_silence() {
	connect "$TARGET4" -k 0
	silence
	timed_disconnect "$CTRL"
	silence_ends
}

# Nor is anything waited for where nothing is connected any more.
disconnect_of_a_dead_one() {
	start_pair
	one_takes 1000 dies_and_disconnects
}

dies_and_disconnects() {
	connect "$TARGET4"
	port_goes
	wait_until "$SOON" state_is "$CTRL" dead || fail "still $(ctrl_field "$CTRL" state)"
	timed_disconnect "$CTRL"
	port_is_back
}

# The user takes the disk away from under who uses it.
disconnect_under_io() {
	local disk
	start_pair
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	start_io
	disconnect "$CTRL"
	LOST=$REMOVED io_fails
	[ ! -e "$disk" ] || fail "$disk is still there"
}

# What is yet to be written when the disk is taken away cannot be: the target goes meanwhile.
disconnect_with_dirty_pages() {
	local disk pid
	start_pair
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run dd if=/dev/zero of="$disk" bs=1M count=48 conv=notrunc
	"${RNVMF[@]}" disconnect -d "$CTRL" >"$SCRATCH/disconnect" 2>&1 &
	pid=$!
	defer end_process $pid
	wait_until "$SOON" not_live || fail "the disconnect does not begin"
	target_unexport 4420 "$NQN"
	wait_until 30 process_ended $pid || fail "the disconnect hangs"
	wait $pid
	[ ! -e "$disk" ] || fail "$disk is still there"
}

not_live() {
	! state_is "$CTRL" live
}

# Packets that get lost are sent again, and the data is right.
loses_packets() {
	start_pair
	connect "$TARGET4" -k 0
	run tc qdisc add dev rnvmf0 root netem loss 0.5% seed 7
	run fio --name=verify --filename="$(disk "$CTRL" 1)" --direct=1 --ioengine=libaio \
		--rw=randwrite --bs=16k --size=2m --iodepth=4 --verify=crc32c --verify_fatal=1 \
		--verify_state_save=0 --minimal
	same state live "$(ctrl_field "$CTRL" state)"
}

main setup \
	neighbour_not_yet_known \
	port_removed_under_io \
	port_removed_while_idle \
	target_driver_unloaded_under_io \
	namespace_disabled_under_io \
	silence_under_io \
	silence_while_idle \
	disconnect_of_a_live_one \
	disconnect_in_silence \
	disconnect_of_a_dead_one \
	disconnect_under_io \
	disconnect_with_dirty_pages \
	loses_packets
