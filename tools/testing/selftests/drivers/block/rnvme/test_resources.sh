#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Whose the RDMA objects are, and that none of them, nor memory, is left of many connections.

. "$(dirname "$0")/lib.sh"

ROUNDS=$(in_a_long_run 100 50)

# What other activity may add to a kmalloc cache over the rounds; one object leaked a round is more.
NOISE=$((ROUNDS * 4 / 5))

setup() {
	modprobe rnvme && network_single && backend_memory disk 16 512 && target_simple "$BACKEND"
}

# owned KIND: how many objects of this kind rnvme has.
owned() {
	rdma resource show "$1" | grep -cF '[rnvme]' || true
}

objects_name_their_owner() {
	local queues
	connect "$TARGET4" -i 2 -Q 32
	queues=3
	same "protection domains" 1 "$(owned pd)"
	same "queue pairs" $queues "$(owned qp)"
	same "completion queues" $queues "$(owned cq)"
	same "CM identifiers" $queues "$(owned cm_id)"
	[ "$(owned mr)" -ge $((2 * 31)) ] || fail "$(owned mr) regions for two queues of 32"
	disconnect "$CTRL"
	for kind in pd qp cq cm_id mr; do
		same "objects ($kind) after the disconnect" 0 "$(owned $kind)"
	done
}

# rounds COUNT: connect and disconnect, with a little I/O.
rounds() {
	local i
	for ((i = 0; i < $1; i++)); do
		run rnvme connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -i 2 -Q 16
		run dd if=/dev/rnvme0n1 of=/dev/null bs=64k count=1 iflag=direct
		run rnvme disconnect -d rnvme0
	done
}

connects_many_times_without_growth() {
	local objects
	# What is made once and kept is made now.
	rounds 3
	objects=$(rdma_objects)
	slab_steady_while $NOISE rounds_and_back "$objects"
}

# rounds_and_back OBJECTS: after which there are these RDMA objects again.
rounds_and_back() {
	rounds "$ROUNDS"
	rdma_back_to "$1"
}

failing_connects_leave_nothing() {
	local objects
	fail_to_connect
	objects=$(rdma_objects)
	slab_steady_while $NOISE fails_and_back "$objects"
}

# fails_and_back OBJECTS: likewise.
fails_and_back() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		fail_to_connect
	done
	rdma_back_to "$1"
}

fail_to_connect() {
	expect 1 rnvme connect -a "$TARGET4" -n "$NQN.wrong"
}

main setup \
	objects_name_their_owner \
	connects_many_times_without_growth \
	failing_connects_leave_nothing
