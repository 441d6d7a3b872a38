#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The target of test_target_killed.sh, on a machine of its own with a disk that outlives it.

. "$(dirname "$0")/lib.sh"

# kept_disk: the one that is there again after a start.
kept_disk() {
	local serial
	for serial in /sys/block/vd*/serial; do
		[ "$(<"$serial")" != kept ] || {
			serial=${serial%/serial}
			echo "/dev/${serial##*/}"
		}
	done
}

# The kernel's target makes up another identity at each start if it is given none; a host then takes
# the disk for another one.
kept_namespace() {
	local path=$NVMET/subsystems/$NQN/namespaces/1
	mkdir "$path" && echo -n "$(kept_disk)" >"$path/device_path" &&
		echo 5e1f7e57-0000-4000-8000-000000000002 >"$path/device_uuid" && echo 1 >"$path/enable"
}

set_up() {
	wire_up "$TARGET4/24" && rdma_load && rdma_add "" rnvmf_rxe0 "$WIRE" && target_load &&
		target_subsystem "$NQN" && kept_namespace &&
		target_port 4420 "$TARGET4" && target_export 4420 "$NQN" &&
		ip address add "$READY4/24" dev "$WIRE"
}

open_file
start_log neighbour
set_up || exit "$KSFT_FAIL"
sleep infinity
