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

# The network namespace that `network_pair` makes for the host.
HOST_NETNS=rnvme-host

# Room for RoCE packets of 4096 bytes.
MTU=4200

# network_single: one interface with one RDMA device, target and host at once. Its packets
# never leave the device, so it is the quick one.
network_single() {
	modprobe rdma_rxe || return 1
	ip link add rnvme0 type dummy || return 1
	defer interface_delete rnvme0
	interface_up "" rnvme0 "$MTU" "$TARGET4/24" "$HOST4/24" "$TARGET6/64" "$HOST6/64" &&
		rdma_add "" rnvme_rxe0 rnvme0
}

# network_pair: two interfaces joined by a cable, each with an RDMA device: the target's here,
# the host's in a network namespace.
network_pair() {
	modprobe rdma_rxe || return 1
	RNVME=(ip netns exec "$HOST_NETNS" rnvme)
	ip netns add "$HOST_NETNS" || return 1
	defer netns_delete "$HOST_NETNS"
	ip link add rnvme0 type veth peer name rnvme1 netns "$HOST_NETNS" || return 1
	defer interface_delete rnvme0
	interface_up "" rnvme0 "$MTU" "$TARGET4/24" "$TARGET6/64" &&
		interface_up "$HOST_NETNS" rnvme1 "$MTU" "$HOST4/24" "$HOST6/64" &&
		rdma_add "" rnvme_rxe0 rnvme0 &&
		rdma_add "$HOST_NETNS" rnvme_rxe1 rnvme1 && neighbours_meet
}

# Both ends of the cable learn each other's link address.
neighbours_meet() {
	ip netns exec "$HOST_NETNS" ping -q -c 1 -W 5 "$TARGET4" >"$SCRATCH/ping" &&
		ip netns exec "$HOST_NETNS" ping -q -c 1 -W 5 "$TARGET6" >"$SCRATCH/ping"
}

# interface_up NETNS INTERFACE MTU ADDRESS...
interface_up() {
	local where=(${1:+-n "$1"}) interface=$2 mtu=$3 address options
	shift 3
	ip "${where[@]}" link set "$interface" mtu "$mtu" up || return 1
	for address; do
		options=()
		# Nobody else has it, and nobody waits until that is proved.
		[[ $address != *:* ]] || options=(nodad)
		ip "${where[@]}" address add "$address" dev "$interface" "${options[@]}" || return 1
	done
}

# rdma_add NETNS DEVICE INTERFACE
rdma_add() {
	local where=(${1:+ip netns exec "$1"})
	"${where[@]}" rdma link add "$2" type rxe netdev "$3" || return 1
	defer rdma_delete "$2" "$1"
	wait_until 10 rdma_is_up "$2" || {
		note "the RDMA device $2 does not come up"
		return 1
	}
}

rdma_is_up() {
	local state
	read -r state <"/sys/class/infiniband/$1/ports/1/state" && [[ $state == *ACTIVE ]]
}

# rdma_delete DEVICE [NETNS]: a test may have done it before.
rdma_delete() {
	local where=(${2:+ip netns exec "$2"})
	[ ! -e "/sys/class/infiniband/$1" ] || "${where[@]}" rdma link delete "$1"
}

interface_delete() {
	[ ! -e "/sys/class/net/$1" ] || ip link delete "$1"
}

netns_delete() {
	[ ! -e "/run/netns/$1" ] || ip netns del "$1"
}
