#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a hostile host that goes away, or does nothing, in each state of a connection, and one that
# sends more than the queue holds. The target must free everything, and serve others.

. "$(dirname "$0")/lib.sh"
check_after_each

# A write and a read of 1 MiB: the host leaves while the target transfers the data.
LARGE=len=0x100000,nlb=2047,slba=4096

# leaves STEP...: the hostile host does these steps, which must print nothing but that connections were
# accepted, or are quiet, and leaves.
leaves() {
	local line
	hostile "$@"
	while read -r line; do
		has "$line" '^(|cm accepted crqsize [0-9]+|quiet (silent|broken|disconnected))$'
	done <<<"$OUTPUT"
}

after_accept() {
	leaves cm bye
	leaves cm vanish
	leaves cm,qid=1 vanish
	leaves cm break vanish
}

after_connect() {
	answers 'cm accepted crqsize 32
connect 0x000' cm connect vanish
	leaves admin vanish
	leaves admin io vanish
	leaves admin io io,qid=2 io,qid=3 vanish
	leaves admin io use,queue=0 bye use,queue=1 bye
	leaves admin io bye use,queue=0 bye
}

# The connect command is in flight.
during_connect() {
	leaves cm connect,nowait vanish
	leaves cm connect,nowait break vanish
	leaves cm connect,nowait bye
}

with_commands_in_flight() {
	leaves admin io read,count=32,nowait vanish
	leaves admin io write,count=32,nowait vanish
	leaves admin io write,inline=4096,count=32,nowait vanish
	leaves admin event,count=4,nowait vanish
	leaves admin io flush,count=32,nowait bye
}

during_transfers() {
	leaves admin io "write,$LARGE,count=16,nowait" vanish
	leaves admin io "read,$LARGE,count=16,nowait" vanish
	leaves admin io "write,$LARGE,count=16,nowait" break vanish
	leaves admin io "read,$LARGE,count=16,nowait" break quiet,ms=200 vanish
	leaves admin io "write,$LARGE,count=16,nowait" "read,$LARGE,count=16,nowait" bye
}

without_ready_to_use() {
	leaves cm,no-rtu vanish
	leaves cm,no-rtu bye
	leaves cm,no-rtu,qid=1 vanish
	leaves cm,no-rtu break vanish
}

# The first message stands for RTU, if the device reports it (IB_EVENT_COMM_EST): soft-RoCE does not.
commands_instead_of_ready_to_use() {
	answers 'cm accepted crqsize 32
quiet (0x000|silent)' cm,no-rtu connect,nowait quiet,ms=2000 bye
	leaves cm,no-rtu connect,nowait vanish
	leaves cm,no-rtu connect,count=8,cid=1,nowait break vanish
}

# The target has no queue pair with this number.
unknown_queue_pair() {
	leaves cm,dest=0xabcdef connect,nowait quiet,ms=500 vanish
	leaves cm,dest=1 connect,nowait quiet,ms=500 bye
}

# A host sends no command before its Connect is answered. The target keeps two of them until the connection is
# established, so that few are executed by the thread that accepts it.
commands_before_established() {
	log_has_room
	answers 'cm accepted crqsize 32
quiet (silent|disconnected|broken)' cm,no-rtu connect,nowait quiet,ms=500 bye
	answers 'cm accepted crqsize 32
quiet (disconnected|broken)' cm,no-rtu connect,count=8,nowait quiet,ms=5000 bye
	same "lines in the log" 1 "$(logged 'queue 0: more commands than a Connect')"
}

# A command beside the Connect is executed after it. nvmet sets the controller of a queue before its identifier, and
# would take a command of an I/O queue for an admin command in between.
commands_beside_a_connect() {
	answers 'cm accepted crqsize 32
wait 0x000 times 2' cm connect,hold get,nowait wait,count=2 bye
}

# namespace_is_disabled SECONDS: disable the namespace of the hostile host in this time, and enable it again.
namespace_is_disabled() {
	local enable=$NVMET/subsystems/$HOSTILE_NQN/namespaces/1/enable
	(
		echo 0 >"$enable"
		: >"$SCRATCH/disabled"
	) &
	wait_until "$1" test -e "$SCRATCH/disabled" ||
		fail "the host keeps the namespace, which is being disabled for $1 s"
	echo 1 >"$enable"
}

# lets_go SECONDS STEP...: the hostile host does these steps with its I/O queue, and keeps its controller alive. The
# namespace must be disabled in this time nevertheless.
lets_go() {
	local host limit=$1
	shift
	"$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" admin,kato=5000 "$@" quiet,ms=500 use,queue=0 alive,seconds=1 \
		alive,seconds=100000 >"$SCRATCH/host" 2>&1 &
	host=$!
	defer end_process $host
	wait_until "$SOON" grep -qx 'alive 1' "$SCRATCH/host" || fail "printed $(<"$SCRATCH/host")"
	namespace_is_disabled "$limit"
	kill -0 $host || fail "the host has ended: $(<"$SCRATCH/host")"
	end_process $host
}

# soft-RoCE repeats an RDMA READ for ever, as the retry count of 7 asks for. The target's own limit is 30 to 40 s. A
# host that answers stays.
namespace_of_unanswered_reads() {
	connect "$TARGET4"
	lets_go 45 cm,qid=1,retry=7,ack-timeout=31 connect,qid=1 "write,$LARGE,count=16,nowait" quiet,ms=30 break
	same "lines in the log" 1 "$(logged 'queue 1: RDMA READ not answered in 30000 ms')"
	compare 65536
	same "lost connections" 0 "$(logged "$CTRL: (.*starting error recovery|Reconnecting in )")"
	disconnect "$CTRL"
}

# The queue pair ends by itself, with a time-out of the target's: the host asks for 2.4 hours.
namespace_of_reads_with_a_long_time_out() {
	lets_go 25 cm,qid=1,retry=3,ack-timeout=31 connect,qid=1 "write,$LARGE,count=16,nowait" quiet,ms=30 break
	same "lines in the log" 0 "$(logged 'RDMA READ not answered in')"
}

# The host has one receive. Few reads are executed, and the others wait for credits. They keep no namespace.
namespace_of_responses_that_are_not_taken() {
	lets_go 5 cm,qid=1,receives=1,retry=7 connect,qid=1 "read,$LARGE,count=32,nowait"
}

admin_queue_first() {
	answers 'quiet (silent|disconnected|broken)
read (0x...|disconnected|broken)' admin io use,queue=0 bye use,queue=1 quiet,ms=500 read
}

# All are served, because the sender is told to wait, or the connection ends.
more_commands_than_places() {
	answers 'cm accepted crqsize 8
connect 0x000
read (0x000 times 128|disconnected|broken)' admin cm,qid=1,hsqsize=7,hrqsize=8 connect,qid=1,sqsize=7 \
		read,count=128
	answers 'cm accepted crqsize 2
connect 0x000
write (0x000 times 64|disconnected|broken)' admin cm,qid=1,hsqsize=1,hrqsize=2 \
		connect,qid=1,sqsize=1 write,count=64
	answers 'get (0x000 times 200|disconnected|broken)' admin get,count=200
}

more_large_commands_than_places() {
	answers 'cm accepted crqsize 4
connect 0x000
read (0x000 times 32|disconnected|broken)' admin cm,qid=1,hsqsize=3,hrqsize=4 connect,qid=1,sqsize=3 \
		"read,$LARGE,count=32"
	answers 'cm accepted crqsize 4
connect 0x000
write (0x000 times 32|disconnected|broken)' admin cm,qid=1,hsqsize=3,hrqsize=4 \
		connect,qid=1,sqsize=3 "write,$LARGE,count=32"
}

# nvmet ends the bio of a Zone Append after the response, which frees the request. So the bio must not be in the
# request, whose size is less than 512 bytes. Long lists never have it there.
bios_of_zone_appends() {
	local inline
	backend_memory zoned 16 512 zoned=1 zone_size=4
	target_namespace "$HOSTILE_NQN" 2 "$BACKEND"
	# shellcheck disable=SC2016 # $arg1 is of the kernel
	printf 'p:rnvmf/%s at=$arg1\n' 'done nvmet_bdev_zone_append_bio_done' 'complete nvmet_req_complete' \
		>>/sys/kernel/tracing/kprobe_events || fail "cannot create the probes"
	defer eval "printf -- '-:rnvmf/%s\n' done complete >>/sys/kernel/tracing/kprobe_events"
	trace_start rnvmf
	answers 'write 0x000
write 0x000
write 0x000 times 8
write 0x000' admin io fill write,op=0x7d,nsid=2,slba=0 write,op=0x7d,nsid=2,slba=0,inline=4096 \
		write,op=0x7d,nsid=2,slba=0,count=8 write,op=0x7d,nsid=2,slba=0,len=0x10000,nlb=127
	inline=$(zone_append_bios)
	same "number of Zone Appends" 11 "$(wc -l <<<"$inline")"
	same "bios in the request" '' "$(grep -x inline <<<"$inline" || true)"
	head -c $((10 * 4096 + 0x10000)) /dev/zero | tr '\0' '\245' >"$SCRATCH/wrote"
	# Not through the page cache, which nvmet does not write to.
	run dd if="$BACKEND" of="$SCRATCH/read" bs=4096 count=26 iflag=direct
	cmp "$SCRATCH/wrote" "$SCRATCH/read" || fail "other data in the zone"
}

# zone_append_bios: print for each completed Zone Append whether its bio is `inline`, or `own`.
zone_append_bios() {
	local task event address
	declare -A bios
	while read -r task event address; do
		case $event in
		done:) bios[$task]=$address ;;
		*)
			[ -n "${bios[$task]:-}" ] || continue
			((bios[$task] - address > 0 && bios[$task] - address < 512)) && echo inline || echo own
			unset "bios[$task]"
			;;
		esac
	done < <(awk '/^#/ { next } / (done|complete): / { print $1, $5, substr($NF, 4) }' "$TRACE/trace")
}

# The host vanishes while a block device has a Zone Append of it. A bio in the memory of the request would be used
# after the response, which cannot be sent. On a kernel with KASAN, freed memory shows.
during_zone_append() {
	local _
	backend_memory zoned 16 512 zoned=1 zone_size=4 irqmode=2 completion_nsec=1000000000
	target_namespace "$HOSTILE_NQN" 2 "$BACKEND"
	answers 'write 0x000' admin io write,op=0x7d,nsid=2,slba=0
	for _ in 1 2 3; do
		answers 'quiet silent' admin io write,op=0x7d,nsid=2,slba=0,nowait quiet,ms=300 vanish
		answers 'quiet silent' admin io write,op=0x7d,nsid=2,slba=0,inline=4096,nowait quiet,ms=300 vanish
	done
	rdma_back_to "$OBJECTS"
}

many_idle_connections() {
	leaves cm cm cm cm cm cm cm cm cm,qid=1 cm,qid=2 cm,no-rtu cm,no-rtu vanish
}

# Hosts that come and go without a pause.
again_and_again() {
	local _
	for _ in {1..10}; do
		leaves cm vanish
		leaves admin io "write,$LARGE,count=4,nowait" vanish
	done
}

main_with_known hostile_setup \
	after_accept \
	after_connect \
	during_connect \
	with_commands_in_flight \
	during_transfers \
	without_ready_to_use \
	commands_instead_of_ready_to_use \
	commands_before_established \
	commands_beside_a_connect \
	namespace_of_unanswered_reads \
	namespace_of_reads_with_a_long_time_out \
	namespace_of_responses_that_are_not_taken \
	unknown_queue_pair \
	admin_queue_first \
	more_commands_than_places \
	more_large_commands_than_places \
	bios_of_zone_appends \
	during_zone_append \
	many_idle_connections \
	again_and_again
