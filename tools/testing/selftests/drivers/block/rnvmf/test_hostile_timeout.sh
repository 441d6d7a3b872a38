#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests time limits at a target that does not answer, or again and again asks for a retry: each connect
# and each command ends, and nothing leaks.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile_host.sh"

# With Traffic Based Keep Alive (CTRATT.TBKAS), commands that end do not show that commands are sent:
# they may have been sent long before. With few commands the host therefore sends keep-alives.
few_commands_do_not_keep_alive() {
	hostile controller poke 0x40 96 4
	connect "$TARGET4" --timeout $((5 * SLOWDOWN)) -k $((4 * SLOWDOWN))
	wait_until "$SOON" is_kept_alive || fail "no Keep Alive command"
	leave
}

# Whether the target has received a Keep Alive command. Reads a block.
is_kept_alive() {
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
	[ "$(count keep-alive)" -ge 2 ]
}

# Connection requests beyond the listener's backlog are dropped, those within it are not answered:
# all connects must time out.
more_requests_than_there_is_room_for() {
	local pids=() pid status
	hostile
	kill -STOP "$TARGET"
	for _ in {1..10}; do
		timeout -k 5 "$COMMAND_SECONDS" rnvmf connect -D -a "$TARGET4" -s "$SERVICE" -n "$NQN" \
			--timeout $((3 * SLOWDOWN)) >>"$SCRATCH/connects" 2>&1 &
		pids+=($!)
		defer end_process $!
	done
	for pid in "${pids[@]}"; do
		status=0
		wait "$pid" || status=$?
		same "status ($(<"$SCRATCH/connects"))" 5 $status
	done
	kill -KILL "$TARGET"
	gone
}

silences() {
	local step
	refused 5 connect 'timed out after' request silent
	for step in connect capabilities connect-io; do
		refused 5 '[a-z-]+' 'no response|become ready' $step silent
	done
	refused 5 identify 'no response from the target in [^;]*; smaller packets arrived: check the MTU' controller silent
}

no_keep_alive() {
	# The connect must take less than the keep-alive timeout: after half of it, the first command is answered.
	AFTER=1 hostile keep-alive silent
	connect "$TARGET4" --timeout $((5 * SLOWDOWN)) -k $((5 * SLOWDOWN))
	is_dead 'keep-alive'
	gone
}

# A Keep Alive during the connect must not extend the connect time-out, after which the program
# gives up.
no_keep_alive_while_it_connects() {
	SLOW=$((2600 * SLOWDOWN)) hostile keep-alive silent
	expect 5 rnvmf connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" -i 1 \
		--timeout $((10 * SLOWDOWN)) -k $((10 * SLOWDOWN)) -o json
	has "$ERRORS" '"stage":"keep-alive"'
	same "number of Keep Alive commands" 1 "$(count keep-alive)"
	gone
}

# The target ends each connection when it receives a certain read, which the host retries on the
# next one. Connections that drop early count as one loss: delays grow and ctrl_loss_tmo applies.
hangs_up_again_and_again() {
	# Less than the read's retries take.
	local CONNECT_OPTIONS=(--ctrl-loss-tmo 10)
	hostile trap-read hang-up
	connect_hostile
	start_reader
	wait_until 12 process_ended "$READER" || fail "the read did not end after $(count trap-read) attempts"
	has "$(<"$SCRATCH/reader")" "$LOST"
	# The last attempt may begin shortly before ctrl_loss_tmo expires, and has only that time.
	is_dead 'disconnected|timed out after [0-9]+ m?s|no response|not sent'
	# The delays are 0.25, 0.5, 1, 2, ... up to 10 s, or a quarter less.
	[ "$(count trap-read)" -le 8 ] || fail "$(count trap-read) attempts, expected at most 8"
	gone
}

# A request without a response is retried on each new connection, but not endlessly.
never_answers_io_again_and_again() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) reader
	hostile trap-read silent
	connect_hostile
	echo 1000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/reader" &
	reader=$!
	defer end_process "$reader"
	wait_until 25 process_ended "$reader" ||
		fail "the read did not end after $(count trap-read) attempts"
	has "$(<"$SCRATCH/reader")" "$LOST"
	same attempts $ATTEMPTS "$(count trap-read)"
	comes_back
	leave
}

# A retry delay that the target requests is limited. A disconnect or a loss of the target ends it
# early.
wants_io_again_much_later() {
	local DELAY=0xffff
	export DELAY
	hostile trap-read status 0x1821
	connect_hostile
	start_reader
	wait_until 12 sent_again || fail "the read is not retried"
	AT_ONCE=2000 disconnects_at_once
	reader_ends
	gone
	hostile trap-read status 0x1821
	connect_hostile
	start_reader
	end_process "$TARGET"
	is_dead 'disconnected'
	reader_ends
	gone
}

# start_reader: start a read of the block for trap-read, and wait until the target receives it.
# READER is its PID.
start_reader() {
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/reader" &
	READER=$!
	defer end_process "$READER"
	wait_until "$SOON" count trap-read >"$SCRATCH/count" || fail "the target received no read"
}

sent_again() {
	[ "$(count trap-read)" -ge 2 ]
}

reader_ends() {
	wait_until 1 process_ended "$READER" || fail "the read did not end"
}

never_answers_io() {
	hostile trap-read silent
	connect_hostile
	echo 1000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	trap_io read
	same status 1 "$STATUS"
	is_dead 'on queue [0-9]+ timed out'
	gone
}

# A disconnect does not wait for a read that the target never answers, whatever the time-out of the disk is.
disconnect_does_not_wait_for_a_read() {
	local io_timeout
	for io_timeout in 30000 4294967295; do
		hostile trap-read silent
		connect_hostile
		echo $io_timeout >"/sys/block/${CTRL}n1/queue/io_timeout"
		start_reader
		timed_disconnect "$CTRL"
		at_most "the disconnect took, with an io_timeout of $io_timeout ms," "$TOOK" 3000
		reader_ends
		gone
	done
}

# start_frozen_disk: a Format, which needs exclusive access to the disk, waits for a read that the target never
# answers. FORMAT is its PID.
start_frozen_disk() {
	hostile trap-read silent
	connect_hostile
	echo 3600000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	start_reader
	nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1 >"$SCRATCH/format" 2>&1 &
	FORMAT=$!
	defer end_process $FORMAT
	wait_until "$SOON" freezes $FORMAT || fail "the Format does not wait: $(<"$SCRATCH/format")"
}

# The same while a command with exclusive access waits for the read, and removal waits for the command.
disconnect_does_not_wait_for_a_frozen_disk() {
	start_frozen_disk
	timed_disconnect "$CTRL"
	at_most "the disconnect took" "$TOOK" 3000
	reader_ends
	wait_until "$SOON" process_ended "$FORMAT" || fail "the Format did not end"
	gone
}

# Removal waits for a command with exclusive access, which waits for a read that the target never answers. The
# target is silent: the controller's thread may wait for the response to a Keep Alive.
removal_waits_for_a_silent_target() {
	local CONNECT_OPTIONS=(-k $((10 * SLOWDOWN)))
	start_frozen_disk
	kill -STOP "$TARGET"
	timed_disconnect "$CTRL"
	kill -CONT "$TARGET"
	at_most "the disconnect took" "$TOOK" 3000
	reader_ends
	wait_until "$SOON" process_ended "$FORMAT" || fail "the Format did not end"
	gone
}

# A stopped target answers neither commands nor a disconnect.
stops() {
	hostile
	connect "$TARGET4" --timeout $((5 * SLOWDOWN)) -k 0
	kill -STOP "$TARGET"
	timed_disconnect "$CTRL"
	kill -CONT "$TARGET"
	at_most "the disconnect took" "$TOOK" 1000
	gone
}

# The target acknowledges the shutdown, but answers no read of its status.
answers_no_status_of_a_shutdown() {
	# The status is read once while the controller is enabled.
	AFTER=1 hostile status silent
	connect_hostile
	timed_disconnect "$CTRL"
	at_most "the disconnect took" "$TOOK" 3000
	same "reads of the status" 2 "$(count status)"
	gone
}

main hostile_setup \
	few_commands_do_not_keep_alive \
	more_requests_than_there_is_room_for \
	silences \
	no_keep_alive \
	no_keep_alive_while_it_connects \
	never_answers_io \
	never_answers_io_again_and_again \
	hangs_up_again_and_again \
	wants_io_again_much_later \
	disconnect_does_not_wait_for_a_read \
	disconnect_does_not_wait_for_a_frozen_disk \
	removal_waits_for_a_silent_target \
	stops \
	answers_no_status_of_a_shutdown
