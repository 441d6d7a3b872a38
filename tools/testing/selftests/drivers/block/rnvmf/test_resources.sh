#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Whose the RDMA objects are, and that none of them, nor memory, is left of many connections.

. "$(dirname "$0")/lib.sh"

ROUNDS=$(in_a_long_run 100 50)

# What other activity may add to a kmalloc cache over the rounds; one object leaked a round is more.
NOISE=$((ROUNDS * 4 / 5))

setup() {
	modprobe rnvmf && network_single && backend_memory disk 16 512 && target_simple "$BACKEND"
}

# owned KIND: how many objects of this kind rnvmf has.
owned() {
	rdma resource show "$1" | grep -cF '[rnvmf]' || true
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

# Of a task, in linux/sched.h.
PF_WQ_WORKER=0x20
PF_MEMALLOC_NOIO=0x80000
PF_KTHREAD=0x200000

# thread_flags NAME: what the kernel thread of this name is.
thread_flags() {
	awk -v name="($1)" '$2 == name { print $9 }' < <(cat /proc/[0-9]*/stat 2>/dev/null)
}

# thread_is NAME FLAG: whether it is there and has that flag.
thread_is() {
	local flags
	flags=$(thread_flags "$1")
	[ -n "$flags" ] && ((flags & $2))
}

has_no_thread() {
	[ -z "$(thread_flags "$1")" ]
}

# It is no worker of a workqueue, which has room for so many only; and as I/O may wait for it, also that
# by which memory is made free, its allocations wait for none.
has_a_thread_of_its_own() {
	connect "$TARGET4"
	thread_is "$CTRL" $PF_KTHREAD || fail "$CTRL has no thread"
	thread_is "$CTRL" $PF_WQ_WORKER && fail "its thread is a worker"
	thread_is "$CTRL" $PF_MEMALLOC_NOIO || fail "its thread waits for I/O when it allocates"
	disconnect "$CTRL"
	wait_until "$SOON" has_no_thread "$CTRL" || fail "its thread is still there"
}

# rounds COUNT: connect and disconnect, with a little I/O.
rounds() {
	local i
	for ((i = 0; i < $1; i++)); do
		run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -i 2 -Q 16
		run dd if=/dev/rnvmf0n1 of=/dev/null bs=64k count=1 iflag=direct
		run rnvmf disconnect -d rnvmf0
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
	expect 1 rnvmf connect -a "$TARGET4" -n "$NQN.wrong"
}

main setup \
	has_a_thread_of_its_own \
	objects_name_their_owner \
	connects_many_times_without_growth \
	failing_connects_leave_nothing
