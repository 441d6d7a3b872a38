#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests changes of a target's configuration under I/O, and loading and unloading its module.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)

setup() {
	load_driver && modprobe rdma_ucm && hostile_host_build
}

port_goes_and_returns_under_io() {
	start_pair
	connect "$TARGET4"
	port_goes_and_returns
	disconnect "$CTRL"
}

# One of two subsystems is removed from the port; the other one's connections stay.
subsystem_goes_under_io() {
	local first
	start_pair
	target_subsystem "$NQN-second"
	backend_memory second 32 512
	target_namespace "$NQN-second" 1 "$BACKEND"
	target_export 4420 "$NQN-second"
	connect "$TARGET4"
	first=$CTRL
	connect_to "$NQN-second" "$TARGET4"
	start_verify
	target_unexport 4420 "$NQN"
	CTRL=$first loses
	is_verified
	disconnect "$CTRL"
	# A host gives up at once: Connect fails, and may not be retried.
	disconnect_if_there "$first"
	target_offer 4420 "$NQN"
	target_serves
}

# The address goes and returns, and with it the GID of the port's listener.
address_goes_and_returns() {
	start_pair
	target_serves
	run ip address del "$TARGET4/24" dev rnvmf0
	wait_until 10 gid_is_gone || fail "the GID of $TARGET4 stays"
	run ip address add "$TARGET4/24" dev rnvmf0
	wait_until 10 gid_is_there || fail "no GID of $TARGET4"
	target_serves
}

gid_is_gone() {
	! gid_is_there
}

gid_is_there() {
	grep -qi 'c000:0201$' /sys/class/infiniband/rnvmf_rxe0/ports/1/gids/*
}

# Failover of a bond: the connection manager reports an address change, and the port listens anew.
bond_fails_over() {
	modprobe -q bonding max_bonds=0 || skip "no module bonding"
	rdma_load
	ip link add rnvmf_bond type bond mode active-backup || skip "no bonding"
	defer interface_delete rnvmf_bond
	ip link add rnvmf_b0 type dummy
	defer interface_delete rnvmf_b0
	ip link add rnvmf_b1 type dummy
	defer interface_delete rnvmf_b1
	ip link set rnvmf_b0 master rnvmf_bond
	ip link set rnvmf_b1 master rnvmf_bond
	interface_up "" rnvmf_b0 "$MTU"
	interface_up "" rnvmf_b1 "$MTU"
	interface_up "" rnvmf_bond "$MTU" "$TARGET4/24"
	rdma_add "" rnvmf_rxe0 rnvmf_bond
	backend_memory disk 64 512
	target_load
	target_subsystem "$NQN"
	target_namespace "$NQN" 1 "$BACKEND"
	target_port 4420 "$TARGET4"
	target_export 4420 "$NQN"
	target_serves
	local active next
	active=$(</sys/class/net/rnvmf_bond/bonding/active_slave)
	next=rnvmf_b1
	[ "$active" != rnvmf_b1 ] || next=rnvmf_b0
	echo $next >/sys/class/net/rnvmf_bond/bonding/active_slave
	# The listener is away for a moment.
	wait_until 7 accepts || fail "the port does not accept after the failover"
	target_serves
}

# accepts: whether the port accepts a connection.
accepts() {
	try "$HOSTILE" "$TARGET4" 4420 "$NQN" cm bye
	[[ $OUTPUT = 'cm accepted'* ]]
}

address_in_use() {
	start_pair
	target_port 4430 "$TARGET4" 4420
	! target_offer 4430 "$NQN" 2>/dev/null || {
		target_unexport 4430 "$NQN"
		fail "two ports have the same address"
	}
	target_serves
}

wrong_addresses() {
	local address
	start_pair
	for address in 198.51.100.1 192.0.2 no-address; do
		target_port 4430 "$address" 4430
		! target_offer 4430 "$NQN" 2>/dev/null || {
			target_unexport 4430 "$NQN"
			fail "a port listens at $address"
		}
		target_port_delete 4430
	done
	target_serves
}

# A port holds the module.
module_in_use() {
	start_pair
	expect 1 rmmod "$TARGET_MODULE"
	has "$ERRORS" 'in use|busy'
	target_serves
	port_goes
	target_unexport 4421 "$NQN"
	run rmmod "$TARGET_MODULE"
	defer target_load
	[ ! -e "/sys/module/$TARGET_MODULE" ] || fail "$TARGET_MODULE is still loaded"
	target_load
	target_offer 4421 "$NQN"
	port_is_back
	target_serves
}

# A second transport of the same type is refused.
other_driver_in_the_way() {
	local other=nvmet_rdma_rust
	target_is_c || other=nvmet-rdma
	modprobe -qn $other || skip "no module $other"
	start_pair
	expect 1 modprobe $other
	target_serves
}

# Connections without a controller end with the port.
port_goes_with_idle_connections() {
	local hosts=() each
	start_pair
	for each in 1 2 3 4; do
		"$HOSTILE" "$TARGET4" 4420 "$NQN" cm cm,no-rtu cm,qid=1 \
			quiet,ms=$((20000 * SLOWDOWN)) >"$SCRATCH/idle$each" 2>&1 &
		hosts+=($!)
		defer end_process $!
	done
	for each in 1 2 3 4; do
		wait_until 10 accepted_three "$SCRATCH/idle$each" || fail "$(<"$SCRATCH/idle$each")"
	done
	port_goes
	for each in "${hosts[@]}"; do
		wait_until 3 process_ended "$each" || fail "a connection remains"
	done
	has "$(<"$SCRATCH/idle1")" 'quiet disconnected'
	port_is_back
	target_serves
}

accepted_three() {
	[ "$(grep -c '^cm accepted' "$1")" = 3 ]
}

main_with_known setup \
	port_goes_and_returns_under_io \
	subsystem_goes_under_io \
	address_goes_and_returns \
	bond_fails_over \
	address_in_use \
	wrong_addresses \
	module_in_use \
	other_driver_in_the_way \
	port_goes_with_idle_connections
