#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests writes that were in flight at a connection loss. The target ignores or ends the old connection,
# and executes its write late, unless its keep-alive timer and its Command Quiesce Time have expired.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# Keep-alive timeout and Command Quiesce Time in seconds. The host detects the loss after 1.5 times
# the former, and reconnects within the latter.
KEEP_ALIVE=$((2 * SLOWDOWN))
QUIESCE=$((4 * SLOWDOWN))
# Where the target keeps a write, in units of 64 KiB.
TRAP=64

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

# put old|new: write this data to the disk.
put() {
	head -c 65536 /dev/zero | tr '\0' "${1:0:1}" >"$SCRATCH/$1"
	dd if="$SCRATCH/$1" of="$(disk "$CTRL" 1)" bs=64k seek=$TRAP oflag=direct conv=notrunc 2>"$SCRATCH/errors"
}

# loses_a_write TWIST MS OPTION...: lose the connection while the old data is written, then write the new
# data, and read it back to $SCRATCH/read. The target ends the connection as TWIST says, and the old association
# after MS. The connect options are those given. FAILED says whether the first write failed.
loses_a_write() {
	hostile trap-write "$1" "$2"
	shift 2
	FAILED=no
	SERVICE=4477 connect "$TARGET4" -k $KEEP_ALIVE --reconnect-delay 1 "$@"
	if ! put old; then
		has "$(<"$SCRATCH/errors")" "$LOST"
		FAILED=yes
		wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
		# An upper layer that writes again, as on another path.
		put old || fail "$(<"$SCRATCH/errors")"
	fi
	put new || fail "$(<"$SCRATCH/errors")"
	run dd if="$(disk "$CTRL" 1)" of="$SCRATCH/read" bs=64k skip=$TRAP count=1 iflag=direct
	disconnect "$CTRL"
	end_process "$TARGET"
}

# The write is sent again only when the target has ended the old association.
is_held() {
	loses_a_write outlive $(((KEEP_ALIVE + QUIESCE) * 1000)) --cqt $QUIESCE
	same "the write failed" no $FAILED
	seen '- ended' || fail "the write was sent again before the old association had ended"
	cmp "$SCRATCH/read" "$SCRATCH/new" || fail "the data is stale"
}

# The target may round the keep-alive timeout up to its granularity.
is_held_for_a_coarse_timer() {
	local coarse=$((10 * KEEP_ALIVE))
	GRANULARITY=$((coarse * 10)) loses_a_write outlive $(((coarse + QUIESCE) * 1000)) --cqt $QUIESCE
	same "the write failed" no $FAILED
	seen '- ended' || fail "the write was sent again before the old association had ended"
	cmp "$SCRATCH/read" "$SCRATCH/new" || fail "the data is stale"
}

# A target that has ended the connections may still execute commands, for its Command Quiesce Time.
is_held_after_a_disconnect() {
	loses_a_write outlive-end $((QUIESCE * 1000)) --cqt $QUIESCE
	same "the write failed" no $FAILED
	seen '- ended' || fail "the write was sent again before the old association had ended"
	cmp "$SCRATCH/read" "$SCRATCH/new" || fail "the data is stale"
}

# The controller is live again before the write is sent, and reads go on.
is_shown() {
	local writer
	hostile trap-write outlive $(((KEEP_ALIVE + QUIESCE) * 1000))
	SERVICE=4477 connect "$TARGET4" -k $KEEP_ALIVE --reconnect-delay 1 --cqt $QUIESCE
	(put old || exit 1) &
	writer=$!
	loses
	comes_back
	run "${RNVMF[@]}" show "$CTRL"
	has "$OUTPUT" 'held writes +1, for [0-9]+ s: the target may still execute them'
	same held 1 "$(ctrl_field "$CTRL" held_writes)"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
	wait $writer || fail "$(<"$SCRATCH/errors")"
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT != *'held writes'* ]] || fail "a write is still shown as held: $OUTPUT"
	disconnect "$CTRL"
	end_process "$TARGET"
}

# Without the hold the test sees the stale data.
is_not_held() {
	loses_a_write outlive $(((KEEP_ALIVE + QUIESCE) * 1000)) --cqt 0
	same "the write failed" no $FAILED
	seen '- landed' || fail "the target did not execute the old write"
	cmp "$SCRATCH/read" "$SCRATCH/old" || fail "the data is not stale"
}

# To fail I/O at once gives the guarantee up: the upper layer sends the write again.
fails_at_once() {
	loses_a_write outlive $(((KEEP_ALIVE + QUIESCE) * 1000)) --cqt $QUIESCE --fast-io-fail-tmo 0
	same "the write failed" yes $FAILED
	seen '- landed' || fail "the target did not execute the old write"
	cmp "$SCRATCH/read" "$SCRATCH/old" || fail "the data is not stale"
}

# The loss of a later connection, which the target acknowledges, does not end the hold. A disconnect
# without a connection does: the write fails.
ends_with_the_controller() {
	local writer status=0
	hostile trap-write outlive 60000
	SERVICE=4477 connect "$TARGET4" -k $KEEP_ALIVE --reconnect-delay 1 --cqt 50
	(put old || exit 1) &
	writer=$!
	loses
	comes_back
	end_process "$TARGET"
	loses
	hostile
	comes_back
	same held 1 "$(ctrl_field "$CTRL" held_writes)"
	end_process "$TARGET"
	loses
	timed_disconnect "$CTRL"
	at_most "the disconnect took" "$TOOK" 1000
	wait $writer || status=$?
	same "status of the writer" 1 $status
	has "$(<"$SCRATCH/errors")" "$LOST"
}

# The hold of a write ends in time during a reconnect attempt, which the target does not answer.
ends_during_an_attempt() {
	local writer held_ms began took status=0
	hostile trap-write outlive 60000
	SERVICE=4477 connect "$TARGET4" -k $KEEP_ALIVE --reconnect-delay 1 --fast-io-fail-tmo 1 \
		--timeout $((30 * SLOWDOWN))
	(put old || exit 1) &
	writer=$!
	wait_until "$SOON" count trap-write >"$SCRATCH/count" || fail "the target received no write"
	kill -STOP "$TARGET"
	wait_until 30 holds_writes >"$SCRATCH/held" || fail "no write is held"
	began=$(now)
	held_ms=$(holds_writes)
	wait_until 60 process_ended $writer || fail "the writer did not end"
	took=$(($(now) - began))
	kill -CONT "$TARGET"
	note "the write failed $took ms after the loss, and was held for $held_ms ms"
	wait $writer || status=$?
	same "status of the writer" 1 $status
	has "$(<"$SCRATCH/errors")" "$LOST"
	at_most "the write failed after" $took $((held_ms + 500))
	disconnect "$CTRL"
	end_process "$TARGET"
}

# holds_writes: print for how many milliseconds the kernel holds writes. Fails if it has not logged that.
holds_writes() {
	dmesg | sed -n "s/.*$CTRL: holding in-flight writes for \\([0-9]*\\) ms.*/\\1/p" | tail -n 1 | grep .
}

main setup \
	is_held \
	is_held_for_a_coarse_timer \
	is_held_after_a_disconnect \
	is_shown \
	is_not_held \
	fails_at_once \
	ends_during_an_attempt \
	ends_with_the_controller
