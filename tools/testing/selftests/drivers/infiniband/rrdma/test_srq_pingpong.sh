#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample srq_pingpong, RC queue pairs on a shared receive queue, against ibv_srq_pingpong.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pingpong.sh"

requirements() {
	need_sample srq_pingpong ibv_srq_pingpong nft
}

setup() {
	network 4200
}

# srq ROLE FAMILY ITERS SIZE MTU QUEUE_PAIRS RECEIVES "PARAMETER...": run both ends; both must
# succeed.
srq() {
	pingpong_start srq "$1" "$2" "$3" "$4" "$5" "num_qp=$6 rx_depth=$7 $8" "-q $6 -r 64"
	srq_ends "$3" "$4" "$6"
}

srq_ends() {
	sample_done 50
	has "$RESULT" "^$1 of $1 messages of $2 bytes in [0-9]+ us on $3 queue pairs, [0-9]+ refills of the receive queue"
	peer_end ping
	has "$OUTPUT" "$1 iters in "
	sample_unload
}

plays_with_the_program() {
	srq server 4 200 4096 1024 16 64 "check=1"
	srq client 4 200 4096 1024 16 64 "check=1 events=1"
	srq server 6 100 1 4096 3 16 "limit=4"
	srq client 6 100 1 4096 3 16 "limit=4"
	srq server 6 12 1048576 4096 2 16 "limit=4"
	srq client 4 12 1048576 1024 2 16 "limit=4"
}

# The program supports at most 254 queue pairs, and requires a receive for each.
as_many_queue_pairs_as_there_can_be() {
	pingpong_start srq client 4 300 64 1024 "num_qp=254 rx_depth=300" "-q 254 -r 300"
	srq_ends 300 64 254
}

# With fewer receives than queue pairs the peers wait (RNR) until the limit event makes the sample
# post more.
limit_is_told() {
	pingpong_start srq client 4 200 1024 1024 "num_qp=8 rx_depth=8 limit=8" "-q 8 -r 64"
	srq_ends 200 1024 8
	[[ $RESULT =~ ([0-9]+)\ refills ]]
	[ "${BASH_REMATCH[1]}" -ge 10 ] || fail "$RESULT"
	pingpong_start srq server 4 100 1024 1024 "num_qp=4 rx_depth=1 limit=1" "-q 4 -r 64"
	srq_ends 100 1024 4
}

queue_is_grown() {
	pingpong_start srq client 4 200 1024 1024 "num_qp=8 rx_depth=8 limit=8 extra=100" "-q 8 -r 64"
	sample_done 50
	sample_says '^shared receive queue: max_wr is (1[0-9][0-9]|2[0-9][0-9])$' || fail "$(sample_log)"
	peer_end ping
}

loss_is_repaired() {
	network_loss 1
	srq server 4 100 8192 1024 8 32 ""
	srq client 6 100 8192 4096 8 32 ""
	network_has_lost
}

# The program sends a message on each queue pair, and ends after 4 of them: before the sample gets an
# acknowledgement, but after it has received more messages than it waits for.
last_acknowledgements_are_lost() {
	pingpong_drops_acks input
	srq server 4 4 64 1024 8 16 ""
	has "$RESULT" ", last message not acknowledged$"
}

# A queue pair that fails in the middle of a message has consumed a receive that never completes.
peer_that_disappears_is_left_in_time() {
	pingpong_start srq client 4 1000000 262144 1024 "num_qp=4 rx_depth=16 patience=4000" "-q 4 -r 16"
	sample_waits '^remote address'
	sleep 1
	peer_stop ping
	sample_fails '^(send: transport retry counter exceeded|peer: timed out after [0-9]+ of 1000000 messages)'
	explain 'rrdma_rxe0: qp#'
}

peer_with_fewer_queue_pairs_is_told() {
	pingpong_start srq client 4 10 64 1024 "num_qp=8" "-q 4 -r 16"
	sample_fails '^peer: has only 4 queue pairs$'
	sample_unload
	peer_stop ping
}

can_be_unloaded_at_any_moment() {
	pingpong_unloads srq 4096 1024 rx_depth=32 -r 64
}

survives_its_device() {
	pingpong_survives_its_device srq 4096 1024
}

parameters_are_checked() {
	sample_refused srq_pingpong num_qp=0
	sample_refused srq_pingpong num_qp=257
	sample_load srq_pingpong rx_depth=8 limit=9
	sample_fails '^parameters: limit=9 exceeds rx_depth=8$'
	sample_unload
	sample_load srq_pingpong size=1048576
	sample_fails '^parameters: rx_depth=500 receives of size=1048576 exceed 67108864 bytes$'
	sample_unload
	sample_load srq_pingpong "device=$DEVICE" size=1 rx_depth=32767 limit=1
	sample_fails '^(completion queue|shared receive queue): EINVAL$'
}

main setup \
	plays_with_the_program \
	as_many_queue_pairs_as_there_can_be \
	limit_is_told \
	queue_is_grown \
	loss_is_repaired \
	last_acknowledgements_are_lost \
	peer_that_disappears_is_left_in_time \
	peer_with_fewer_queue_pairs_is_told \
	can_be_unloaded_at_any_moment \
	survives_its_device \
	parameters_are_checked
