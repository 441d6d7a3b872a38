#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests loss of the carrier at the host or at the target, for less and for more than each of the
# host's time-outs. The interfaces stay up.
#
# The tests do not take interfaces down: soft-RoCE's GSI queue pair fails for good if it has a
# message to send then.

. "$(dirname "$0")/lib.sh"

# Duration of a short carrier loss, in seconds.
BRIEFLY=0.4

# Options with a keep-alive that does not expire during a test.
PATIENT=(-k $((10 * SLOWDOWN)) -c 1)

# Options with a keep-alive that expires soon.
IMPATIENT=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

# Errors of the loss or of a reconnect attempt without a link.
LINK_DOWN='timed out after|does not answer|stopped by the RDMA device'

SWITCH=rnvmf-switch

setup() {
	modprobe rnvmf
}

# start_switched: create host and target at ports of a bridge, and the subsystem $NQN with one
# namespace.
start_switched() {
	network_switched && backend_memory disk 64 512 && target_simple "$BACKEND"
}

network_switched() {
	rdma_load || return 1
	RNVMF=(ip netns exec "$HOST_NETNS" rnvmf)
	ip netns add "$HOST_NETNS" || return 1
	defer netns_delete "$HOST_NETNS"
	ip netns add "$SWITCH" || return 1
	defer netns_delete "$SWITCH"
	ip link add rnvmf0 type veth peer name far netns "$SWITCH" || return 1
	defer interface_delete rnvmf0
	ip -n "$HOST_NETNS" link add rnvmf1 type veth peer name near netns "$SWITCH" &&
		ip -n "$SWITCH" link add switch type bridge && interface_up "$SWITCH" switch "$MTU" &&
		port_up near && port_up far &&
		interface_up "" rnvmf0 "$MTU" "$TARGET4/24" "$TARGET6/64" &&
		interface_up "$HOST_NETNS" rnvmf1 "$MTU" "$HOST4/24" "$HOST6/64" &&
		rdma_add "" rnvmf_rxe0 rnvmf0 && rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1 &&
		neighbours_meet
}

# port_up PORT: add an interface to the bridge and bring it up.
port_up() {
	ip -n "$SWITCH" link set "$1" master switch && interface_up "$SWITCH" "$1" "$MTU"
}

# cable END down|up: set the bridge port of an end: `near` is the host's, `far` the target's.
cable() {
	run ip -n "$SWITCH" link set "$1" "$2"
}

# down_for_less_than_a_keep_alive END: a short loss; commands are retransmitted or retried on a new
# connection.
#
# soft-RoCE moves a queue pair to the error state if it sends while the interface accepts no
# packets. It reports that only by flushed work requests. rnvmf reacts to them, nvmet does not. Nor
# does nvmet fail a command whose data it could not read from the host. So a command may wait for
# its time-out.
down_for_less_than_a_keep_alive() {
	start_switched
	connect "$TARGET4" "${PATIENT[@]}"
	start_verify
	cable "$1" down
	sleep "$BRIEFLY"
	cable "$1" up
	is_verified
	same state live "$(ctrl_field "$CTRL" state)"
}

near_end_down_for_less_than_a_keep_alive() {
	down_for_less_than_a_keep_alive near
}

far_end_down_for_less_than_a_keep_alive() {
	down_for_less_than_a_keep_alive far
}

# down_for_longer_than_a_keep_alive END: a loss that the keep-alive detects.
down_for_longer_than_a_keep_alive() {
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}"
	start_verify
	cable "$1" down
	loses
	sleep 1
	! state_is "$CTRL" live || fail "$CTRL is live without a link"
	cable "$1" up
	comes_back
	is_verified
}

far_end_down_for_longer_than_a_keep_alive() {
	down_for_longer_than_a_keep_alive far
}

near_end_down_for_longer_than_a_keep_alive() {
	down_for_longer_than_a_keep_alive near
}

# The loss lasts for several reconnect attempts and delays; I/O waits for the one that succeeds.
down_for_longer_than_attempts_and_pauses() {
	start_switched
	connect "$TARGET4" -k "$SLOWDOWN" -c 1 --timeout $((2 * SLOWDOWN))
	start_verify
	cable far down
	wait_until "$SOON" tried_twice || fail "no reconnect attempt in progress: $OUTPUT"
	has "$(ctrl_field "$CTRL" message)" 'timed out after|does not answer'
	cable far up
	comes_back
	is_verified
}

# Whether two reconnect attempts have failed.
tried_twice() {
	try "${RNVMF[@]}" show "$CTRL" -o json
	[[ $OUTPUT =~ \"attempts\":[3-9] ]]
}

# I/O waits during the loss, and none fails.
down_for_less_than_fast_io_fail_tmo() {
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}" -F $((10 * SLOWDOWN)) -l 600
	start_verify
	cable near down
	loses
	sleep 3
	is_not_live || fail "$CTRL is live without a link"
	cable near up
	comes_back
	same "number of fast_io_fail_tmo expiries" 0 "$(logged "$CTRL: fast_io_fail_tmo expired: failing I/O")"
	is_verified
}

# io_timeout MILLISECONDS: set the I/O time-out of the first disk.
io_timeout() {
	echo $(($1 * SLOWDOWN)) >"/sys/block/${CTRL}n1/queue/io_timeout"
}

# No I/O fails.
down_for_less_than_io_timeout() {
	start_switched
	connect "$TARGET4" "${PATIENT[@]}"
	io_timeout 2000
	start_verify
	cable near down
	sleep "$BRIEFLY"
	cable near up
	is_verified
	same state live "$(ctrl_field "$CTRL" state)"
}

# Only the I/O time-out detects the loss; commands are retried on a new connection. soft-RoCE
# retransmits earlier, and fails the queue pair if a memory registration is among the work requests.
down_for_longer_than_io_timeout() {
	start_switched
	connect "$TARGET4" "${PATIENT[@]}"
	io_timeout 1000
	start_verify
	start_monitor
	cable far down
	loses
	sleep 2
	is_not_live || fail "$CTRL is live without a link"
	cable far up
	comes_back
	is_verified
	has "$(<"$SCRATCH/events")" 'on queue [0-9]+ timed out|stopped by the RDMA device'
}

# I/O fails after fast_io_fail_tmo, and the controller keeps reconnecting.
down_for_longer_than_fast_io_fail_tmo() {
	local began
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}" -F 2 -l 600
	start_io
	began=$(now)
	cable near down
	# The loss takes up to 1.5 times the keep-alive timeout, 1 s. Held writes end after three times the timeout.
	io_fails_after 2 "$began" $((5500 - 2000 / SLOWDOWN))
	same "number of fast_io_fail_tmo expiries" 1 "$(logged "$CTRL: fast_io_fail_tmo expired: failing I/O")"
	cable near up
	comes_back
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# The controller is dead after ctrl_loss_tmo, and a link that returns later does not revive it.
down_for_longer_than_ctrl_loss_tmo() {
	local began
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}" -l 2
	start_io
	began=$(now)
	cable near down
	io_fails_after 2 "$began" 2500
	cable near up
	is_dead "$LINK_DOWN"
	connect "$TARGET4" "${IMPATIENT[@]}"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# A disconnect must not wait for the link.
disconnect_without_a_link() {
	start_switched
	takes 1000 disconnects_without_a_link known
}

# Without a neighbour entry soft-RoCE keeps a queue pair while its packets wait for the neighbour to
# be resolved, which takes 3 s.
disconnect_without_a_link_address() {
	start_switched
	takes 4000 disconnects_without_a_link unknown
}

# disconnects_without_a_link known|unknown: disconnect with or without a neighbour entry of the
# target.
disconnects_without_a_link() {
	# A permanent entry, which does not expire during the test.
	run ip -n "$HOST_NETNS" neighbour replace "$TARGET4" dev rnvmf1 \
		lladdr "$(</sys/class/net/rnvmf0/address)" nud permanent
	connect "$TARGET4" "${PATIENT[@]}"
	cable far down
	[ "$1" = known ] || run ip -n "$HOST_NETNS" neighbour delete "$TARGET4" dev rnvmf1
	timed_disconnect "$CTRL"
	cable far up
	wait_until "$SOON" rdma_is_up rnvmf_rxe0 || fail "the port of rnvmf_rxe0 does not become active"
}

main setup \
	near_end_down_for_less_than_a_keep_alive \
	far_end_down_for_less_than_a_keep_alive \
	far_end_down_for_longer_than_a_keep_alive \
	near_end_down_for_longer_than_a_keep_alive \
	down_for_longer_than_attempts_and_pauses \
	down_for_less_than_io_timeout \
	down_for_longer_than_io_timeout \
	down_for_less_than_fast_io_fail_tmo \
	down_for_longer_than_fast_io_fail_tmo \
	down_for_longer_than_ctrl_loss_tmo \
	disconnect_without_a_link \
	disconnect_without_a_link_address
