#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the samples and test modules on soft-iWARP, where the connection manager makes all
# connections, over TCP. Samples that need other features must report what the device lacks.

RDMA_TYPE=siw

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/key_ping.sh"

requirements() {
	need_root && need_modules rrdma_key_ping rrdma_test_iwarp siw veth rdma_ucm &&
		need_programs rdma ip ping rping "$PEER"
}

setup() {
	# The port mapper daemon (iwpmd) is not running.
	explain 'iwpm_register_pid: |infiniband rrdma_siw|siw: |rrdma_siw[0-9]'
	network 4200 && modprobe rdma_ucm
}

to_rping_over_ipv4() { to_rping "$PEER4" 26 65535; }
to_rping_over_ipv6() { to_rping "$PEER6" 4096; }
from_rping_over_ipv4() { from_rping "$OWN4" 26 65535; }
from_rping_over_ipv6() { from_rping "$OWN6" 4097; }

# iWARP needs a registration for the sink of an RDMA read.
large_data_takes_one_region() {
	serves "$OWN4" size=1048576 timeout=20000
	peer_run "$PEER" client "$OWN4" $PORT 1048576 none
	same "result of the comparison" same "$OUTPUT"
	sample_done
	has "$RESULT" 'in 2 requests$'
}

requests_that_iwarp_has_not_are_refused() {
	sample_load test_iwarp "listen=$OWN4" "timeout=$STEP_MS"
	sample_waits '^listening$'
	peer_run "$PEER" client "$OWN4" $PORT 64 none
	same "result of the comparison" same "$OUTPUT"
	sample_done
	sample_says '^refused: immediate data, ' || fail "$(sample_log)"
}

wrong_clients_are_told_apart() {
	wrong_client short '^source: got 15 bytes, expected 16$'
	wrong_client beyond '^source: got 4097 bytes, expected 1 to 4096$'
	wrong_client key '^read: '
	wrong_client no-reads '^accept: the client allows no RDMA reads$'
	wrong_client vanish '^(read|sink): '
}

device_is_told() {
	sample_load device_info
	sample_waits "^$DEVICE/1: protocol: iw$"
	sample_says "^$DEVICE: atomic_cap: ATOMIC_NONE$" || fail "$(sample_log)"
}

# lacks CAPABILITY SAMPLE [PARAMETER=VALUE...]: the sample must fail with one line that names the
# missing capability.
lacks() {
	local capability=$1
	shift
	sample_load "$@"
	sample_fails "^[a-z: ]+: $DEVICE does not support $capability\$"
	same "the log" "$RESULT" "$(sample_log)"
	sample_unload
}

what_the_device_lacks_is_told() {
	local sample by_hand='connections without the connection manager'
	for sample in completion_queues bench_many_peers test_qp_states rc_pingpong send_invalidate \
		srq_pingpong; do
		lacks "$by_hand" $sample "device=$DEVICE"
	done
	lacks 'unreliable connections' uc_pingpong "device=$DEVICE"
	lacks datagrams ud_pingpong "device=$DEVICE"
	lacks datagrams ud_service "server=$PEER4"
	lacks datagrams multicast group=239.1.2.3 "source=$OWN4"
	lacks 'atomic operations' atomics "device=$DEVICE"
	lacks 'immediate data' write_imm "device=$DEVICE"
}

# iWARP has only connection requests, so the listener must reject those meant for another service.
connection_to_a_service_for_datagrams_is_refused() {
	sample_load ud_service "listen=$OWN4"
	sample_waits '^listening$'
	try ip netns exec "$PEER_NETNS" rping -c -a "$OWN4" -C 1
	[ "$STATUS" != 0 ] || fail "rping succeeded: $OUTPUT"
	same "the log" listening "$(sample_log)"
	sample_unload
}

main setup \
	to_rping_over_ipv4 \
	to_rping_over_ipv6 \
	from_rping_over_ipv4 \
	from_rping_over_ipv6 \
	large_data_takes_one_region \
	requests_that_iwarp_has_not_are_refused \
	wrong_clients_are_told_apart \
	device_is_told \
	what_the_device_lacks_is_told \
	connection_to_a_service_for_datagrams_is_refused
