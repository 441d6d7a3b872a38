#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the state transitions of queue pairs, the drain from each state, and refused attributes.

. "$(dirname "$0")/lib.sh"

# The test module posts a read on such a connection.
READ_REFUSED='rrdma_rxe0: queue pair [0-9]+: RDMA read refused: the connection has an initiator depth of 0'

requirements() {
	need_sample test_qp_states
}

setup() {
	explain "rrdma: $READ_REFUSED"
	network
}

# walks OWN [PARAMETER...]: run the test module with the GID of this address.
walks() {
	local own=$1
	shift
	sample_load test_qp_states "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$own")" "$@"
	sample_done
	same result "10 queue pairs, 32 receives flushed" "$RESULT"
}

# A queue pair that is destroyed in any state must complete its posted receives.
receives_come_back_from_every_state() {
	local service state own
	for own in "$OWN4" "$OWN6"; do
		walks "$own"
		sample_says "^found in the tables: GID (::ffff:)?$own \\(RoCE v2\\), P_Key 0xffff$" ||
			fail "$(sample_log)"
		for service in RC UC; do
			sample_says "^$service destroyed in RESET: 0 of 0 receives flushed$" ||
				fail "$(sample_log)"
			for state in INIT RTR RTS ERR; do
				sample_says "^$service destroyed in $state: 4 of 4 receives flushed$" ||
					fail "$(sample_log)"
			done
		done
		sample_unload
	done
}

# The device rounds up the sizes of the queues. They take no more work requests than the queue pair was created
# for: the completion queue has no entries for more.
a_full_queue_is_drained() {
	walks "$OWN4" fill=1
	sample_says '^filled with 1 messages, with 4 receives$' || fail "$(sample_log)"
}

refuses() {
	sample_says "^refused: $1$" || fail "'$1' not found in: $(sample_log)"
}

what_cannot_be_is_refused_by_name() {
	walks "$OWN4"
	same "refused reads in the log" 1 "$(logged "$READ_REFUSED")"
	refuses 'RESET to INIT: the port has no P_Key at index 65535'
	refuses "INIT to RTR: path MTU 2048 exceeds the port's active MTU 1024"
	refuses 'INIT to RTR: 255 outstanding reads, the device has at most [0-9]+'
	refuses 'RTR to RTS: 255 outstanding reads, the device has at most [0-9]+'
}

paths_to_nowhere_are_refused() {
	walks "$OWN4" "nobody=$NOBODY4"
	sample_says '^no path to ::: EINVAL$' || fail "$(sample_log)"
	sample_says '^no path to ::ffff:224.0.0.1: EINVAL$' || fail "$(sample_log)"
	sample_says '^no path to ::1: EAFNOSUPPORT$' || fail "$(sample_log)"
	sample_says "^no path to ::ffff:$NOBODY4: ETIMEDOUT$" || fail "$(sample_log)"
}

# Remove the device at several moments. The longest step is the resolution of an unused address.
ends_with_its_device() {
	local moment
	for moment in 0 0.1 0.3 1; do
		defer devices_again
		sample_load test_qp_states "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$OWN4")" \
			"nobody=$NOBODY4"
		sleep "$moment"
		lose_device
		sample_result
		has "$RESULT" '^(stopped at [a-z ]+: the device is removed|done: 10 queue pairs, .*)$'
		sample_unload
		devices_again || fail "cannot add the RDMA devices again"
	done
}

ends_with_the_driver() {
	defer devices_again
	sample_load test_qp_states "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$OWN4")" \
		"nobody=$NOBODY4"
	sample_waits '^no path to ::1'
	lose_driver
	sample_result
	has "$RESULT" '^(stopped at [a-z ]+: the device is removed|done: 10 queue pairs, .*)$'
	sample_unload
}

main setup \
	receives_come_back_from_every_state \
	a_full_queue_is_drained \
	what_cannot_be_is_refused_by_name \
	paths_to_nowhere_are_refused \
	ends_with_its_device \
	ends_with_the_driver
