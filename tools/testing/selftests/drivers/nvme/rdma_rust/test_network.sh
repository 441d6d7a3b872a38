#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests nvme_rdma_rust over a VLAN and a bond, and with namespaces: of the network, and of RDMA.

. "$(dirname "$0")/lib.sh"

SWITCH=rnvmf-switch

setup() {
	load_driver
}

# start_target: offer a subsystem with one namespace.
start_target() {
	backend_memory disk 64 512 && target_simple "$BACKEND"
}

# The RDMA devices are on the interfaces below: soft-RoCE refuses a VLAN. Their GIDs are those of the
# VLAN.
over_a_vlan() {
	local end
	rdma_load
	modprobe -q 8021q || skip "no module 8021q"
	run ip link add rnvmf0 type veth peer name rnvmf1
	defer interface_delete rnvmf0
	run ip link set rnvmf0 mtu "$MTU" up
	run ip link set rnvmf1 mtu "$MTU" up
	for end in 0 1; do
		rdma_add "" "rnvmf_rxe$end" "rnvmf$end"
		run ip link add link "rnvmf$end" name "rnvmf_vlan$end" type vlan id 5
	done
	PAIR=(rnvmf_vlan0 rnvmf_vlan1)
	pair_routed
	pair_meets
	# The core adds the GIDs of addresses that are younger than the devices asynchronously.
	wait_until "$SOON" have_gids || fail "the devices have no GIDs of the VLAN"
	start_target
	counts_frames
	connect "$TARGET4"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k-64k --size=4m --iodepth=8
	[ "$(frames)" -gt 100 ] || fail "only $(frames) packets of RoCE in the VLAN"
}

have_gids() {
	has_gid rnvmf_rxe0 "$TARGET4" && has_gid rnvmf_rxe1 "$HOST4"
}

# has_gid DEVICE ADDRESS: whether the device has the GID of an IPv4 address.
has_gid() {
	local byte gid=0000:0000:0000:0000:0000:ffff
	read -ra byte <<<"${2//./ }"
	printf -v gid '%s:%02x%02x:%02x%02x' "$gid" "${byte[@]}"
	# An index without a GID cannot be read.
	[[ $(cat "/sys/class/infiniband/$1/ports/1/gids"/* 2>/dev/null) == *"$gid"* ]]
}

# counts_frames: count the packets of RoCE that reach the target's end of the VLAN.
counts_frames() {
	run nft 'table inet rnvmf_vlan { chain input {
		type filter hook input priority 0; iifname rnvmf_vlan0 udp dport 4791 counter; }; }'
	defer nft delete table inet rnvmf_vlan
}

# frames: print the number of packets that `counts_frames` counts.
frames() {
	nft list table inet rnvmf_vlan | sed -n 's/.*counter packets \([0-9]*\) .*/\1/p'
}

# network_bonded: create a target and a host with a bond, at ports of a bridge.
network_bonded() {
	local slave
	rdma_load
	modprobe -q bonding max_bonds=0 || skip "no module bonding"
	ip netns add "$SWITCH" || return 1
	defer netns_delete "$SWITCH"
	ip -n "$SWITCH" link add switch type bridge && interface_up "$SWITCH" switch "$MTU" &&
		ip link add rnvmf_bond type bond mode active-backup miimon 100 || return 1
	defer interface_delete rnvmf_bond
	ip link add rnvmf0 type veth peer name far netns "$SWITCH" && port_up far || return 1
	defer interface_delete rnvmf0
	for slave in rnvmf_b0 rnvmf_b1; do
		ip link add "$slave" type veth peer name "$slave" netns "$SWITCH" && port_up "$slave" &&
			ip link set "$slave" master rnvmf_bond || return 1
		defer interface_delete "$slave"
	done
	PAIR=(rnvmf0 rnvmf_bond)
	pair_routed && rdma_add "" rnvmf_rxe0 rnvmf0 && rdma_add "" rnvmf_rxe1 rnvmf_bond &&
		wait_until 15 pair_meets
}

# port_up PORT: add an interface to the bridge and bring it up.
port_up() {
	ip -n "$SWITCH" link set "$1" master switch && interface_up "$SWITCH" "$1" "$MTU"
}

# The connection manager reports a failover of the bond as a change of the address, and the controller
# connects anew.
over_a_bond() {
	local active=/sys/class/net/rnvmf_bond/bonding/active_slave next
	network_bonded
	start_target
	connect "$TARGET4" -c 1
	start_verify
	next=rnvmf_b1
	[ "$(<$active)" != $next ] || next=rnvmf_b0
	echo $next >$active
	is_verified
	wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	same "active interface" $next "$(<$active)"
	start_verify
	# The bond notices that the interface has no carrier.
	run ip -n "$SWITCH" link set $next down
	is_verified
	wait_until "$SOON" other_is_active $next || fail "$next is active without a carrier"
}

# other_is_active INTERFACE: whether the bond uses another interface.
other_is_active() {
	[ "$(</sys/class/net/rnvmf_bond/bonding/active_slave)" != "$1" ]
}

# Who connects from another network namespace gets a connection in the initial one, as with nvme-rdma.
from_another_network_namespace() {
	local line
	network_single
	start_target
	run ip netns add "$HOST_NETNS"
	defer netns_delete "$HOST_NETNS"
	line="transport=rdma,traddr=$TARGET4,trsvcid=4420,nqn=$NQN,hostnqn=$HOSTNQN,hostid=$HOSTID"
	run ip netns exec "$HOST_NETNS" bash -c "echo $line >/dev/nvme-fabrics"
	CTRL=nvme0
	defer disconnect_if_there "$CTRL"
	wait_until "$SOON" state_is "$CTRL" live
	verify "$(disk "$CTRL" 1)" --rw=write --bs=64k --size=1m
	disconnect "$CTRL"
	# An address that only the other namespace reaches.
	run ip -n "$HOST_NETNS" link add other type dummy
	interface_up "$HOST_NETNS" other 1500 198.51.100.1/24
	expect 1 ip netns exec "$HOST_NETNS" bash -c "echo ${line/$TARGET4/198.51.100.9} >/dev/nvme-fabrics"
	same "lines in the log" 1 "$(logged '(address resolution|resolve_addr) failed.*-101')"
}

# With RDMA devices that belong to one network namespace each, a device of another one is out of reach.
exclusive_rdma_namespaces() {
	start_pair
	defer wait_until "$SOON" netns_mode_is shared
	wait_until "$SOON" netns_mode_is exclusive || fail "rdma system set netns: $ERRORS"
	connect "$TARGET4"
	verify "$(disk "$CTRL" 1)" --rw=write --bs=64k --size=1m
	run ip netns add "$HOST_NETNS"
	defer device_returns
	# For the initial namespace, the device is removed.
	try rdma dev set rnvmf_rxe1 netns "$HOST_NETNS"
	[[ $ERRORS != *"not supported"* ]] || skip "soft-RoCE devices cannot move, as on Linux 7.2"
	same "exit status of rdma dev set" 0 "$STATUS"
	wait_until "$SOON" is_gone "$CTRL" || fail "$CTRL still exists"
	nvme_connect "$NQN" "$TARGET4"
	[ "$STATUS" != 0 ] || fail "connected without a device"
	[ "$(logged '(address resolution|resolve_addr) failed.*-19')" -ge 1 ] ||
		fail "no line about the device in: $(kernel_log)"
}

# netns_mode_is exclusive|shared: set the mode of RDMA; return whether that is allowed. It is not while there is
# another network namespace. One that was deleted, such as that of the test before, remains for a while.
netns_mode_is() {
	try rdma system set netns "$1"
	[ "$STATUS" = 0 ]
}

# Devices of a network namespace that is deleted return to the initial one.
device_returns() {
	netns_delete "$HOST_NETNS"
	wait_until "$SOON" [ -e /sys/class/infiniband/rnvmf_rxe1 ]
}

main setup \
	over_a_vlan \
	over_a_bond \
	from_another_network_namespace \
	exclusive_rdma_namespaces
