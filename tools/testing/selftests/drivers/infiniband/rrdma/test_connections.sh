#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the listener of the sample key_ping: peers that violate the connection protocol, private
# data in REQ, REP and REJ, other network namespaces, and link loss.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/key_ping.sh"
. "$HERE/lib/pair.sh"

# A peer that exchanges CM messages without a queue pair.
ASKER=$HERE/cm_peer

requirements() {
	need_sample key_ping rping "$PEER" "$ASKER" && need_modules rdma_ucm rrdma_test_cm_ids
}

setup() {
	network 4200 && modprobe rdma_ucm
}

# asks NAME COUNT ANSWER: start cm_peer, which sends COUNT connection requests at once.
asks() {
	peer_start "$1" "$ASKER" "$OWN4" $PORT "$2" "$3"
	peer_waits "$1" '^asked'
}

# peer_heard NAME COUNT PATTERN: whether COUNT lines of the peer's output match.
peer_heard() {
	[ "$(grep -cE "$3" "$SCRATCH/peer-$1")" = "$2" ]
}

# peer_hears NAME COUNT PATTERN: wait until COUNT lines match; fail after 15 s.
peer_hears() {
	wait_until 15 peer_heard "$@" ||
		fail "the peer did not print '$3' $2 times: $(sort "$SCRATCH/peer-$1" | uniq -c)"
}

# peer_kill NAME: kill the peer with SIGKILL, as if it crashed.
peer_kill() {
	local pid=PEER_$1
	# `timeout` does not forward SIGKILL, so the peer itself is killed.
	pkill -KILL -P "${!pid}"
	peer_result "$1"
}

# Print the number of CM IDs of the sample, those of waiting connection requests included.
ids() {
	rdma resource show cm_id | grep -cF "comm [$SAMPLE" || true
}

ids_are() {
	[ "$(ids)" = "$1" ]
}

# occupied [PARAMETER...]: connect a client that sends nothing, so that further clients wait. The sample waits for it
# for longer than the test takes. IDS is the number of CM IDs then.
occupied() {
	serves "$OWN4" "timeout=$((15000 * SLOWDOWN))" "$@"
	peer_start silent "$PEER" client "$OWN4" $PORT 64 silent
	peer_waits silent '^connected'
	IDS=$(ids)
}

# unloads_soon: unload the sample; fail if it takes 2 s. No peer may delay it.
unloads_soon() {
	local began
	began=$(now)
	sample_unload
	at_most "unloading took" $(($(now) - began)) 2000
}

# The client may be connected a moment before the sample.
client_says_nothing() {
	occupied
	unloads_soon
	sample_says '^stopped at (accept|source): the module is unloaded$' || fail "$(sample_log)"
	peer_result silent
	has "$OUTPUT" 'end: Work Request Flushed Error'
}

silent_client_is_killed() {
	occupied
	peer_kill silent
	sample_done
	has "$RESULT" '^0 pings'
}

# When the time-out expires between two steps, the cause must be the time-out and not the step.
time_is_over_between_steps() {
	local limit
	for limit in {1..16}; do
		sample_load key_ping "server=$PEER4" "timeout=$limit"
		sample_fails '^[a-z]+: [a-z ]+: (timed out after .* ms|rejected: .*)$'
		sample_unload
	done
}

client_does_not_confirm() {
	serves "$OWN4" timeout=2000
	asks client 1 nothing
	peer_waits client '^accepted'
	sample_fails '^accept: accepting: timed out after 2000 ms$'
	peer_stop client
}

client_rejects_the_acceptance() {
	serves "$OWN4"
	asks client 1 reject
	sample_fails '^accept: accepting: rejected: consumer defined$'
	peer_end client
}

client_is_killed_when_it_is_accepted() {
	serves "$OWN4"
	asks client 1 vanish
	sample_fails '^accept: accepting: rejected: '
}

# The disconnect of the killed client may arrive while its request waits, is handled or is accepted,
# or before the request.
client_is_killed_when_it_has_asked() {
	local round
	for round in 1 2 3 4 5; do
		serves "$OWN4"
		asks client 1 hurry
		peer_result client
		sample_will_say 5 '^failed' || true
		! sample_says '^failed' ||
			sample_fails '^(queue pair|accept): accepting: (rejected: |timed out|error -22$)'
		unloads_soon
	done
}

# One request waits in the backlog; the others are rejected.
more_clients_than_the_backlog() {
	occupied
	asks many 32 nothing
	peer_hears many 31 '^RDMA_CM_EVENT_REJECTED: 3$'
	# A CM ID is freed after its request was rejected.
	wait_until 15 ids_are $((IDS + 1)) || fail "$(ids) CM IDs, expected $((IDS + 1))"
	peer_kill silent
	sample_done
	# The sample serves one client only; the waiting one is rejected.
	peer_hears many 1 '^RDMA_CM_EVENT_REJECTED: 28$'
	peer_waits many '^answered'
	peer_stop many
}

# A killed client must not occupy the backlog.
client_that_waits_is_killed() {
	occupied
	asks first 1 nothing
	wait_until 15 ids_are $((IDS + 1)) || fail "the first request does not wait: $(<"$SCRATCH/peer-first")"
	peer_kill first
	wait_until 15 ids_are "$IDS" || fail "$(ids) CM IDs, expected $IDS"
	asks waiting 1 nothing
	wait_until 15 ids_are $((IDS + 1)) || fail "the second request does not wait: $(<"$SCRATCH/peer-waiting")"
	asks late 1 nothing
	peer_waits late '^RDMA_CM_EVENT_REJECTED: 3$'
	peer_heard waiting 0 REJECTED || fail "the second request was rejected"
	unloads_soon
	peer_waits waiting '^RDMA_CM_EVENT_REJECTED: 28$'
	peer_stop waiting
	peer_stop late
}

# refusals ROUNDS: kill a client with 32 requests, one that waits and 31 that are rejected; then kill
# a client before it receives a reply. A disconnect that overtakes its request is lost, so a request
# may wait until the sample is unloaded.
refusals() {
	local round
	occupied
	for ((round = 0; round < $1; round++)); do
		asks many 32 nothing
		peer_hears many 31 '^RDMA_CM_EVENT_REJECTED: 3$'
		peer_kill many
		wait_until 15 ids_are "$IDS" || fail "$(ids) CM IDs, expected $IDS"
	done
	for ((round = 0; round < $1; round++)); do
		asks many 32 hurry
		peer_result many
	done
	unloads_soon
	peer_result silent
}

refusals_leave_nothing() {
	refusals 1
	slab_steady_while 64 refusals 4
}

many_clients_in_a_row() {
	local round
	for round in 1 2 3 4 5 6 7 8; do
		serves "$OWN4"
		peer_run "$PEER" client "$OWN4" $PORT 64 none
		same "result of the comparison" same "$OUTPUT"
		sample_done
		sample_unload
	done
}

private_data_in_both_directions() {
	serves "$OWN4" private_data=196 demanded=56
	peer_run "$PEER" client "$OWN4" $PORT 64 none 56
	has "$OUTPUT" '^RDMA_CM_EVENT_ESTABLISHED: told 196 bytes'
	sample_done
	sample_unload
	peer_serves server "$PEER" server "$PEER4" $PORT 64 none 196
	sample_load key_ping "server=$PEER4" private_data=56 demanded=196 count=1
	sample_done
	sample_unload
	peer_end server
	has "$OUTPUT" 'RDMA_CM_EVENT_CONNECT_REQUEST: told 56 bytes'
}

# not_as_demanded TOLD: a client with TOLD bytes of private data must be rejected. The REJ carries
# 148 bytes, the most that it can.
not_as_demanded() {
	serves "$OWN4" private_data=148 demanded=20
	expect 1 ip netns exec "$PEER_NETNS" "$PEER" client "$OWN4" $PORT 64 none "$1"
	same "output of the peer" 'RDMA_CM_EVENT_REJECTED: told 148 bytes' "$OUTPUT"
	sample_fails "^private data: got $1 bytes, expected 20\$"
	sample_unload
}

private_data_not_as_demanded() {
	not_as_demanded 0
	not_as_demanded 19
	not_as_demanded 56
	peer_serves server "$PEER" server "$PEER4" $PORT 64 none 21
	sample_load key_ping "server=$PEER4" demanded=20 count=1
	sample_fails '^private data: got 21 bytes, expected 20$'
	sample_unload
	peer_stop server
	peer_serves server "$PEER" server "$PEER4" $PORT 64 reject 148
	sample_load key_ping "server=$PEER4"
	sample_fails '^connect: connecting: rejected: consumer defined$'
}

too_much_private_data_to_ask_with() {
	peer_serves server "$PEER" server "$PEER4" $PORT 64 none 0
	sample_load key_ping "server=$PEER4" private_data=57
	sample_fails '^connect: connecting: private data too long: 57 bytes, maximum 56$'
	# No connection request was sent.
	sample_unload
	peer_stop server
	! peer_says server told || fail "$(<"$SCRATCH/peer-server")"
}

too_much_private_data_to_answer_with() {
	serves "$OWN4" private_data=197
	expect 1 ip netns exec "$PEER_NETNS" "$PEER" client "$OWN4" $PORT 64 none 0
	same "output of the peer" 'RDMA_CM_EVENT_REJECTED: told 0 bytes' "$OUTPUT"
	sample_fails '^accept: accepting: private data too long: 197 bytes, maximum 196$'
}

too_much_private_data_to_reject_with() {
	serves "$OWN4" private_data=149 demanded=5
	expect 1 ip netns exec "$PEER_NETNS" "$PEER" client "$OWN4" $PORT 64 none 4
	same "output of the peer" 'RDMA_CM_EVENT_REJECTED: told 0 bytes' "$OUTPUT"
	sample_fails '^reject: accepting: private data too long: 149 bytes, maximum 148$'
}

# A second veth pair, with the other end in a network namespace in which samples are loaded.
OTHER_NETNS=rrdma-other
OTHER_DEVICE=rrdma_rxe3
OTHER4=198.51.100.2

other_network() {
	ip netns add $OTHER_NETNS
	defer netns_delete $OTHER_NETNS
	ip link add "$SPARE_CABLE" type veth peer name "$SPARE_PEER_CABLE" netns $OTHER_NETNS
	defer interface_delete "$SPARE_CABLE"
	interface_up "" "$SPARE_CABLE" 1500 "$SPARE4/24"
	interface_up $OTHER_NETNS "$SPARE_PEER_CABLE" 1500 $OTHER4/24
	rdma_add "" "$SPARE_DEVICE" "$SPARE_CABLE"
	rdma_add $OTHER_NETNS $OTHER_DEVICE "$SPARE_PEER_CABLE"
	ping -q -c 1 -W 5 $OTHER4 >"$SCRATCH/ping"
	wait_until 10 other_has_addresses
}

other_has_addresses() {
	gid_index "$SPARE_DEVICE" "$SPARE4" && gid_index $OTHER_DEVICE $OTHER4
} >/dev/null

# Deleting the namespace deletes the veth pair, and with it the RDMA devices.
other_is_gone() {
	[ ! -e "/sys/class/net/$SPARE_CABLE" ] && [ ! -e "/sys/class/infiniband/$SPARE_DEVICE" ] &&
		[ ! -e /sys/class/infiniband/$OTHER_DEVICE ]
}

other_must_go() {
	wait_until 15 other_is_gone ||
		fail "the namespace's devices remain: $(ls -d /sys/class/net/* /sys/class/infiniband/*)"
}

listens_in_another_namespace() {
	other_network
	serves_in $OTHER_NETNS 0.0.0.0 size=65536
	# The sample listens on all addresses, but only of its namespace.
	expect 255 rping -c -a "$OWN4" -C 1
	run rping -c -a $OTHER4 -C 3 -V
	sample_done
	has "$RESULT" '^3 pings'
}

# A listener holds a reference on its namespace and remains reachable.
namespace_deleted_under_a_listener() {
	other_network
	serves_in $OTHER_NETNS $OTHER4 size=65536
	ip netns delete $OTHER_NETNS
	sleep 1
	run rping -c -a $OTHER4 -C 3 -V
	sample_done
	has "$RESULT" '^3 pings'
	sample_unload
	other_must_go
}

namespace_deleted_under_a_connection() {
	local log
	other_network
	serves_in $OTHER_NETNS $OTHER4 size=65536
	timeout $((60 * SLOWDOWN)) rping -c -a $OTHER4 -S 1000 -C 100000 -V >"$SCRATCH/rping" 2>&1 &
	defer end_process $!
	pings_cross
	ip netns delete $OTHER_NETNS
	pings_cross
	log=$(sample_log)
	[[ ! $log =~ (^|$'\n')(done|failed|stopped) ]] || fail "$log"
	! process_ended $! || fail "rping has ended: $(<"$SCRATCH/rping")"
	unloads_soon
	sample_says '^stopped at .*: the module is unloaded$' || fail "$(sample_log)"
	# rping may not see the disconnect, because the veth pair is gone. Up to Linux 7.2 a process
	# with an open soft-RoCE device delays its removal.
	end_process $!
	other_must_go
}

# cable_off: take the link down at the other end.
cable_off() {
	explain 'rrdma_rxe[23]: Port: 1 Link '
	ip -n $OTHER_NETNS link set "$SPARE_PEER_CABLE" down
}

# Wait until pings are exchanged; the connection alone takes seconds if a message is lost.
pings_cross() {
	local before
	before=$(counter "$SPARE_DEVICE" sent_pkts)
	wait_until 30 sent_more_than $((before + 200)) || fail "no pings are sent: $(sample_log)"
}

sent_more_than() {
	[ "$(counter "$SPARE_DEVICE" sent_pkts)" -gt "$1" ]
}

link_down_before_the_confirmation() {
	local PEER_NETNS=$OTHER_NETNS
	other_network
	serves "$SPARE4" timeout=3000
	peer_start client "$ASKER" "$SPARE4" $PORT 1 nothing
	peer_waits client '^accepted'
	cable_off
	sample_fails '^accept: accepting: timed out after 3000 ms$'
	unloads_soon
	peer_stop client
}

link_down_under_pings() {
	local PEER_NETNS=$OTHER_NETNS
	other_network
	peer_serves rping rping -s -a $OTHER4 -S 65535
	sample_load key_ping server=$OTHER4 size=65535 count=1000000 timeout=3000
	pings_cross
	cable_off
	sample_fails '^(source|sink): (timed out after 3000 ms|the peer no longer answers|.*retry)'
	unloads_soon
	peer_stop rping
}

link_down_under_transfers() {
	local PEER_NETNS=$OTHER_NETNS
	other_network
	serves "$SPARE4" size=65535
	peer_start rping rping -c -a "$SPARE4" -S 65535 -C 1000000
	pings_cross
	cable_off
	# If it is the client's turn, the sample waits until its time-out.
	sample_will_say 20 '^failed' || true
	! sample_says '^failed' || sample_fails '^(read|write|sink): '
	unloads_soon
	peer_stop rping
}

# CM IDs may share a source port if all of them allow it.
source_ports_are_shared() {
	sample_load test_cm_ids "source=$OWN4" "peer=$PEER4"
	sample_done
	same result "two CM IDs share a port" "$RESULT"
	sample_unload
}

main setup \
	source_ports_are_shared \
	client_says_nothing \
	silent_client_is_killed \
	time_is_over_between_steps \
	client_does_not_confirm \
	client_rejects_the_acceptance \
	client_is_killed_when_it_is_accepted \
	client_is_killed_when_it_has_asked \
	more_clients_than_the_backlog \
	client_that_waits_is_killed \
	refusals_leave_nothing \
	many_clients_in_a_row \
	private_data_in_both_directions \
	private_data_not_as_demanded \
	too_much_private_data_to_ask_with \
	too_much_private_data_to_answer_with \
	too_much_private_data_to_reject_with \
	listens_in_another_namespace \
	namespace_deleted_under_a_listener \
	namespace_deleted_under_a_connection \
	link_down_before_the_confirmation \
	link_down_under_pings \
	link_down_under_transfers
