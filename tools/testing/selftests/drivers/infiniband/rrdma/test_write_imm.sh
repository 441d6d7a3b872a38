#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample write_imm, which ends a series of RDMA writes by one with immediate data, and the
# test module unposted.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pair.sh"

requirements() {
	need_sample write_imm && need_modules rrdma_test_unposted
}

setup() {
	network 4200
}

messages_of_all_sizes() {
	pair_crosses write_imm 5 size=1 iters=5
	has "$RESULT" '^5 messages of 1 bytes, in 1 writes each$'
	pair_crosses write_imm 20 size=4096 pieces=4 mtu=1024 iters=5
	pair_crosses write_imm 15 size=4097 pieces=3 mtu=4096 iters=5
	pair_crosses write_imm 512 size=1048576 pieces=16 mtu=4096 iters=2
	has "$RESULT" '^2 messages of 1048576 bytes, in 16 writes each$'
	pair_crosses write_imm 1024 size=1048576 pieces=1 mtu=1024 iters=1
}

what_the_device_does_not_take_comes_back() {
	pair_load test_unposted "$OWN4" "$PEER4"
	sample_done
	same "the log" \
		'not posted: 2 of 3 operations returned
posted in part: 1 of 3 operations returned, 1 completed by the drain
posted in part: 2 single operations completed by the drain' \
		"$(sample_log | grep posted)"
	same faults 3 "$(sample_log | grep -cF 'queue pair: posting failed: the device took only a part')"
}

under_loss() {
	network_loss 1
	pair_crosses write_imm 320 size=65536 mtu=1024 iters=5
	network_has_lost
	# Few packets are sent, so a higher loss rate is needed to lose some of them.
	network_own_loss 20
	pair_crosses test_unposted 1
}

parameters_out_of_range() {
	local value
	for value in size=0 size=1048577 pieces=17 mtu=255; do
		sample_refused write_imm "$value"
	done
	pair_load write_imm "$OWN4" "$PEER4" mtu=1000
	sample_fails '^mtu: EINVAL$'
}

unloads_while_it_writes() {
	pair_unloads 0.5 '.*' write_imm iters=100000
}

ends_with_its_devices() {
	ends_without_its_devices pair_load write_imm "$OWN4" "$PEER4" iters=100000
}

main setup \
	messages_of_all_sizes \
	what_the_device_does_not_take_comes_back \
	under_loss \
	parameters_out_of_range \
	unloads_while_it_writes \
	ends_with_its_devices
