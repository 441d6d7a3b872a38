# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Network interfaces, and soft-RoCE or soft-iWARP devices on them.

# Link type of the RDMA devices: rxe is soft-RoCE, siw is soft-iWARP.
RDMA_TYPE=${RDMA_TYPE:-rxe}

# interface_up NETNS INTERFACE MTU ADDRESS...: set the MTU, bring the interface up and add addresses.
# An empty NETNS is the current network namespace.
interface_up() {
	local where=(${1:+-n "$1"}) interface=$2 commands="link set $2 mtu $3 up" address
	shift 3
	for address; do
		commands+=$'\n'"address add $address dev $interface"
		# Without duplicate address detection the address is usable at once.
		[[ $address != *:* ]] || commands+=" nodad"
	done
	ip "${where[@]}" -batch - <<<"$commands"
}

# Load the driver of the RDMA devices.
rdma_load() {
	case $RDMA_TYPE in
	rxe) load_module rdma_rxe ;;
	*) load_module "$RDMA_TYPE" ;;
	esac
}

# rdma_add NETNS DEVICE INTERFACE: add an RDMA device and wait until its port is active.
rdma_add() {
	local where=(${1:+ip netns exec "$1"})
	"${where[@]}" rdma link add "$2" type "$RDMA_TYPE" netdev "$3" || return 1
	defer rdma_delete "$2" "$1"
	wait_until 30 rdma_is_up "$2" || {
		note "port 1 of the RDMA device $2 does not become active"
		return 1
	}
}

rdma_is_up() {
	local state
	read -r state <"/sys/class/infiniband/$1/ports/1/state" && [[ $state == *ACTIVE ]]
}

# rdma_delete DEVICE [NETNS]: delete an RDMA device. A test may have deleted the device or its
# interface already; the removal may still be in progress.
rdma_delete() {
	local where=(${2:+ip netns exec "$2"}) said
	rdma_is_gone "$1" || said=$("${where[@]}" rdma link delete "$1" 2>&1) ||
		wait_until 30 rdma_is_gone "$1" || {
		note "the RDMA device $1 is not removed: $said"
		return 1
	}
}

rdma_is_gone() {
	[ ! -e "/sys/class/infiniband/$1" ]
}

# interface_delete INTERFACE: delete an interface. The end of a network namespace may be deleting it.
interface_delete() {
	[ ! -e "/sys/class/net/$1" ] || ip link delete "$1" || [ ! -e "/sys/class/net/$1" ]
}

netns_delete() {
	[ ! -e "/run/netns/$1" ] || ip netns del "$1"
}
