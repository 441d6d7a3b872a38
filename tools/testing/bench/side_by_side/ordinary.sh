#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in a VM whose clock is the host's: measures the throughput of rnvmf and of the kernel's
# nvme-rdma, with a queue and a process per CPU. Writes the output of fio to /mnt/out/LOAD.json; its
# jobs are named PAIR.DRIVER.
#
# usage: ordinary.sh PAIRS MILLISECONDS LOAD=FIO-OPTIONS...
#
#	MILLISECONDS	run time of a job

# shellcheck source=tools/testing/bench/side_by_side/drivers.sh
. "$(dirname "$0")/drivers.sh"

OUT=/mnt/out

pairs=$1
milliseconds=$2
shift 2
loads=("$@")
cpus=$(nproc)

# job PAIR DRIVER
job() {
	printf '[%s.%s]\nstonewall\nfilename=%s\n' "$1" "$2" "${DISKS[$2]}"
}

# The order of the drivers alternates between pairs.
jobs() {
	local pair
	printf '%s\n' '[global]' direct=1 ioengine=libaio thread norandommap gtod_reduce=1 \
		group_reporting time_based "runtime=${milliseconds}ms" "numjobs=$cpus" \
		"cpus_allowed=0-$((cpus - 1))" cpus_allowed_policy=split "$@"
	for ((pair = 0; pair < pairs; pair++)); do
		job $pair "${DRIVERS[pair % 2]}"
		job $pair "${DRIVERS[1 - pair % 2]}"
	done
}

# measure NAME OPTION...
measure() {
	local name=$1
	shift
	jobs "${@#--}" >"$SCRATCH/jobs"
	run fio --output-format=json --output="$OUT/$name.json" "$SCRATCH/jobs"
}

set_up || exit 1
# shellcheck disable=SC2046 # no polled queues with one CPU: polling would keep it from the target
connect_all -i "$cpus" $([ "$cpus" = 1 ] || echo "-P $cpus") || exit 1
for load in "${loads[@]}"; do
	read -ra options <<<"${load#*=}"
	measure "${load%%=*}" "${options[@]}"
done
disconnect_all
log_is_clean
