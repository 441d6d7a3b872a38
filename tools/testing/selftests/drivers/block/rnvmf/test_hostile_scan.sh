#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests scans of namespaces that are slow, or cannot be listed or identified for a time: the host scans
# again, disks stay, and nothing leaks. A loss or a disconnect ends a scan.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile_host.sh"

# A namespace that the target lists a moment after it accepts the connection keeps its disk. One that is
# not listed in two scans loses it.
lists_its_namespaces_late() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile
	connect_hostile
	first=$(disk_number)
	FIRST=1 goes_and_is_back list poke 0 0 4
	same "number of scans" 2 "$(count list)"
	compare "$(disk "$CTRL" 1)" 65536
	same disk "$first" "$(disk_number)"
	goes_and_is_back list poke 0 0 4
	wait_until "$SOON" no_disks || fail "the disk of a namespace that is gone remains"
	# A disk that is gone already needs no second scan.
	same "number of scans" 2 "$(count list)"
	leave
}

# If a namespace cannot be identified temporarily, the reconnect fails, and the disk stays.
cannot_tell_for_a_moment() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first step
	hostile
	connect_hostile
	first=$(disk_number)
	for step in namespace descriptors; do
		end_process "$TARGET"
		loses
		hostile $step status 0x6
		wait_until "$SOON" says 'namespace 1: .*internal error' ||
			fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
		end_process "$TARGET"
		hostile
		comes_back
		same disk "$first" "$(disk_number)"
	done
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# A disk that is being removed, but is kept by a reader of debugfs, does not matter for a reconnect: its
# namespace need not be identified. Its removal is notified when it is complete.
cannot_tell_of_what_is_lost() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) process asked file
	NAMESPACES=2 hostile
	connect_hostile
	file=/sys/kernel/debug/block/${CTRL}n2/hctx0/tags
	[ -e "$file" ] || mount -t debugfs none /sys/kernel/debug 2>/dev/null
	[ -e "$file" ] || skip "the block layer has no debugfs"
	start_monitor
	mkfifo "$SCRATCH/come"
	python3 "$HERE/ioctls.py" keeping "$file" <"$SCRATCH/come" >"$SCRATCH/keeping" 2>&1 &
	process=$!
	defer end_process $process
	exec {asked}>"$SCRATCH/come"
	wait_until "$SOON" grep -qs '^keeping$' "$SCRATCH/keeping" ||
		fail "no page fault: $(<"$SCRATCH/keeping")"
	NAMESPACES=2 OTHER=2 goes_and_is_back
	wait_until "$SOON" logged_once "$CTRL: namespace 2 changed its identifiers" ||
		fail "the changed identifiers are not in the log"
	NAMESPACES=2 OTHER=2 AFTER=1 goes_and_is_back namespace status 0x6
	compare "$(disk "$CTRL" 1)" 65536
	! grep "^ns-del" "$SCRATCH/events" >&2 || fail "ns-del before the disk was removed"
	echo come >&"$asked"
	exec {asked}>&-
	wait "$process" || fail "$(<"$SCRATCH/keeping")"
	wait_until "$SOON" grep -q "^ns-del ${CTRL}n2 nsid 2 " "$SCRATCH/events" ||
		fail "no ns-del after the disk was removed"
	kill -USR1 "$TARGET"
	wait_until "$SOON" no_refusals || fail "namespace 2 is still rejected"
	compare "$(disk "$CTRL" 2)" 65536
	leave
}

logged_once() {
	[ "$(logged "$1")" = 1 ]
}

# A failed scan is repeated, with growing delays.
looks_again_by_itself() {
	AFTER=1 hostile list status 0x6
	connect_hostile
	expect 1 "${RNVMF[@]}" rescan "$CTRL"
	has "$ERRORS" 'internal error'
	wait_until "$SOON" has_listed 6 || fail "only $(count list) scans"
	# The next delay is more than 3 s.
	kill -USR1 "$TARGET"
	wait_until "$SOON" has_listed 7 || fail "no scan after the target recovered"
	sleep 2
	same "number of scans" 7 "$(count list)"
	same state live "$(ctrl_field "$CTRL" state)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# A new namespace that cannot be identified gets its disk later, without a rescan by the user.
new_disks_come_by_themselves() {
	NAMESPACES=2 AFTER=1 hostile namespace status 0x6
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 2: .*internal error"
	comes_by_itself
	leave
	# With Do Not Retry there is no further scan.
	NAMESPACES=2 AFTER=1 hostile namespace status 0x4006
	connect_hostile
	sleep 2
	same "number of scans" 1 "$(count list)"
	leave
	# A disconnect does not wait for the next scan.
	NAMESPACES=2 AFTER=1 hostile namespace status 0x6
	connect_hostile
	wait_until "$SOON" has_listed 3 || fail "only $(count list) scans, expected 3"
	leave
}

# A namespace that is not ready (NSTAT.NRDY) gets its disk when it is.
not_ready_for_a_moment() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	NAMESPACES=2 VERSION=0x20000 AFTER=1 hostile independent poke 0 14 1
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 2: .*not ready"
	comes_by_itself
	# A disk that exists stays.
	first=$(disk_number)
	VERSION=0x20000 goes_and_is_back independent poke 0 14 1
	same disk "$first" "$(disk_number)"
	leave
}

new_disks_come_by_themselves_after_a_loss() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	hostile
	connect_hostile
	NAMESPACES=2 AFTER=1 goes_and_is_back namespace status 0x6
	comes_by_itself
	leave
}

# comes_by_itself: the second namespace must get its disk once the target can identify it.
comes_by_itself() {
	same refusals 1 "$(ctrl_field "$CTRL" nr_refused_namespaces)"
	[ ! -e "/dev/${CTRL}n2" ] || fail "a namespace that cannot be identified has a disk"
	kill -USR1 "$TARGET"
	wait_until "$SOON" test -b "/dev/${CTRL}n2" ||
		fail "no disk after $(count list) scans: $(ctrl_field "$CTRL" reason)"
	compare "$(disk "$CTRL" 2)" 65536
	wait_until "$SOON" no_refusals || fail "namespace 2 is still rejected"
	same state live "$(ctrl_field "$CTRL" state)"
	compare "$(disk "$CTRL" 1)" 65536
}

no_refusals() {
	[ "$(ctrl_field "$CTRL" nr_refused_namespaces)" = 0 ]
}

# A rescan during a running scan reports the result of the next scan, not that of the running one.
asked_for_during_a_look() {
	SLOW=2000 AFTER=1 FIRST=2 hostile list status 0x6
	connect "$TARGET4" --timeout $((30 * SLOWDOWN))
	expect 1 "${RNVMF[@]}" rescan "$CTRL"
	wait_until "$SOON" has_listed 3 || fail "only $(count list) scans, expected 3 before the rescan"
	# The target fails the running scan, but no later one.
	run "${RNVMF[@]}" rescan "$CTRL"
	[ "$(count list)" -ge 4 ] || fail "$(count list) scans, expected at least 4"
	! on_time || same "number of scans" 4 "$(count list)"
	leave
}

# Removing many disks takes longer than the keep-alive interval. After it the disconnect must not
# wait for the response to the Keep Alive.
stops_while_disks_go() {
	local disconnect began took
	NAMESPACES=80 hostile
	connect "$TARGET4" -k $((4 * SLOWDOWN)) --timeout $((60 * SLOWDOWN))
	kill -STOP "$TARGET"
	rnvmf disconnect -d "$CTRL" >"$SCRATCH/disconnect" 2>&1 &
	disconnect=$!
	defer end_process $disconnect
	wait_until 60 no_disks || fail "disks remain"
	began=$(now)
	wait_until 60 process_ended $disconnect || fail "the disconnect did not exit"
	took=$(($(now) - began))
	kill -CONT "$TARGET"
	wait $disconnect || fail "the disconnect failed: $(<"$SCRATCH/disconnect")"
	note "the disconnect ended $took ms after the removal of the last disk"
	at_most "the disconnect ended after the removal of the last disk, after" $took 1000
	gone
}

# If the controller dies during a scan, its disks must not stay frozen: a command with exclusive
# submission fails at once.
alone_with_the_dead() {
	local scan
	# Without an effects log the host sends no command before.
	SLOW=1000 hostile controller poke 0 261 1
	connect "$TARGET4" --timeout $((30 * SLOWDOWN))
	rnvmf rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	scan=$!
	defer end_process $scan
	wait_until "$SOON" has_listed 2 || fail "the namespaces are not scanned"
	end_process "$TARGET"
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	try timeout $((2 * SLOWDOWN)) nvme admin-passthru "/dev/${CTRL}n1" --opcode=0x80 -n 1
	has "$OUTPUT$ERRORS" 'Host Path|HOST_PATH|0x370'
	leave
}

# A disconnect during the first scan of very many namespaces stops adding disks.
goes_while_disks_come() {
	local connect before made
	NAMESPACES=250 hostile
	start_monitor
	"${RNVMF[@]}" connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" --timeout 600 \
		>"$SCRATCH/connect" 2>&1 &
	connect=$!
	defer end_process $connect
	wait_until 60 test -b /dev/rnvmf0n3 || fail "no disks are added: $(<"$SCRATCH/connect")"
	before=(/sys/block/rnvmf0n*)
	echo 1 >/sys/class/rnvmf/rnvmf0/delete_controller
	wait_until "$SOON" process_ended $connect || fail "the connect did not exit"
	wait_until "$SOON" grep -q '^ctrl-del rnvmf0' "$SCRATCH/events" || fail "the controller is not removed"
	made=$(grep -c '^ns-add' "$SCRATCH/events")
	note "${#before[@]} disks before the disconnect, $made at its end"
	# Up to eight disks are added at a time.
	[ "$made" -lt $((${#before[@]} + 16 * SLOWDOWN)) ] || fail "disks were added in spite of the disconnect"
	gone
}

# Each namespace has the time limit for itself: all together take much longer.
slow_for_each_namespace() {
	local count=$((8 * SLOWDOWN))
	NAMESPACES=$count SLOW=250 hostile
	connect "$TARGET4" --timeout $((4 * SLOWDOWN))
	same "namespaces" $count "$(ctrl_number nr_namespaces)"
	run rnvmf reset "$CTRL"
	same "namespaces" $count "$(ctrl_number nr_namespaces)"
	connected_anew 1 0
}

# Each command of the scan has the time limit for itself, too. The program waits as long.
slow_for_each_command() {
	VERSION=0x20000 SLOW=$((4500 * SLOWDOWN)) hostile
	connect "$TARGET4" --timeout $((6 * SLOWDOWN))
	leave
}

# A reset holds I/O until all namespaces are identified, but not longer than fast_io_fail_tmo.
slow_namespaces_hold_no_io_for_long() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	NAMESPACES=$((8 * SLOWDOWN)) SLOW=250 hostile
	connect "$TARGET4" --timeout "$SLOWDOWN" --fast_io_fail_tmo "$SLOWDOWN"
	try rnvmf reset "$CTRL"
	same "failed resets" 1 "$(logged "$CTRL: reset failed: ")"
	comes_back
	connected_anew 0 1
	same "expired limits" 1 "$(logged "$CTRL: fast_io_fail_tmo expired: failing I/O")"
}

# A Keep Alive that the target refuses during the scan of a reconnect says nothing of the next namespace.
keep_alives_refused_in_a_scan() {
	local CONNECT_OPTIONS=(--reconnect-delay 1 -k $((4 * SLOWDOWN))) disks
	export NAMESPACES=8
	hostile
	connect_hostile
	disks=$(cat /sys/block/"$CTRL"n*/diskseq)
	end_process "$TARGET"
	loses
	SLOW=$((400 * SLOWDOWN)) hostile keep-alive status 0x4001
	wait_until "$SOON" was_refused_twice || fail "$(count keep-alive) Keep Alive commands, expected 2"
	end_process "$TARGET"
	hostile
	comes_back
	same disks "$disks" "$(cat /sys/block/"$CTRL"n*/diskseq)"
	leave
}

was_refused_twice() {
	[ "$(count keep-alive)" -ge 2 ]
}

main hostile_setup \
	keep_alives_refused_in_a_scan \
	slow_for_each_namespace \
	slow_for_each_command \
	slow_namespaces_hold_no_io_for_long \
	lists_its_namespaces_late \
	cannot_tell_for_a_moment \
	cannot_tell_of_what_is_lost \
	looks_again_by_itself \
	new_disks_come_by_themselves \
	not_ready_for_a_moment \
	new_disks_come_by_themselves_after_a_loss \
	asked_for_during_a_look \
	stops_while_disks_go \
	goes_while_disks_come \
	alone_with_the_dead
