#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the host against a target that changes replies at random: each operation must end as
# documented, and nothing may leak.
#
# The host is hostile_random.py.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"
. "$HERE/lib/hostile_random.sh"

# shellcheck disable=SC2034 # read by lib/hostile_random.sh
RANDOM_HOST=$HERE/hostile_random.py

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

disconnect_all() {
	rnvmf disconnect-all
}

no_controllers() {
	has "$(rnvmf show -o json)" '"controllers":\[\]'
}

# shellcheck disable=SC2046 # empty if the run is not long
main setup \
	breaks_replies_at_random \
	$(in_a_long_run breaks_replies_for_long)
