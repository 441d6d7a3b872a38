# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Samples that are both ends in one module, one on DEVICE and one on PEER_DEVICE.

# pair_load NAME OWN PEER [PARAMETER=VALUE...]: load a sample that sends from OWN to PEER.
pair_load() {
	local name=$1 own=$2 peer=$3
	shift 3
	sample_load "$name" "device=$DEVICE" "gid_index=$(gid_index "$DEVICE" "$own")" \
		"peer_device=$PEER_DEVICE" "peer_gid_index=$(gid_index "$PEER_DEVICE" "$peer")" "$@"
}

# counter DEVICE NAME: print a hardware counter of port 1.
counter() {
	local file=/sys/class/infiniband/$1/ports/1/hw_counters/$2 value
	# sysfs caches the counters for their lifespan.
	echo 0 2>/dev/null >"${file%/*}/lifespan"
	read -r value <"$file"
	echo "$value"
}

# counted DEVICE NAME VALUE: whether the counter is at least VALUE.
counted() {
	[ "$(counter "$1" "$2")" -ge "$3" ]
}

# pair_crosses NAME PACKETS [PARAMETER=VALUE...]: run a sample over IPv4 and over IPv6. It must
# succeed, and DEVICE must send at least PACKETS packets. SENT is the number of packets sent.
pair_crosses() {
	local name=$1 packets=$2 family own peer before
	shift 2
	for family in 4 6; do
		own=OWN$family peer=PEER$family
		before=$(counter "$DEVICE" sent_pkts)
		pair_load "$name" "${!own}" "${!peer}" "$@"
		sample_done 60
		SENT=$(($(counter "$DEVICE" sent_pkts) - before))
		[ "$SENT" -ge "$packets" ] || fail "$SENT packets sent, expected at least $packets"
		sample_unload
	done
}

# pair_alone NAME [PARAMETER=VALUE...]: run a sample with both ends on DEVICE.
pair_alone() {
	local index
	index=$(gid_index "$DEVICE" "$OWN4")
	sample_load "$1" "device=$DEVICE" "gid_index=$index" "peer_gid_index=$index" "${@:2}"
	sample_done
}

# pair_unloads_after PACKETS STEP NAME [PARAMETER=VALUE...]: unload the sample when DEVICE has sent PACKETS; it must
# stop at STEP.
pair_unloads_after() {
	local before
	before=$(counter "$DEVICE" sent_pkts)
	pair_load "$3" "$OWN4" "$PEER4" "${@:4}"
	wait_until 30 counted "$DEVICE" sent_pkts $((before + $1)) || fail "no packets are sent: $(sample_log)"
	sample_unload
	sample_says "^stopped at $2: the module is unloaded$" || fail "$(sample_log)"
}

# pair_unloads SECONDS STEP NAME [PARAMETER=VALUE...]: unload the sample after SECONDS; it must stop
# at STEP.
pair_unloads() {
	pair_load "$3" "$OWN4" "$PEER4" "${@:4}"
	sleep "$1"
	sample_unload
	sample_says "^stopped at $2: the module is unloaded$" || fail "$(sample_log)"
}
