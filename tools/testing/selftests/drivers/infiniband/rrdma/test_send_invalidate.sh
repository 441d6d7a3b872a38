#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample send_invalidate: a send with invalidate ends the sender's access to a memory
# region.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pair.sh"

requirements() {
	need_sample send_invalidate nft
}

setup() {
	network 4200
}

# The driver logs the write with an invalidated rkey: IB_WC_REM_ACCESS_ERR (10).
refusal_is_told() {
	explain "$PEER_DEVICE: qp#[0-9]+ make_send_cqe: non-flush error status = 10"
}

# keys_are_dead COUNT IN_VAIN: check the result: COUNT invalidated rkeys, and IN_VAIN reuses of an
# old message that did not invalidate the new rkey.
keys_are_dead() {
	has "$RESULT" "^$1 keys invalidated by the peer, $2 stale invalidations ignored$"
	sample_says '^queue pair: QP access error: the peer violated memory access rights$' ||
		fail "$(sample_log)"
}

# More iterations than an rkey has variants: its 8-bit key wraps around.
keys_die_with_the_message() {
	refusal_is_told
	local family own peer
	for family in 4 6; do
		own=OWN$family peer=PEER$family
		pair_load send_invalidate "${!own}" "${!peer}" iters=300
		sample_done 60
		keys_are_dead 300 1
		! sample_says '^dead key: no NAK received$' || fail "$(sample_log)"
		sample_unload
	done
}

data_of_all_sizes() {
	refusal_is_told
	pair_crosses send_invalidate 1 size=1 mtu=1024
	pair_crosses send_invalidate 1 size=65536 mtu=4096 iters=3
	pair_crosses send_invalidate 1 size=1048576 mtu=1024 iters=1
	pair_crosses send_invalidate 256 size=1048576 mtu=4096 iters=1 read=1
}

under_loss() {
	refusal_is_told
	network_loss 1
	pair_crosses send_invalidate 1 size=65536 iters=5
	pair_crosses send_invalidate 320 size=65536 mtu=1024 iters=5 read=1
	network_has_lost
}

# Drop the NAK of the refused access, an ACK packet (opcode 17) with the syndrome of a remote access
# error. The queue pair sends it once and is then in the error state.
refusal_is_lost() {
	defer nft delete table inet rnvmf_test
	run nft -f - <<-END
		table inet rnvmf_test {
			chain out {
				type filter hook output priority 0;
				udp dport 4791 @th,64,8 17 @th,160,8 0x62 drop
			}
		}
	END
	pair_load send_invalidate "$OWN4" "$PEER4" iters=3
	sample_done
	keys_are_dead 3 0
	sample_says '^dead key: no NAK received$' || fail "$(sample_log)"
}

parameters_out_of_range() {
	sample_refused send_invalidate size=0
	sample_refused send_invalidate iters=0
}

unloads_while_it_works() {
	pair_unloads 0.5 '.*' send_invalidate iters=100000
}

ends_with_its_devices() {
	ends_without_its_devices pair_load send_invalidate "$OWN4" "$PEER4" iters=100000
}

main setup \
	keys_die_with_the_message \
	data_of_all_sizes \
	under_loss \
	refusal_is_lost \
	parameters_out_of_range \
	unloads_while_it_works \
	ends_with_its_devices
