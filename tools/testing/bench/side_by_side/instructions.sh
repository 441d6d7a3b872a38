#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in a VM whose clock counts instructions: connects the drivers to one namespace and measures
# them in turn. A mark with a label follows each measurement (see
# benchlib/profile.py). Files in /mnt/out:
#
#	LOAD.PAIR.DRIVER.json		fio output of a measured run
#	LOAD.json			fio output of another run with all drivers, to count calls
#	LOAD.calls			calls in that run: EVENT MODULE TIMES
#	LOAD.before, LOAD.after		counters of rnvmf before and after that run
#	memory				DRIVER QUEUES KIB: memory of CONTROLLERS controllers with
#					QUEUES I/O queues each
#
# usage: instructions.sh PAIRS ROUNDS LOAD=FIO-OPTIONS...
#
#	ROUNDS	number of connects, resets and disconnects; memory is measured a third as often;
#		if 0, calls are not counted either

# shellcheck source=tools/testing/bench/side_by_side/drivers.sh
. "$(dirname "$0")/drivers.sh"
# shellcheck source=tools/testing/bench/side_by_side/marks.sh
. "$(dirname "$0")/marks.sh"

pairs=$1
rounds=$2
shift 2
loads=("$@")

# The first I/Os load programs and allocate memory; keep that out of the measurements.
warm_up() {
	local driver
	for driver in "${DRIVERS[@]}"; do
		fio_run "$driver" "$SCRATCH/warm" --rw=randrw --bs=4k --iodepth=32 --size=1g --io_size=2m
	done
	mark warm
}

# measure NAME OPTION...: run the load on all drivers in turn.
measure() {
	local name=$1 pair driver
	shift
	for ((pair = 0; pair < pairs; pair++)); do
		for driver in "${DRIVERS[@]}"; do
			fio_run "$driver" "$OUT/$name.$pair.$driver.json" "$@"
			mark "$name.$pair.$driver"
		done
	done
}

# Events to count: allocations, posts, and mapped regions.
EVENTS=(kmem/kmalloc kmem/kmem_cache_alloc bench/rxe_post_send bench/ib_map_mr_sg)

counting_begins() {
	local event
	for event in "${EVENTS[@]}"; do
		[[ $event != bench/* ]] || echo "p:$event ${event#*/}" >>/sys/kernel/tracing/kprobe_events
	done
	callers_start "${EVENTS[@]}" || fail "cannot start counting events"
}

counting_ends() {
	callers_end "${EVENTS[@]}" || fail "cannot stop counting events"
	echo >/sys/kernel/tracing/kprobe_events
}

# count_calls NAME OPTION...: count in one run of fio for all drivers. A second start of fio would
# add many calls.
count_calls() {
	local name=$1 event
	shift
	rnvmf stats rnvmf0 -o json >"$OUT/$name.before"
	callers_clear "${EVENTS[@]}"
	run fio --direct=1 --ioengine=libaio --thread --norandommap --gtod_reduce=1 \
		--output-format=json --output="$OUT/$name.json" \
		--name=rnvmf --filename="${DISKS[rnvmf]}" "$@" \
		--name=nvme --stonewall --filename="${DISKS[nvme]}" "$@" \
		--name=rust --stonewall --filename="${DISKS[rust]}" "$@"
	for event in "${EVENTS[@]}"; do
		# Calls from the layers below count for their caller, except allocations of those that
		# are not ours. Two drivers use rrdma.
		case $event in
		bench/*) callers "$event" 'rdma_rxe|ib_core|rrdma' ;;
		*) callers "$event" rrdma ;;
		esac | sed "s/^/${event#*/} /"
	done >"$OUT/$name.calls"
	rnvmf stats rnvmf0 -o json >"$OUT/$name.after"
}

# step NAME.ROUND DRIVER NUMBER COMMAND...: measure the command, and then the work that continues
# after it. The driver must have NUMBER disks in the end.
step() {
	local label=$1.$2 driver=$2 number=$3
	shift 3
	mark "$label.before"
	"$@"
	mark "$label.command"
	wait_until 60 has_disks "$driver" "$number" || fail "$driver does not have $number disks"
	sleep 2
	mark "$label.rest"
}

# Connect with one I/O queue, reset and disconnect. `nothing` is the cost of measuring itself. The
# driver `written` is nvme, connected without nvme-cli.
steps() {
	local round driver
	for ((round = 0; round < rounds; round++)); do
		for driver in "${DRIVERS[@]}" written; do
			step nothing.$round "$driver" 0 run true
			step connect.$round "$driver" 1 "connect_$driver" -i 1
			step reset.$round "$driver" 1 "reset_$driver"
			step disconnect.$round "$driver" 0 "disconnect_$driver"
		done
	done
}

# memory_of DRIVER OPTION...: set USED to the memory of CONTROLLERS controllers, including the
# target's memory for them.
memory_of() {
	local before after i objects
	objects=$(rdma_objects)
	before=$(memory_used)
	for ((i = 0; i < CONTROLLERS; i++)); do
		"connect_$1" -D "${@:2}"
	done
	wait_until 60 has_disks "$1" $CONTROLLERS || fail "$1 does not have $CONTROLLERS disks"
	after=$(memory_used)
	"disconnect_$1"
	wait_until 60 has_disks "$1" 0 || fail "$1 does not remove its disks"
	# The target frees its memory later, and closed connections stay in TIMEWAIT for some seconds.
	rdma_back_to "$objects"
	sleep 30
	USED=$((after - before))
}

# The first round differs from the others, so it is not recorded.
memory() {
	local round driver
	for ((round = 0; round <= rounds / 3; round++)); do
		for driver in "${DRIVERS[@]}"; do
			memory_of "$driver" -i 1 -W 1 -P 1
			[ $round = 0 ] || echo "$driver 3 $USED" >>$OUT/memory
			memory_of "$driver" -i 1
			[ $round = 0 ] || echo "$driver 1 $USED" >>$OUT/memory
		done
	done
}

set_up || exit 1
# No keep-alives: commands of the drivers themselves would disturb the measurements.
connect_all -i 1 -P 1 -k 0 || exit 1
marks_begin
warm_up
for load in "${loads[@]}"; do
	read -ra options <<<"${load#*=}"
	measure "${load%%=*}" "${options[@]}"
done
if [ "$rounds" != 0 ]; then
	counting_begins
	for load in "${loads[@]}"; do
		read -ra options <<<"${load#*=}"
		count_calls "${load%%=*}" "${options[@]}"
	done
	counting_ends
	disconnect_all
	steps
	[ $((rounds / 3)) = 0 ] || memory
fi
symbols
marks_end
log_is_clean
