#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What is used goes away in each state of a controller: the RDMA device, the interface, the module
# and the network namespace. test_removal.sh, test_load.sh, test_recovery.sh, test_reset.sh and
# test_netns.sh have the others.

. "$(dirname "$0")/lib.sh"

# What a removal may take, in milliseconds.
AT_ONCE=$((5000 * SLOWDOWN))

# How long a silent target is waited for where nothing else ends that, in seconds.
PATIENCE=$((2 * SLOWDOWN))

setup() {
	modprobe rnvmf
}

# removed COMMAND...: the removal ends soon.
removed() {
	local began took
	began=$(now)
	run "$@"
	took=$(($(now) - began))
	note "after $took ms: $*"
	[ $took -lt $AT_ONCE ] || fail "it took $took ms: $*"
}

interface_removed() {
	removed ip -n "$HOST_NETNS" link delete rnvmf1
}

module_removed() {
	removed rmmod rnvmf
	defer modprobe rnvmf
	no_disks || fail "a disk is left of an unloaded module"
}

# What has looked at a disk that was written to may be about to close it.
module_ends() {
	wait_until "$SOON" rmmod rnvmf 2>"$SCRATCH/errors" || fail "$(<"$SCRATCH/errors")"
	defer modprobe rnvmf
	no_disks || fail "a disk is left of an unloaded module"
}

# Who is outside of it cannot ask rnvmf for its controllers any more.
namespace_removed() {
	removed ip netns del "$HOST_NETNS"
	RNVMF=(rnvmf)
}

# start_connect OPTION...: to where nobody is; its process is in CONNECT.
start_connect() {
	"${RNVMF[@]}" connect -a "$NOBODY4" -n "$NQN" -q "$HOSTNQN" "$@" >"$SCRATCH/connect" 2>&1 &
	CONNECT=$!
	defer end_process $CONNECT
}

# The link address of nobody is asked for, and no one answers.
start_resolving() {
	start_pair
	start_connect "$@"
	wait_until 10 neighbour_is 'INCOMPLETE|FAILED' ||
		fail "it does not even ask: $(<"$SCRATCH/connect")"
}

neighbour_is() {
	[[ $(ip -n "$HOST_NETNS" neighbour show "$NOBODY4") =~ $1 ]]
}

# Nobody gets a link address, and is then asked for a connection.
somebody_is_there() {
	run ip -n "$HOST_NETNS" neighbour replace "$NOBODY4" dev rnvmf1 lladdr 02:00:00:00:00:99
}

start_connecting() {
	start_pair
	somebody_is_there
	start_connect "$@"
	wait_until 10 owns_queue_pair || fail "it does not even try: $(<"$SCRATCH/connect")"
}

# connect_fails STATUS PATTERN: the connect ends soon, and says why.
connect_fails() {
	local status=0
	wait_until "$SOON" process_ended "$CONNECT" || fail "the connect still waits"
	wait "$CONNECT" || status=$?
	same "status of the connect, which said '$(<"$SCRATCH/connect")'," "$1" $status
	has "$(<"$SCRATCH/connect")" "^rnvmf: connect to $NOBODY4:4420: .*$2"
}

# resolving_fails PATTERN: likewise, with status 1. What goes may take longer on a slow kernel than an
# address may take to be found.
resolving_fails() {
	wait_until "$SOON" process_ended "$CONNECT" || fail "the connect still waits"
	if [ "$SLOWDOWN" -gt 1 ] && grep -q 'address resolution timed out' "$SCRATCH/connect"; then
		note "the kernel was too slow for that"
	else
		connect_fails 1 "$1"
	fi
}

# start_deleting: the target says nothing, so that it takes its time; its process is in DELETE.
start_deleting() {
	start_pair
	connect "$TARGET4" --timeout "$PATIENCE"
	silence
	"${RNVMF[@]}" disconnect -d "$CTRL" >"$SCRATCH/delete" 2>&1 &
	DELETE=$!
	defer end_process $DELETE
	sees_deleting || fail "it is not being deleted"
}

# start_trying [START]: an attempt to connect again is under way, to a target that says nothing, and
# some I/O waits for that.
start_trying() {
	start_pair
	CONNECT_OPTIONS=(-c 1)
	connect "$TARGET4" --timeout $((5 * SLOWDOWN))
	"$@"
	silence
	loses
	wait_until "$SOON" is_trying || fail "it does not try: $OUTPUT"
	wait_until "$SOON" owns_queue_pair || fail "it has nothing to try with"
}

delete_ends() {
	wait_until "$SOON" process_ended "$DELETE" || fail "the disconnect still waits"
	wait "$DELETE" || fail "the disconnect failed: $(<"$SCRATCH/delete")"
}

# nothing_is_left: no controller, no disk, and no object of rnvmf's.
nothing_is_left() {
	wait_until "$SOON" owns_nothing || fail "RDMA objects are left: $(rdma resource show | cat)"
	wait_until "$SOON" no_controllers || fail "a controller is left"
	no_disks || fail "a disk is left"
}

owns_nothing() {
	local kind
	for kind in qp cm_id mr; do
		! grep -qF '[rnvmf]' < <(rdma resource show $kind) || return 1
	done
}

no_controllers() {
	local controller
	for controller in /sys/class/rnvmf/rnvmf[0-9]*; do
		[ ! -e "$controller" ] || return 1
	done
}

# With all of it made anew, a connect works.
works_again() {
	undo || fail "not all of it could be undone"
	CONNECT_OPTIONS=()
	start_pair
	connect "$TARGET4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# The controller is asked to go where those of all namespaces are.
deleted_in_sysfs() {
	echo 1 >"/sys/class/rnvmf/$CTRL/delete_controller"
	wait_until "$SOON" no_controllers || fail "the controller is still there"
}

# The namespace went with the last that held it, and so did its end of the cable.
namespace_is_gone() {
	wait_until "$SOON" cable_is_gone || fail "the namespace is still there"
}

cable_is_gone() {
	[ ! -e /sys/class/net/rnvmf0 ] && [ ! -e /sys/class/infiniband/rnvmf_rxe1 ]
}

# Which device it will be is not known before the address is found; then there is none.
device_while_resolving() {
	start_resolving --timeout 60
	removed ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	somebody_is_there
	resolving_fails 'no RDMA device on the route'
	nothing_is_left
}

interface_while_resolving() {
	start_resolving --timeout 60
	interface_removed
	# The device goes before the route does.
	resolving_fails 'address resolution failed: no (route|RDMA device)'
	nothing_is_left
}

interface_while_connecting() {
	start_connecting --timeout 60
	interface_removed
	connect_fails 1 'RDMA device'
	nothing_is_left
}

# What has lost its connection tries again on the interface that comes back.
interface_while_recovering() {
	start_recovering
	interface_removed
	owns_nothing || fail "RDMA objects are left of a deleted device"
	cable_is_back
	port_is_back
	comes_back
	is_verified
}

# The same, with the objects of an attempt.
interface_while_trying() {
	start_trying start_verify
	interface_removed
	wait_until "$SOON" owns_nothing || fail "RDMA objects are left of a deleted device"
	cable_is_back
	silence_ends
	# Its listener went with its end of the cable.
	port_goes
	port_is_back
	comes_back
	is_verified
}

device_while_trying() {
	start_trying start_verify
	removed ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	owns_nothing || fail "RDMA objects are left of a deleted device"
	silence_ends
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	is_verified
}

cable_is_back() {
	wait_until 10 cable_is_gone || fail "the other end is still there"
	wait_until 10 rdma_is_gone rnvmf_rxe0 || fail "the target's device is still there"
	run ip link add rnvmf0 type veth peer name rnvmf1 netns "$HOST_NETNS"
	interface_up "" rnvmf0 "$MTU" "$TARGET4/24"
	interface_up "$HOST_NETNS" rnvmf1 "$MTU" "$HOST4/24"
	rdma_add "" rnvmf_rxe0 rnvmf0
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
}

interface_while_deleting() {
	start_deleting
	interface_removed
	delete_ends
	nothing_is_left
	works_again
}

module_while_resolving() {
	start_resolving --timeout 60
	module_removed
	resolving_fails 'cancelled: the controller is being removed'
	owns_nothing || fail "RDMA objects are left of an unloaded module"
}

# As for any disk, who uses it keeps the module.
module_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	expect 1 rmmod rnvmf
	has "$ERRORS" 'in use|busy'
	! process_ended "$IO" || fail "the I/O ended: $(<"$SCRATCH/fio")"
	end_process "$IO"
	module_ends
	owns_nothing || fail "RDMA objects are left of an unloaded module"
}

module_while_trying() {
	start_trying
	module_removed
	owns_nothing || fail "RDMA objects are left of an unloaded module"
	works_again
}

module_while_deleting() {
	start_deleting
	module_removed
	delete_ends
	owns_nothing || fail "RDMA objects are left of an unloaded module"
	works_again
}

# A namespace without a name lives on for those that are in it.
namespace_while_resolving() {
	start_resolving --timeout "$PATIENCE"
	namespace_removed
	connect_fails 5 'address resolution timed out'
	nothing_is_left
	namespace_is_gone
}

namespace_while_connecting() {
	start_connecting --timeout "$PATIENCE"
	namespace_removed
	connect_fails 5 'timed out'
	nothing_is_left
	namespace_is_gone
}

# The controller holds it, too, and its I/O goes on.
namespace_under_io() {
	start_pair
	connect "$TARGET4"
	start_verify
	namespace_removed
	is_verified_elsewhere
	deleted_in_sysfs
	nothing_is_left
	namespace_is_gone
}

# The controller cannot be asked how it is any more.
is_verified_elsewhere() {
	wait_until 60 process_ended "$IO" || fail "fio still waits"
	wait "$IO" || fail "fio failed: $(<"$SCRATCH/fio")"
}

namespace_while_recovering() {
	start_recovering
	namespace_removed
	port_is_back
	is_verified_elsewhere
	deleted_in_sysfs
	nothing_is_left
	namespace_is_gone
}

namespace_while_trying() {
	start_trying start_io
	namespace_removed
	deleted_in_sysfs
	LOST=$REMOVED io_fails
	nothing_is_left
	namespace_is_gone
}

namespace_while_deleting() {
	start_deleting
	namespace_removed
	delete_ends
	nothing_is_left
	namespace_is_gone
	works_again
}

main setup \
	device_while_resolving \
	interface_while_resolving \
	interface_while_connecting \
	interface_while_recovering \
	device_while_trying \
	interface_while_trying \
	interface_while_deleting \
	module_while_resolving \
	module_under_io \
	module_while_trying \
	module_while_deleting \
	namespace_while_resolving \
	namespace_while_connecting \
	namespace_under_io \
	namespace_while_recovering \
	namespace_while_trying \
	namespace_while_deleting
