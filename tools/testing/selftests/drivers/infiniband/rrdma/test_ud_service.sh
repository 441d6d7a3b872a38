#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample ud_service against udaddy in both roles. Missing services and invalid datagrams
# must be reported distinctly.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pair.sh"

setup() {
	need_programs udaddy rdma && network 4200
}

# program_listens ADDRESS [ARGUMENT...]: start udaddy as server and wait for its CM listener. udaddy
# prints nothing when it listens.
program_listens() {
	peer_start udaddy udaddy -b "$1" "${@:2}"
	wait_until 15 peer_has_cm_listener || fail "udaddy does not listen: $(<"$SCRATCH/peer-udaddy")"
}

peer_has_cm_listener() {
	grep -q 'state LISTEN' < <(ip netns exec "$PEER_NETNS" rdma resource show cm_id 2>/dev/null)
}

# serve ADDRESS [PARAMETER=VALUE...]: load the sample as server.
serve() {
	sample_load ud_service "listen=$1" "${@:2}"
	sample_waits '^listening$'
}

# client_of PEER SIZE: run the sample as client of udaddy.
client_of() {
	program_listens "$1" -S "$2"
	sample_load ud_service "server=$1" "size=$2"
	sample_done
	same result "10 datagrams of $2 bytes in each direction" "$RESULT"
	sample_unload
	peer_end udaddy
	has "$OUTPUT" 'data transfers complete'
}

# server_of OWN SIZE: run the sample as server of udaddy.
server_of() {
	serve "$1" "size=$2"
	peer_run udaddy -s "$1" -S "$2"
	has "$OUTPUT" 'data transfers complete'
	sample_done
	same result "10 datagrams of $2 bytes in each direction" "$RESULT"
	sample_unload
}

client_over_ipv4() { client_of "$PEER4" 100; }
client_over_ipv6() { client_of "$PEER6" 100; }
server_over_ipv4() { server_of "$OWN4" 100; }
server_over_ipv6() { server_of "$OWN6" 100; }

datagrams_of_1_byte_to_4096() {
	local size
	for size in 1 4096; do
		client_of "$PEER4" $size
		server_of "$OWN4" $size
	done
}

packets_of_1024() {
	network_mtu 1500
	client_of "$PEER4" 1024
	server_of "$OWN4" 1024
	program_listens "$PEER4"
	sample_load ud_service "server=$PEER4" size=1025
	sample_fails '^send: EMSGSIZE$'
}

nobody_has_the_service() {
	sample_load ud_service "server=$PEER4"
	sample_fails '^service: connecting: the peer has no such service$'
}

nobody_is_there() {
	sample_load ud_service "server=$NOBODY4" timeout=2000
	sample_fails '^service: address resolution: '
}

port_is_taken() {
	serve "$OWN4"
	expect 255 udaddy -b "$OWN4"
	has "$OUTPUT$ERRORS" 'Address already in use'
}

addresses_that_are_none() {
	sample_load ud_service server=nonsense
	sample_fails '^address: nonsense is not an IP address$'
	sample_unload
	sample_load ud_service listen=198.51.100.1
	sample_fails '^listen: address resolution: '
}

datagrams_of_another_size() {
	serve "$OWN4" size=100
	peer_start udaddy udaddy -s "$OWN4" -S 99
	sample_fails '^datagrams: got 99 bytes, expected 100$'
	peer_stop udaddy
}

client_that_sends_too_little() {
	serve "$OWN4" count=11 timeout=2000
	peer_start udaddy udaddy -s "$OWN4" -C 10
	sample_fails '^datagrams: received 10 of 11 within 2000 ms$'
	peer_stop udaddy
}

# loses_the_first_of COMMAND...: drop all packets of this end until COMMAND makes it send one.
loses_the_first_of() {
	local before
	network_loss 1
	network_own_loss 100
	before=$(counter "$DEVICE" sent_pkts)
	"$@"
	wait_until 15 counted "$DEVICE" sent_pkts $((before + 1)) || fail "no packet was sent"
	network_own_loss 1
}

# The connection manager resends its request after 4 s. Datagrams are not resent, so each end sends
# more than the other one waits for.
client_under_loss() {
	program_listens "$PEER4" -C 60
	loses_the_first_of sample_load ud_service "server=$PEER4" count=50 spare=30 timeout=$((60000 * SLOWDOWN))
	sample_done 60
	same result "50 datagrams of 100 bytes in each direction, 30 more sent" "$RESULT"
	peer_end udaddy
	has "$OUTPUT" 'data transfers complete'
	network_has_lost
}

# The reply is lost, and the client resends its request.
server_under_loss() {
	serve "$OWN4" count=50 spare=30 timeout=$((60000 * SLOWDOWN))
	loses_the_first_of peer_start udaddy udaddy -s "$OWN4" -C 60
	sample_done 60
	same result "50 datagrams of 100 bytes in each direction, 30 more sent" "$RESULT"
	peer_end udaddy
	has "$OUTPUT" 'data transfers complete'
	network_has_lost
}

unloads_while_its_question_is_lost() {
	program_listens "$PEER4"
	loses_the_first_of sample_load ud_service "server=$PEER4" timeout=$((60000 * SLOWDOWN))
	sample_unload
	sample_says '^stopped at service: the module is unloaded$' || fail "$(sample_log)"
}

unloads_while_it_listens() {
	serve "$OWN4"
	sample_unload
	serve 0.0.0.0
	sample_unload
}

device_removed_while_it_listens() {
	serve "$OWN4"
	defer device_again
	rdma_delete "$DEVICE"
	sample_fails '^client: the RDMA device is going away$'
}

device_removed_while_it_waits_for_datagrams() {
	serve "$OWN4" count=11 timeout=$((60000 * SLOWDOWN))
	peer_start udaddy udaddy -s "$OWN4" -C 10
	peer_waits udaddy 'receiving data transfers'
	sample_loses_device datagrams
	peer_stop udaddy
}

main setup \
	client_over_ipv4 \
	client_over_ipv6 \
	server_over_ipv4 \
	server_over_ipv6 \
	datagrams_of_1_byte_to_4096 \
	packets_of_1024 \
	nobody_has_the_service \
	nobody_is_there \
	port_is_taken \
	addresses_that_are_none \
	datagrams_of_another_size \
	client_that_sends_too_little \
	client_under_loss \
	server_under_loss \
	unloads_while_its_question_is_lost \
	unloads_while_it_listens \
	device_removed_while_it_listens \
	device_removed_while_it_waits_for_datagrams
