# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Two devices, of soft-RoCE unless RDMA_TYPE says otherwise, at the ends of a cable. Samples run
# here, on DEVICE; what they talk to runs in a network namespace, on PEER_DEVICE. So all that they
# say to each other crosses the cable.

# shellcheck disable=SC2034 # read by the tests
DEVICE=rrdma_${RDMA_TYPE}0
PEER_DEVICE=rrdma_${RDMA_TYPE}1

OWN4=192.0.2.1
OWN6=2001:db8::1
PEER4=192.0.2.2
PEER6=2001:db8::2

# Where no one is: on the link, but nobody has it.
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

# network [MTU]: the cable, its devices and addresses. RoCE makes the largest packet that fits of
# the MTU: 1500 bytes make 1024, 4200 make 4096.
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
	# Both ends learn each other's link address, with which RoCE cannot wait.
	ping -q -c 1 -W 5 "$PEER4" >"$SCRATCH/ping" && ping -q -c 1 -W 5 "$PEER6" >"$SCRATCH/ping" &&
		wait_until 10 have_addresses || return 1
	RESOURCES=$(rdma_objects)
}

# The tables of RoCE devices follow the addresses of the interfaces after a moment.
have_addresses() {
	[ "$RDMA_TYPE" = rxe ] || return 0
	gid_index "$DEVICE" "$OWN4" && gid_index "$DEVICE" "$OWN6" &&
		gid_index "$PEER_DEVICE" "$PEER4" && gid_index "$PEER_DEVICE" "$PEER6"
} >/dev/null

# device_again: the device, if the test has removed it; it stays for the next tests.
device_again() {
	[ -e "/sys/class/infiniband/$DEVICE" ] ||
		rdma link add "$DEVICE" type rxe netdev "$CABLE" || return 1
	wait_until 10 rdma_is_up "$DEVICE" && wait_until 10 have_addresses
}

# network_spare: another device, SPARE_DEVICE at SPARE4, for this test. It may be removed: those of
# the other tests stay.
network_spare() {
	ip link add "$SPARE_CABLE" type veth peer name "$SPARE_PEER_CABLE" || return 1
	defer interface_delete "$SPARE_CABLE"
	interface_up "" "$SPARE_PEER_CABLE" 1500 &&
		interface_up "" "$SPARE_CABLE" 1500 "$SPARE4/24" &&
		rdma_add "" "$SPARE_DEVICE" "$SPARE_CABLE" || return 1
	# Its first GID is of the address that the link makes itself, which it tries out for a while.
	wait_until 10 gid_index "$SPARE_DEVICE" "$SPARE4" >/dev/null
}

# network_mtu MTU: another MTU for the cable; the test has the old one again at its end.
network_mtu() {
	local old
	read -r old <"/sys/class/net/$CABLE/mtu"
	defer network_set_mtu "$old"
	network_set_mtu "$1"
}

network_set_mtu() {
	ip link set "$CABLE" mtu "$1" && ip -n "$PEER_NETNS" link set "$PEER_CABLE" mtu "$1"
}

# With this seed netem loses the 18th packet, the 41st, the 134th, the 238th ... at 1 %.
LOSS_SEED=537

# network_loss PERCENT: so many of the packets of each direction are lost, until the test ends.
network_loss() {
	modprobe sch_netem && network_set_loss add "" "$CABLE" "$1" || return 1
	defer tc qdisc delete dev "$CABLE" root
	network_set_loss add "$PEER_NETNS" "$PEER_CABLE" "$1" || return 1
	defer tc -n "$PEER_NETNS" qdisc delete dev "$PEER_CABLE" root
}

# network_own_loss PERCENT: from here on, so many of what this end sends. After `network_loss`.
network_own_loss() {
	network_set_loss change "" "$CABLE" "$1"
}

# network_set_loss add|change NETNS INTERFACE PERCENT
network_set_loss() {
	tc ${2:+-n "$2"} qdisc "$1" dev "$3" root netem loss "$4%" seed "$LOSS_SEED"
}

# network_lost [NETNS INTERFACE]: how many packets of this end, or of that interface, are lost so far.
network_lost() {
	tc ${1:+-n "$1"} -s qdisc show dev "${2:-$CABLE}" | sed -n 's/.*(dropped \([0-9]*\),.*/\1/p'
}

# network_has_lost: each end must have lost something, or the test shows nothing.
network_has_lost() {
	local own peer
	own=$(network_lost)
	peer=$(network_lost "$PEER_NETNS" "$PEER_CABLE")
	if [ "$own" = 0 ] || [ "$peer" = 0 ]; then
		fail "$own packets of this end are lost, and $peer of the other"
	fi
}

# gid_index DEVICE ADDRESS: the index of the address in the device's table, for RoCE v2.
gid_index() {
	local port=/sys/class/infiniband/$1/ports/1 wanted file index type gid
	wanted=$(gid_of "$2")
	for file in "$port"/gids/*; do
		index=${file##*/}
		read -r gid <"$file" || continue
		[ "$gid" = "$wanted" ] || continue
		# The entry may go meanwhile.
		read -r type 2>/dev/null <"$port/gid_attrs/types/$index" || continue
		if [ "$type" = "RoCE v2" ]; then
			echo "$index"
			# By itself it would return what the test did, if that has ended.
			return 0
		fi
	done
	return 1
}

# gid_of ADDRESS: as sysfs writes the GID of an IPv4 or IPv6 address.
gid_of() {
	python3 - "$1" <<-'END'
		import ipaddress
		import sys
		address = ipaddress.ip_address(sys.argv[1])
		if address.version == 4:
		    address = ipaddress.IPv6Address(f"::ffff:{address}")
		digits = address.packed.hex()
		print(":".join(digits[place:place + 4] for place in range(0, 32, 4)))
	END
}
