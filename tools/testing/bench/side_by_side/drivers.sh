# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs in the VM: functions for the drivers and their target. The drivers are called rnvmf; nvme, which
# is the kernel's nvme-rdma; and rust, which is nvme_rdma_rust under its own name, `rdma_rust`.

# shellcheck source=tools/testing/selftests/drivers/block/rnvmf/lib.sh
. /opt/rnvmf/selftests/drivers/block/rnvmf/lib.sh

DRIVERS=(rnvmf nvme rust)
NVME_HOST=nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-000000000002

# The VM's clock advances while the VM waits for its disk image on the host. So a program that is
# loaded for the first time may take minutes of VM time. The host limits the time of the whole VM.
# shellcheck disable=SC2034 # read by the harness
COMMAND_SECONDS=3600

# Disk of each driver.
declare -A DISKS

# The target's disk discards data, so that it costs few instructions.
set_up() {
	requirements && need_modules nvme-rdma nvme_rdma_rust || exit 1
	open_file
	start_log bench
	# With multipath, each I/O of nvme-rdma would pass through one more block device.
	modprobe nvme-core multipath=N && modprobe -a rnvmf nvme-rdma &&
		modprobe nvme_rdma_rust transport=rdma_rust && network_single &&
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

# nvme-cli knows only its own names of transports.
connect_rust() {
	connect_by_write rdma_rust "$@"
}

# The driver nvme, connected as rust is.
connect_written() {
	connect_by_write rdma "$@"
}

# connect_by_write TRANSPORT OPTION...: write the options of `nvme connect` to /dev/nvme-fabrics.
connect_by_write() {
	local options=transport=$1,traddr=$TARGET4,trsvcid=4420,nqn=$NQN
	options+=,hostnqn=$NVME_HOST,hostid=${NVME_HOST##*:}
	shift
	while [ $# != 0 ]; do
		case $1 in
		-i) options+=,nr_io_queues=$2 ;;
		-P) options+=,nr_poll_queues=$2 ;;
		-W) options+=,nr_write_queues=$2 ;;
		-k) options+=,keep_alive_tmo=$2 ;;
		-D)
			options+=,duplicate_connect
			shift
			continue
			;;
		*) fail "no option $1" ;;
		esac
		shift 2
	done
	echo "$options" >/dev/nvme-fabrics || fail "connect failed: $options"
}

reset_rnvmf() {
	run rnvmf reset rnvmf0
}

reset_nvme() {
	run nvme reset /dev/nvme0
}

reset_written() {
	reset_nvme
}

reset_rust() {
	reset_nvme
}

disconnect_rnvmf() {
	run rnvmf disconnect-all
}

disconnect_nvme() {
	run nvme disconnect -n "$NQN"
}

disconnect_written() {
	disconnect_nvme
}

disconnect_rust() {
	disconnect_nvme
}

# disks DRIVER: set FOUND to its disks in sysfs.
disks() {
	local disk found transport=rdma
	[ "$1" != rust ] || transport=rdma_rust
	FOUND=()
	if [ "$1" = rnvmf ]; then
		FOUND=(/sys/block/rnvmf[0-9]*n[0-9]*)
		[ -e "${FOUND[0]}" ] || FOUND=()
		return
	fi
	for disk in /sys/block/nvme[0-9]*n[0-9]*; do
		# A disk may disappear. `read` starts no process, which would count.
		{ read -r found <"$disk/device/transport"; } 2>/dev/null || continue
		[ "$found" != $transport ] || FOUND+=("$disk")
	done
}

# has_disks DRIVER NUMBER: whether the driver has exactly NUMBER disks.
has_disks() {
	disks "$1"
	[ ${#FOUND[@]} = "$2" ]
}

# connect_all OPTION...: connect all drivers to the namespace, with the same queue settings.
connect_all() {
	local driver
	for driver in "${DRIVERS[@]}"; do
		"connect_$driver" "$@"
		wait_until 60 has_disks "$driver" 1 || fail "$driver has no disk"
		DISKS[$driver]=/dev/${FOUND[0]##*/}
	done
	alike
}

disconnect_all() {
	local driver
	# By the subsystem, so this disconnects the driver rust as well.
	disconnect_rnvmf
	disconnect_nvme
	for driver in "${DRIVERS[@]}"; do
		wait_until 60 has_disks "$driver" 0 || fail "$driver does not remove its disk"
	done
}

# The block layer must treat all disks alike; warn about settings that differ.
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
	for driver in "${DRIVERS[@]}"; do
		diff "$SCRATCH/$driver" "$SCRATCH/nvme" >&2 || echo "bench: queue settings differ" >&2
	done
}
