# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Networks with soft-RoCE: addresses of the documentation ranges, on interfaces of our own.

# shellcheck disable=SC2034 # read by the tests
TARGET4=192.0.2.1
# shellcheck disable=SC2034
TARGET6=2001:db8::1
HOST4=192.0.2.2
HOST6=2001:db8::2

# Where no one is: on the link, but nobody has it.
# shellcheck disable=SC2034
NOBODY4=192.0.2.99

# Has the target of a second machine when it is ready.
# shellcheck disable=SC2034
READY4=192.0.2.3

# The cable to a second machine.
WIRE=eth0

# The network namespace that `network_pair` makes for the host.
HOST_NETNS=rnvmf-host

# Room for RoCE packets of 4096 bytes.
MTU=4200

# network_single: one interface with one RDMA device, target and host at once. Its packets
# never leave the device, so it is the quick one.
network_single() {
	rdma_load || return 1
	ip link add rnvmf0 type dummy || return 1
	defer interface_delete rnvmf0
	interface_up "" rnvmf0 "$MTU" "$TARGET4/24" "$HOST4/24" "$TARGET6/64" "$HOST6/64" &&
		rdma_add "" rnvmf_rxe0 rnvmf0
}

# network_pair: two interfaces joined by a cable, each with an RDMA device: the target's here,
# the host's in a network namespace.
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

# wire_up ADDRESS...: this end of the cable to a second machine.
wire_up() {
	modprobe virtio_net && interface_up "" "$WIRE" "$MTU" "$@" || return 1
	defer ip address flush dev "$WIRE"
}

# Both ends of the cable learn each other's link address.
neighbours_meet() {
	ip netns exec "$HOST_NETNS" ping -q -c 1 -W 5 "$TARGET4" >"$SCRATCH/ping" &&
		ip netns exec "$HOST_NETNS" ping -q -c 1 -W 5 "$TARGET6" >"$SCRATCH/ping"
}

# No packet comes through any more, and nobody says so. They are dropped where they arrive: an
# interface that gets another queueing discipline refuses some for a moment, and then soft-RoCE stops
# the queue pairs that sent them.
silence() {
	defer silence_ends_here
	hears_nothing rnvmf0 nft
	hears_nothing rnvmf1 ip netns exec "$HOST_NETNS" nft
}

# hears_nothing INTERFACE NFT...
hears_nothing() {
	run "${@:2}" "table inet rnvmf_silence { chain input {
		type filter hook input priority 0; iifname $1 drop; }; }"
}

silence_ends() {
	run nft delete table inet rnvmf_silence
	run ip netns exec "$HOST_NETNS" nft delete table inet rnvmf_silence
}

# The other end goes with its namespace.
silence_ends_here() {
	nft delete table inet rnvmf_silence 2>"$SCRATCH/errors" || true
}
