#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests removal of the target's RDMA device in each state of its connections, and its return.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)

setup() {
	load_driver && modprobe rdma_ucm && hostile_host_build
}

device_goes() {
	local removal
	rdma link delete rnvmf_rxe0 &
	removal=$!
	wait_until 2 process_ended $removal || fail "the removal of rnvmf_rxe0 did not end"
}

device_returns() {
	run rdma link add rnvmf_rxe0 type rxe netdev rnvmf0
	wait_until 10 rdma_is_up rnvmf_rxe0
}

# The port listens at the wildcard address: the connection manager listens on each new device.
wildcard_pair() {
	start_pair
	target_unexport 4420 "$NQN"
	target_port_delete 4420
	target_port 4430 0.0.0.0 4430
	target_export 4430 "$NQN"
	SERVICE=4430
}

goes_while_idle() {
	start_pair
	device_goes
	port_goes
	device_returns
	port_is_back
	target_serves
}

# The port is created again after the return.
goes_under_io() {
	start_pair
	connect "$TARGET4"
	start_verify
	device_goes
	loses
	port_goes
	device_returns
	port_is_back
	comes_back
	is_verified
	disconnect "$CTRL"
}

# device_goes_and_returns TIMES: remove the device under verified I/O, and add it again.
device_goes_and_returns() {
	local n
	connect "$TARGET4"
	start_verify
	for ((n = 0; n < $1; n++)); do
		device_goes
		loses
		device_returns
		comes_back
	done
	is_verified
	disconnect "$CTRL"
}

# The port remains.
goes_under_a_port() {
	start_pair
	device_goes_and_returns 1
}

goes_under_a_wildcard_port() {
	wildcard_pair
	device_goes_and_returns 1
}

again_and_again() {
	wildcard_pair
	device_goes_and_returns 3
}

# Connections without a controller, and one that is not established.
goes_under_idle_connections() {
	start_pair
	"$HOSTILE" "$TARGET4" 4420 "$NQN" cm cm,qid=1 cm,no-rtu quiet,ms=$((20000 * SLOWDOWN)) >"$SCRATCH/idle" 2>&1 &
	IDLE=$!
	defer end_process $IDLE
	wait_until 10 idle_are_accepted || fail "$(<"$SCRATCH/idle")"
	device_goes
	end_process $IDLE
	port_goes
	device_returns
	port_is_back
	target_serves
}

idle_are_accepted() {
	[ "$(grep -c '^cm accepted' "$SCRATCH/idle")" = 3 ]
}

driver_of_the_device_is_unloaded() {
	! queue_pairs_hold_soft_roce || skip "queue pairs hold soft-RoCE"
	wildcard_pair
	connect "$TARGET4"
	# soft-RoCE holds a reference on its module while it processes a packet.
	wait_until 15 driver_unloads || fail "$ERRORS"
	disconnect_if_there "$CTRL"
	rdma_load
	rdma_add "" rnvmf_rxe0 rnvmf0
	rdma_add "" rnvmf_rxe1 rnvmf1
	target_serves
}

driver_unloads() {
	try rmmod rdma_rxe
	[ "$STATUS" = 0 ]
}

main_with_known setup \
	goes_while_idle \
	goes_under_io \
	goes_under_a_port \
	goes_under_a_wildcard_port \
	again_and_again \
	goes_under_idle_connections \
	driver_of_the_device_is_unloaded
