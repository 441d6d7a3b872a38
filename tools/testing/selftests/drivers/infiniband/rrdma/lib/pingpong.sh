# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The ping-pongs of libibverbs: the sample rrdma_SERVICE_pingpong at this end, the program
# ibv_SERVICE_pingpong at the other.

PINGPONG_PORT=18515

pingpong_listens() {
	[ -n "$(ss -Htln "sport = :$PINGPONG_PORT")" ]
}

# pingpong_sample SERVICE FAMILY [PARAMETER...]: load the sample, at its address of IPv4 or IPv6.
pingpong_sample() {
	local service=$1 own=OWN$2
	shift 2
	sample_load "${service}_pingpong" "device=$DEVICE" \
		"gid_index=$(gid_index "$DEVICE" "${!own}")" "$@"
}

# pingpong_program SERVICE FAMILY [OPTION...]: start the program.
pingpong_program() {
	local service=$1 peer=PEER$2
	shift 2
	peer_start ping "ibv_${service}_pingpong" -d "$PEER_DEVICE" \
		-g "$(gid_index "$PEER_DEVICE" "${!peer}")" "$@"
}

# pingpong_start SERVICE ROLE FAMILY ITERS SIZE MTU "PARAMETER..." "OPTION...": start both ends; the
# sample has this role. The family is that of the GIDs: the program speaks TCP over IPv4 only if
# it can. Datagrams have no MTU of their own: it is empty.
pingpong_start() {
	local service=$1 role=$2 family=$3 parameters options
	# A receive has memory of its own here: as many as fit.
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

# pingpong ...: the same, and both must be content with all that there is to be sent.
pingpong() {
	pingpong_start "$@"
	sample_done
	has "$RESULT" "^$4 of $4 messages of $5 bytes in [0-9]+ us"
	peer_end ping
	has "$OUTPUT" "$4 iters in "
	sample_unload
}

# What goes wrong on the way: the sample is the client, and there is no end to the messages.

# pingpong_endless SERVICE SIZE MTU "PARAMETER...": start both ends; messages go to and fro.
pingpong_endless() {
	pingpong_start "$1" client 4 1000000 "$2" "$3" "$4" ""
	sample_waits '^remote address'
}

# pingpong_peer_disappears ...: the same, and then the program ends.
pingpong_peer_disappears() {
	pingpong_endless "$@"
	sleep 1
	peer_stop ping
}

# pingpong_peer_is_missed SERVICE SIZE MTU: nobody tells that it has ended, but it is silent.
pingpong_peer_is_missed() {
	pingpong_peer_disappears "$1" "$2" "$3" patience=2000
	sample_done
	has "$RESULT" "^[0-9]+ of 1000000 messages of $2 bytes in [0-9]+ us, [0-9]+ lost, [0-9]+ sent again$"
}

# pingpong_tells_loss SERVICE ITERS SIZE MTU "PARAMETER...": of a program that would wait for ever
# for a message that is lost. The sample sends another one, until the program has got and sent its
# own; what of the program's is lost, stays so. After a message whose end is lost, soft-RoCE drops
# the whole next one, too: in one run of 40, 8 in a row did not come back. There is time for 25.
pingpong_tells_loss() {
	local role
	network_loss 1
	for role in server client; do
		pingpong_start "$1" "$role" 4 "$2" "$3" "$4" "$5 patience=10000" ""
		sample_done 60
		has "$RESULT" "^[0-9]+ of $2 messages of $3 bytes in [0-9]+ us(, [0-9]+ lost, [0-9]+ sent again)?$"
		[ "${RESULT%% *}" -ge $(($2 / 2)) ] || fail "$RESULT"
		peer_end ping
		has "$OUTPUT" "$2 iters in "
		sample_unload
	done
	network_has_lost
}

# pingpong_unloads SERVICE SIZE MTU [PARAMETER [OPTION...]]: alone and with its peer, after a while.
pingpong_unloads() {
	local after
	for after in 0 0.05 0.2 0.5 1; do
		pingpong_sample "$1" 4 "size=$2" ${4:+"$4"}
		sleep $after
		sample_unload
		pingpong_start "$1" client 4 1000000 "$2" "$3" "${4-}" "${*:5}"
		sleep $after
		sample_unload
		peer_stop ping
	done
}

# pingpong_survives_its_device SERVICE SIZE MTU [PARAMETER...]
pingpong_survives_its_device() {
	pingpong_endless "$1" "$2" "$3" "${*:4}"
	sample_loses_device messages
	peer_stop ping
	device_again
}
