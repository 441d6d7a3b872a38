#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests nvme_rdma_rust against a target that changes replies at random, as test_hostile_random.sh of
# rnvmf: each operation must end, the kernel may report no fault, and nothing may leak.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"
. "$HERE/lib/hostile_random.sh"

# The host with nvme-cli.
# shellcheck disable=SC2034 # read by lib/hostile_random.sh
RANDOM_HOST=$(dirname "$(realpath "$0")")/hostile_random.py

# The set-up of nvme-core takes more commands than that of rnvmf: with rnvmf's rate few connects succeed.
export RARELY=80

# nvme-core warns about metadata that is not part of the extended LBA, with nvme-rdma, too.
export EXTENDED=1

# nvme-core waits 60 s for an admin command and 30 s for I/O by default; the target leaves some of them
# unanswered.
PARAMETERS=/sys/module/nvme_core/parameters

requirements() {
	need_root && need_modules nvme-core nvme_rdma_rust rdma_rxe dummy && need_programs rdma ip nvme ||
		return 1
	# The target ends at the first violation by the host.
	! driver_is_c || { ktap_skip_all "nvme-rdma leaves old bytes in the descriptors of in-capsule data"; return 1; }
}

setup() {
	load_driver && echo 2 >$PARAMETERS/admin_timeout && echo 2 >$PARAMETERS/io_timeout || return 1
	defer disconnect_all
	modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

disconnect_all() {
	echo 60 >$PARAMETERS/admin_timeout && echo 30 >$PARAMETERS/io_timeout && nvme disconnect-all
}

no_controllers() {
	no_disks || fail "a disk remains"
	[ -z "$(ls /sys/class/nvme)" ] || fail "controllers remain: $(ls /sys/class/nvme)"
}

# shellcheck disable=SC2046 # empty if the run is not long
main setup \
	breaks_replies_at_random \
	$(in_a_long_run breaks_replies_for_long)
