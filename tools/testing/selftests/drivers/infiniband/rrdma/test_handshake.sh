#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample handshake against ibv_rc_pingpong, and against peers that violate the protocol.

. "$(dirname "$0")/lib.sh"

PORT=18515

setup() {
	network
}

# program ADDRESS [ARGUMENT...]: start ibv_rc_pingpong at the other end with the GID of this
# address.
program() {
	local own=$1
	shift
	peer_start ping ibv_rc_pingpong -d "$PEER_DEVICE" -g "$(gid_index "$PEER_DEVICE" "$own")" "$@"
}

# handshake ADDRESS [PARAMETER...]: load the sample with the GID of this address.
handshake() {
	local own=$1
	shift
	sample_load handshake "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$own")" \
		qpn=0xabc psn=0x123456 "$@"
}

# both_know OWN PEER: both ends must print the other end's parameters. The program then waits for
# data that never comes, so it does not exit.
both_know() {
	sample_done
	same result "exchanged addresses with $(compressed "$2")" "$RESULT"
	sample_says "^remote address: LID 0x0000, QPN 0x[0-9a-f]{6}, PSN 0x[0-9a-f]{6}, GID $(compressed "$2")$" ||
		fail "$(sample_log)"
	peer_waits ping "remote address: +LID 0x0000, QPN 0x000abc, PSN 0x123456, GID $(compressed "$1")$"
}

# compressed ADDRESS: print an address as the GID is printed.
compressed() {
	[[ $1 == *:* ]] && echo "$1" || echo "::ffff:$1"
}

# The program listens on IPv4 only, also with an IPv6 GID.
client_of_the_program() {
	local family own peer
	for family in 4 6; do
		own=OWN$family peer=PEER$family
		program "${!peer}"
		peer_listens $PORT
		handshake "${!own}" "server=$PEER4"
		both_know "${!own}" "${!peer}"
		sample_unload
		peer_stop ping
	done
}

server_of_the_program() {
	local family own peer
	for family in 4 6; do
		own=OWN$family peer=PEER$family
		handshake "${!own}"
		wait_until 15 listens || fail "the sample does not listen"
		program "${!peer}" "${!own}"
		both_know "${!own}" "${!peer}"
		sample_unload
		peer_stop ping
	done
}

# hostile CAUSE PYTHON: run a client that does PYTHON with the socket `s`; the sample must fail with
# CAUSE.
hostile() {
	handshake "$OWN4"
	sample_waits '^local address'
	wait_until 10 listens || fail "the sample does not listen"
	peer_start bad python3 -c "
import socket, time
s = socket.create_connection(('$OWN4', $PORT))
good = b'0000:000011:000000:00000000000000000000ffffc0000202' + bytes(1)
$2
time.sleep(0.5)"
	sample_fails "^handshake: $1\$"
	peer_result bad
	sample_unload
}

listens() {
	[ -n "$(ss -Htln "sport = :$PORT")" ]
}

peers_that_break_it_are_told_apart() {
	hostile 'connection closed by peer after 0 of 52 bytes' 's.close()'
	hostile 'connection closed by peer after 20 of 52 bytes' 's.send(good[:20]); s.close()'
	hostile 'not a hexadecimal digit at byte 5' 's.send(good.replace(b":0", b":g", 1))'
	hostile 'no field separator at byte 51' 's.send(good[:51] + b"0")'
	hostile 'connection closed by peer after 0 of 5 bytes' 's.send(good); s.recv(52); s.shutdown(1)'
	hostile 'the peer did not send "done"' 's.send(good + b"doge" + bytes(1))'
}

peer_that_says_nothing_is_left_in_time() {
	hostile 'timed out after 0 of 52 bytes' 'while s.recv(64): pass'
}

nobody_listens() {
	handshake "$OWN4" "server=$PEER4"
	sample_fails '^connect: ECONNREFUSED$'
	sample_unload
	handshake "$OWN4" server=nonsense
	sample_fails '^server: nonsense is not an IP address$'
}

port_is_taken() {
	python3 -c "
import socket, time
s = socket.create_server(('', $PORT))
time.sleep(60)" &
	defer end_process $!
	wait_until 10 listens || fail "the Python server does not listen"
	handshake "$OWN4"
	sample_fails '^listen: EADDRINUSE$'
}

works_under_loss() {
	network_loss 5
	client_of_the_program
}

main setup \
	client_of_the_program \
	server_of_the_program \
	peers_that_break_it_are_told_apart \
	peer_that_says_nothing_is_left_in_time \
	nobody_listens \
	port_is_taken \
	works_under_loss
