# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Test networks: soft-RoCE or soft-iWARP on virtual interfaces, with addresses of the documentation
# ranges.

# shellcheck disable=SC2034 # read by the tests
TARGET4=192.0.2.1
# shellcheck disable=SC2034
TARGET6=2001:db8::1
HOST4=192.0.2.2
HOST6=2001:db8::2

# An unused address in the link's subnet.
# shellcheck disable=SC2034
NOBODY4=192.0.2.99

# Address that the second machine adds when its target is ready.
# shellcheck disable=SC2034
READY4=192.0.2.3

# Interface to the second machine.
WIRE=eth0

# Network namespace that `network_pair` creates for the host.
HOST_NETNS=rnvmf-host

# MTU of the interfaces; allows a RoCE path MTU of 4096.
MTU=4200

# network_single: create one interface with one RDMA device for both target and host. Packets are
# looped back in the device, so this network is faster than `network_pair`.
network_single() {
	rdma_load || return 1
	ip link add rnvmf0 type dummy || return 1
	defer interface_delete rnvmf0
	interface_up "" rnvmf0 "$MTU" "$TARGET4/24" "$HOST4/24" "$TARGET6/64" "$HOST6/64" &&
		rdma_add "" rnvmf_rxe0 rnvmf0
}

# network_pair: create a veth pair with an RDMA device at each end: the target's in the initial
# network namespace, the host's in HOST_NETNS.
network_pair() {
	rdma_load || return 1
	RNVMF=(ip netns exec "$HOST_NETNS" rnvmf)
	ip netns add "$HOST_NETNS" || return 1
	defer netns_delete "$HOST_NETNS"
	ip link add rnvmf0 type veth peer name rnvmf1 netns "$HOST_NETNS" || return 1
	defer interface_delete rnvmf0
	interface_up "" rnvmf0 "$MTU" "$TARGET4/24" "$TARGET6/64" &&
		interface_up "$HOST_NETNS" rnvmf1 "$MTU" "$HOST4/24" "$HOST6/64" &&
		rdma_add "" rnvmf_rxe0 rnvmf0 &&
		rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1 && neighbours_meet
}

# wire_up ADDRESS...: configure the interface to the second machine.
wire_up() {
	modprobe virtio_net && interface_up "" "$WIRE" "$MTU" "$@" || return 1
	defer ip address flush dev "$WIRE"
}

# Fill the neighbour tables of both ends: RoCE does not wait for a neighbour to be resolved.
neighbours_meet() {
	wait_until 15 meets "$TARGET4" && wait_until 15 meets "$TARGET6"
}

# meets ADDRESS: whether the target answers at this address. An interface drops packets until a work item of
# the kernel has seen that it has a carrier.
meets() {
	ip netns exec "$HOST_NETNS" ping -q -c 1 -W 1 "$1" >"$SCRATCH/ping"
}

# Drop all packets in both directions without an error to the sender. nft drops them at the
# receiver. A queueing discipline would not do: while it is replaced the interface refuses packets,
# and soft-RoCE then moves the sending queue pairs to the error state.
silence() {
	defer silence_ends_here
	hears_nothing rnvmf0 nft
	hears_nothing rnvmf1 ip netns exec "$HOST_NETNS" nft
}

# hears_nothing INTERFACE NFT...: drop all packets that arrive at the interface.
hears_nothing() {
	run "${@:2}" "table inet rnvmf_silence { chain input {
		type filter hook input priority 0; iifname $1 drop; }; }"
}

# Deliver packets again.
silence_ends() {
	run nft delete table inet rnvmf_silence
	run ip netns exec "$HOST_NETNS" nft delete table inet rnvmf_silence
}

# Delete the rule of the target's end. That of the host's end is deleted with its namespace.
silence_ends_here() {
	nft delete table inet rnvmf_silence 2>"$SCRATCH/errors" || true
}
