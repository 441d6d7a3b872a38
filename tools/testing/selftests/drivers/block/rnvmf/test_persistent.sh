#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests `rnvmf connect-all --persistent`: subsystems that the discovery log lists later are
# connected, also after a loss of the discovery connection.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

OTHER=$NQN-other
# A subsystem that does not allow the host. It keeps the port open without a log entry for the host.
DENIED=$NQN-denied
DISCOVERY=nqn.2014-08.org.nvmexpress.discovery

# A port whose log changes.
OWN=4430

# Time limit for a line of the program, in seconds.
FOLLOWED=15

requirements() {
	need_root && need_modules rnvmf rdma_rxe rdma_ucm nvmet-rdma dummy null_blk &&
		need_programs rnvmf rdma ip
}

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	backend_memory one 16 512 && target_simple "$BACKEND" && target_subsystem "$OTHER" &&
		target_subsystem "$DENIED" && echo 0 >"$NVMET/subsystems/$DENIED/attr_allow_any_host" &&
		target_port $OWN "$TARGET4" $OWN || return 1
	# The log of the hostile target is empty.
	export LOGGED=0
	OBJECTS=$(rdma_objects)
}

# follow OPTION...: start the program. FOLLOWER is its PID; its output goes to $SCRATCH/told, its
# standard error to $SCRATCH/complaints.
follow() {
	: >"$SCRATCH/told"
	: >"$SCRATCH/complaints"
	# The shell starts background processes with SIGINT ignored.
	env --default-signal=INT rnvmf connect-all --persistent "$@" \
		>>"$SCRATCH/told" 2>>"$SCRATCH/complaints" &
	FOLLOWER=$!
	defer end_process $FOLLOWER
}

# follow_hostile OPTION...: like `follow`, with the hostile target.
follow_hostile() {
	follow -a "$TARGET4" -s "$SERVICE" -q "$HOSTNQN" "$@"
}

# follows PATTERN...: wait until the output has lines that match all patterns, then discard it.
follows() {
	local line
	for line; do
		wait_until "$FOLLOWED" grep -qxE "$line" "$SCRATCH/told" ||
			fail "no line '$line' in: $(<"$SCRATCH/told") $(<"$SCRATCH/complaints")"
	done
	: >"$SCRATCH/told"
}

# complains PATTERN: wait until the standard error matches, then discard it.
complains() {
	wait_until "$FOLLOWED" grep -qE "$1" "$SCRATCH/complaints" ||
		fail "no error '$1' in: $(<"$SCRATCH/complaints")"
	: >"$SCRATCH/complaints"
}

# ends STATUS: the program must exit with this status.
ends() {
	local status=0
	wait_until "$SOON" process_ended "$FOLLOWER" || fail "the program did not exit: $(<"$SCRATCH/told")"
	wait "$FOLLOWER" || status=$?
	same "exit status" "$1" $status
}

no_queue_pairs() {
	[[ $(rdma resource show qp) != *'[rnvmf]'* ]]
}

# read_again RECORDS: print a pattern for the line of the changed log.
read_again() {
	echo "following $TARGET4:$OWN: $1 records?, generation [0-9]+"
}

connected_to() {
	echo "rnvmf[0-9]+: connected to $1 at $TARGET4:$2"
}

follows_what_changes() {
	local file=$SCRATCH/connections.conf
	defer rnvmf disconnect-all
	target_export $OWN "$DENIED"
	target_export $OWN "$OTHER"
	echo "discover -a $TARGET4 -s $OWN -q $HOSTNQN -i 1" >"$file"
	follow -f "$file"
	follows "$(read_again 2)" "$(connected_to "$OTHER" $OWN)"
	target_export $OWN "$NQN"
	follows "$(read_again 3)" "$(connected_to "$NQN" $OWN)"
	target_unexport $OWN "$NQN"
	follows "$(read_again 2)" "removed from the log: $NQN at rdma $TARGET4:$OWN"
	# The program leaves the controller to its reconnect.
	wait_until "$SOON" shows connecting 1 || fail "no controller is connecting: $(rnvmf show)"
	run rnvmf disconnect -n "$NQN"
	target_referral $OWN elsewhere rdma "$TARGET4" 4420
	follows "$(read_again 3)" "following $TARGET4:4420: 2 records, generation [0-9]+" \
		"$(connected_to "$NQN" 4420)"
	target_referral_delete $OWN elsewhere
	follows "$(read_again 2)" "removed from the log: $DISCOVERY at rdma $TARGET4:4420"
	same "standard error" '' "$(<"$SCRATCH/complaints")"
	lost_and_made_up_for
	kill -TERM "$FOLLOWER"
	ends 0
	shows live 3 || fail "expected 3 live controllers: $(rnvmf show)"
	run rnvmf disconnect-all
	target_unexport $OWN "$NQN"
	target_unexport $OWN "$OTHER"
	rdma_back_to "$OBJECTS"
}

# The target closes a port without subsystems, so the program misses changes and must read the log
# after it has reconnected. The last subsystem to be removed is one that is not in the host's log:
# nvmet crashes if its log is read while it closes the port.
lost_and_made_up_for() {
	target_unexport $OWN "$OTHER"
	follows "$(read_again 1)" "removed from the log: $OTHER at rdma $TARGET4:$OWN"
	wait_until "$SOON" shows connecting 1 || fail "no controller is connecting: $(rnvmf show)"
	run rnvmf disconnect -n "$OTHER"
	target_unexport $OWN "$DENIED"
	complains "^rnvmf: discover at $TARGET4:$OWN: .*; retrying\$"
	target_export $OWN "$OTHER"
	target_export $OWN "$NQN"
	follows "$(read_again 3)" "$(connected_to "$OTHER" $OWN)" "$(connected_to "$NQN" $OWN)"
	wait_until "$SOON" shows live 3 || fail "expected 3 live controllers: $(rnvmf show)"
}

# shows STATE NUMBER: whether NUMBER controllers are in this state.
shows() {
	local states
	states=$(rnvmf show -o json | grep -oE '"state":"'"$1"'"' | wc -l)
	[ "$states" = "$2" ]
}

# The subsystem has no log and is not asked again.
is_no_discovery_subsystem() {
	follow -a "$TARGET4" -q "$HOSTNQN" -n "$NQN"
	ends 1
	same errors "rnvmf: discover at $TARGET4:4420: not a discovery subsystem; connect -n is for an NVM subsystem
rnvmf: connect-all: 1 of 1 connections failed" "$(<"$SCRATCH/complaints")"
	rdma_back_to "$OBJECTS"
}

# A flood of events is handled at a limited rate. The connection ends with the program.
floods_with_changes() {
	local began
	began=$(now)
	EVENTS=1 hostile event result 0x0070f002
	follow_hostile
	wait_until "$FOLLOWED" read_often || fail "the log header was read only $(count log) times"
	few_events "$began"
	# The log did not change, so it is printed only once.
	wait_until "$FOLLOWED" test -s "$SCRATCH/told" || fail "the log is not printed"
	same "number of lines" 1 "$(wc -l <"$SCRATCH/told")"
	! no_queue_pairs || fail "the discovery has no queue pair"
	kill -KILL "$FOLLOWER"
	wait_until "$SOON" no_queue_pairs || fail "the queue pair remains after SIGKILL"
	end_process "$TARGET"
}

# Whether the log was read at least 4 times: the header is read before and after the entries.
read_often() {
	[ "$(count log)" -ge 8 ]
}

# Without events the log is polled, and its subsystems are connected.
tells_no_changes() {
	defer rnvmf disconnect-all
	LOGGED=1 hostile
	follow_hostile
	complains 'the target does not support events for discovery log changes; reading its log every 30 s$'
	follows "following $TARGET4:$SERVICE: 1 record, generation 1" \
		"rnvmf[0-9]+: connected to nqn.2014-08.org.example:hostile0 at $TARGET4:$SERVICE"
	wait_until 35 was_polled || fail "the log header was read only $(count log) times"
	# The log did not change.
	same "further output" '' "$(<"$SCRATCH/told")$(<"$SCRATCH/complaints")"
	kill -TERM "$FOLLOWER"
	ends 0
	run rnvmf disconnect-all
	end_process "$TARGET"
}

# Whether the log was read at least twice. Each time the header is read before and after the entry.
was_polled() {
	[ "$(count log)" -ge 4 ]
}

# After a failed Asynchronous Event Request the program reconnects, with delays.
stops_telling() {
	EVENTS=1 hostile event status 0x4105
	follow_hostile
	wait_until "$FOLLOWED" connected_again || fail "only $(count connect) connects"
	wait_until "$FOLLOWED" grep -qE '^following .*: 0 records, generation 1$' "$SCRATCH/told" ||
		fail "the log is not printed: $(<"$SCRATCH/complaints")"
	wait_until "$FOLLOWED" grep -qE ': the target reports no more log changes; retrying$' "$SCRATCH/complaints" ||
		fail "no error in: $(<"$SCRATCH/complaints")"
	kill -INT "$FOLLOWER"
	ends 0
	same "number of different lines" 2 "$(sort -u "$SCRATCH/told" "$SCRATCH/complaints" | wc -l)"
	end_process "$TARGET"
}

connected_again() {
	[ "$(count connect)" -ge 3 ]
}

# The discovery connection has a keep-alive, which detects a silent target.
falls_silent() {
	EVENTS=0 AFTER=2 hostile keep-alive silent
	follow_hostile -k "$SLOWDOWN" -o json
	follows '\{"schema":1,"followed":\{"traddr":"'"$TARGET4"'","trsvcid":4477,.*"genctr":1,"numrec":0\}'
	complains '"message":"keep-alive: no response from the target in '"$SLOWDOWN"' s",.*"next_attempt":[0-9]+'
	# On CPUs that run freely, the next connection may have sent further ones.
	[ "$(count keep-alive)" -ge 3 ] || fail "$(count keep-alive) Keep Alive commands, expected at least 3"
	! on_time || same "number of Keep Alive commands" 3 "$(count keep-alive)"
	kill -TERM "$FOLLOWER"
	ends 0
	end_process "$TARGET"
}

# Keep Alive commands are also sent while a long log is read.
is_kept_alive_while_it_reads() {
	defer rnvmf disconnect-all
	EVENTS=0 LOGGED=1024 SLOW=50 hostile
	follow_hostile -k $((2 * SLOWDOWN))
	wait_until 30 read_for_long || fail "only $(count entries) reads of log entries"
	[ "$(count keep-alive)" -gt 0 ] || fail "no Keep Alive command"
	# Before the program connects to all entries.
	kill -TERM "$FOLLOWER"
	ends 0
	end_process "$TARGET"
}

# Whether the log has been read for more than half of the keep-alive timeout.
read_for_long() {
	[ "$(count entries)" -ge $((40 * SLOWDOWN)) ]
}

ends_with_its_module() {
	EVENTS=0 hostile
	follow_hostile
	follows '.*: 0 records, generation 1'
	run modprobe -r rnvmf
	defer modprobe rnvmf
	complains 'the discovery was cancelled$'
	ends 7
	end_process "$TARGET"
}

goes_on_with_another_device() {
	local GUARDED=yes
	register_last
	EVENTS=0 hostile
	follow_hostile
	follows '.*: 0 records, generation 1'
	device_goes complains 'the RDMA device was removed; retrying$'
	EVENTS=0 hostile
	follows '.*: 0 records, generation 1'
	kill -TERM "$FOLLOWER"
	ends 0
	end_process "$TARGET"
}

main setup \
	follows_what_changes \
	is_no_discovery_subsystem \
	floods_with_changes \
	tells_no_changes \
	stops_telling \
	falls_silent \
	is_kept_alive_while_it_reads \
	ends_with_its_module \
	goes_on_with_another_device
