#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Target of test_target_killed.sh. It runs on a second machine, whose disk survives a restart.

. "$(dirname "$0")/lib.sh"

# kept_disk: print the path of the persistent disk, which has the serial number "kept".
kept_disk() {
	local serial
	for serial in /sys/block/vd*/serial; do
		[ "$(<"$serial")" != kept ] || {
			serial=${serial%/serial}
			echo "/dev/${serial##*/}"
		}
	done
}

# kept_namespace: create a namespace with a fixed UUID. nvmet otherwise generates identifiers at
# each start, and the host would see a different namespace.
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
# Not the builtin of the harness, which knows numbers only.
exec sleep infinity
