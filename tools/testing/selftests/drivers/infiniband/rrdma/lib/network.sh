# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two RDMA devices at the ends of a veth pair: soft-RoCE, or the type in RDMA_TYPE. Samples run on
# DEVICE in the initial network namespace, their peers on PEER_DEVICE in PEER_NETNS. So all packets
# between them cross the veth pair.

# shellcheck disable=SC2034 # read by the tests
DEVICE=rrdma_${RDMA_TYPE}0
PEER_DEVICE=rrdma_${RDMA_TYPE}1

OWN4=192.0.2.1
OWN6=2001:db8::1
PEER4=192.0.2.2
PEER6=2001:db8::2

# An unused address in the link's subnet.
# shellcheck disable=SC2034
NOBODY4=192.0.2.99

# shellcheck disable=SC2034
SPARE_DEVICE=rrdma_rxe2
SPARE4=198.51.100.1

CABLE=rrdma0
PEER_CABLE=rrdma1
SPARE_CABLE=rrdma2
SPARE_PEER_CABLE=rrdma3
PEER_NETNS=rrdma-peer

# network [MTU]: create the veth pair, its RDMA devices and addresses. The MTU is that of the
# interfaces, by default 1500. It limits the path MTU of RoCE: 1500 allows 1024, 4200 allows 4096.
network() {
	local mtu=${1:-1500}
	rdma_load && ip netns add "$PEER_NETNS" || return 1
	defer netns_delete "$PEER_NETNS"
	ip link add "$CABLE" type veth peer name "$PEER_CABLE" netns "$PEER_NETNS" || return 1
	defer interface_delete "$CABLE"
	interface_up "" "$CABLE" "$mtu" "$OWN4/24" "$OWN6/64" &&
		interface_up "$PEER_NETNS" "$PEER_CABLE" "$mtu" "$PEER4/24" "$PEER6/64" &&
		ip -n "$PEER_NETNS" link set lo up &&
		rdma_add "" "$DEVICE" "$CABLE" &&
		rdma_add "$PEER_NETNS" "$PEER_DEVICE" "$PEER_CABLE" || return 1
	# Fill the neighbour tables: RoCE does not wait for a neighbour to be resolved.
	ping -q -c 1 -W 5 "$PEER4" >"$SCRATCH/ping" && ping -q -c 1 -W 5 "$PEER6" >"$SCRATCH/ping" &&
		wait_until 10 have_addresses || return 1
	RESOURCES=$(rdma_objects)
}

# Whether the GID tables have the addresses. The core adds the GIDs asynchronously.
have_addresses() {
	[ "$RDMA_TYPE" = rxe ] || return 0
	gid_index "$DEVICE" "$OWN4" && gid_index "$DEVICE" "$OWN6" &&
		gid_index "$PEER_DEVICE" "$PEER4" && gid_index "$PEER_DEVICE" "$PEER6"
} >/dev/null

# device_again: add DEVICE again if the test has removed it. It remains for the next tests.
device_again() {
	[ -e "/sys/class/infiniband/$DEVICE" ] ||
		rdma link add "$DEVICE" type rxe netdev "$CABLE" || return 1
	wait_until 10 rdma_is_up "$DEVICE" && wait_until 10 have_addresses
}

# network_spare: create SPARE_DEVICE at SPARE4 for this test. The test may remove it without an effect
# on the devices of other tests.
network_spare() {
	ip link add "$SPARE_CABLE" type veth peer name "$SPARE_PEER_CABLE" || return 1
	defer interface_delete "$SPARE_CABLE"
	interface_up "" "$SPARE_PEER_CABLE" 1500 &&
		interface_up "" "$SPARE_CABLE" 1500 "$SPARE4/24" &&
		rdma_add "" "$SPARE_DEVICE" "$SPARE_CABLE" || return 1
	# GID 0 is that of the link-local address, which awaits duplicate address detection.
	wait_until 10 gid_index "$SPARE_DEVICE" "$SPARE4" >/dev/null
}

# network_mtu MTU: set the MTU of both interfaces; restored when the test ends.
network_mtu() {
	local old
	read -r old <"/sys/class/net/$CABLE/mtu"
	defer network_set_mtu "$old"
	network_set_mtu "$1"
}

network_set_mtu() {
	ip link set "$CABLE" mtu "$1" && ip -n "$PEER_NETNS" link set "$PEER_CABLE" mtu "$1"
}

# Seed of netem. At 1 % it drops the 18th, the 41st, the 134th, the 238th packet and so on.
LOSS_SEED=537

# network_loss PERCENT: drop this share of the packets in both directions until the test ends.
network_loss() {
	modprobe sch_netem && network_set_loss add "" "$CABLE" "$1" || return 1
	defer tc qdisc delete dev "$CABLE" root
	network_set_loss add "$PEER_NETNS" "$PEER_CABLE" "$1" || return 1
	defer tc -n "$PEER_NETNS" qdisc delete dev "$PEER_CABLE" root
}

# network_own_loss PERCENT: change the share for packets that this end sends. Needs `network_loss`.
network_own_loss() {
	network_set_loss change "" "$CABLE" "$1"
}

# network_set_loss add|change NETNS INTERFACE PERCENT
network_set_loss() {
	tc ${2:+-n "$2"} qdisc "$1" dev "$3" root netem loss "$4%" seed "$LOSS_SEED"
}

# network_lost [NETNS INTERFACE]: print how many packets netem has dropped, by default on CABLE.
network_lost() {
	tc ${1:+-n "$1"} -s qdisc show dev "${2:-$CABLE}" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'
}

# network_has_lost: fail unless netem has dropped packets in both directions. Without loss the test
# would prove nothing.
network_has_lost() {
	local own peer
	own=$(network_lost)
	peer=$(network_lost "$PEER_NETNS" "$PEER_CABLE")
	if [ "$own" = 0 ] || [ "$peer" = 0 ]; then
		fail "netem dropped $own packets of this end and $peer of the peer, expected some of each"
	fi
}

# gid_index DEVICE ADDRESS: print the index of the address in the device's GID table, for RoCE v2.
gid_index() {
	local port=/sys/class/infiniband/$1/ports/1 wanted index type gid
	wanted=$(gid_of "$2")
	# The table of soft-RoCE has 1024 entries. The core takes the first that is free.
	for ((index = 0; index < 32; index++)); do
		read -r gid 2>/dev/null <"$port/gids/$index" || continue
		[ "$gid" = "$wanted" ] || continue
		# The entry may be removed at any time.
		read -r type 2>/dev/null <"$port/gid_attrs/types/$index" || continue
		if [ "$type" = "RoCE v2" ]; then
			echo "$index"
			# In a trap, `return` without argument returns the status from before the trap.
			return 0
		fi
	done
	return 1
}

# gid_of ADDRESS: print the GID of an IPv4 or IPv6 address in the format of sysfs.
gid_of() {
	local before after zeros=()
	if [[ $1 != *:* ]]; then
		IFS=. read -ra after <<<"$1"
		printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x\n' "${after[@]}"
		return 0
	fi
	IFS=: read -ra before <<<"${1%%::*}"
	if [[ $1 = *::* ]]; then
		IFS=: read -ra after <<<"${1#*::}"
		while [ $((${#before[@]} + ${#zeros[@]} + ${#after[@]})) -lt 8 ]; do
			zeros+=(0)
		done
	fi
	printf '%04x:%04x:%04x:%04x:%04x:%04x:%04x:%04x\n' "${before[@]/#/0x}" "${zeros[@]}" "${after[@]/#/0x}"
}
