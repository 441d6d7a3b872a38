#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# In the VM whose clock counts instructions: rnvmf and the kernel's nvme-rdma are connected to one
# namespace at once, and what they do is measured in turn. After each thing that is measured there is a
# mark of its name (see benchlib/profile.py). To /mnt/out go
#
#	LOAD.PAIR.DRIVER.json		what fio says of a run
#	LOAD.json			the same of one more run of both, which is not measured
#	LOAD.calls			what was called in that: EVENT MODULE TIMES
#	memory				DRIVER QUEUES KIB: in use with CONTROLLERS more of so many I/O queues
#	LOAD.before, LOAD.after		what rnvmf had counted itself before and after it
#
# usage: instructions.sh PAIRS ROUNDS LOAD=FIO-OPTIONS...
#
#	ROUNDS	how often to connect, reset and disconnect; if 0, calls are not counted either;
#		memory is measured a third as often

# shellcheck source=tools/testing/bench/side_by_side/drivers.sh
. "$(dirname "$0")/drivers.sh"

MARK=/opt/rnvmf/src/build/bench/mark
OUT=/mnt/out
CONTROLLERS=8

pairs=$1
rounds=$2
shift 2
loads=("$@")

# fio_run DRIVER OUTPUT OPTION...
fio_run() {
	run fio --name=load --filename="${DISKS[$1]}" --direct=1 --ioengine=libaio --thread \
		--norandommap --gtod_reduce=1 --output-format=json --output="$2" "${@:3}"
}

# mark LABEL: what the emulator counted up to here.
mark() {
	echo "$1 $("$MARK")" >>$OUT/marks
}

# Of this many instructions the emulator's count is checked.
mark_check() {
	local times
	mapfile -t times < <("$MARK" 1000000)
	printf '%s\n' "check-begin ${times[0]}" "check-end ${times[1]}" >>$OUT/marks
}

# What is loaded and allocated by the first I/Os of all is to count for nothing.
warm_up() {
	local driver
	for driver in "${DRIVERS[@]}"; do
		fio_run "$driver" "$SCRATCH/warm" --rw=randrw --bs=4k --iodepth=32 --size=1g --io_size=2m
	done
	mark warm
}

# measure NAME OPTION...
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

# Beside memory: posts, regions that are mapped, and the completions that the C driver is told of.
EVENTS=(kmem/kmalloc kmem/kmem_cache_alloc bench/rxe_post_send bench/ib_map_mr_sg
	bench/nvme_rdma_send_done bench/nvme_rdma_recv_done)

counting_begins() {
	local event
	for event in "${EVENTS[@]}"; do
		[[ $event != bench/* ]] || echo "p:$event ${event#*/}" >>/sys/kernel/tracing/kprobe_events
	done
	callers_start "${EVENTS[@]}" || fail "the kernel does not count"
}

counting_ends() {
	callers_end "${EVENTS[@]}" || fail "the kernel still counts"
	echo >/sys/kernel/tracing/kprobe_events
}

# count_calls NAME OPTION...: of both drivers in one run of fio, for it makes many calls itself.
count_calls() {
	local name=$1 event
	shift
	rnvmf stats rnvmf0 -o json >"$OUT/$name.before"
	callers_clear "${EVENTS[@]}"
	run fio --direct=1 --ioengine=libaio --thread --norandommap --gtod_reduce=1 \
		--output-format=json --output="$OUT/$name.json" \
		--name=rnvmf --filename="${DISKS[rnvmf]}" "$@" \
		--name=nvme --stonewall --filename="${DISKS[nvme]}" "$@"
	for event in "${EVENTS[@]}"; do
		# A call of the layers below belongs to who called them, but their memory does not.
		case $event in
		bench/*) callers "$event" 'rdma_rxe|ib_core' ;;
		*) callers "$event" ;;
		esac | sed "s/^/${event#*/} /"
	done >"$OUT/$name.calls"
	rnvmf stats rnvmf0 -o json >"$OUT/$name.after"
}

# step NAME.ROUND DRIVER NUMBER COMMAND...: measure the command, after which the driver has so many
# disks, and then what it left to be done.
step() {
	local label=$1.$2 driver=$2 number=$3
	shift 3
	mark "$label.before"
	"$@"
	mark "$label.command"
	wait_until 60 has_disks "$driver" "$number" || fail "$driver has not $number disks"
	sleep 2
	mark "$label.rest"
}

# Connecting, with one I/O queue, resetting and disconnecting; `nothing` is what it takes to measure.
steps() {
	local round driver
	for ((round = 0; round < rounds; round++)); do
		for driver in "${DRIVERS[@]}"; do
			step nothing.$round "$driver" 0 run true
			step connect.$round "$driver" 1 "connect_$driver" -i 1
			step reset.$round "$driver" 1 "reset_$driver"
			step disconnect.$round "$driver" 0 "disconnect_$driver"
		done
	done
}

# Memory that is in use, in KiB: of the slabs only their objects, for others come where some were freed.
memory_used() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	slab_shrink
	# What a processor keeps at hand of free pages counts as used.
	echo 1 >/proc/sys/vm/compact_memory
	awk 'FILENAME ~ /meminfo/ { kib[$1] = $2 }
	     FILENAME ~ /slabinfo/ && FNR > 2 { objects += $2 * $4 }
	     END { printf "%d\n", kib["MemTotal:"] - kib["MemFree:"] - kib["Slab:"] + objects / 1024 }' \
		/proc/meminfo /proc/slabinfo
}

# memory_of DRIVER OPTION...: of so many controllers, and of what the target has for them, in USED.
memory_of() {
	local before after i objects
	objects=$(rdma_objects)
	before=$(memory_used)
	for ((i = 0; i < CONTROLLERS; i++)); do
		"connect_$1" -D "${@:2}"
	done
	wait_until 60 has_disks "$1" $CONTROLLERS || fail "$1 has no $CONTROLLERS disks"
	after=$(memory_used)
	"disconnect_$1"
	wait_until 60 has_disks "$1" 0 || fail "$1 keeps disks"
	# The target frees its part later, and for some seconds connections are remembered.
	rdma_back_to "$objects"
	sleep 30
	USED=$((after - before))
}

# The first of all is not as the others are.
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
# No command of the drivers' own may come between.
connect_both -i 1 -P 1 -k 0 || exit 1
mark_check
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
	disconnect_both
	steps
	[ $((rounds / 3)) = 0 ] || memory
fi
cat /proc/kallsyms >$OUT/kallsyms
log_is_clean
