#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample atomics: workers that add to a counter in remote memory by atomic operations.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/pair.sh"

requirements() {
	need_sample atomics
}

setup() {
	network
}

sums() {
	has "$RESULT" "^$1 additions, sum $2, [0-9]+ compare-and-swap retries$"
}

nobody_miscounts() {
	pair_crosses atomics 400 workers=4 adds=100 step=3
	sums 400 1200
}

one_worker_is_never_too_late() {
	pair_crosses atomics 50 workers=1 adds=50
	has "$RESULT" ' 0 compare-and-swap retries$'
}

many_swaps_are_too_late() {
	pair_crosses atomics 640 workers=16 adds=40 step=1000000
	sums 640 640000000
	! has_not_late "$RESULT" || fail "no swap of 16 workers was too late: $RESULT"
}

has_not_late() {
	[[ $1 == *" 0 compare-and-swap retries" ]]
}

on_one_device() {
	pair_alone atomics
	sums 400 1200
}

under_loss() {
	network_loss 1
	pair_crosses atomics 200 workers=4 adds=50
	sums 200 600
	network_has_lost
}

parameters_out_of_range() {
	sample_refused atomics workers=17
	sample_refused atomics adds=0
}

unloads_while_it_works() {
	pair_unloads_after 200 additions atomics adds=100000
}

ends_with_its_devices() {
	ends_without_its_devices pair_load atomics "$OWN4" "$PEER4" adds=100000
}

main setup \
	nobody_miscounts \
	one_worker_is_never_too_late \
	many_swaps_are_too_late \
	on_one_device \
	under_loss \
	parameters_out_of_range \
	unloads_while_it_works \
	ends_with_its_devices
