#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests I/O at a target that fails it, or violates the protocol in responses, keys, data or receives:
# the host reports the cause, and nothing leaks.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile_host.sh"

# fails COUNT ERROR CAUSE STEP TWIST...: I/O must fail with ERROR after COUNT attempts, with one log
# line for CAUSE. The controller must stay live.
fails() {
	local count=$1 error=$2 cause=$3 lines
	shift 3
	hostile "$@"
	connect_hostile
	lines=$(logged "${CTRL}n1: .* failed: ")
	trap_io "${1#trap-}"
	same status 1 "$STATUS"
	has "$ERRORS" "$error"
	same attempts "$count" "$(count "$1")"
	has "$(kernel_log | grep -F "${CTRL}n1: " | tail -1)" "${CTRL}n1: $cause"
	same "number of failures in the log" $((lines + 1)) "$(logged "${CTRL}n1: .* failed: ")"
	has "$(rnvmf stats "$CTRL" -o json)" "\"retries\":$((count - 1))[,}]"
	same state live "$(ctrl_field "$CTRL" state)"
	leave
}

# dies PATTERN STEP TWIST...: I/O must fail and the controller must be dead, with a message that
# matches.
dies() {
	local pattern=$1
	shift
	hostile "$@"
	connect_hostile
	trap_io "${1#trap-}"
	same status 1 "$STATUS"
	has "$ERRORS" "$LOST"
	is_dead "$pattern"
	gone
}

# A command at which the target disconnects ends after some losses, and the controller is live again.
poison_command_ends() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	hostile trap-write hang-up
	connect_hostile
	trap_io write
	same status 1 "$STATUS"
	has "$ERRORS" "$LOST"
	same "number of commands" 7 "$(count trap-write)"
	comes_back
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# The target may leave invalidation to the host.
leaves_keys_alone() {
	works controller keep
	works read keep
	has "$STATS" '"local_invalidations":[1-9]'
	works write keep
	has "$STATS" '"local_invalidations":[1-9]'
}

failed_io() {
	# Media and other errors with Do Not Retry.
	local read='read of 8 blocks at 8192 failed' write='write of 128 blocks at 8192 failed'
	local once='do not retry, after 0 retries$' again='after 5 retries$'
	fails 1 'No data' "$read: unrecovered read error \(sct 0x2, sc 0x81\), $once" \
		trap-read status 0x4281
	fails 1 'No space' "$write: capacity exceeded \(sct 0x0, sc 0x81\), $once" \
		trap-write status 0x4081
	fails 1 'Input/output error|Remote I/O error' "$read: LBA out of range .*, $once" \
		trap-read status 0x4080
	# Without Do Not Retry.
	fails $ATTEMPTS 'Input/output error' "$read: internal error .*, $again" trap-read status 0x6
	fails $ATTEMPTS 'Input/output error' "$write: internal error .*, $again" trap-write status 0x6
}

# The target may request retry delays after the host has enabled them (ACRE), not before.
retries_are_delayed() {
	local began took
	began=$(now)
	DELAY=10 fails $ATTEMPTS 'Input/output error' 'read of .* failed: internal error' trap-read status 0x0806
	took=$(($(now) - began))
	same "number of Set Features commands" 1 "$(count behavior)"
	note "retries took $took ms"
	within "retries took" $((1000 * (ATTEMPTS - 1))) $took 2000
	# Targets without retry delays, and targets that fail the Set Features, work too.
	works
	! seen '0 behavior' || fail "the host enabled ACRE for a target without retry delays"
	DELAY=10 works behavior status 0x4002
	same "number of failed Set Features commands" 1 "$(count behavior)"
	has "$(kernel_log)" 'Host Behavior Support'
}

# Each of the 5 delays of a read is 1 s, also while other reads fail.
retries_are_not_put_off() {
	local began took others
	DELAY=10 hostile trap-read status 0x0806
	connect_hostile
	touch "$SCRATCH/goes-on"
	fail_again_and_again &
	others=$!
	defer end_process $others
	wait_until "$SOON" grep -q ' trap-read$' "$SCRATCH/seen" || fail "the target received no read"
	began=$(now)
	trap_io read
	took=$(($(now) - began))
	note "the read failed after $took ms"
	within "the read took" 4000 $took 2000
	rm "$SCRATCH/goes-on"
	wait_until 60 process_ended $others || fail "the other reads did not end"
	leave
}

# Start some reads a second, while the file goes-on exists.
fail_again_and_again() {
	while [ -e "$SCRATCH/goes-on" ]; do
		dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/others" &
		sleep 0.3
	done
	wait
}

broken_io() {
	dies 'response to command' trap-read cid 0x0fff
	dies 'response to command' trap-write cid 0x1000
	dies 'response of 15 bytes' trap-read length 15
	dies 'receive failed' trap-write length 17
	# The receive has an earlier response.
	dies 'RDMA WRITE with immediate data' trap-read immediate
	dies 'disconnected' trap-write hang-up
	dies 'failed' trap-read key "$NO_KEY"
	# The target writes to wrong memory and sends no response.
	dies 'QP access error' trap-read move 0x100000
	dies 'QP access error' trap-write steal
}

# A duplicate response to I/O ends the connection.
answers_io_twice() {
	hostile trap-read twice
	connect_hostile
	trap_io read
	is_dead 'response to command|answered twice'
	gone
}

# The target writes the data after the response, when its access has ended.
data_after_the_answer() {
	hostile trap-read late
	connect_hostile
	trap_io read
	is_dead 'QP access error'
	gone
}

# The same when the target leaves invalidation to the host. The host invalidates the key before it
# completes the command.
data_after_the_answer_that_keeps_the_key() {
	hostile trap-read keep-late $((40000 * SLOWDOWN))
	connect_hostile
	trap_io read
	same "status of the read" 0 "$STATUS"
	has "$(rnvmf stats "$CTRL" -o json)" '"local_invalidations":[1-9]'
	# Now the target writes the data.
	kill -USR1 "$TARGET"
	is_dead 'QP access error'
	gone
}

# Discards and Write Zeroes are well-formed; the target checks them.
discards_and_zeroes() {
	hostile controller poke 0x0c 520 2
	connect_hostile
	run blkdiscard "$(disk "$CTRL" 1)"
	run blkdiscard --zeroout --offset 4096 --length 65536 "$(disk "$CTRL" 1)"
	# The namespace deallocates the blocks, which read as zeroes then.
	limit_is write_zeroes_unmap_max_hw_bytes "$(queue_limit "$(disk "$CTRL" 1)" write_zeroes_max_bytes)" ||
		fail "no limit of zeroing with deallocation"
	count discard >"$SCRATCH/count" || fail "the target received no discard"
	count zeroes >"$SCRATCH/count" || fail "the target received no Write Zeroes"
	leave
}

# One block is written atomically; more if the namespace says so (NAWUPF), but not across a boundary.
writes_atomically() {
	hostile
	connect_hostile
	may_write_atomically 512 0
	leave
	hostile namespace poke 2 24 1
	connect_hostile
	may_write_atomically 4096 8192
	leave
}

# may_write_atomically BYTES BOUNDARY: these must be the limits, and RWF_ATOMIC must follow them.
may_write_atomically() {
	limit_is atomic_write_max_bytes "$1" || fail "atomic_write_max_bytes is not $1"
	limit_is atomic_write_unit_max_bytes "$1" || fail "atomic_write_unit_max_bytes is not $1"
	limit_is atomic_write_boundary_bytes "$2" || fail "atomic_write_boundary_bytes is not $2"
	run python3 - "$(disk "$CTRL" 1)" "$1" <<'END'
import errno, mmap, os, sys
RWF_ATOMIC = 0x40
path, size = sys.argv[1], int(sys.argv[2])
disk = os.open(path, os.O_RDWR | os.O_DIRECT)
memory = mmap.mmap(-1, 1 << 20)
assert os.pwritev(disk, [memoryview(memory)[:size]], 0, RWF_ATOMIC) == size
try:
    os.pwritev(disk, [memoryview(memory)[:2 * size]], 0, RWF_ATOMIC)
    sys.exit("no error")
except OSError as error:
    assert error.errno == errno.EINVAL, error
END
}

# start_deaf: start writes to a target that posts no receives again, and wait until the host's
# device gets an RNR NAK. WRITER is the PID.
start_deaf() {
	local refused
	hostile write deaf
	connect_hostile
	# In-capsule data, because soft-RoCE repeats memory registrations when it retransmits.
	refused=$(times_refused)
	dd if=/dev/zero of="$(disk "$CTRL" 1)" bs=4k count=400 oflag=direct 2>"$SCRATCH/writer" &
	WRITER=$!
	defer end_process "$WRITER"
	wait_until 20 was_refused "$refused" ||
		fail "no RNR NAK after $(count write) writes: $(<"$SCRATCH/writer")"
}

# Print how many RNR NAKs the device has received.
times_refused() {
	cat /sys/class/infiniband/rnvmf_rxe0/ports/1/hw_counters/rcvd_rnr_err
}

was_refused() {
	[ "$(times_refused)" -gt "$1" ]
}

# The host waits for a target without posted receives.
waits_for_receives() {
	local status=0
	start_deaf
	! process_ended "$WRITER" || fail "dd exited: $(<"$SCRATCH/writer")"
	kill -USR1 "$TARGET"
	wait_until 20 process_ended "$WRITER" || fail "dd did not exit after $(count write) writes"
	wait "$WRITER" || status=$?
	same "status of dd with output '$(<"$SCRATCH/writer")'" 0 $status
	same writes 400 "$(count write)"
	same state live "$(ctrl_field "$CTRL" state)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# The host waits for receives no longer than for a response.
waits_for_receives_in_vain() {
	local status=0
	start_deaf
	echo 1000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	# The waiting request still has the time-out with which it was started.
	wait_until 35 process_ended "$WRITER" || fail "the write did not end"
	wait "$WRITER" || status=$?
	same status 1 $status
	has "$(<"$SCRATCH/writer")" "$LOST"
	is_dead 'on queue [0-9]+ timed out'
	gone
}

# A response invalidates the key of another command in flight.
invalidates_another_key() {
	local first
	hostile trap-read swap
	connect_hostile
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>/dev/null &
	first=$!
	defer end_process "$first"
	wait_until "$SOON" count trap-read >"$SCRATCH/count" || fail "the target received no read"
	trap_io read
	same status 1 "$STATUS"
	wait_until "$SOON" process_ended "$first" || fail "the first read did not end"
	is_dead 'another request'
	gone
}

main hostile_setup \
	poison_command_ends \
	leaves_keys_alone \
	failed_io \
	retries_are_delayed \
	retries_are_not_put_off \
	broken_io \
	answers_io_twice \
	data_after_the_answer \
	data_after_the_answer_that_keeps_the_key \
	discards_and_zeroes \
	writes_atomically \
	waits_for_receives \
	waits_for_receives_in_vain \
	invalidates_another_key
