#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The RDMA device of the host goes away while it is used, or its network namespace: errors, and
# nothing that hangs.

. "$(dirname "$0")/lib.sh"

# A loss is for good here.
CONNECT_OPTIONS=(--ctrl-loss-tmo 0)

setup() {
	modprobe rnvmf
}

delete_host_device() {
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
}

# rnvmf has no RDMA object any more.
owns_nothing() {
	! grep -qF '[rnvmf]' < <(rdma resource show qp) && ! grep -qF '[rnvmf]' < <(rdma resource show mr)
}

device_deleted_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	delete_host_device
	owns_nothing || fail "RDMA objects are left of a deleted device"
	io_fails
	is_dead 'RDMA device'
}

# The other end of the cable goes with it, and the target's device too.
interface_deleted_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	run ip -n "$HOST_NETNS" link delete rnvmf1
	io_fails
	# The connection manager may hear of it first, and either side.
	is_dead 'RDMA device|disconnected|does not answer|address( of the path)? changed'
	owns_nothing || fail "RDMA objects are left of a deleted device"
}

# unloads MODULE
unloads() {
	rmmod "$1" 2>"$SCRATCH/errors"
}

device_driver_unloaded_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	if queue_pairs_hold_soft_roce; then
		delete_host_device
		run rdma link delete rnvmf_rxe0
	fi
	# While it has a packet in hand soft-RoCE is in use.
	wait_until "$SOON" unloads rdma_rxe || fail "$(<"$SCRATCH/errors")"
	io_fails
	is_dead 'RDMA device|disconnected'
}

unloads_after_the_device_went() {
	start_pair
	connect "$TARGET4"
	start_io
	delete_host_device
	io_fails
	run rmmod rnvmf
	defer modprobe rnvmf
	no_disks || fail "a disk is left of an unloaded module"
}

device_deleted_while_idle() {
	start_pair
	connect "$TARGET4"
	delete_host_device
	is_dead 'RDMA device'
}

device_deleted_while_connecting() {
	local pid status=0
	start_pair
	# The link address of nobody is given, so that connecting gets beyond it.
	ip -n "$HOST_NETNS" neighbour replace "$NOBODY4" dev rnvmf1 lladdr 02:00:00:00:00:99
	"${RNVMF[@]}" connect -a "$NOBODY4" -n "$NQN" --timeout 60 >"$SCRATCH/connect" 2>&1 &
	pid=$!
	defer end_process $pid
	wait_until 10 owns_queue_pair || fail "it does not even try: $(<"$SCRATCH/connect")"
	delete_host_device
	wait_until "$SOON" process_ended $pid || fail "the connect still waits"
	wait $pid || status=$?
	same status 1 $status
	has "$(<"$SCRATCH/connect")" '^rnvmf: connect to .*RDMA device'
	owns_nothing || fail "RDMA objects are left of a deleted device"
}

# What has lost its connection tries again on the device that comes back.
device_deleted_while_it_tries_again() {
	start_recovering
	delete_host_device
	owns_nothing || fail "RDMA objects are left of a deleted device"
	port_is_back
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	is_verified
}

device_deleted_while_disconnecting() {
	local pid
	start_pair
	connect "$TARGET4"
	start_io
	# The target does not answer, so that it takes its time.
	silence
	"${RNVMF[@]}" disconnect -d "$CTRL" &
	pid=$!
	defer end_process $pid
	sees_deleting || fail "it is not being deleted"
	delete_host_device
	wait_until "$SOON" process_ended $pid || fail "the disconnect still waits"
	wait $pid || fail "the disconnect failed"
	owns_nothing || fail "RDMA objects are left of a deleted device"
	no_disks || fail "a disk is left"
	LOST=$REMOVED io_fails
}

# A discovery keeps its namespace, which has no name any more, for as long as its program lives, and
# no longer.
namespace_goes_with_its_discovery() {
	local program
	network_pair
	"${RNVMF[@]}" connect-all --persistent -a "$TARGET4" -s 4499 -q "$HOSTNQN" \
		>"$SCRATCH/told" 2>&1 &
	program=$!
	defer end_process $program
	wait_until 10 grep -q 'no listener on this port); retrying' "$SCRATCH/told" ||
		fail "it does not go on: $(<"$SCRATCH/told")"
	run ip netns del "$HOST_NETNS"
	[ -e /sys/class/net/rnvmf0 ] || fail "the namespace went before its program"
	kill -KILL $program
	wait_until 10 cable_is_gone || fail "the namespace outlives its program"
}

# Its other end went, with the namespace that it was in, and so, a little later, does the device on it.
cable_is_gone() {
	[ ! -e /sys/class/net/rnvmf0 ] && [ ! -e /sys/class/infiniband/rnvmf_rxe0 ]
}

# With the device back, the same address can be connected again.
connects_after_the_device_came_back() {
	start_pair
	connect "$TARGET4"
	delete_host_device
	is_dead 'RDMA device'
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	connect "$TARGET4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# A file system on a disk whose device goes: it fails, and can be unmounted.
mounted_file_system() {
	local disk
	start_pair
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	mkdir "$SCRATCH/mount"
	run mkfs.ext4 -q -F "$disk"
	run mount -o errors=continue "$disk" "$SCRATCH/mount"
	defer unmount_if_mounted "$SCRATCH/mount"
	run dd if=/dev/zero of="$SCRATCH/mount/file" bs=64k count=8
	delete_host_device
	expect 1 sync -f "$SCRATCH/mount/file"
	run umount "$SCRATCH/mount"
	is_dead 'RDMA device'
}

main setup \
	device_deleted_under_io \
	interface_deleted_under_io \
	device_driver_unloaded_under_io \
	unloads_after_the_device_went \
	device_deleted_while_idle \
	device_deleted_while_connecting \
	device_deleted_while_it_tries_again \
	device_deleted_while_disconnecting \
	namespace_goes_with_its_discovery \
	connects_after_the_device_came_back \
	mounted_file_system
