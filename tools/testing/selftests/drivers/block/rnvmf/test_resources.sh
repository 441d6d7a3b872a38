#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the ownership of RDMA objects, and that many connections leak neither RDMA objects nor
# memory.

. "$(dirname "$0")/lib.sh"

ROUNDS=$(in_a_long_run 100 50)

# Objects that other activity may add to a kmalloc cache. A leak of one object a round exceeds this.
NOISE=$((ROUNDS * 4 / 5))

setup() {
	modprobe rnvmf && network_single && backend_memory disk 16 512 && target_simple "$BACKEND" ||
		return 1
	OBJECTS=$(rdma_objects)
}

# owned KIND: print the number of RDMA objects of this type that rnvmf owns.
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
	[ "$(owned mr)" -ge $((2 * 31)) ] ||
		fail "$(owned mr) memory regions, expected at least 62 for two queues of 32 entries"
	disconnect "$CTRL"
	for kind in pd qp cq cm_id mr; do
		same "objects ($kind) after the disconnect" 0 "$(owned $kind)"
	done
}

# Task flags from linux/sched.h.
PF_WQ_WORKER=0x20
PF_MEMALLOC_NOIO=0x80000
PF_KTHREAD=0x200000

# thread_flags NAME: print the task flags of the kernel thread; nothing if there is none.
thread_flags() {
	awk -v name="($1)" '$2 == name { print $9 }' < <(cat /proc/[0-9]*/stat 2>/dev/null)
}

# thread_is NAME FLAG: whether the thread exists and has this flag.
thread_is() {
	local flags
	flags=$(thread_flags "$1")
	[ -n "$flags" ] && ((flags & $2))
}

has_no_thread() {
	[ -z "$(thread_flags "$1")" ]
}

# The controller's thread is no workqueue worker, because a workqueue limits its concurrent work
# items. I/O that frees memory may wait for the thread, so its allocations must not wait for I/O.
has_a_thread_of_its_own() {
	connect "$TARGET4"
	thread_is "$CTRL" $PF_KTHREAD || fail "$CTRL has no thread"
	thread_is "$CTRL" $PF_WQ_WORKER && fail "the thread is a workqueue worker"
	thread_is "$CTRL" $PF_MEMALLOC_NOIO || fail "the thread lacks PF_MEMALLOC_NOIO"
	disconnect "$CTRL"
	wait_until "$SOON" has_no_thread "$CTRL" || fail "the thread did not end"
}

# rounds COUNT: connect, read and disconnect COUNT times.
rounds() {
	local i
	for ((i = 0; i < $1; i++)); do
		run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -i 2 -Q 16
		run dd if=/dev/rnvmf0n1 of=/dev/null bs=64k count=1 iflag=direct
		run rnvmf disconnect -d rnvmf0
	done
}

connects_many_times_without_growth() {
	# What is allocated once and kept is allocated now.
	rounds 3
	slab_steady_while $NOISE rounds_and_back
}

# rounds_and_back: run ROUNDS rounds, then check that the RDMA objects are OBJECTS again.
rounds_and_back() {
	rounds "$ROUNDS"
	rdma_back_to "$OBJECTS"
}

failing_connects_leave_nothing() {
	fail_to_connect
	slab_steady_while $NOISE fails_and_back
}

# fails_and_back: like `rounds_and_back`, with failing connects.
fails_and_back() {
	local i
	for ((i = 0; i < ROUNDS; i++)); do
		fail_to_connect
	done
	rdma_back_to "$OBJECTS"
}

fail_to_connect() {
	expect 1 rnvmf connect -a "$TARGET4" -n "$NQN.wrong"
}

main setup \
	has_a_thread_of_its_own \
	objects_name_their_owner \
	connects_many_times_without_growth \
	failing_connects_leave_nothing
