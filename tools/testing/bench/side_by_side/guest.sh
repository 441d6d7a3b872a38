#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the VM: connects rnvme and the kernel's nvme-rdma to one namespace at once, and measures both in
# turn. What fio says of each run goes to /mnt/out/CELL.PAIR.DRIVER.json, and after each there is a mark
# of that name (see benchlib/profile.py).
#
# usage: guest.sh PAIRS CELL=FIO-OPTIONS...

# shellcheck source=tools/testing/selftests/drivers/block/rnvme/lib.sh
. /opt/rnvme/selftests/drivers/block/rnvme/lib.sh

MARK=/opt/rnvme/src/build/bench/mark

# The VM's time runs ahead while it waits for its image on the host, so that a program that is loaded
# for the first time may take minutes of it. The host has a limit.
# shellcheck disable=SC2034 # read by the harness
COMMAND_SECONDS=3600

pairs=$1
shift
cells=("$@")
declare -A disks

# The disk keeps no data, so that the target costs little.
set_up() {
	# With multipathing each of its I/Os would go through one more block device.
	modprobe nvme-core multipath=N && modprobe -a rnvme nvme-rdma && network_single &&
		backend_memory bench 1024 512 memory_backed=0 && target_simple "$BACKEND" &&
		connect_rnvme && connect_nvme && alike
}

# Each driver in its usual state, with one I/O queue.
connect_rnvme() {
	connect "$TARGET4" -i 1
	disks[rnvme]=$(disk "$CTRL" 1)
}

connect_nvme() {
	local host=nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-000000000002
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -i 1 -q "$host" -I "${host##*:}"
	defer nvme disconnect -n "$NQN"
	wait_until 20 find_nvme || fail "nvme-rdma has no disk"
}

find_nvme() {
	local disk
	for disk in /dev/nvme[0-9]*n[0-9]*; do
		disks[nvme]=$disk
		[ ! -b "$disk" ] || return 0
	done
	return 1
}

# What the block layer does must not tell the two apart.
alike() {
	local driver queue name
	for driver in rnvme nvme; do
		queue=/sys/block/${disks[$driver]##*/}/queue
		echo none >"$queue/scheduler" || return 1
		for name in scheduler nomerges rq_affinity iostats write_cache fua nr_requests; do
			echo "$name $(<"$queue/$name")"
		done >"$SCRATCH/$driver"
	done
	diff "$SCRATCH/rnvme" "$SCRATCH/nvme" >&2 || echo "guest.sh: in this the queues differ" >&2
}

# measure DRIVER OUTPUT OPTION...
measure() {
	run fio --name=cell --filename="${disks[$1]}" --direct=1 --ioengine=libaio --thread \
		--norandommap --gtod_reduce=1 --output-format=json --output="$2" "${@:3}"
}

# mark LABEL: what the emulator counted up to here.
mark() {
	echo "$1 $("$MARK")" >>/mnt/out/marks
}

# Of this many instructions the emulator's count is checked.
mark_check() {
	local times
	mapfile -t times < <("$MARK" 1000000)
	printf '%s\n' "check-begin ${times[0]}" "check-end ${times[1]}" >>/mnt/out/marks
}

# What is loaded and allocated by the first I/Os of all is to count for nothing.
warm_up() {
	local driver
	for driver in rnvme nvme; do
		measure "$driver" "$SCRATCH/warm" --rw=randrw --bs=4k --iodepth=32 --size=1g --io_size=2m
	done
	mark warm
}

# measure_cell NAME OPTION...
measure_cell() {
	local name=$1 pair driver
	shift
	for ((pair = 0; pair < pairs; pair++)); do
		for driver in rnvme nvme; do
			measure "$driver" "/mnt/out/$name.$pair.$driver.json" "$@"
			mark "$name.$pair.$driver"
		done
	done
}

requirements || exit 1
need_modules nvme-rdma && need_programs nvme || exit 1
open_file
start_log bench
set_up || exit 1
mark_check
warm_up
for cell in "${cells[@]}"; do
	read -ra options <<<"${cell#*=}"
	measure_cell "${cell%%=*}" "${options[@]}"
done
cat /proc/kallsyms >/mnt/out/kallsyms
log_is_clean
