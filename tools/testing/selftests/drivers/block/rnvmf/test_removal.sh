#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests removal of the host's RDMA device, interface or network namespace during use: I/O fails and
# nothing hangs.

. "$(dirname "$0")/lib.sh"

# No reconnect: a lost connection makes the controller dead.
CONNECT_OPTIONS=(--ctrl-loss-tmo 0)

setup() {
	modprobe rnvmf
}

delete_host_device() {
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
}

# Whether rnvmf owns no queue pair and no memory region.
owns_nothing() {
	! grep -qF '[rnvmf]' < <(rdma resource show qp) && ! grep -qF '[rnvmf]' < <(rdma resource show mr)
}

device_deleted_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	delete_host_device
	owns_nothing || fail "RDMA objects remain after the device was removed"
	io_fails
	is_dead 'RDMA device'
}

# Deleting one end of the veth pair deletes the other, and with it the target's RDMA device.
interface_deleted_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	run ip -n "$HOST_NETNS" link delete rnvmf1
	io_fails
	# The connection manager of either side may detect it first.
	is_dead 'RDMA device|disconnected|does not answer|address( of the path)? changed'
	owns_nothing || fail "RDMA objects remain after the device was removed"
}

# unloads MODULE: try to unload a module once.
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
	# soft-RoCE holds a reference on its module while it processes a packet.
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
	no_disks || fail "a disk remains after the module was unloaded"
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
	# A static neighbour entry for the unused address, so that address resolution succeeds.
	ip -n "$HOST_NETNS" neighbour replace "$NOBODY4" dev rnvmf1 lladdr 02:00:00:00:00:99
	"${RNVMF[@]}" connect -a "$NOBODY4" -n "$NQN" --timeout 60 >"$SCRATCH/connect" 2>&1 &
	pid=$!
	defer end_process $pid
	wait_until "$SOON" owns_queue_pair || fail "the connect created no queue pair: $(<"$SCRATCH/connect")"
	delete_host_device
	wait_until "$SOON" process_ended $pid || fail "the connect did not exit"
	wait $pid || status=$?
	same status 1 $status
	has "$(<"$SCRATCH/connect")" '^rnvmf: connect to .*RDMA device'
	owns_nothing || fail "RDMA objects remain after the device was removed"
}

# A reconnecting controller uses the device that is added again.
device_deleted_while_it_tries_again() {
	start_recovering
	delete_host_device
	owns_nothing || fail "RDMA objects remain after the device was removed"
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
	# Without responses the disconnect takes long enough.
	silence
	"${RNVMF[@]}" disconnect -d "$CTRL" &
	pid=$!
	defer end_process $pid
	sees_deleting || fail "$CTRL is not in state deleting"
	delete_host_device
	wait_until "$SOON" process_ended $pid || fail "the disconnect did not exit"
	wait $pid || fail "the disconnect failed"
	owns_nothing || fail "RDMA objects remain after the device was removed"
	no_disks || fail "a disk remains"
	LOST=$REMOVED io_fails
}

# A discovery holds a reference on its deleted network namespace until its program ends.
namespace_goes_with_its_discovery() {
	local program
	network_pair
	"${RNVMF[@]}" connect-all --persistent -a "$TARGET4" -s 4499 -q "$HOSTNQN" \
		>"$SCRATCH/told" 2>&1 &
	program=$!
	defer end_process $program
	wait_until "$SOON" grep -q 'no listener on this port); retrying' "$SCRATCH/told" ||
		fail "the discovery does not retry: $(<"$SCRATCH/told")"
	run ip netns del "$HOST_NETNS"
	[ -e /sys/class/net/rnvmf0 ] || fail "the namespace was freed before the program ended"
	kill -KILL $program
	wait_until "$SOON" cable_is_gone || fail "the namespace was not freed after the program ended"
}

# Whether the veth pair and the target's RDMA device are gone. The end of the namespace deletes the
# pair, the device follows later.
cable_is_gone() {
	[ ! -e /sys/class/net/rnvmf0 ] && [ ! -e /sys/class/infiniband/rnvmf_rxe0 ]
}

# A connect succeeds after the device is added again.
connects_after_the_device_came_back() {
	start_pair
	connect "$TARGET4"
	delete_host_device
	is_dead 'RDMA device'
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	connect "$TARGET4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# A mounted file system gets errors when the device is removed, and can be unmounted.
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

# soft-RoCE loses its connection manager when it moves to another network namespace: no program can connect
# through it. The connect names the device and the reason.
device_moved_between_namespaces() {
	defer wait_until "$SOON" netns_mode_is shared
	wait_until "$SOON" netns_mode_is exclusive || fail "rdma system set netns: $ERRORS"
	start_pair
	try rnvmf doctor -a "$HOST4" -n "$NQN" -q "$HOSTNQN"
	[[ $OUTPUT = *"rnvmf_rxe0 is on rnvmf0"* && $OUTPUT != *"no connection manager"* ]] ||
		fail "findings of a device that has not moved: $OUTPUT"
	try rdma dev set rnvmf_rxe1 netns "$HOST_NETNS"
	if [[ $ERRORS = *"not supported"* ]]; then
		# It is in this network namespace, where the end of the test does not look for it.
		rdma_delete rnvmf_rxe1
		skip "soft-RoCE devices cannot move, as on Linux 7.2"
	fi
	same "exit status of rdma dev set" 0 "$STATUS"
	expect 1 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN"
	has "$ERRORS" 'connecting failed: rnvmf_rxe1 has no connection manager; .* moves to another network namespace'
	expect 1 "${RNVMF[@]}" doctor -a "$TARGET4" -n "$NQN" -q "$HOSTNQN"
	has "$OUTPUT" 'fault *link *rnvmf_rxe1 has no connection manager; .* use the mode shared'
}

# netns_mode_is exclusive|shared: set the mode of RDMA; return whether that is allowed. It is not while there is
# another network namespace. One that was deleted, such as that of the test before, remains for a while.
netns_mode_is() {
	try rdma system set netns "$1"
	[ "$STATUS" = 0 ]
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
	mounted_file_system \
	device_moved_between_namespaces
