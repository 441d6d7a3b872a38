#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample multicast against mckey in both roles. Groups that cannot be joined and invalid
# datagrams must be reported distinctly.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pair.sh"

GROUP=239.1.2.3

setup() {
	need_programs mckey strace && network 4200
}

# receive [PARAMETER=VALUE...]: load the sample as receiver.
receive() {
	sample_load multicast "group=$GROUP" "source=$OWN4" timeout=$((60000 * SLOWDOWN)) "$@"
	sample_waits '^receiving$'
}

# program_sends SIZE [COUNT]: send COUNT datagrams with mckey, by default 10. mckey destroys its
# queue pair before its sends complete, and soft-RoCE then drops the unsent ones, often all. So
# mckey is stopped at its fifth line, after it has posted them, until `program_ends`.
program_sends() {
	peer_start_until mckey 5 mckey -m "$GROUP" -b "$PEER4" -s -S "$1" -C "${2:-10}"
	peer_stops mckey '^data transfers complete$'
}

program_ends() {
	peer_continue mckey
	peer_end mckey
}

# receives_from_the_program SIZE: run the sample as receiver, mckey as sender.
receives_from_the_program() {
	receive "size=$1" count=10
	program_sends "$1"
	sample_done
	has "$RESULT" "^10 datagrams of $1 bytes received, the first from queue pair 0x[0-9a-f]{6}\$"
	program_ends
	sample_unload
}

# sends_to_the_program SIZE: run the sample as sender, mckey as receiver.
sends_to_the_program() {
	peer_start mckey mckey -m "$GROUP" -b "$PEER4" -S "$1"
	peer_waits mckey 'joined dgid: ::ffff:239.1.2.3|initiating data transfers'
	sample_load multicast "group=$GROUP" "source=$OWN4" send=1 "size=$1"
	sample_done
	same result "10 datagrams of $1 bytes sent" "$RESULT"
	sample_unload
	peer_end mckey
}

receives() { receives_from_the_program 100; }
sends() { sends_to_the_program 100; }

datagrams_of_1_byte_to_4096() {
	local size
	for size in 1 4096; do
		receives_from_the_program $size
		sends_to_the_program $size
	done
}

packets_of_1024() {
	network_mtu 1500
	receives_from_the_program 1024
	sends_to_the_program 1024
	sample_load multicast "group=$GROUP" "source=$OWN4" send=1 size=1025
	sample_fails '^send: EMSGSIZE$'
}

groups_that_cannot_be_joined() {
	sample_load multicast "group=$PEER4" "source=$OWN4"
	sample_fails '^group: address resolution: '
	sample_unload
	sample_load multicast group=ff0e::1:2 "source=$OWN6"
	sample_fails '^group: joining: IPv6 multicast is not supported with RoCE v2$'
	sample_unload
	sample_load multicast "group=$GROUP" source=198.51.100.1
	sample_fails '^group: address resolution: '
	sample_unload
	sample_load multicast group=nonsense
	sample_fails '^address: nonsense is not an IP address$'
}

shorter_datagrams() {
	receive size=100
	program_sends 99
	sample_fails '^datagrams: got 99 bytes, expected 100$'
	program_ends
}

# soft-RoCE drops datagrams that do not fit, without consuming a receive.
longer_datagrams() {
	local before
	receive size=100
	before=$(counter "$DEVICE" rcvd_pkts)
	program_sends 101
	wait_until 15 counted "$DEVICE" rcvd_pkts $((before + 10)) ||
		fail "the longer datagrams did not arrive"
	program_ends
	program_sends 100
	sample_done
	has "$RESULT" '^10 datagrams of 100 bytes received, '
	program_ends
}

# The sample sends more datagrams than mckey waits for, so mckey succeeds in spite of the loss.
sends_under_loss() {
	network_loss 1
	peer_start mckey mckey -m "$GROUP" -b "$PEER4" -C 60
	peer_waits mckey 'joined dgid: ::ffff:239.1.2.3|initiating data transfers'
	sample_load multicast "group=$GROUP" "source=$OWN4" send=1 count=80
	sample_done
	same result "80 datagrams of 100 bytes sent" "$RESULT"
	[ "$(network_lost)" -gt 0 ] || fail "netem dropped no packet"
	sample_unload
	peer_end mckey
}

# Exactly the datagrams that netem dropped must be missing: the sample succeeds once as many more
# have arrived.
receives_under_loss() {
	local sent arrived
	network_loss 1
	sent=$(counter "$PEER_DEVICE" sent_pkts)
	arrived=$(counter "$DEVICE" rcvd_pkts)
	receive count=60
	program_sends 100 60
	wait_until 15 counted "$PEER_DEVICE" sent_pkts $((sent + 60)) || fail "mckey did not send 60 datagrams"
	wait_until 15 have_arrived_or_are_lost $((arrived + 60)) || fail "datagrams neither arrived nor were dropped"
	program_ends
	arrived=$(($(counter "$DEVICE" rcvd_pkts) - arrived))
	[ "$arrived" -lt 60 ] || fail "netem dropped no datagram"
	! sample_says '^(done|failed)' || fail "the sample ended after $arrived datagrams: $(sample_log)"
	network_set_loss change "$PEER_NETNS" "$PEER_CABLE" 0
	program_sends 100 $((60 - arrived))
	sample_done
	has "$RESULT" '^60 datagrams of 100 bytes received, '
	program_ends
}

have_arrived_or_are_lost() {
	local lost
	lost=$(network_lost "$PEER_NETNS" "$PEER_CABLE")
	counted "$DEVICE" rcvd_pkts $(($1 - lost))
}

# A second membership must not attach the queue pair again: the driver would count two attachments.
attaches_once() {
	sample_load multicast "group=$GROUP" "source=$OWN4" twice=1 timeout=2000
	sample_fails '^attach twice: EEXIST$'
}

nobody_sends() {
	receive timeout=2000
	sample_fails '^datagrams: received 0 of 10 within 2000 ms$'
}

# A bond fails over to its second interface, which has another MAC address. The membership is bound
# to the first one's address.
interface_changes_its_address() {
	local own=198.51.100.1 bond=rrdma_bond slave
	explain "$bond|rrdma_slave[01]|(infiniband )?rrdma_rxe2|Ethernet Channel Bonding Driver"
	explain "RDMA CM addr change for ndev $bond "
	run modprobe bonding max_bonds=0
	run modprobe dummy numdummies=0
	run ip link add "$bond" type bond mode active-backup fail_over_mac active miimon 100
	defer interface_delete "$bond"
	for slave in rrdma_slave0 rrdma_slave1; do
		run ip link add "$slave" type dummy
		defer interface_delete "$slave"
		run ip link set "$slave" master "$bond"
	done
	interface_up "" "$bond" 1500 "$own/24"
	rdma_add "" rrdma_rxe2 "$bond"
	sample_load multicast "group=$GROUP" "source=$own" timeout=$((20000 * SLOWDOWN))
	sample_waits '^receiving$'
	run ip link set "$bond" type bond active_slave rrdma_slave1
	sample_fails '^group: the local link address changed$'
	sample_unload
}

unloads_while_it_waits() {
	receive
	sample_unload
}

device_removed_while_it_waits() {
	receive
	sample_loses_device datagrams
}

main setup \
	receives \
	sends \
	datagrams_of_1_byte_to_4096 \
	packets_of_1024 \
	groups_that_cannot_be_joined \
	shorter_datagrams \
	longer_datagrams \
	sends_under_loss \
	receives_under_loss \
	attaches_once \
	nobody_sends \
	interface_changes_its_address \
	unloads_while_it_waits \
	device_removed_while_it_waits
