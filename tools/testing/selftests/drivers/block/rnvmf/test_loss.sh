#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A bad cable: packets that are lost, damaged, doubled or late cost time, and no byte.
#
# Now and then soft-RoCE sends a request of the target's again and again, and the other end takes it
# for one that it has answered. Nothing moves on that queue any more, with the kernel's own host,
# too; then the host's time-out makes a new connection.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-i 2 -c 1)

# A connection may be lost several times meanwhile.
COMMAND_SECONDS=$((600 * SLOWDOWN))

# What soft-RoCE counts when a packet is not the one that it expects.
ODD_PACKETS=(out_of_seq_request duplicate_request rcvd_seq_err completer_retry_err)

setup() {
	modprobe rnvmf
}

# odd_packets: how many there have been at both ends.
odd_packets() {
	local name device sum=0
	for device in rnvmf_rxe0 rnvmf_rxe1; do
		for name in "${ODD_PACKETS[@]}"; do
			sum=$((sum + $(<"/sys/class/infiniband/$device/ports/1/hw_counters/$name")))
		done
	done
	echo $sum
}

# cable_is HOW...: both ways.
cable_is() {
	run tc qdisc add dev rnvmf0 root netem "$@" seed 3
	run ip netns exec "$HOST_NETNS" tc qdisc add dev rnvmf1 root netem "$@" seed 4
}

# verified_over HOW...: what was written over such a cable is read back over it.
verified_over() {
	local before
	start_pair
	connect "$TARGET4"
	echo 2000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	before=$(odd_packets)
	cable_is "$@"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bsrange=4k-64k --size=2m --iodepth=4
	[ "$(odd_packets)" -gt "$before" ] || fail "no packet was out of order"
}

some_are_lost_and_doubled() {
	verified_over loss 1% duplicate 1%
}

one_in_twenty_is_lost() {
	verified_over loss 5%
}

one_in_ten_is_lost() {
	verified_over loss 10%
}

some_are_damaged() {
	verified_over corrupt 1%
}

some_are_late() {
	verified_over delay 2ms reorder 10%
}

# A disconnect that meets a keep-alive which is under way: the target is told all the same.
disconnect_during_a_keep_alive() {
	start_pair
	run tc qdisc add dev rnvmf0 root netem delay 250ms
	connect "$TARGET4" --timeout $((60 * SLOWDOWN)) -k 5
	trace_start "$COMMANDS"
	wait_until 20 asked_for_life || fail "there is no keep-alive"
	disconnect "$CTRL"
	same "times it was shut down" 1 "$(traced 'ofst=0x14, value=0x464061')"
}

asked_for_life() {
	[ "$(traced nvme_admin_keep_alive)" -gt 0 ]
}

# shellcheck disable=SC2046 # none, or several
main setup \
	some_are_lost_and_doubled \
	some_are_damaged \
	disconnect_during_a_keep_alive \
	$(in_a_long_run "one_in_twenty_is_lost one_in_ten_is_lost some_are_late")
