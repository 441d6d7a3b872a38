#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a target against a host that changes bytes of connection requests and capsules at random, beside
# a good host on the same port, whose I/O is verified all the while.
#
# RANDOM_SEED in the environment selects another sequence, BROKEN the number of broken requests.

. "$(dirname "$0")/lib.sh"

BROKEN=${BROKEN:-$(in_a_long_run 10000 500)}
SEED=${RANDOM_SEED:-1}

# Longest time for a broken request, in milliseconds.
EACH=$((500 * SLOWDOWN))

setup() {
	hostile_setup
}

# broken_requests SEED COUNT: run the hostile host, and the good host's I/O until it ends.
broken_requests() {
	local random passes=0 disk status=0
	disk=$(disk "$CTRL" 1)
	"$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" random "$1" "$2" >"$SCRATCH/random" 2>&1 &
	random=$!
	defer end_process $random
	until process_ended $random; do
		verify "$disk" --rw=randwrite --bsrange=512-64k --size=1m --iodepth=8
		passes=$((passes + 1))
		[ $passes -lt $((30 + $2 * EACH / 1000)) ] || fail "stuck: $(<"$SCRATCH/random")"
	done
	wait $random || status=$?
	while read -r line; do
		note "$line"
	done <"$SCRATCH/random"
	note "the good host verified 1 MiB $passes times"
	[ $status = 0 ] || fail "the hostile host exited with status $status"
}

beside_a_good_host() {
	connect "$TARGET4"
	broken_requests "$SEED" "$BROKEN"
	# Shared receive queues last as long as this connection: lost receives show now.
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=4m --iodepth=128
	[ "$(ctrl_field "$CTRL" state)" = live ] || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	disconnect "$CTRL"
	rdma_back_to "$OBJECTS"
	target_serves
}

# All receives are still there: queues of full depth are served.
keeps_its_receives() {
	connect "$TARGET4"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=4m --iodepth=128
	disconnect "$CTRL"
	rdma_back_to "$OBJECTS"
}

# The memory of broken requests is freed.
keeps_no_memory() {
	slab_steady_while 200 "$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" random "$((SEED + 1))" 200
	rdma_back_to "$OBJECTS"
}

main_with_known setup beside_a_good_host keeps_its_receives keeps_no_memory
