#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A cable that is pulled, at the host or at the target, for less and for more than each of the times
# that the host has: the interfaces are up, and without a carrier.
#
# An interface that is taken down is another matter: soft-RoCE's general service stops for good if it
# has a message to send then.

. "$(dirname "$0")/lib.sh"

# In seconds.
BRIEFLY=0.4

# A keep-alive that is not missed by then, in seconds.
PATIENT=(-k $((10 * SLOWDOWN)) -c 1)

# One that is missed soon.
IMPATIENT=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

# What an attempt to connect ends with, or what the loss was.
LINK_DOWN='timed out after|does not answer|stopped by the RDMA device'

SWITCH=rnvmf-switch

setup() {
	modprobe rnvmf
}

# start_switched: host and target each at a port of a switch, and the subsystem $NQN with one disk.
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

# port_up PORT
port_up() {
	ip -n "$SWITCH" link set "$1" master switch && interface_up "$SWITCH" "$1" "$MTU"
}

# cable END down|up
cable() {
	run ip -n "$SWITCH" link set "$1" "$2"
}

# down_for_less_than_a_keep_alive END: what was lost is sent again, or on another connection.
#
# Soft-RoCE stops a queue pair that has something to send while the interface takes no packets, and says so
# in nothing but flushes. On our side we see them; Linux's target takes no notice of its own. Neither does
# it say what became of data that it wanted to read when our side could not send it. So a command may have
# to wait for its time-out.
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

# down_for_longer_than_a_keep_alive END
down_for_longer_than_a_keep_alive() {
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}"
	start_verify
	cable "$1" down
	loses
	sleep 1
	! state_is "$CTRL" live || fail "it is live without a link"
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

# Attempts end when they are to, and so do the pauses between them, and I/O waits for one that works.
down_for_longer_than_attempts_and_pauses() {
	start_switched
	connect "$TARGET4" -k "$SLOWDOWN" -c 1 --timeout $((2 * SLOWDOWN))
	start_verify
	cable far down
	wait_until $((2 * SOON)) tried_twice || fail "it does not try: $OUTPUT"
	has "$(ctrl_field "$CTRL" message)" 'timed out after|does not answer'
	cable far up
	comes_back
	is_verified
}

# Two attempts to connect again have failed.
tried_twice() {
	try "${RNVMF[@]}" show "$CTRL" -o json
	[[ $OUTPUT =~ \"attempts\":[3-9] ]]
}

# I/O waits for as long as it is to, and not one fails.
down_for_less_than_fast_io_fail_tmo() {
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}" -F $((10 * SLOWDOWN)) -l 600
	start_verify
	cable near down
	loses
	sleep 3
	is_not_live || fail "it is live without a link"
	cable near up
	comes_back
	same "times that I/O was let go" 0 "$(logged "$CTRL: fast_io_fail_tmo expired: failing I/O")"
	is_verified
}

# io_timeout MILLISECONDS: what a command on the first disk may take.
io_timeout() {
	echo $(($1 * SLOWDOWN)) >"/sys/block/${CTRL}n1/queue/io_timeout"
}

# Not one I/O fails.
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

# Nobody but the time-out tells of it: what was sent comes again on another connection. Soft-RoCE sends it
# again before, and stops the queue if something was registered meanwhile.
down_for_longer_than_io_timeout() {
	start_switched
	connect "$TARGET4" "${PATIENT[@]}"
	io_timeout 1000
	start_verify
	start_monitor
	cable far down
	loses
	sleep 2
	is_not_live || fail "it is live without a link"
	cable far up
	comes_back
	is_verified
	has "$(<"$SCRATCH/events")" 'on queue [0-9]+ timed out|stopped by the RDMA device'
}

# I/O fails when it was to, neither earlier nor much later; the controller goes on.
down_for_longer_than_fast_io_fail_tmo() {
	local began
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}" -F 2 -l 600
	start_io
	began=$(now)
	cable near down
	io_fails_after 2 "$began"
	same "times that I/O was let go" 1 "$(logged "$CTRL: fast_io_fail_tmo expired: failing I/O")"
	cable near up
	comes_back
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# It is given up when it was to; a link that is back then is too late.
down_for_longer_than_ctrl_loss_tmo() {
	local began
	start_switched
	connect "$TARGET4" "${IMPATIENT[@]}" -l 2
	start_io
	began=$(now)
	cable near down
	io_fails_after 2 "$began"
	cable near up
	is_dead "$LINK_DOWN"
	connect "$TARGET4" "${IMPATIENT[@]}"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# Who disconnects without a link does not wait for it.
disconnect_without_a_link() {
	start_switched
	one_takes 1000 disconnects_without_a_link known
}

# If the peer's link address is not known any more, soft-RoCE keeps a queue pair as long as packets of
# it wait for that, which is three seconds.
disconnect_without_a_link_address() {
	start_switched
	one_takes 4000 disconnects_without_a_link unknown
}

# disconnects_without_a_link known|unknown: whether the host knows the peer's link address.
disconnects_without_a_link() {
	# The one that is known stays so, however long this takes.
	run ip -n "$HOST_NETNS" neighbour replace "$TARGET4" dev rnvmf1 \
		lladdr "$(</sys/class/net/rnvmf0/address)" nud permanent
	connect "$TARGET4" "${PATIENT[@]}"
	cable far down
	[ "$1" = known ] || run ip -n "$HOST_NETNS" neighbour delete "$TARGET4" dev rnvmf1
	timed_disconnect "$CTRL"
	cable far up
	wait_until 10 rdma_is_up rnvmf_rxe0 || fail "the target's port stays down"
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
