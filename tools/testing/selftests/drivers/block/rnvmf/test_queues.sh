#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests write queues and poll queues: which requests use which queue, and that polled I/O ends in
# each case.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/unpolled.sh"

# One queue of each kind. Without keep-alive the host sends no commands of its own, and only I/O
# detects a loss.
KINDS=(-i 1 -W 1 -P 1)
CONNECT_OPTIONS=(-k 0 -c 1 --timeout $((5 * SLOWDOWN)))

POLLED=(--ioengine=io_uring --hipri=1)

# Trace event of polled completions.
COMPLETIONS=rdma_core/cq_poll

setup() {
	modprobe rnvmf
}

single() {
	network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

# queues_are ALL WRITE POLLED: check the numbers of queues in `rnvmf show`, sysfs and blk-mq.
queues_are() {
	same "queues for writes" "$2" "$(ctrl_number nr_write_queues)"
	same "polled queues" "$3" "$(ctrl_number nr_poll_queues)"
	same "all queues" "$1" "$(($(<"/sys/class/rnvmf/$CTRL/queue_count") - 1))"
	same "queues for writes in sysfs" "$2" "$(<"/sys/class/rnvmf/$CTRL/nr_write_queues")"
	same "polled queues in sysfs" "$3" "$(<"/sys/class/rnvmf/$CTRL/nr_poll_queues")"
	# While their number changes, there are fewer.
	wait_until "$SOON" has_hardware_queues "$1" || fail "$(hardware_queues) hardware queues, expected $1"
}

hardware_queues() {
	local queues=("/sys/block/${CTRL}n1/mq/"*)
	echo ${#queues[@]}
}

has_hardware_queues() {
	[ "$(hardware_queues)" = "$1" ]
}

# Print the numbers of the host's completion queues in ascending order; the first is the admin
# queue's.
host_cqs() {
	rdma resource show cq | grep -F '[rnvmf]' | sed 's/.* cqn \([0-9]*\) .*/\1/' | sort -n
}

# only_by QUEUE COMMAND...: the command's completions must all be in this I/O queue.
only_by() {
	local queue=$1 cqns qid found
	shift
	trace_start $COMPLETIONS
	echo 'rc > 0' >"$TRACE/events/$COMPLETIONS/filter"
	"$@"
	mapfile -t cqns < <(host_cqs)
	same "completion queues" 4 ${#cqns[@]}
	for qid in 1 2 3; do
		found=$(traced "cq.id=${cqns[qid]} .*returned [1-9]")
		if [ $qid = "$queue" ]; then
			[ "$found" -ge 20 ] || fail "$found polls with completions on queue $qid, expected 20 or more"
		else
			same "number of polls with completions on queue $qid" 0 "$found"
		fi
	done
}

each_kind_of_io_has_its_queue() {
	local disk
	single
	connect "$TARGET4" "${KINDS[@]}"
	partitions_are_read
	queues_are 3 1 1
	run rnvmf show "$CTRL"
	has "$OUTPUT" 'I/O queues +3, 1 for writes, 1 polled'
	disk=$(disk "$CTRL" 1)
	only_by 1 run dd if=/dev/zero of="$disk" bs=16k count=100 oflag=direct
	only_by 2 run dd if="$disk" of=/dev/null bs=16k count=100 iflag=direct
	only_by 3 verify "$disk" "${POLLED[@]}" --rw=randrw --bs=4k-64k --size=2m --iodepth=8
}

# CPUs share the queues of each kind, and there are at most as many of a kind as CPUs.
as_many_as_processors() {
	local cpus
	cpus=$(nproc)
	single
	connect "$TARGET4" -P 1
	queues_are $((cpus + 1)) 0 1
	disconnect "$CTRL"
	connect "$TARGET4" -i 9 -W 9 -P 9
	queues_are $((3 * cpus)) "$cpus" "$cpus"
	verify "$(disk "$CTRL" 1)" "${POLLED[@]}" --rw=randwrite --bs=16k --size=1m --iodepth=4 \
		--numjobs=4 --offset_increment=1m
}

# start_polled [SIZE]: like `start_verify`, with polled I/O. Each job writes SIZE, by default 6m.
start_polled() {
	VERIFY_OPTIONS=("${POLLED[@]}" "--io_size=${1:-6m}" --numjobs=2 --offset_increment=6m)
	start_verify
}

comes_back_under_polled_io() {
	# fio polls while writes are held: for three times the keep-alive timeout, or 30 s without one.
	CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)
	start_pair
	connect "$TARGET4" "${KINDS[@]}"
	start_polled
	run "${RNVMF[@]}" reset "$CTRL"
	port_goes
	loses
	port_is_back
	comes_back
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	loses
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	is_verified
}

fails_when_polled_io_is_given_up() {
	CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 -l 1)
	start_pair
	connect "$TARGET4" "${KINDS[@]}"
	start_polled 200m
	silence
	io_fails
	is_dead 'timed out after|does not answer|no response|stopped by the RDMA device'
}

disconnect_under_polled_io() {
	local began took
	start_pair
	connect "$TARGET4" "${KINDS[@]}"
	start_polled 200m
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	LOST=$REMOVED io_fails
	at_most "the disconnect took" $took 1000
}

# The target grants fewer queues and then more; no I/O in flight is lost. Polled I/O is refused
# while there is no poll queue.
queues_follow_what_is_granted() {
	start_pair
	connect "$TARGET4" "${KINDS[@]}"
	VERIFY_OPTIONS=(--numjobs=2 --io_size=8m --offset_increment=8m)
	start_verify
	grants 2
	queues_are 2 1 0
	expect 1 fio --name=poll "--filename=$(disk "$CTRL" 1)" --direct=1 "${POLLED[@]}" --size=64k
	has "$ERRORS$OUTPUT" 'Operation not supported'
	grants 1
	queues_are 1 0 0
	grants 3
	queues_are 3 1 1
	is_verified
	verify "$(disk "$CTRL" 1)" "${POLLED[@]}" --rw=randwrite --bs=16k --size=1m
}

# grants COUNT: let the target grant COUNT queues. The write makes it delete its controllers, so the
# host reconnects.
grants() {
	echo "$1" >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_hardware_queues "$1" ||
		fail "the disk has $(hardware_queues) hardware queues, expected $1"
	comes_back
}

nothing_in_flight() {
	[ "$(tr -d ' \n' <"/sys/block/${CTRL}n1/inflight")" = 00 ]
}

# The time-out handler polls the queue before it takes the command for lost.
timeout_polls_first() {
	single
	connect "$TARGET4" "${KINDS[@]}"
	# The target answers within this time.
	echo $((500 * SLOWDOWN)) >"/sys/block/${CTRL}n1/queue/io_timeout"
	start_unpolled "$(disk "$CTRL" 1)"
	wait_until "$SOON" nothing_in_flight || fail "the time-out handler did not complete the read"
	polls 4096
	[[ $(kernel_log) != *" on queue "*" timed out"* ]] || fail "the command timed out: $(kernel_log)"
}

disconnect_does_not_wait_for_who_polls() {
	local began took
	single
	connect "$TARGET4" "${KINDS[@]}"
	start_unpolled "$(disk "$CTRL" 1)"
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	at_most "the disconnect took" $took 1000
	polls 4096
}

wrong_numbers_are_refused() {
	single
	for option in -W -P; do
		for number in 0 -1 65536 x; do
			expect 2 rnvmf connect -a "$TARGET4" -n "$NQN" $option $number
		done
	done
}

main setup \
	each_kind_of_io_has_its_queue \
	as_many_as_processors \
	comes_back_under_polled_io \
	fails_when_polled_io_is_given_up \
	disconnect_under_polled_io \
	queues_follow_what_is_granted \
	timeout_polls_first \
	disconnect_does_not_wait_for_who_polls \
	wrong_numbers_are_refused
