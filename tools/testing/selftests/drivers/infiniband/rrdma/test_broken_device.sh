#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests devices that break the rules of the verbs. The module test_liar replaces an operation of
# soft-RoCE.

. "$(dirname "$0")/lib.sh"

requirements() {
	need_sample multicast && need_modules rrdma_test_liar rrdma_test_broken_device rrdma_test_softirq_drops
}

setup() {
	network
}

# liar LIE: make the device tell this lie until the test ends.
liar() {
	sample_load test_liar "device=$DEVICE" "lie=$1"
}

# broken_device LIE: load the test module for a device that tells this lie.
broken_device() {
	sample_load test_broken_device "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$OWN4")" "lie=$1"
}

# lies LIE: run the test module on a device that tells this lie.
lies() {
	liar "$1"
	broken_device "$1"
	sample_done
	same result "all memory returned" "$RESULT"
	sample_unload
}

# refuses LIE ACTION: as `lies`; rrdma must log that the device refuses ACTION, once.
refuses() {
	explain "rrdma: $DEVICE: (.*: )?cannot .*: E(IO|INVAL)"
	lies "$1"
	same "refusals of '$2'" 1 "$(logged "rrdma: $DEVICE: (.*: )?cannot $2: ")"
}

posts_that_are_reported_as_refused() { lies post; }
posts_that_fail_at_a_foreign_request() { lies foreign; }
posts_that_are_refused_without_the_request() { refuses silent drain; }
drain_of_the_driver_that_gives_up() { lies drain; }

events_of_incomplete_queue_pairs() {
	lies event
	! sample_says '^queue pair: ' || fail "the context of a queue pair got an event: $SAID"
}

# A softirq drops the last reference to one of two queue pairs, whose context gets no event afterwards. That of the
# other gets one.
events_of_dropped_queue_pairs() {
	liar late
	sample_load test_softirq_drops "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$OWN4")" object=rdma
	sample_done
	sample_unload
	same "events" 1 "$(sample_log | grep -c '^queue pair: QP fatal error')"
}

# keeps LIE REASON: run the test module on a device that tells this lie. A drain gives up, says so, and keeps its
# queue pair until the device no longer lies.
keeps() {
	explain "rrdma: $DEVICE: (queue pair [0-9]+: cannot drain: $2; |CQ error: )"
	liar "$1"
	broken_device "$1"
	sample_done 100
	[[ $(rdma resource show qp) == *'comm [rrdma_test_broke'* ]] || fail "no queue pair is kept: $(rdma resource show qp)"
	[ "$(logged "rrdma: $DEVICE: queue pair [0-9]+: cannot drain: $2; ")" -ge 1 ] || fail "$(kernel_log | tail -3)"
	run modprobe -r rrdma_test_liar
	sample_unload
}

drain_without_completions() { keeps deaf 'the completion queue has lost a completion'; }
regions_with_gaps() {
	broken_device gaps
	sample_fails '^region with gaps: EOPNOTSUPP$'
	sample_unload
	lies gaps
}

drain_of_a_device_without_a_word() {
	explain "rrdma: $DEVICE: queue pair [0-9]+: the drain has waited for 10 s for the device to flush work requests"
	keeps mute 'the device has not completed its work requests within 60 s'
}

drain_without_the_last_receive() { keeps last 'timed out waiting for LAST_WQE_REACHED'; }

# A queue pair that was never connected has taken no shared receive, so its drain does not wait for the last one.
drain_of_an_unconnected_queue_pair() {
	liar last
	broken_device unconnected
	sample_done 10
	sample_unload
}

# The drain of a queue pair with shared receives would last 60 s, and keep the queue pair.
shared_receives_without_the_last() {
	explain "rrdma: $DEVICE: no shared receive queues: "
	lies "$1"
	same "lines about shared receives" 1 \
		"$(logged "rrdma: $DEVICE: no shared receive queues: the driver $1 does not report the last receive of a queue pair")"
}

shared_receives_on_irdma() { shared_receives_without_the_last irdma; }
shared_receives_on_qedr() { shared_receives_without_the_last qedr; }

drain_without_the_error_state() { keeps undrained 'the device refuses the error state'; }
error_state_is_refused() { refuses error drain; }
deregistration_is_refused() { refuses dereg 'deregister a memory region'; }
end_of_a_queue_pair_is_refused() { refuses destroy_qp 'destroy a queue pair'; }
end_of_a_shared_queue_is_refused() { refuses destroy_srq 'destroy a shared receive queue'; }

# A removal that waits for a driver says so.
device_that_a_driver_keeps() {
	explain "rrdma: $DEVICE: has waited for 10 s until a driver drops its [0-9]+ references to the device"
	defer device_again
	broken_device hold
	rdma_delete "$DEVICE"
	same "lines about the wait" 1 "$(logged "$DEVICE: has waited for 10 s until a driver drops")"
	sample_unload
}

end_of_a_membership_is_refused() {
	explain "rrdma: $DEVICE: cannot leave a multicast group: EIO; trying again"
	liar detach
	sample_load multicast group=239.1.2.3 "source=$OWN4"
	sample_waits '^receiving$'
	sample_unload
	same refusals 1 "$(logged 'cannot leave a multicast group: EIO')"
}

main setup \
	posts_that_are_reported_as_refused \
	posts_that_fail_at_a_foreign_request \
	posts_that_are_refused_without_the_request \
	drain_of_the_driver_that_gives_up \
	events_of_incomplete_queue_pairs \
	events_of_dropped_queue_pairs \
	regions_with_gaps \
	drain_without_completions \
	drain_of_a_device_without_a_word \
	drain_without_the_last_receive \
	drain_of_an_unconnected_queue_pair \
	shared_receives_on_irdma \
	shared_receives_on_qedr \
	drain_without_the_error_state \
	error_state_is_refused \
	deregistration_is_refused \
	end_of_a_queue_pair_is_refused \
	end_of_a_shared_queue_is_refused \
	end_of_a_membership_is_refused \
	device_that_a_driver_keeps
