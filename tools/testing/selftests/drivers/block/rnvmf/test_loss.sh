#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests lost, corrupted, duplicated and delayed packets: they cost time, but the data is correct.
#
# Sometimes soft-RoCE retransmits a request of the target endlessly, which the host's side takes for
# a duplicate. The queue then makes no progress, with the C host too, until the host's I/O time-out
# reconnects.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-i 2 -c 1)

# A connection may be lost several times during a command.
COMMAND_SECONDS=$((600 * SLOWDOWN))

# Counters of soft-RoCE for unexpected packets.
ODD_PACKETS=(out_of_seq_request duplicate_request rcvd_seq_err completer_retry_err)

setup() {
	modprobe rnvmf
}

# packets NAME...: print the sum of these counters at both ends.
packets() {
	local name device sum=0
	for device in rnvmf_rxe0 rnvmf_rxe1; do
		for name; do
			sum=$((sum + $(<"/sys/class/infiniband/$device/ports/1/hw_counters/$name")))
		done
	done
	echo $sum
}

# cable_is NETEM...: set netem parameters in both directions.
cable_is() {
	run tc qdisc add dev rnvmf0 root netem "$@" seed 3
	run ip netns exec "$HOST_NETNS" tc qdisc add dev rnvmf1 root netem "$@" seed 4
}

# Size of the largest command.
LARGEST=64k

connected() {
	start_pair
	connect "$TARGET4"
	echo 2000 >"/sys/block/${CTRL}n1/queue/io_timeout"
}

# verified [FIO OPTION...]: write random blocks, and verify them.
verified() {
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bsrange="4k-$LARGEST" --size=2m --iodepth=4 "$@"
}

# verified_for_half_an_hour [FIO OPTION...]: repeat it with other data each time, so that no block of an earlier
# write passes.
verified_for_half_an_hour() {
	local end=$((SECONDS + 1800)) seed=0
	while [ $SECONDS -lt $end ]; do
		seed=$((seed + 1))
		verified --randseed=$seed "$@"
	done
}

# Function that verifies I/O.
VERIFIED=verified

# verified_over NETEM...: verify I/O with these netem parameters.
verified_over() {
	local before
	connected
	before=$(packets "${ODD_PACKETS[@]}")
	cable_is "$@"
	$VERIFIED
	[ "$(packets "${ODD_PACKETS[@]}")" -gt "$before" ] || fail "soft-RoCE counted no unexpected packet"
}

some_are_lost_and_doubled() {
	verified_over loss 1% duplicate 1%
}

# acknowledgements_are_lost NFT...: drop a tenth of the acknowledgements (opcode 17) that arrive here.
acknowledgements_are_lost() {
	run "$@" 'table inet rnvmf_acks { chain input { type filter hook input priority 0;
		udp dport 4791 @th,64,8 17 numgen random mod 10 0 counter drop; }; }'
}

# With one command at a time, the acknowledgement of the next message does not stand for a lost one.
only_acknowledgements_are_lost() {
	local before
	connected
	before=$(packets duplicate_request)
	defer nft delete table inet rnvmf_acks
	acknowledgements_are_lost nft
	acknowledgements_are_lost ip netns exec "$HOST_NETNS" nft
	LARGEST=16k $VERIFIED --iodepth=1 --size=1m
	[ "$(packets duplicate_request)" -gt "$before" ] || fail "soft-RoCE repeated no message"
}

one_in_twenty_is_lost() {
	verified_over loss 5%
}

# A write of 64k has 64 packets. Its queue may be lost with it six times, and then it fails, as with the C host.
one_in_ten_is_lost() {
	LARGEST=16k verified_over loss 10%
}

some_are_damaged() {
	verified_over corrupt 1%
}

some_are_late() {
	verified_over delay 2ms reorder 10%
}

# A disconnect during a Keep Alive command must still shut the controller down.
disconnect_during_a_keep_alive() {
	start_pair
	run tc qdisc add dev rnvmf0 root netem delay 250ms
	connect "$TARGET4" --timeout $((60 * SLOWDOWN)) -k 5
	trace_start "$COMMANDS"
	wait_until "$SOON" asked_for_life || fail "no Keep Alive command"
	disconnect "$CTRL"
	same "number of shutdowns" 1 "$(traced 'ofst=0x14, value=0x464061')"
}

asked_for_life() {
	[ "$(traced nvme_admin_keep_alive)" -gt 0 ]
}

# So few that none of thousands of commands loses its queue six times.
half_an_hour_of_loss() {
	VERIFIED=verified_for_half_an_hour LARGEST=16k verified_over loss 0.5% duplicate 1% delay 1ms reorder 2%
}

half_an_hour_without_acknowledgements() {
	VERIFIED=verified_for_half_an_hour only_acknowledgements_are_lost
}

# shellcheck disable=SC2046 # empty or several words
main setup \
	some_are_lost_and_doubled \
	some_are_damaged \
	only_acknowledgements_are_lost \
	disconnect_during_a_keep_alive \
	$(in_a_long_run "one_in_twenty_is_lost one_in_ten_is_lost some_are_late
		half_an_hour_of_loss half_an_hour_without_acknowledgements")
