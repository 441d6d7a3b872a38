#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the tracepoints: exact events for known I/O, several tracers, and unloading while traced.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

HOSTILE_SERVICE=$SERVICE
SERVICE=4420

QUEUE=rnvmf/rnvmf_queue_command
COMPLETE=rnvmf/rnvmf_complete_command
STATE=rnvmf/rnvmf_controller_state
CM=rnvmf/rnvmf_cm_event

# Without keep-alive, so that only the tests send commands.
CONNECT_OPTIONS=(-i 1 -k 0)

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build &&
		backend_memory disk 64 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

# connect_disk: connect and set DISK to the path of the disk.
connect_disk() {
	connect "$TARGET4" "$@"
	partitions_are_read
	DISK=$(disk "$CTRL" 1)
}

# recorded COUNT PATTERN: exactly COUNT recorded events must match.
recorded() {
	local found
	found=$(traced "$2")
	[ "$found" = "$1" ] ||
		fail "$found events, expected $1, match '$2' in: $(grep -v '^#' "$TRACE/trace" | tail -40)"
}

# event EVENT TEXT: print a pattern for the event with exactly this text.
event() {
	printf ' %s: %s$' "${1#*/}" "$2"
}

# all_ended: each command must be queued and completed equally often. The order is not checked,
# because clocks of different CPUs may disagree.
all_ended() {
	run awk '
		match($0, /rnvmf_(queue|complete)_command: rnvmf-?[0-9]+:/) {
			what = substr($0, RSTART, RLENGTH)
			match($0, /qid=[0-9]+, cmdid=[0-9]+/)
			key = substr($0, RSTART, RLENGTH)
			what ~ /queue/ ? queued[key]++ : ended[key]++
			keys[key]
		}
		END {
			for (key in keys)
				if (queued[key] != ended[key])
					print key, queued[key] + 0, ended[key] + 0
		}' "$TRACE/trace"
	same "list of commands without completion" '' "$OUTPUT"
}

known_io() {
	local of_disk
	connect_disk
	of_disk="$CTRL: disk=${CTRL}n1, qid=1, cmdid=[0-9]+"
	trace_start $QUEUE $COMPLETE
	run dd if="$DISK" of=/dev/null bs=4k count=16 skip=8 iflag=direct
	run dd if=/dev/zero of="$DISK" bs=128k count=4 oflag=direct
	run nvme flush "$DISK"
	run nvme id-ctrl "$DISK"
	recorded 16 "$(event $QUEUE "$of_disk, nsid=1, flags=0x40, bytes=4096, cmd=\(nvme_cmd_read slba=[0-9]+, blocks=8, cdw10=.*\)")"
	recorded 1 ' slba=64, blocks=8, cdw10=40 00 00 00 00 00 00 00 07 00 00 00 '
	recorded 1 ' slba=184, blocks=8, '
	recorded 4 "$(event $QUEUE "$of_disk, nsid=1, flags=0x40, bytes=131072, cmd=\(nvme_cmd_write slba=(0|256|512|768), blocks=256, cdw10=.*\)")"
	recorded 1 "$(event $QUEUE "$of_disk, nsid=1, flags=0x40, bytes=0, cmd=\(nvme_cmd_flush slba=0, blocks=0, cdw10=(00 ?){24}\)")"
	recorded 1 "$(event $QUEUE "$CTRL: disk=, qid=0, cmdid=[0-9]+, nsid=0, flags=0x40, bytes=4096, cmd=\(nvme_admin_identify slba=0, blocks=0, cdw10=01 .*\)")"
	recorded 22 " rnvmf_queue_command: "
	recorded 21 "$(event $COMPLETE "$of_disk, opcode=0x[012], res=0x?0, retries=0, status=0x?0")"
	recorded 1 "$(event $COMPLETE "$CTRL: disk=, qid=0, cmdid=[0-9]+, opcode=0x6, res=0x?0, retries=0, status=0x?0")"
	recorded 22 " rnvmf_complete_command: "
	all_ended
}

filters() {
	local events
	connect_disk
	trace_start $QUEUE $COMPLETE
	events=$TRACE/events
	echo "disk == \"${CTRL}n1\" && opcode == 1 && bytes > 65536" >"$events/$QUEUE/filter"
	echo "disk == \"${CTRL}n1\" && status != 0" >"$events/$COMPLETE/filter"
	run dd if=/dev/zero of="$DISK" bs=4k count=3 oflag=direct
	run dd if=/dev/zero of="$DISK" bs=128k count=2 oflag=direct
	expect 1 nvme read "$DISK" -s 999999 -c 0 -z 512
	run nvme id-ctrl "$DISK"
	recorded 2 " rnvmf_queue_command: .*nvme_cmd_write "
	recorded 2 " rnvmf_queue_command: "
	# LBA Out of Range with Do Not Retry.
	recorded 1 " rnvmf_complete_command: $CTRL: disk=${CTRL}n1, .*opcode=0x2, .* status=0x[4-7][0-9a-f]{3}\$"
	recorded 1 " rnvmf_complete_command: "
}

# attempts COUNT PATTERN: the trapped read must be sent COUNT times, with completions that match.
attempts() {
	recorded "$1" 'cmd=\(nvme_cmd_read slba=8192,'
	recorded "$1" " rnvmf_complete_command: $CTRL: disk=${CTRL}n1, $2"
	all_ended
}

trapped_read() {
	dd if="$DISK" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/dd"
}

retries() {
	local retries
	SERVICE=$HOSTILE_SERVICE
	# Internal Error without Do Not Retry, so the host retries.
	hostile trap-read status 0x0006
	connect_disk
	trace_start $QUEUE $COMPLETE
	! trapped_read || fail "the read succeeded"
	attempts 6 '.* status=0x6$'
	for retries in {0..5}; do
		recorded 1 "retries=$retries, status=0x6\$"
	done
	disconnect "$CTRL"
	gone
}

read_is_queued() {
	[ "$(traced 'nvme_cmd_read slba=8192,')" = 1 ]
}

# The target ends without a response to the read.
ends_without_response() {
	local reader
	SERVICE=$HOSTILE_SERVICE
	hostile trap-read silent
	connect_disk --ctrl-loss-tmo 0
	trace_start $QUEUE $COMPLETE $STATE
	trapped_read || true &
	reader=$!
	defer end_process $reader
	wait_until "$SOON" read_is_queued || fail "no trace event of the read"
	end_process "$TARGET"
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL did not detect the connection loss"
	wait_until "$SOON" process_ended $reader || fail "the read did not end"
	attempts 1 '.*opcode=0x2, res=0x?0, retries=0, status=0x371$'
	recorded 1 "$(event $STATE "$CTRL: from=live, to=resetting, error=-67, reason=.+")"
	recorded 1 "$(event $STATE "$CTRL: from=resetting, to=dead, error=-67, reason=.+")"
	disconnect "$CTRL"
	gone
}

# changes TEXT...: exactly these state changes must be recorded, in this order.
changes() {
	local wanted
	printf -v wanted '%s\n' "$@"
	run sed -n 's/.* rnvmf_controller_state: //p' "$TRACE/trace"
	same "list of state changes" "${wanted%$'\n'}" "$OUTPUT"
}

states() {
	trace_start $STATE
	connect_disk
	run "${RNVMF[@]}" reset "$CTRL"
	disconnect "$CTRL"
	changes "$CTRL: from=new, to=connecting, error=0, reason=" \
		"$CTRL: from=connecting, to=live, error=0, reason=" \
		"$CTRL: from=live, to=resetting, error=0, reason=" \
		"$CTRL: from=resetting, to=connecting, error=0, reason=" \
		"$CTRL: from=connecting, to=live, error=0, reason=" \
		"$CTRL: from=live, to=deleting, error=0, reason="
	trace_clear
	expect 1 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN.wrong" -q "$HOSTNQN"
	recorded 1 "from=connecting, to=dead, error=-111, reason=rejected by target: no such subsystem $NQN.wrong\$"
}

# told QID EVENT STATUS: this CM event must be recorded once.
told() {
	recorded 1 "$(event $CM "${CTRL}: qid=$1, event=$2, status=$3")"
}

connection_manager() {
	local qid
	trace_start $CM
	connect_disk
	for qid in 0 1; do
		told $qid ADDR_RESOLVED 0
		told $qid ROUTE_RESOLVED 0
		told $qid ESTABLISHED 0
	done
	recorded 6 ' rnvmf_cm_event: '
	# The target disconnects: the host learns it by the event of one of the queues.
	port_goes
	loses
	trace_has "$(event $CM "${CTRL}: qid=[01], event=DISCONNECTED, status=0")"
	port_is_back
	disconnect "$CTRL"
	trace_clear
	# No listener on this port: IB_CM_REJ_INVALID_SERVICE_ID (8).
	expect 1 "${RNVMF[@]}" connect -a "$TARGET4" -s 4499 -n "$NQN"
	recorded 1 "$(event $CM 'rnvmf[0-9]+: qid=0, event=REJECTED, status=8')"
	trace_clear
	run "${RNVMF[@]}" discover -a "$TARGET4" -q "$HOSTNQN"
	recorded 1 "$(event $CM 'rnvmf-1: qid=0, event=ESTABLISHED, status=0')"
	recorded 0 'rnvmf[0-9]+: qid='
}

# The program of Documentation/tracing.rst.
LATENCY='
tracepoint:rnvmf:rnvmf_queue_command { @start[args.ctrl_id, args.qid, args.cid] = nsecs; }
tracepoint:rnvmf:rnvmf_complete_command /@start[args.ctrl_id, args.qid, args.cid]/ {
	@us[args.disk, args.opcode] =
		hist((nsecs - @start[args.ctrl_id, args.qid, args.cid]) / 1000);
	delete(@start, (args.ctrl_id, args.qid, args.cid));
}'

bpftrace_is_ready() {
	grep -qx ready "$SCRATCH/bpftrace"
}

# A tracer that uses perf_event_open() also holds a reference on the module.
bpftrace_measures() {
	local tracer count
	command -v bpftrace >"$SCRATCH/path" || skip "program bpftrace not found"
	[ -e /sys/kernel/btf/vmlinux ] || skip "the kernel has no BTF"
	connect_disk
	bpftrace -B line -e "$LATENCY BEGIN { printf(\"ready\\n\"); } END { clear(@start); }" \
		>"$SCRATCH/bpftrace" 2>&1 &
	tracer=$!
	defer end_process $tracer
	wait_until 60 bpftrace_is_ready || fail "bpftrace did not start: $(<"$SCRATCH/bpftrace")"
	run dd if="$DISK" of=/dev/null bs=4k count=20 iflag=direct
	disconnect "$CTRL"
	expect 1 rmmod rnvmf
	has "$ERRORS" 'in use'
	kill -INT $tracer
	wait_until "$SOON" process_ended $tracer || fail "bpftrace did not exit"
	count=$(awk -v "disk=${CTRL}n1" '/^@us/ { mine = index($0, "[" disk ", 2]") }
		mine && match($0, /^\[[^)]*\) +[0-9]+/) { split($0, part, ")"); sum += part[2] }
		END { print sum + 0 }' "$SCRATCH/bpftrace")
	[ "$count" = 20 ] || fail "$count reads, expected 20, in: $(<"$SCRATCH/bpftrace")"
}

# perf formats the events itself, from their format files.
perf_records() {
	command -v perf >"$SCRATCH/path" || skip "program perf not found"
	connect_disk
	run perf record -a -q -o "$SCRATCH/perf.data" -e 'rnvmf:*' -- \
		dd if="$DISK" of=/dev/null bs=4k count=20 iflag=direct
	run perf script -i "$SCRATCH/perf.data"
	same "number of reads in perf" 20 "$(grep -cE "rnvmf:rnvmf_queue_command: $CTRL: disk=${CTRL}n1, qid=1, .*cmd=\(nvme_cmd_read slba=[0-9]+, blocks=8, " <<<"$OUTPUT")"
	same "number of completions in perf" 20 "$(grep -cE "rnvmf:rnvmf_complete_command: $CTRL: disk=${CTRL}n1, .* status=0" <<<"$OUTPUT")"
	run perf stat -a -x , -o "$SCRATCH/perf.stat" -e rnvmf:rnvmf_complete_command -- \
		dd if="$DISK" of=/dev/null bs=4k count=30 iflag=direct
	has "$(<"$SCRATCH/perf.stat")" '30,,rnvmf:rnvmf_complete_command'
}

unloaded_while_traced() {
	trace_start rnvmf
	connect_disk
	run dd if="$DISK" of=/dev/null bs=4k count=1 iflag=direct
	run rmmod rnvmf
	defer modprobe rnvmf
	[ ! -e "$TRACE/events/rnvmf" ] || fail "trace events of the unloaded module remain"
	run modprobe rnvmf
	same "enable after the module is loaded again" 0 "$(<"$TRACE/events/rnvmf/enable")"
	trace_start $QUEUE
	connect_disk
	trace_clear
	run dd if="$DISK" of=/dev/null bs=4k count=1 iflag=direct
	recorded 1 'nvme_cmd_read slba=0, blocks=8,'
}

# Format files must not contain names of C enumerators, which programs such as perf cannot resolve.
formats_are_complete() {
	local event name
	for event in $QUEUE $COMPLETE $STATE $CM; do
		run awk 'match($0, /(\{ *|== )[A-Za-z_]+/) { print substr($0, RSTART, RLENGTH) }' \
			"/sys/kernel/tracing/events/$event/format"
		same "list of names in the format of $event" '' "$OUTPUT"
	done
}

main setup \
	formats_are_complete \
	known_io \
	filters \
	retries \
	ends_without_response \
	states \
	connection_manager \
	bpftrace_measures \
	perf_records \
	unloaded_while_traced
