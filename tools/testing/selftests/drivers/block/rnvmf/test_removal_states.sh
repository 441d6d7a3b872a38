#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests removal of the RDMA device, the interface, the module and the network namespace in each
# state of a controller. test_removal.sh, test_load.sh, test_recovery.sh, test_reset.sh and
# test_netns.sh cover the remaining combinations.

. "$(dirname "$0")/lib.sh"

# Time limit of a removal, in milliseconds.
AT_ONCE=2000

# Connect time-out for tests in which only it ends the wait for the target, in seconds.
PATIENCE=$((2 * SLOWDOWN))

setup() {
	modprobe rnvmf
}

# removed COMMAND...: run a removal; fail unless it ends within AT_ONCE ms.
removed() {
	local began took
	began=$(now)
	run "$@"
	took=$(($(now) - began))
	note "removal took $took ms: $*"
	at_most "removal took" $took $AT_ONCE
}

interface_removed() {
	removed ip -n "$HOST_NETNS" link delete rnvmf1
}

module_removed() {
	removed rmmod rnvmf
	defer modprobe rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
}

# Unload the module, with retries: udev may still have a disk open that was written to.
module_ends() {
	wait_until "$SOON" rmmod rnvmf 2>"$SCRATCH/errors" || fail "$(<"$SCRATCH/errors")"
	defer modprobe rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
}

# Delete the namespace. From outside the program cannot see its controllers.
namespace_removed() {
	removed ip netns del "$HOST_NETNS"
	RNVMF=(rnvmf)
}

# start_connect OPTION...: start a connect to an unused address. CONNECT is its PID.
start_connect() {
	"${RNVMF[@]}" connect -a "$NOBODY4" -n "$NQN" -q "$HOSTNQN" "$@" >"$SCRATCH/connect" 2>&1 &
	CONNECT=$!
	defer end_process $CONNECT
}

# start_resolving OPTION...: start a connect that waits for address resolution.
start_resolving() {
	start_pair
	start_connect "$@"
	wait_until "$SOON" neighbour_is 'INCOMPLETE|FAILED' ||
		fail "the connect does not resolve the address: $(<"$SCRATCH/connect")"
}

neighbour_is() {
	[[ $(ip -n "$HOST_NETNS" neighbour show "$NOBODY4") =~ $1 ]]
}

# Add a static neighbour entry, so that address resolution succeeds for the unused address.
somebody_is_there() {
	run ip -n "$HOST_NETNS" neighbour replace "$NOBODY4" dev rnvmf1 lladdr 02:00:00:00:00:99
}

# start_connecting OPTION...: start a connect that waits for the reply to its connection request.
start_connecting() {
	start_pair
	somebody_is_there
	start_connect "$@"
	wait_until "$SOON" owns_queue_pair || fail "the connect created no queue pair: $(<"$SCRATCH/connect")"
}

# connect_fails STATUS PATTERN: the connect must exit with STATUS and a message that matches.
connect_fails() {
	local status=0
	wait_until "$SOON" process_ended "$CONNECT" || fail "the connect did not exit"
	wait "$CONNECT" || status=$?
	same "status of the connect with output '$(<"$SCRATCH/connect")'" "$1" $status
	has "$(<"$SCRATCH/connect")" "^rnvmf: connect to $NOBODY4:4420: .*$2"
}

# resolving_fails PATTERN: like `connect_fails`, with status 1. On a slow kernel the removal may
# take longer than the time limit of address resolution, which then fails first.
resolving_fails() {
	wait_until "$SOON" process_ended "$CONNECT" || fail "the connect did not exit"
	if [ "$SLOWDOWN" -gt 1 ] && grep -q 'address resolution timed out' "$SCRATCH/connect"; then
		note "address resolution timed out before the removal"
	else
		connect_fails 1 "$1"
	fi
}

# start_deleting: start a disconnect that waits for a silent target. DELETE is its PID.
start_deleting() {
	start_pair
	connect "$TARGET4" --timeout "$PATIENCE"
	silence
	"${RNVMF[@]}" disconnect -d "$CTRL" >"$SCRATCH/delete" 2>&1 &
	DELETE=$!
	defer end_process $DELETE
	sees_deleting || fail "$CTRL is not in state deleting"
}

# start_trying [START]: start I/O with the function START, and wait for a reconnect attempt to a
# silent target.
start_trying() {
	start_pair
	CONNECT_OPTIONS=(-c 1)
	connect "$TARGET4" --timeout $((5 * SLOWDOWN))
	"$@"
	silence
	loses
	wait_until "$SOON" is_trying || fail "no reconnect attempt in progress: $OUTPUT"
	wait_until "$SOON" owns_queue_pair || fail "the reconnect attempt created no queue pair"
}

delete_ends() {
	wait_until "$SOON" process_ended "$DELETE" || fail "the disconnect did not exit"
	wait "$DELETE" || fail "the disconnect failed: $(<"$SCRATCH/delete")"
}

# nothing_is_left: check that no controller, disk or RDMA object of rnvmf remains.
nothing_is_left() {
	wait_until "$SOON" owns_nothing || fail "RDMA objects remain: $(rdma resource show | cat)"
	wait_until "$SOON" no_controllers || fail "a controller remains"
	no_disks || fail "a disk remains"
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

# After the set-up is made again a connect must succeed.
works_again() {
	undo || fail "a deferred command failed"
	CONNECT_OPTIONS=()
	start_pair
	connect "$TARGET4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# Delete the controller through sysfs, which shows it in every network namespace.
deleted_in_sysfs() {
	echo 1 >"/sys/class/rnvmf/$CTRL/delete_controller"
	wait_until "$SOON" no_controllers || fail "the controller was not removed"
}

# The namespace must be freed with its last reference, and with it the veth pair.
namespace_is_gone() {
	wait_until "$SOON" cable_is_gone || fail "the namespace was not freed"
}

cable_is_gone() {
	[ ! -e /sys/class/net/rnvmf0 ] && [ ! -e /sys/class/infiniband/rnvmf_rxe1 ]
}

# The device is determined only after the address is resolved, and is then missing.
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
	# The device is removed before the route.
	resolving_fails 'address resolution failed: no (route|RDMA device)'
	nothing_is_left
}

interface_while_connecting() {
	start_connecting --timeout 60
	interface_removed
	connect_fails 1 'RDMA device'
	nothing_is_left
}

# A reconnecting controller uses the interface that is added again.
interface_while_recovering() {
	start_recovering
	interface_removed
	owns_nothing || fail "RDMA objects remain after the device was removed"
	cable_is_back
	port_is_back
	comes_back
	is_verified
}

# The same during a reconnect attempt, which has RDMA objects.
interface_while_trying() {
	start_trying start_verify
	interface_removed
	wait_until "$SOON" owns_nothing || fail "RDMA objects remain after the device was removed"
	cable_is_back
	silence_ends
	# The target's listener was removed with its interface.
	port_goes
	port_is_back
	comes_back
	is_verified
}

device_while_trying() {
	start_trying start_verify
	removed ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	owns_nothing || fail "RDMA objects remain after the device was removed"
	silence_ends
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	is_verified
}

cable_is_back() {
	wait_until "$SOON" cable_is_gone || fail "rnvmf0 was not removed with its peer"
	wait_until "$SOON" rdma_is_gone rnvmf_rxe0 || fail "rnvmf_rxe0 was not removed with its interface"
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
	owns_nothing || fail "RDMA objects remain after the module was unloaded"
}

# An open disk holds a reference on the module.
module_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	expect 1 rmmod rnvmf
	has "$ERRORS" 'in use|busy'
	! process_ended "$IO" || fail "fio exited: $(<"$SCRATCH/fio")"
	end_process "$IO"
	module_ends
	owns_nothing || fail "RDMA objects remain after the module was unloaded"
}

module_while_trying() {
	start_trying
	module_removed
	owns_nothing || fail "RDMA objects remain after the module was unloaded"
	works_again
}

module_while_deleting() {
	start_deleting
	module_removed
	delete_ends
	owns_nothing || fail "RDMA objects remain after the module was unloaded"
	works_again
}

# A deleted namespace exists until its last process and its last controller are gone.
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

# A controller also holds a reference on its namespace, and its I/O continues.
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

# `is_verified` without the controller's state, which the program cannot read any more.
is_verified_elsewhere() {
	wait_until 60 process_ended "$IO" || fail "fio did not exit"
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
