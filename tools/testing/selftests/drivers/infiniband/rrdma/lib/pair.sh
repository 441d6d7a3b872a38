# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Samples whose ends are both of one module, one on DEVICE and one on PEER_DEVICE.

# pair_load NAME OWN PEER [PARAMETER=VALUE...]: from one address to the other.
pair_load() {
	local name=$1 own=$2 peer=$3
	shift 3
	sample_load "$name" "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$own")" \
		"peer_device=$PEER_DEVICE" "peer_gid_index=$(gid_index "$PEER_DEVICE" "$peer")" "$@"
}

# counter DEVICE NAME: a counter of the device's port.
counter() {
	local file=/sys/class/infiniband/$1/ports/1/hw_counters/$2 value
	# It is kept for a moment, and then read again.
	echo 0 2>/dev/null >"${file%/*}/lifespan"
	read -r value <"$file"
	echo "$value"
}

# counted DEVICE NAME VALUE: whether the counter has come to this.
counted() {
	[ "$(counter "$1" "$2")" -ge "$3" ]
}

# pair_crosses NAME PACKETS [PARAMETER=VALUE...]: the sample must end well, with at least so many
# packets from one device to the other, over IPv4 and IPv6. How many those were is in SENT.
pair_crosses() {
	local name=$1 packets=$2 family own peer before
	shift 2
	for family in 4 6; do
		own=OWN$family peer=PEER$family
		before=$(counter "$DEVICE" sent_pkts)
		pair_load "$name" "${!own}" "${!peer}" "$@"
		sample_done 60
		SENT=$(($(counter "$DEVICE" sent_pkts) - before))
		[ "$SENT" -ge "$packets" ] || fail "$SENT packets were sent, not $packets"
		sample_unload
	done
}

# pair_alone NAME [PARAMETER=VALUE...]: both ends on one device.
pair_alone() {
	local index
	index=$(gid_index "$DEVICE" "$OWN4")
	sample_load "$1" "device=$DEVICE" "gid_index=$index" "peer_gid_index=$index" "${@:2}"
	sample_done
}

# pair_unloads SECONDS STEP NAME [PARAMETER=VALUE...]: the sample must end at this step then.
pair_unloads() {
	pair_load "$3" "$OWN4" "$PEER4" "${@:4}"
	sleep "$1"
	sample_unload
	sample_says "^stopped at $2: the module is unloaded$" || fail "$(sample_log)"
}
