#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in a VM: measures how long connects take, with an I/O queue for each CPU. Writes lines to
# /mnt/out/connects: DRIVER ROUND MICROSECONDS. The driver `written` is nvme, connected without
# nvme-cli.
#
# usage: connects.sh ROUNDS

# shellcheck source=tools/testing/bench/side_by_side/drivers.sh
. "$(dirname "$0")/drivers.sh"

OUT=/mnt/out

rounds=$1
queues=$(nproc)

# connects DRIVER ROUND: measure a connect.
connects() {
	local begin took
	begin=${EPOCHREALTIME/[.,]/}
	"connect_$1" -i "$queues"
	took=$((${EPOCHREALTIME/[.,]/} - begin))
	wait_until 60 has_disks "$1" 1 || fail "$1 has no disk"
	echo "$1 $2 $took" >>$OUT/connects
	"disconnect_$1"
	wait_until 60 has_disks "$1" 0 || fail "$1 does not remove its disk"
	# The target ends its queues later.
	rdma_back_to "$objects"
}

set_up || exit 1
objects=$(rdma_objects)
order=("${DRIVERS[@]}" written)
# The first round loads programs.
for ((round = 0; round <= rounds; round++)); do
	for driver in "${order[@]}"; do
		connects "$driver" $round
	done
	mapfile -t order < <(printf '%s\n' "${order[@]}" | tac)
done
log_is_clean
