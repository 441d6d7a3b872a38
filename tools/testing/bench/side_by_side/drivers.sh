# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs in the VM: functions for the two drivers, rnvmf and the kernel's nvme-rdma, and for the target
# of both. The drivers are called rnvmf and nvme, as their disks are.

# shellcheck source=tools/testing/selftests/drivers/block/rnvmf/lib.sh
. /opt/rnvmf/selftests/drivers/block/rnvmf/lib.sh

DRIVERS=(rnvmf nvme)
NVME_HOST=nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-000000000002

# The VM's clock advances while the VM waits for its disk image on the host. So a program that is
# loaded for the first time may take minutes of VM time. The host limits the time of the whole VM.
# shellcheck disable=SC2034 # read by the harness
COMMAND_SECONDS=3600

# Disk of each driver.
declare -A DISKS

# The target's disk discards data, so that it costs few instructions.
set_up() {
	requirements && need_modules nvme-rdma || exit 1
	open_file
	start_log bench
	# With multipath, each I/O of nvme-rdma would pass through one more block device.
	modprobe nvme-core multipath=N && modprobe -a rnvmf nvme-rdma && network_single &&
		backend_memory bench 1024 512 memory_backed=0 && target_simple "$BACKEND"
}

# connect_DRIVER OPTION..., reset_DRIVER, disconnect_DRIVER

connect_rnvmf() {
	run rnvmf connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -q "$HOSTNQN" "$@"
}

connect_nvme() {
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -q "$NVME_HOST" \
		-I "${NVME_HOST##*:}" "$@"
}

reset_rnvmf() {
	run rnvmf reset rnvmf0
}

reset_nvme() {
	run nvme reset /dev/nvme0
}

disconnect_rnvmf() {
	run rnvmf disconnect-all
}

disconnect_nvme() {
	run nvme disconnect -n "$NQN"
}

# has_disks DRIVER NUMBER: whether the driver has exactly NUMBER disks.
has_disks() {
	local found=(/sys/block/"$1"[0-9]*n[0-9]*)
	[ -e "${found[0]}" ] || found=()
	[ ${#found[@]} = "$2" ]
}

# connect_both OPTION...: connect both drivers to the namespace, with the same queue settings.
connect_both() {
	local driver
	for driver in "${DRIVERS[@]}"; do
		"connect_$driver" "$@"
		wait_until 60 has_disks "$driver" 1 || fail "$driver has no disk"
		DISKS[$driver]=$(echo "/dev/$driver"[0-9]*n[0-9]*)
	done
	alike
}

disconnect_both() {
	local driver
	for driver in "${DRIVERS[@]}"; do
		"disconnect_$driver"
		wait_until 60 has_disks "$driver" 0 || fail "$driver does not remove its disk"
	done
}

# The block layer must treat both disks alike; warn about settings that differ.
alike() {
	local driver queue name
	for driver in "${DRIVERS[@]}"; do
		queue=/sys/block/${DISKS[$driver]##*/}/queue
		echo none >"$queue/scheduler" || return 1
		for name in scheduler nomerges rq_affinity iostats write_cache fua nr_requests \
			max_sectors_kb; do
			echo "$name $(<"$queue/$name")"
		done >"$SCRATCH/$driver"
	done
	diff "$SCRATCH/rnvmf" "$SCRATCH/nvme" >&2 || echo "bench: queue settings differ" >&2
}
