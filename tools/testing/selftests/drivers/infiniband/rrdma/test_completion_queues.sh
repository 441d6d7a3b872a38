#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests each kind of completion queue with a sample and a test module that send to themselves.

. "$(dirname "$0")/lib.sh"

KINDS='polled by the core, SoftIrq
polled by the core, Workqueue
polled by the core, UnboundWorkqueue
polled by the core, shared
polled by the consumer
polled by the consumer, when notified'

requirements() {
	need_sample completion_queues && need_modules rrdma_test_cq_polling rrdma_test_softirq_drops
}

setup() {
	explain "$MEETS_THE_DRAIN"
	network
}

# queues ADDRESS [PARAMETER...]: load the sample with the GID of this address.
queues() {
	load_at completion_queues "$@"
}

# load_at NAME ADDRESS [PARAMETER...]: load a module with the GID of this address.
load_at() {
	sample_load "$1" "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$2")" "${@:3}"
}

all_kinds_deliver() {
	local address
	for address in "$OWN4" "$OWN6"; do
		queues "$address" messages=500
		sample_done 60
		same result '6 kinds, 500 messages each' "$RESULT"
		same kinds "$KINDS" "$(sample_log | grep ^polled)"
		sample_says '^notified of solicited completions only$' || fail "$(sample_log)"
		sample_says '^moderation: not supported by the device$' || fail "$(sample_log)"
		sample_unload
	done
}

# The module polls directly, drains, and posts an operation; the device accepts only a part.
# It also creates completion queues with invalid attributes, which must fail.
handlers_keep_to_their_context() {
	local address
	for address in "$OWN4" "$OWN6"; do
		load_at test_cq_polling "$address"
		sample_done 60
		sample_unload
	done
}

# Queue pairs take the entries of their completion queue that they may need. An overrun would lose a completion,
# and the memory of its work request.
queues_are_not_overrun() {
	local refused="rrdma: $DEVICE: completion queue too small: "
	explain "$refused"
	load_at test_cq_polling "$OWN4" part=too_small
	sample_done
	same "refusals in the log" 5 "$(logged "$refused")"
}

# A completion handler that may not sleep drops objects whose drop sleeps. None is left when the module is unloaded,
# which waits for their work items.
objects_are_dropped_in_a_softirq() {
	softirq_drops rdma
	sample_unload
	[[ $(rdma resource show qp) != *'comm [rrdma_test_soft'* ]] || fail "queue pair leaked: $(rdma resource show qp)"
}

INSTANCES=/sys/kernel/tracing/instances
DROPS=$INSTANCES/drops
ARMING=$INSTANCES/arming
PROBES=/sys/kernel/tracing/kprobe_events

# end_probes GROUP: remove the probes, and the trace of this group, if it is there.
end_probes() {
	[ -d "$INSTANCES/$1" ] || return 0
	echo 0 >"$INSTANCES/$1/events/$1/enable"
	rmdir "$INSTANCES/$1"
	echo >"$PROBES"
}

# softirq_drops OBJECT: let a completion handler, which may not sleep, drop an object.
softirq_drops() {
	load_at test_softirq_drops "$OWN4" "object=$1" "source=$OWN4"
	sample_done
	same result "$1" "$RESULT"
}

# dropped_in_a_softirq OBJECT FUNCTION...: as `softirq_drops`. The functions of C, which may sleep, must be called for
# the object, and in process context.
dropped_in_a_softirq() {
	local object=$1 function
	shift
	# Functions of modules that are not loaded cannot be probed.
	run modprobe -a ib_core rdma_cm
	mkdir "$DROPS"
	for function in "$@"; do
		echo "p:drops/$function $function" >>"$PROBES" || fail "cannot create a probe of $function"
	done
	echo 1 >"$DROPS/events/drops/enable"
	softirq_drops "$object"
	for function in "$@"; do
		wait_until 10 grep -q " $function: " "$DROPS/trace" || fail "$object: no call of $function"
	done
	same "calls in a softirq" "" "$(awk '$3 ~ /^..[sHh]/' "$DROPS/trace")"
	end_probes drops
	sample_unload
}

rdma_objects_are_dropped_in_a_softirq() {
	defer end_probes drops
	dropped_in_a_softirq id rdma_destroy_id
	dropped_in_a_softirq listener rdma_destroy_id
	dropped_in_a_softirq group ib_detach_mcast ib_destroy_qp_user rdma_destroy_id
	dropped_in_a_softirq srq ib_destroy_srq_user
	dropped_in_a_softirq client ib_unregister_client
}

kernel_objects_are_dropped_in_a_softirq() {
	defer end_probes drops
	dropped_in_a_softirq node cdev_del
	dropped_in_a_softirq numbers unregister_chrdev_region
	dropped_in_a_softirq class class_destroy
	dropped_in_a_softirq device device_unregister
	dropped_in_a_softirq workqueue destroy_workqueue
	dropped_in_a_softirq socket sock_release
	dropped_in_a_softirq netlink genl_unregister_family
	dropped_in_a_softirq tag_set blk_mq_free_tag_set
	dropped_in_a_softirq disk del_gendisk blk_mq_free_tag_set
	# The wait for its end would be a "BUG: scheduling while atomic".
	softirq_drops thread
	sample_unload
}

# What RCU protects leaks: nobody is there to wait for its readers.
retracted_objects_leak_in_a_softirq() {
	local line='rrdma: an object that RCU protects leaks: it was dropped in atomic context'
	explain "$line"
	softirq_drops rcu
	same "lines about the leak" 1 "$(logged "$line")"
}

# After unloading only the completion queues of the device's pool may remain.
queues_have_their_owner() {
	queues "$OWN4" messages=1000000
	wait_until 10 owned || fail "the sample owns no completion queue: $(rdma resource show cq)"
	sample_unload
	! owned || fail "completion queue leaked: $(rdma resource show cq)"
}

owned() {
	[[ $(rdma resource show cq) == *'comm [rrdma_completion'* ]]
}

# Unload the sample while it waits for messages on the kind of queue after KIND.
unloads_with_each_kind() {
	local kind began took
	for kind in none 'polled by the core, SoftIrq' 'polled by the core, UnboundWorkqueue' \
		'polled by the core, shared' 'polled by the consumer$'; do
		queues "$OWN4" messages=1500
		[ "$kind" = none ] || sample_will_say 60 "^$kind" || fail "$(sample_log)"
		began=$(now)
		sample_unload
		took=$(($(now) - began))
		at_most "unloading took" $took 1000
	done
}

ends_with_its_devices() {
	ends_without device queues "$OWN4" messages=1000000
	ends_without driver queues "$OWN4" messages=1000000
}

# irq_poll of the core re-arms a softirq-polled completion queue after it has completed its poll. So
# a thread that frees the queue, or returns it to the pool, must wait until it is re-armed. The
# kprobes with stack traces widen that window to some milliseconds.
none_is_freed_while_it_is_armed() {
	local i round=2
	mkdir "$ARMING"
	defer end_probes arming
	{
		echo "p:arming/created rxe_create_cq cq=\$arg1"
		echo "p:arming/freed rxe_destroy_cq cq=\$arg1"
		echo "r:arming/taken ib_cq_pool_get cq=\$retval"
		echo "p:arming/given ib_cq_pool_put cq=\$arg1"
		for ((i = 0; i < 300; i++)); do
			echo "p:arming/armed$i rxe_req_notify_cq cq=\$arg1"
		done
	} >>"$PROBES" || fail "cannot create the kprobe events"
	for ((i = 0; i < 300; i++)); do
		echo 'stacktrace if common_flags & 16' >"$ARMING/events/arming/armed$i/trigger" || fail "cannot set trigger $i"
	done
	echo 32768 >"$ARMING/buffer_size_kb"
	echo 1 >"$ARMING/events/arming/enable"
	while ((round-- > 0)); do
		queues "$OWN4" messages=1
		sample_done 60
		sample_unload
	done
	echo 0 >"$ARMING/events/arming/enable"
	same "list of queues armed after they were freed" "" "$(armed_when_freed)"
	[ "$(grep -c ' freed: ' "$ARMING/trace")" -ge 4 ] || fail "no queue was freed: $(tail -3 "$ARMING/trace")"
	[ "$(grep -c ' given: ' "$ARMING/trace")" -ge 2 ] || fail "no queue was returned to the pool: $(tail -3 "$ARMING/trace")"
}

# Print the queues that were armed while freed. A new queue may reuse the address of a freed one.
armed_when_freed() {
	awk '
		!match($0, /cq=0x[0-9a-f]+/) { next }
		{ cq = substr($0, RSTART, RLENGTH) }
		/ (freed|given): / { freed[cq] = 1 }
		/ (created|taken): / { delete freed[cq] }
		/ armed[0-9]+: / && cq in freed { print cq; delete freed[cq] }
	' "$ARMING/trace"
}

main setup \
	all_kinds_deliver \
	handlers_keep_to_their_context \
	queues_are_not_overrun \
	objects_are_dropped_in_a_softirq \
	rdma_objects_are_dropped_in_a_softirq \
	kernel_objects_are_dropped_in_a_softirq \
	retracted_objects_leak_in_a_softirq \
	queues_have_their_owner \
	unloads_with_each_kind \
	none_is_freed_while_it_is_armed \
	ends_with_its_devices
