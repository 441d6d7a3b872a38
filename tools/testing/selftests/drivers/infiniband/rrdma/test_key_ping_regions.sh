#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the transfers of the sample key_ping through memory regions. ib_core is loaded with
# force_mr=1, as if each device needed a registration for RDMA reads.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/key_ping.sh"

requirements() {
	need_sample key_ping rping "$PEER" && need_modules rdma_ucm && core_is_free
}

# The parameter is read-only after loading, so ib_core must be reloaded.
core_is_free() {
	core_unload || {
		ktap_skip_all "ib_core is in use and cannot be reloaded with force_mr=1"
		return 1
	}
}

core_unload() {
	local module
	# Each round unloads the modules without users; holders may depend on each other.
	for _ in 1 2 3 4 5; do
		for module in /sys/module/ib_core/holders/*; do
			modprobe -qr "${module##*/}" 2>/dev/null || true
		done
	done
	modprobe -qr ib_core 2>/dev/null || true
	[ ! -e /sys/module/ib_core ]
}

setup() {
	modprobe ib_core force_mr=1 || return 1
	defer core_unload
	network 4200 && modprobe rdma_ucm
}

# The first transfer posts a registration and a read. Later ones also post a local invalidation.
takes_requests_for_the_region() {
	serves "$OWN4" size=65536
	peer_run rping -c -a "$OWN4" -S 26 -C 1 -V
	sample_done
	same result '1 pings, the last of 26 bytes, read in 2 requests' "$RESULT"
	sample_unload
	serves "$OWN4" size=65536
	peer_run rping -c -a "$OWN4" -S 65535 -C 9 -V
	sample_done
	same result '9 pings, the last of 65535 bytes, read in 3 requests' "$RESULT"
}

from_rping_over_ipv6() { from_rping "$OWN6" 26 4097 65535; }
to_rping_over_ipv4() { to_rping "$PEER4" 65535; }

as_large_as_it_can_be() {
	serves "$OWN4" size=1048576
	peer_run "$PEER" client "$OWN4" $PORT 1048576 none
	same "result of the comparison" same "$OUTPUT"
	sample_done
	has "$RESULT" 'in 2 requests$'
}

under_loss() {
	local STEP_MS=$((20000 * SLOWDOWN))
	network_loss 1
	from_rping "$OWN4" 20000
	network_has_lost
}

# The read or the write that follows the registration fails.
wrong_clients_are_told_apart() {
	explain 'rxe[0-9]*: qp#|rrdma_rxe[0-9]: qp#'
	wrong_client key '^read: read or write: remote access error'
	wrong_client unreadable '^read: read or write: remote access error'
	wrong_client unwritable '^write: read or write: remote access error'
	wrong_client vanish '^(read|sink): '
}

unloads_at_any_moment() {
	serves "$OWN4" size=65535
	peer_start rping rping -c -a "$OWN4" -S 65535 -C 100000
	sleep 0.5
	sample_unload
	peer_stop rping
}

main setup \
	takes_requests_for_the_region \
	from_rping_over_ipv6 \
	to_rping_over_ipv4 \
	as_large_as_it_can_be \
	under_loss \
	wrong_clients_are_told_apart \
	unloads_at_any_moment
