#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a target with shared receive queues: parameters, load beyond their size, and connections that end
# with commands in flight, which must not lose receives.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-c 1)

setup() {
	load_driver && modprobe rdma_ucm && network_single && hostile_host_build &&
		backend_memory disk 64 512
}

# start [PARAMETER...]: load the target with these parameters, and create its port.
start() {
	modprobe -r "$TARGET_DRIVER"
	TARGET_PARAMETERS=("$@")
	target_simple "$BACKEND"
	OBJECTS=$(rdma_objects)
}

# shared_queues: print the number of shared receive queues.
shared_queues() {
	rdma resource show srq | grep -c "\[$TARGET_MODULE\]" || true
}

# works: many queues of full depth.
works() {
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=4m --iodepth=128 --numjobs=2 \
		--offset_increment=4m
	verify "$(disk "$CTRL" 1)" --rw=randrw --bsrange=512-256k --size=8m --iodepth=32
}

leave() {
	disconnect "$CTRL"
	rdma_back_to "$OBJECTS"
}

without() {
	start use_srq=0
	connect "$TARGET4"
	same "number of shared receive queues" 0 "$(shared_queues)"
	works
	leave
}

with() {
	start use_srq=1
	connect "$TARGET4"
	[ "$(shared_queues)" -ge 1 ] || fail "no shared receive queue: $(rdma resource show srq)"
	works
	leave
}

# The driver qedr does not report the last shared receive of a queue pair. Without that, the end of each would last
# 60 s. So each has receives of its own, with one line for the device.
driver_without_the_last_receive() {
	local without='rnvmf_rxe0: no shared receive queues: '
	! target_is_c || skip "nvmet-rdma waits for the report"
	modprobe -n -q rrdma_test_liar || skip "no module rrdma_test_liar"
	run modprobe rrdma_test_liar device=rnvmf_rxe0 lie=qedr
	defer modprobe -r rrdma_test_liar
	start use_srq=1
	connect "$TARGET4"
	same "number of shared receive queues" 0 "$(shared_queues)"
	same "lines about them" 1 "$(logged "$without")"
	works
	leave
}

# 256 receives for several hosts with 128 entries each.
far_smaller_than_the_load() {
	local hosts=() each
	start use_srq=1 srq_size=256
	connect "$TARGET4"
	for each in 1 2 3 4; do
		"$HOSTILE" "$TARGET4" 4420 "$NQN" admin cm,qid=1,hsqsize=127,hrqsize=128 \
			connect,qid=1,sqsize=127 read,count=127 read,count=127 read,count=127 \
			>"$SCRATCH/host$each" 2>&1 &
		hosts+=($!)
		defer end_process $!
	done
	works
	for each in "${hosts[@]}"; do
		wait "$each"
	done
	for each in 1 2 3 4; do
		has "$(<"$SCRATCH/host$each")" $'(read 0x000 times 127\n){2}read 0x000 times 127$'
	done
	leave
}

# A good host keeps the queues while others end with commands in flight: more commands than there are
# receives. The target's reads of their data fail. Without receives the next host's Connect gets no answer.
aborted_connections_lose_no_receives() {
	local n
	start use_srq=1 srq_size=256
	connect "$TARGET4"
	for ((n = 0; n < 16; n++)); do
		run "$HOSTILE" "$TARGET4" 4420 "$NQN" admin cm,qid=1,hsqsize=127,hrqsize=128 \
			connect,qid=1,sqsize=127 write,key=1,count=127,nowait quiet,ms=300 vanish
		has "$OUTPUT" $'^cm accepted crqsize 128\nconnect 0x000\n'
	done
	works
	leave
}

# The same with commands that the target has not begun when the connection ends.
broken_connections_lose_no_receives() {
	local n
	start use_srq=1 srq_size=256
	connect "$TARGET4"
	for ((n = 0; n < 16; n++)); do
		run "$HOSTILE" "$TARGET4" 4420 "$NQN" admin cm,qid=1,hsqsize=127,hrqsize=128 \
			connect,qid=1,sqsize=127 write,len=0x100000,nlb=2047,count=100,nowait break vanish
		has "$OUTPUT" $'^cm accepted crqsize 128\nconnect 0x000$'
	done
	works
	leave
}

# keep_receives HOSTS STEP...: run hostile hosts in the background, and wait until each has sent its commands.
keep_receives() {
	local each count=$1
	shift
	for ((each = 0; each < count; each++)); do
		"$HOSTILE" "$TARGET4" 4420 "$NQN" "$@" quiet,ms=1000 quiet,ms=600000 \
			>"$SCRATCH/host$each" 2>&1 &
		defer end_process $!
	done
	for ((each = 0; each < count; each++)); do
		wait_until "$SOON" grep -q '^quiet' "$SCRATCH/host$each" ||
			fail "host $each: printed '$(<"$SCRATCH/host$each")'"
	done
}

# A good host connects, and works, while the others are there.
others_find_receives() {
	connect "$TARGET4"
	works
	disconnect "$CTRL"
}

# Hosts without a controller that take no response: their commands would wait for ever for a request, each with
# a receive.
hosts_without_a_controller_keep_no_receives() {
	start use_srq=1 srq_size=256
	keep_receives 16 cm,receives=0 get,count=64,nowait
	others_find_receives
	[ "$(logged 'queue 0: more commands than a Connect')" -ge 1 ] || fail "no cause in the log"
}

# The same before the connection is established.
hosts_that_are_not_established_keep_no_receives() {
	start use_srq=1 srq_size=256
	keep_receives 16 cm,no-rtu connect,count=32,nowait
	others_find_receives
	[ "$(logged 'queue 0: more commands than a Connect')" -ge 1 ] || fail "no cause in the log"
}

# Hosts with a controller, and data in their capsules.
hosts_without_receives_keep_no_receives() {
	start use_srq=1 srq_size=256
	keep_receives 6 admin cm,qid=1,hsqsize=127,hrqsize=128,receives=1 connect,qid=1,sqsize=127 \
		write,inline=4096,count=250,nowait
	others_find_receives
}

# stuck_host NUMBER: let a hostile host send writes with data in the capsule to a disk that completes none, more than
# there are receives.
stuck_host() {
	local n steps=()
	for n in {1..8}; do
		steps+=("cm,qid=$n,hsqsize=127,hrqsize=128" "connect,qid=$n,sqsize=127"
			"write,inline=4096,count=127,nowait" "quiet,ms=200")
	done
	"$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" admin "${steps[@]}" stop <&"$PAUSE_FD" >"$SCRATCH/host$1" 2>&1 &
	defer end_process $!
	wait_until $((4 * SOON)) grep -qx stop "$SCRATCH/host$1" || fail "printed $(<"$SCRATCH/host$1")"
}

# The disk of one host is stuck. Hosts of other disks are served.
stuck_disk_keeps_no_receives() {
	local disk=$BACKEND
	{ modprobe -q dm_mod && command -v dmsetup >/dev/null; } || skip "no device mapper"
	start use_srq=1 srq_size=256
	backend_memory stuck 16 512
	run dmsetup create rnvmf_stuck --table "0 32768 linear $BACKEND 0"
	defer dmsetup remove --force rnvmf_stuck
	target_subsystem "$HOSTILE_NQN"
	target_namespace "$HOSTILE_NQN" 1 "/dev/dm-$(dmsetup info -c --noheadings -o minor rnvmf_stuck)"
	target_export 4420 "$HOSTILE_NQN"
	BACKEND=$disk
	connect "$TARGET4"
	run dmsetup suspend --noflush rnvmf_stuck
	defer dmsetup resume rnvmf_stuck
	stuck_host 1
	compare 4096
	disconnect "$CTRL"
	others_find_receives
	run dmsetup resume rnvmf_stuck
}

# As many receives as the device allows, with room in the completion queue.
as_many_as_possible() {
	start use_srq=1 srq_size=32768
	connect "$TARGET4"
	[ "$(shared_queues)" -ge 1 ] || fail "no shared receive queue: $(rdma resource show srq)"
	works
	leave
}

# entries: print the sum of the sizes of all completion queues.
entries() {
	rdma resource show cq | awk '{ for (n = 1; n < NF; n++) if ($n == "cqe") sum += $(n + 1) } END { print sum + 0 }'
}

# The shared receives have an entry each in a completion queue, not in those of all their queues.
many_queues_take_few_entries() {
	local before n steps=()
	start use_srq=1 srq_size=4096
	connect "$TARGET4"
	before=$(entries)
	for n in {1..32}; do
		steps+=("cm,qid=1,hsqsize=1,hrqsize=2")
	done
	"$HOSTILE" "$TARGET4" 4420 "$NQN" "${steps[@]}" stop <&"$PAUSE_FD" >"$SCRATCH/host" 2>&1 &
	defer end_process $!
	wait_until $((4 * SOON)) grep -qx stop "$SCRATCH/host" || fail "printed $(<"$SCRATCH/host")"
	n=$(($(entries) - before))
	# Those of the host are in the sum.
	[ $n -lt $((32 * 4096)) ] || fail "32 queues take $n entries"
	disconnect "$CTRL"
}

# Each port keeps its limit of in-capsule data, whichever had the first connection through the device.
ports_with_different_in_capsule_data() {
	local first
	start use_srq=1 srq_size=256
	target_port 4430 "$TARGET4" 4430
	echo 16384 >"$NVMET/ports/4430/param_inline_data_size"
	target_export 4430 "$NQN"
	OBJECTS=$(rdma_objects)
	for first in 4420 4430; do
		SERVICE=$first connect "$TARGET4"
		compare 4096
		in_capsule 4430 'write 0x000' write,inline=16384,nlb=31
		in_capsule 4420 'write 0x000' write,inline=4096
		in_capsule 4420 'write (0x016|disconnected|broken)' write,inline=8192,nlb=15
		leave
	done
}

# in_capsule PORT OUTCOME COMMAND: send a command on an I/O queue.
in_capsule() {
	run "$HOSTILE" "$TARGET4" "$1" "$NQN" admin io "$3" vanish
	has "$OUTPUT" "^$2$"
}

# An admin queue has none, though its receives are those of I/O queues.
no_in_capsule_data_on_an_admin_queue() {
	start use_srq=1 srq_size=256
	connect "$TARGET4"
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" cm connect,inline=1024 vanish
	has "$OUTPUT" $'\nconnect (0x016|disconnected|broken)$'
	leave
}

too_small() {
	modprobe -r "$TARGET_DRIVER"
	expect 1 modprobe "$TARGET_DRIVER" use_srq=1 srq_size=255
}

main_with_known setup \
	without \
	with \
	driver_without_the_last_receive \
	far_smaller_than_the_load \
	aborted_connections_lose_no_receives \
	broken_connections_lose_no_receives \
	hosts_without_a_controller_keep_no_receives \
	hosts_that_are_not_established_keep_no_receives \
	hosts_without_receives_keep_no_receives \
	stuck_disk_keeps_no_receives \
	as_many_as_possible \
	many_queues_take_few_entries \
	ports_with_different_in_capsule_data \
	no_in_capsule_data_on_an_admin_queue \
	too_small
