#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Each kind of completion queue, in the sample that is its own peer.

. "$(dirname "$0")/lib.sh"

KINDS='polled by the core, SoftIrq
polled by the core, Workqueue
polled by the core, UnboundWorkqueue
polled by the core, shared
polled by the consumer
polled by the consumer when it is woken'

setup() {
	network
}

# queues ADDRESS [PARAMETER...]: the sample, at this address.
queues() {
	local own=$1
	shift
	sample_load completion_queues "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$own")" "$@"
}

all_kinds_deliver() {
	local address
	for address in "$OWN4" "$OWN6"; do
		queues "$address" messages=500
		sample_done 60
		same result '6 kinds, 500 messages each' "$RESULT"
		same kinds "$KINDS" "$(sample_log | grep ^polled)"
		sample_says '^woken for what is solicited$' || fail "$(sample_log)"
		sample_says '^the device has no moderation$' || fail "$(sample_log)"
		sample_unload
	done
}

# It is told, by an event of the device and in the log; the rest goes on, and all memory comes back.
lost_completion_is_told() {
	local told="$DEVICE: a completion queue was too small, a completion is lost"
	explain "rrdma_rxe0: (cq|qp)#|rrdma: $told"
	queues "$OWN4" overrun=1
	sample_done
	sample_says '^lost a completion of [0-9]+, as the queue was told$' || fail "$(sample_log)"
	same "times that it was told" 1 "$(kernel_log | grep -c "rrdma: $told$")"
}

# The pool of the device keeps its queues, all others are gone.
queues_have_their_owner() {
	queues "$OWN4" messages=1000000
	wait_until 10 owned || fail "no queue of the sample: $(rdma resource show cq)"
	sample_unload
	! owned || fail "a queue is left: $(rdma resource show cq)"
}

owned() {
	grep -qF 'comm [rrdma_completion' < <(rdma resource show cq)
}

# It is unloaded while it waits for messages on the kind of queue after this one.
unloads_with_each_kind() {
	local kind began took
	for kind in none 'polled by the core, SoftIrq' 'polled by the core, UnboundWorkqueue' \
		'polled by the core, shared' 'polled by the consumer$'; do
		queues "$OWN4" messages=1500
		[ "$kind" = none ] || wait_until 60 sample_says "^$kind" || fail "$(sample_log)"
		began=$(now)
		sample_unload
		took=$(($(now) - began))
		[ $took -lt $((3000 * SLOWDOWN)) ] || fail "unloading took $took ms"
	done
}

ends_with_its_devices() {
	ends_without device queues "$OWN4" messages=1000000
	ends_without driver queues "$OWN4" messages=1000000
}

main setup \
	all_kinds_deliver \
	lost_completion_is_told \
	queues_have_their_owner \
	unloads_with_each_kind \
	ends_with_its_devices
