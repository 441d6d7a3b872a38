# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs the sample rrdma_SERVICE_pingpong against libibverbs' program ibv_SERVICE_pingpong.

. "$HERE/lib/pair.sh"

PINGPONG_PORT=18515

pingpong_listens() {
	[ -n "$(ss -Htln "sport = :$PINGPONG_PORT")" ]
}

# pingpong_sample SERVICE FAMILY [PARAMETER...]: load the sample. FAMILY is 4 or 6: the IP version of
# its GID.
pingpong_sample() {
	local service=$1 own=OWN$2
	shift 2
	sample_load "${service}_pingpong" "device=$DEVICE" \
		"gid_index=$(gid_index "$DEVICE" "${!own}")" "$@"
}

# pingpong_program SERVICE FAMILY [OPTION...]: start the program with the GID of this IP version.
pingpong_program() {
	local service=$1 peer=PEER$2
	shift 2
	peer_start ping "ibv_${service}_pingpong" -d "$PEER_DEVICE" \
		-g "$(gid_index "$PEER_DEVICE" "${!peer}")" "$@"
}

# pingpong_start SERVICE ROLE FAMILY ITERS SIZE MTU "PARAMETER..." "OPTION...": start both ends. ROLE
# is that of the sample: `client` or `server`. FAMILY selects the GIDs only: the program's TCP
# exchange prefers IPv4. MTU is empty for UD, which has no path MTU.
pingpong_start() {
	local service=$1 role=$2 family=$3 parameters options
	# Each receive of the sample has its own buffer; a deeper queue needs more memory.
	read -ra parameters <<<"iters=$4 size=$5 ${6:+mtu=$6} rx_depth=16 $7"
	read -ra options <<<"-n $4 -s $5 ${6:+-m $6} -r 16 $8"
	if [ "$role" = server ]; then
		pingpong_sample "$service" "$family" "${parameters[@]}"
		wait_until 15 pingpong_listens || fail "the sample does not listen: $(sample_log)"
		pingpong_program "$service" "$family" "${options[@]}" "$OWN4"
	else
		pingpong_program "$service" "$family" "${options[@]}"
		peer_listens "$PINGPONG_PORT"
		pingpong_sample "$service" "$family" "${parameters[@]}" "server=$PEER4"
	fi
}

# pingpong ...: like `pingpong_start`; both ends must then complete all iterations.
pingpong() {
	pingpong_start "$@"
	sample_done
	has "$RESULT" "^$4 of $4 messages of $5 bytes in [0-9]+ us"
	peer_end ping
	has "$OUTPUT" "$4 iters in "
	sample_unload
}

# In the following functions the sample is the client, and the iterations do not end during the test.

# pingpong_endless SERVICE SIZE MTU "PARAMETER...": start both ends with 1000000 iterations, and wait until messages
# arrive.
pingpong_endless() {
	local before
	before=$(counter "$DEVICE" rcvd_pkts)
	pingpong_start "$1" client 4 1000000 "$2" "$3" "$4" ""
	wait_until 30 counted "$DEVICE" rcvd_pkts $((before + 20)) || fail "no messages arrive: $(sample_log)"
}

# pingpong_peer_disappears ...: like `pingpong_endless`; then kill the program.
pingpong_peer_disappears() {
	pingpong_endless "$@"
	peer_stop ping
}

# pingpong_peer_is_missed SERVICE SIZE MTU: kill the program. The service reports no error, so the
# sample must end when its patience for a reply is exhausted.
pingpong_peer_is_missed() {
	pingpong_peer_disappears "$1" "$2" "$3" "patience=$((500 * SLOWDOWN))"
	sample_done
	has "$RESULT" "^[0-9]+ of 1000000 messages of $2 bytes in [0-9]+ us, [0-9]+ lost, [0-9]+ resent$"
}

# pingpong_tells_loss SERVICE ITERS SIZE MTU "PARAMETER...": run both roles with packet loss. The
# program waits forever for a lost message, so the sample sends another one until the program has
# received and sent all its messages. The program resends nothing. After a message whose last packet
# is lost, soft-RoCE also drops the whole next message: in one run of 40, 8 messages in a row were
# lost. The patience allows for 25. Both ends sleep while they wait: to poll costs the emulator time.
pingpong_tells_loss() {
	local role
	network_loss 1
	for role in server client; do
		pingpong_start "$1" "$role" 4 "$2" "$3" "$4" "$5 patience=10000 events=1" -e
		sample_done 60
		has "$RESULT" "^[0-9]+ of $2 messages of $3 bytes in [0-9]+ us(, [0-9]+ lost, [0-9]+ resent)?$"
		[ "${RESULT%% *}" -ge $(($2 / 2)) ] || fail "$RESULT"
		peer_end ping
		has "$OUTPUT" "$2 iters in "
		sample_unload
	done
	network_has_lost
}

# pingpong_drops_acks input|output: drop the acknowledgements (opcode 17) that arrive at this end, or
# that it sends, until `pingpong_passes_acks`.
pingpong_drops_acks() {
	defer pingpong_passes_acks
	run nft "table inet rrdma_acks { chain acks {
		type filter hook $1 priority 0; udp dport 4791 @th,64,8 17 drop; }; }"
}

pingpong_passes_acks() {
	nft destroy table inet rrdma_acks
}

# pingpong_unloads SERVICE SIZE MTU [PARAMETER [OPTION...]]: unload the sample after several delays,
# without a peer and with one.
pingpong_unloads() {
	local after
	for after in 0 0.02 0.1 0.3; do
		pingpong_sample "$1" 4 "size=$2" ${4:+"$4"}
		sleep $after
		sample_unload
		pingpong_start "$1" client 4 1000000 "$2" "$3" "${4-}" "${*:5}"
		sleep $after
		sample_unload
		peer_stop ping
	done
}

# pingpong_survives_its_device SERVICE SIZE MTU [PARAMETER...]: remove the device during the messages.
pingpong_survives_its_device() {
	pingpong_endless "$1" "$2" "$3" "${*:4}"
	sample_loses_device messages
	peer_stop ping
	device_again
}
