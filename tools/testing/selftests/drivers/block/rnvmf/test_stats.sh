#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the statistics of queues: exact counts for known I/O, and counts kept over a reset.

. "$(dirname "$0")/lib.sh"

# Without keep-alive, so that only the tests send commands.
CONNECT_OPTIONS=(-k 0)

NAMES=(reads writes flushes others read_bytes written_bytes errors retries in_capsule registrations
	remote_invalidations local_invalidations doorbells work_requests completions polls)

# Counters by queue and name, from the last call of `look` and the one before.
declare -A NOW BEFORE

setup() {
	modprobe rnvmf && network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

look() {
	local rest qid number key
	BEFORE=()
	for key in "${!NOW[@]}"; do
		BEFORE[$key]=${NOW[$key]}
	done
	run "${RNVMF[@]}" stats "$CTRL" -o json
	NOW=()
	rest=$OUTPUT
	while [[ $rest =~ \"qid\":([0-9]+),([^}]*)\}(.*) ]]; do
		qid=${BASH_REMATCH[1]} rest=${BASH_REMATCH[3]}
		for number in ${BASH_REMATCH[2]//[\",]/ }; do
			case $number in
			:[0-9]*) NOW[$qid.$key]=${number#:} ;;
			:*) break ;; # Latencies follow; they are not numbers.
			*) key=$number ;;
			esac
		done
	done
	[ ${#NOW[@]} -gt 0 ] || fail "no queues in: $OUTPUT"
}

# connect_idle ADDRESS [OPTION...]: like `connect`; then only the test's commands are counted.
connect_idle() {
	connect "$@"
	partitions_are_read
}

# difference QUEUE NAME: print by how much the counter grew between the last two calls of `look`.
difference() {
	echo $((${NOW[$1.$2]} - ${BEFORE[$1.$2]:-0}))
}

# does QUEUE COMMAND... -- NAME=COUNT...: run a command; the queue's counters must grow by exactly
# these, the others by 0. The counter polls depends on timing and is checked for plausibility.
does() {
	local queue=$1 name command=() polls
	local -A wanted=()
	shift
	while [ "$1" != -- ]; do
		command+=("$1")
		shift
	done
	shift
	for name; do
		wanted[${name%=*}]=${name#*=}
	done
	look
	run "${command[@]}"
	look
	for name in "${NAMES[@]}"; do
		[ "$name" = polls ] ||
			same "$name of ${command[*]}" "${wanted[$name]:-0}" "$(difference "$queue" "$name")"
	done
	polls=$(difference "$queue" polls)
	((polls >= 1 && polls <= wanted[completions])) ||
		fail "$polls polls for ${wanted[completions]} completions"
}

# Each command needs one ib_post_send(). Its send and its response are two completions.
exact_for_known_io() {
	local disk size
	connect_idle "$TARGET4" -i 1
	disk=$(disk "$CTRL" 1)
	size=$(ctrl_field "$CTRL" inline_size)
	does 1 dd if=/dev/zero of="$disk" bs="$size" count=32 oflag=direct -- \
		writes=32 written_bytes=$((32 * size)) in_capsule=32 doorbells=32 work_requests=32 \
		completions=64
	does 1 dd if=/dev/zero of="$disk" bs=128k count=16 oflag=direct -- \
		writes=16 written_bytes=$((16 << 17)) registrations=16 remote_invalidations=16 \
		doorbells=16 work_requests=32 completions=32
	does 1 dd if="$disk" of=/dev/null bs=4k count=48 iflag=direct -- \
		reads=48 read_bytes=$((48 << 12)) registrations=48 remote_invalidations=48 \
		doorbells=48 work_requests=96 completions=96
	does 1 nvme flush "$disk" -- flushes=1 doorbells=1 work_requests=1 completions=2
	does 1 blkdiscard --force --zeroout --length 64k "$disk" -- others=1 doorbells=1 work_requests=1 \
		completions=2
}

# With many commands in flight the counts for each command stay the same. `make bench` measures the
# cost.
exact_at_any_depth() {
	local disk fio=(fio --name=load --bs=4k --io_size=1m --size=16m --direct=1 --norandommap
		--ioengine=libaio --output-format=terse --output="$SCRATCH/fio")
	connect_idle "$TARGET4" -i 1
	disk=$(disk "$CTRL" 1)
	# Without these settings adjacent requests could be merged, and a scheduler could batch
	# requests.
	echo 2 >"/sys/block/${disk##*/}/queue/nomerges"
	echo none >"/sys/block/${disk##*/}/queue/scheduler"
	does 1 "${fio[@]}" --filename="$disk" --rw=randread --iodepth=32 -- \
		reads=256 read_bytes=$((1 << 20)) registrations=256 remote_invalidations=256 \
		doorbells=256 work_requests=512 completions=512
	does 1 "${fio[@]}" --filename="$disk" --rw=randwrite --iodepth=32 -- \
		writes=256 written_bytes=$((1 << 20)) in_capsule=256 doorbells=256 work_requests=256 \
		completions=512
}

# allocates yes|no COMMAND...: check whether rnvmf and rrdma allocate memory while the command runs.
allocates() {
	local whether=$1 event found=
	shift
	callers_clear "${ALLOCATIONS[@]}"
	run "$@"
	for event in "${ALLOCATIONS[@]}"; do
		callers "$event" >"$SCRATCH/callers"
		! grep -qE '^dropped ' "$SCRATCH/callers" || fail "the histogram of $event dropped events"
		found+=$(sed -nE "s#^(rnvmf|rrdma) #$event &#p" "$SCRATCH/callers")
	done
	case $whether in
	no) same "allocations of $*" '' "$found" ;;
	*) [ -n "$found" ] || fail "no allocation of $* was counted" ;;
	esac
}

reads_and_writes_allocate_nothing() {
	local disk
	connect_idle "$TARGET4" -i 1
	disk=$(disk "$CTRL" 1)
	callers_start "${ALLOCATIONS[@]}"
	defer callers_end "${ALLOCATIONS[@]}"
	# A discard allocates its list of ranges. This proves that allocations are counted.
	allocates yes blkdiscard --force --length 64k "$disk"
	allocates no dd if=/dev/zero of="$disk" bs=4k count=64 oflag=direct
	allocates no dd if=/dev/zero of="$disk" bs=16k count=64 oflag=direct
	allocates no dd if="$disk" of=/dev/null bs=16k count=64 iflag=direct
}

# Requests that a process submits together are posted together, with an I/O scheduler too.
posted_together() {
	local disk scheduler posts
	connect_idle "$TARGET4" -i 1
	disk=$(disk "$CTRL" 1)
	echo 2 >"/sys/block/${disk##*/}/queue/nomerges"
	for scheduler in none mq-deadline; do
		echo $scheduler >"/sys/block/${disk##*/}/queue/scheduler" ||
			fail "cannot set the I/O scheduler $scheduler"
		look
		run fio --name=load --filename="$disk" --rw=randread --bs=4k --io_size=1m --size=16m \
			--direct=1 --norandommap --ioengine=libaio --iodepth=32 \
			--iodepth_batch_submit=16 --iodepth_batch_complete_min=16
		look
		same "reads with scheduler $scheduler" 256 "$(difference 1 reads)"
		same "work requests with scheduler $scheduler" 512 "$(difference 1 work_requests)"
		posts=$(difference 1 doorbells)
		((posts >= 256 / 32 && posts < 256 / 4)) ||
			fail "$posts posts for 256 reads with scheduler $scheduler, expected 8 to 63"
	done
}

# Admin commands are counted as others.
admin_commands_are_others() {
	connect_idle "$TARGET4" -i 1
	does 0 nvme id-ctrl "$(disk "$CTRL" 1)" -- others=1 registrations=1 remote_invalidations=1 \
		doorbells=1 work_requests=2 completions=2
}

errors_move_no_bytes() {
	connect_idle "$TARGET4" -i 1
	does 1 sh -c '! nvme read '"$(disk "$CTRL" 1)"' -s 999999 -c 0 -z 512' -- reads=1 errors=1 \
		registrations=1 remote_invalidations=1 doorbells=1 work_requests=2 completions=2
}

queues_add_up() {
	local name queues
	connect_idle "$TARGET4" -i 2
	run fio --name=both --filename="$(disk "$CTRL" 1)" --rw=randrw --bs=4k --size=1m --direct=1 \
		--numjobs=2 --cpus_allowed=0-1 --cpus_allowed_policy=split
	look
	for name in "${NAMES[@]}"; do
		[[ $OUTPUT =~ \"id\":[0-9]+,.*\"$name\":([0-9]+),.*\"queues\" ]] ||
			fail "no $name in: $OUTPUT"
		queues=$((NOW[0.$name] + NOW[1.$name] + NOW[2.$name]))
		same "$name of the controller" "$queues" "${BASH_REMATCH[1]}"
	done
	for queue in 1 2; do
		((NOW[$queue.reads] > 0 && NOW[$queue.writes] > 0)) ||
			fail "queue $queue had no reads or no writes: $OUTPUT"
	done
	run "${RNVMF[@]}" stats
	has "$OUTPUT" "^DEVICE +READS .*
$CTRL +"
	run "${RNVMF[@]}" stats "$CTRL" --queues
	same "rows" 4 "$(wc -l <<<"$OUTPUT")"
}

kept_over_a_reset() {
	local i key reads
	connect_idle "$TARGET4" -i 1
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=16 iflag=direct
	look
	reads=${NOW[1.reads]}
	"${RNVMF[@]}" reset "$CTRL" >"$SCRATCH/reset" 2>&1 &
	RESET=$!
	defer end_process $RESET
	for ((i = 0; i < 100; i++)); do
		look
		for key in "${!BEFORE[@]}"; do
			[ "${NOW[$key]}" -ge "${BEFORE[$key]}" ] ||
				fail "counter $key decreased from ${BEFORE[$key]} to ${NOW[$key]}"
		done
		! process_ended $RESET || break
	done
	wait $RESET || fail "the reset failed: $(<"$SCRATCH/reset")"
	# Each Connect command is counted as others, so the queue has two.
	does 1 dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=16 iflag=direct -- \
		reads=16 read_bytes=$((16 << 12)) registrations=16 remote_invalidations=16 \
		doorbells=16 work_requests=32 completions=32
	same "reads in all" $((reads + 16)) "${NOW[1.reads]}"
	same others 2 "${NOW[1.others]}"
}

# times_of FIELD: print the number of measured latencies, the sum over the histogram.
times_of() {
	local sum=0 rest
	run "${RNVMF[@]}" stats "$CTRL" -o json
	[[ $OUTPUT =~ \"$1\":\[([^]]*)\] ]] || fail "no $1 in: $OUTPUT"
	rest=${BASH_REMATCH[1]}
	while [[ $rest =~ \"count\":([0-9]+)(.*) ]]; do
		sum=$((sum + BASH_REMATCH[1]))
		rest=${BASH_REMATCH[2]}
	done
	echo $sum
}

times_are_of_every_command() {
	local disk
	connect_idle "$TARGET4" -i 2
	disk=$(disk "$CTRL" 1)
	run dd if="$disk" of=/dev/null bs=4k count=8 iflag=direct
	same "number of latencies by default" 0 "$(times_of read_latency)"
	run "${RNVMF[@]}" stats "$CTRL" --latency on
	same output "$CTRL: latency on" "$OUTPUT"
	run dd if="$disk" of=/dev/null bs=4k count=100 iflag=direct
	run dd if=/dev/zero of="$disk" bs=128k count=20 oflag=direct
	# The measurement stays on over a reset.
	run "${RNVMF[@]}" reset "$CTRL"
	run dd if="$disk" of=/dev/null bs=4k count=23 iflag=direct
	run "${RNVMF[@]}" stats "$CTRL" --latency off
	run dd if="$disk" of=/dev/null bs=4k count=8 iflag=direct
	same "number of read latencies" 123 "$(times_of read_latency)"
	same "number of write latencies" 20 "$(times_of write_latency)"
	run "${RNVMF[@]}" stats "$CTRL" --histogram
	has "$OUTPUT" "^$CTRL reads: 123, p50 < [0-9.]+ [um]s, p99 < [0-9.]+ [um]s, p99.9 < .*, max < "
	has "$OUTPUT" "
  < [0-9.]+ [um]s +[0-9]+ +#"
	has "$OUTPUT" "
$CTRL writes: 20, "
}

watch_prints_rates() {
	connect_idle "$TARGET4" -i 1
	"${RNVMF[@]}" stats "$CTRL" --queues --watch >"$SCRATCH/watch" 2>&1 &
	WATCH=$!
	defer end_process $WATCH
	fio --name=reads --filename="$(disk "$CTRL" 1)" --rw=randread --bs=4k --direct=1 \
		--time_based --runtime=60 >/dev/null 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until "$SOON" grep -Eqs "^$CTRL +1 +[1-9][0-9]* +0 " "$SCRATCH/watch" ||
		fail "no rates printed: $(<"$SCRATCH/watch")"
	has "$(<"$SCRATCH/watch")" '^DEVICE +QUEUE +READS/S +WRITES/S '
	kill -INT $WATCH
	wait $WATCH || fail "stats --watch exited with status $?"
	end_process $IO
}

wrong_ways_to_ask() {
	connect_idle "$TARGET4" -i 1
	expect 3 "${RNVMF[@]}" stats rnvmf77
	has "$ERRORS" 'no controller rnvmf77'
	expect 2 "${RNVMF[@]}" stats "$CTRL" --watch 0
	expect 2 "${RNVMF[@]}" stats "$CTRL" other
	expect 2 "${RNVMF[@]}" stats --latency on
	expect 3 "${RNVMF[@]}" stats rnvmf77 --latency on
	disconnect "$CTRL"
	run "${RNVMF[@]}" stats
	same "output without controllers" '' "$OUTPUT"
}

main setup \
	exact_for_known_io \
	exact_at_any_depth \
	reads_and_writes_allocate_nothing \
	posted_together \
	admin_commands_are_others \
	errors_move_no_bytes \
	queues_add_up \
	kept_over_a_reset \
	times_are_of_every_command \
	watch_prints_rates \
	wrong_ways_to_ask
