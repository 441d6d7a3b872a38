#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in a VM whose clock counts instructions: connects nvme-rdma to nvmet-rdma, called nvmet, and to
# nvmet_rdma_rust, called nvmet_rust, in turn. nvmet has one transport of a type, so the modules are
# exchanged. A mark with a label follows each measurement. Files in /mnt/out:
#
#	LOAD.PAIR.DRIVER.json		fio output of a measured run
#	memory.own, memory.shared	DRIVER QUEUES KIB: memory of CONTROLLERS controllers with QUEUES
#					I/O queues each, without and with shared receives
#
# usage: targets.sh PAIRS ROUNDS LOAD=FIO-OPTIONS...
#
#	ROUNDS	number of times that queues are accepted, and memory is measured

# shellcheck source=tools/testing/bench/side_by_side/drivers.sh
. "$(dirname "$0")/drivers.sh"
# shellcheck source=tools/testing/bench/side_by_side/marks.sh
. "$(dirname "$0")/marks.sh"

TARGETS=(nvmet nvmet_rust)
# Queues that are accepted in a step, and the program that connects them.
QUEUES=32
HOSTILE=$SELFTESTS/drivers/nvme/target/hostile_host

pairs=$1
rounds=$2
shift 2
loads=("$@")

declare -A MODULES=([nvmet]=nvmet-rdma [nvmet_rust]=nvmet_rdma_rust)

set_up() {
	need_modules nvme-rdma nvmet_rdma_rust rdma_ucm || exit 1
	open_file
	start_log bench
	modprobe nvme-core multipath=N && modprobe -a nvme-rdma rdma_ucm && network_single &&
		backend_memory bench 1024 512 memory_backed=0 && target_simple "$BACKEND" &&
		target_goes
}

# target_goes: delete the ports, and unload the transport.
target_goes() {
	local port
	for port in 4420 4421; do
		target_unexport $port "$NQN"
		target_port_delete $port
	done
	modprobe -r nvmet-rdma || true
	modprobe -r nvmet_rdma_rust || true
}

# target_is DRIVER PARAMETER...: exchange the transport.
target_is() {
	target_goes
	# shellcheck disable=SC2034 # read by target_load
	TARGET_DRIVER=${MODULES[$1]} TARGET_PARAMETERS=("${@:2}")
	if ! { target_load && port_is_back && symbols; }; then
		fail "cannot load $1"
	fi
}

# Measure each load with one target after the other.
measure() {
	local pair=$1 load options target
	for target in "${TARGETS[@]}"; do
		target_is "$target"
		connect_all -i 1 -k 0
		fio_run nvme "$SCRATCH/warm" --rw=randrw --bs=4k --iodepth=32 --size=1g --io_size=2m
		mark "warm.$pair.$target"
		for load in "${loads[@]}"; do
			read -ra options <<<"${load#*=}"
			fio_run nvme "$OUT/${load%%=*}.$pair.$target.json" "${options[@]}"
			mark "${load%%=*}.$pair.$target"
		done
		disconnect_nvme
		wait_until 60 has_disks nvme 0 || fail "nvme does not remove its disk"
	done
}

# step NAME.ROUND DRIVER COMMAND...: measure the command, and then the work that continues after it.
step() {
	local label=$1.$2
	shift 2
	mark "$label.before"
	run "$@"
	mark "$label.command"
	rdma_back_to "$objects"
	sleep 2
	mark "$label.rest"
}

# Accept the queues of a controller, which then disconnects. `nothing` is the cost of measuring itself.
steps() {
	local round target qid queues=(admin) objects
	for ((qid = 1; qid < QUEUES; qid++)); do
		queues+=("io,qid=$qid")
	done
	for ((round = 0; round < rounds; round++)); do
		for target in "${TARGETS[@]}"; do
			target_is "$target"
			objects=$(rdma_objects)
			# The first connection loads programs.
			run "$HOSTILE" "$TARGET4" 4420 "$NQN" "${queues[@]}" bye
			rdma_back_to "$objects"
			step nothing.$round "$target" true
			step accept.$round "$target" "$HOSTILE" "$TARGET4" 4420 "$NQN" "${queues[@]}" bye
		done
	done
}

# memory_of OPTION...: set USED to the memory of CONTROLLERS controllers, host and target together,
# beside one that is there before.
memory_of() {
	local before after i
	connect_nvme -i 1
	wait_until 60 has_disks nvme 1 || fail "nvme has no disk"
	before=$(memory_used)
	for ((i = 0; i < CONTROLLERS; i++)); do
		connect_nvme -D "$@"
	done
	wait_until 60 has_disks nvme $((CONTROLLERS + 1)) || fail "nvme does not have all disks"
	after=$(memory_used)
	disconnect_nvme
	wait_until 60 has_disks nvme 0 || fail "nvme does not remove its disks"
	USED=$((after - before))
}

memory() {
	local round target receives parameters
	for ((round = 0; round < rounds; round++)); do
		for receives in own shared; do
			parameters=()
			[ $receives = own ] || parameters=(use_srq=1)
			for target in "${TARGETS[@]}"; do
				target_is "$target" "${parameters[@]}"
				memory_of -i 1 -W 1 -P 1
				echo "$target 3 $USED" >>$OUT/memory.$receives
				memory_of -i 1
				echo "$target 1 $USED" >>$OUT/memory.$receives
			done
		done
	done
}

DRIVERS=(nvme)
set_up || exit 1
marks_begin
symbols
for ((pair = 0; pair < pairs; pair++)); do
	measure $pair
done
if [ "$rounds" != 0 ]; then
	steps
	memory
fi
marks_end
target_goes
log_is_clean
