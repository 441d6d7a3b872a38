#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the benchmark many_peers: memory of a member of a full mesh, with a receive queue for each
# peer and with a shared receive queue.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pair.sh"

requirements() {
	need_sample bench_many_peers
}

setup() {
	network
}

# row KIND PEERS: print the remaining columns of the row with these two.
row() {
	sample_log | sed -nE "s/^$1 +$2 +//p"
}

# table_is PEERS...: check that the table has exactly these rows of both kinds, with one message to
# and from each peer.
table_is() {
	local rows
	rows=$(sample_log | sed -nE 's/^(own|shared) +([0-9]+) .*/\1 \2/p')
	same rows "$(printf 'own %s\n' "$@" && printf 'shared %s\n' "$@")" "$rows"
	same completions 2 "$(sample_log | awk '/^(own|shared) / { print $7 }' | sort -u)"
}

each_step_has_its_row() {
	pair_load bench_many_peers "$OWN4" "$PEER4" peers=20 receives=3 shared_receives=8 size=100
	sample_done 60
	same result '20 peers, 60 own receives or 8 shared' "$RESULT"
	table_is 1 4 16 20
	has "$(row own 4)" '^12 +1200 '
	has "$(row shared 16)" '^8 +800 '
	sample_unload
}

# A receive queue for each peer needs 64 MiB of buffers, the shared one half a MiB. The measured
# memory may deviate by some MiB.
shared_receives_take_less() {
	local posted bytes own shared _
	pair_load bench_many_peers "$OWN4" "$PEER4" peers=64 receives=64 shared_receives=32 size=16384
	sample_done 60
	read -r posted bytes own _ <<<"$(row own 64)"
	same posted "4096 67108864" "$posted $bytes"
	read -r posted bytes shared _ <<<"$(row shared 64)"
	same posted "32 524288" "$posted $bytes"
	[ "$own" -ge 49152 ] || fail "measured $own KiB, but the receive buffers alone take 65536 KiB"
	[ "$shared" -le 16384 ] || fail "$shared KiB with a shared receive queue, $own KiB without"
}

# More messages than receives arrive at once; the surplus is resent after an RNR NAK.
the_shared_queue_runs_short() {
	pair_crosses bench_many_peers 32 peers=16 shared_receives=1
}

messages_of_all_sizes() {
	pair_crosses bench_many_peers 4 peers=1 size=1
	pair_crosses bench_many_peers 256 peers=2 size=65536
}

with_packets_of_4096() {
	network_mtu 4200
	# 16 packets for each message; with a path MTU of 1024 there would be 64.
	pair_crosses bench_many_peers 64 peers=2 size=65536
	table_is 1 2
	[ "$SENT" -lt 256 ] || fail "$SENT packets sent, expected fewer than 256 with a path MTU of 4096"
}

under_loss() {
	network_loss 1
	pair_crosses bench_many_peers 100 peers=32
	table_is 1 4 16 32
	network_has_lost
}

alone_on_a_device() {
	pair_alone bench_many_peers peers=4
	table_is 1 4
}

parameters_out_of_range() {
	local value
	for value in peers=0 peers=257 size=0 size=65537 receives=0 receives=65 shared_receives=0 \
		shared_receives=4097; do
		sample_refused bench_many_peers "$value"
	done
	sample_load bench_many_peers device=nobody
	sample_fails '^device: nobody not found$'
	sample_unload
	sample_load bench_many_peers "device=$DEVICE" gid_index=255
	sample_fails '^GID: '
}

# Unload at different steps and rows. The messages are large, so that the module is still running.
unloads_at_work() {
	local delay
	for delay in 0 0.1 0.3 0.6 1; do
		pair_unloads "$delay" '.*' bench_many_peers peers=256 size=65536 receives=1 \
			shared_receives=1
	done
}

ends_with_its_devices() {
	ends_without_its_devices pair_load bench_many_peers "$OWN4" "$PEER4" peers=256
}

main setup \
	each_step_has_its_row \
	shared_receives_take_less \
	the_shared_queue_runs_short \
	messages_of_all_sizes \
	with_packets_of_4096 \
	under_loss \
	alone_on_a_device \
	parameters_out_of_range \
	unloads_at_work \
	ends_with_its_devices
