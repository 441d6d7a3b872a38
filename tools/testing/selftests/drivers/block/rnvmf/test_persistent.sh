#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# `rnvmf connect-all --persistent`: what a discovery controller comes to know of is connected, for as
# long as the program runs, whatever becomes of the connection meanwhile.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

OTHER=$NQN-other
# A subsystem that keeps the port open, and of which our host is told nothing.
DENIED=$NQN-denied
DISCOVERY=nqn.2014-08.org.nvmexpress.discovery

# A port whose log changes.
OWN=4430

# What the program tells of a change must be there within this time, in seconds.
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
	# The hostile target's subsystems are of no use here.
	export LOGGED=0
	OBJECTS=$(rdma_objects)
}

# follow OPTION...: from now on; its process is in FOLLOWER, and what it tells in files.
follow() {
	: >"$SCRATCH/told"
	: >"$SCRATCH/complaints"
	# Nothing started by the shell in the background minds SIGINT, unless told to.
	env --default-signal=INT rnvmf connect-all --persistent "$@" \
		>>"$SCRATCH/told" 2>>"$SCRATCH/complaints" &
	FOLLOWER=$!
	defer end_process $FOLLOWER
}

# follow_hostile OPTION...: the target that breaks the protocol.
follow_hostile() {
	follow -a "$TARGET4" -s "$SERVICE" -q "$HOSTNQN" "$@"
}

# follows LINE...: it tells all of these, which are patterns, and then they are forgotten.
follows() {
	local line
	for line; do
		wait_until "$FOLLOWED" grep -qxE "$line" "$SCRATCH/told" ||
			fail "not told: '$line' but: $(<"$SCRATCH/told") $(<"$SCRATCH/complaints")"
	done
	: >"$SCRATCH/told"
}

# complains PATTERN
complains() {
	wait_until "$FOLLOWED" grep -qE "$1" "$SCRATCH/complaints" ||
		fail "no complaint '$1' but: $(<"$SCRATCH/complaints")"
	: >"$SCRATCH/complaints"
}

# ends STATUS: the program ends soon, and so.
ends() {
	local status=0
	wait_until "$SOON" process_ended "$FOLLOWER" || fail "it still runs: $(<"$SCRATCH/told")"
	wait "$FOLLOWER" || status=$?
	same "status" "$1" $status
}

no_queue_pairs() {
	[[ $(rdma resource show qp) != *'[rnvmf]'* ]]
}

# read_again RECORDS: the line of the log of our own port.
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
	# What becomes of it is for its own recovery to find out: the target says that it never comes back.
	wait_until "$SOON" shows dead 1 || fail "it is not dead: $(rnvmf show)"
	run rnvmf disconnect -n "$NQN"
	target_referral $OWN elsewhere rdma "$TARGET4" 4420
	follows "$(read_again 3)" "following $TARGET4:4420: 2 records, generation [0-9]+" \
		"$(connected_to "$NQN" 4420)"
	target_referral_delete $OWN elsewhere
	follows "$(read_again 2)" "removed from the log: $DISCOVERY at rdma $TARGET4:4420"
	same complaints '' "$(<"$SCRATCH/complaints")"
	lost_and_made_up_for
	kill -TERM "$FOLLOWER"
	ends 0
	shows live 3 || fail "not all are live: $(rnvmf show)"
	run rnvmf disconnect-all
	target_unexport $OWN "$NQN"
	target_unexport $OWN "$OTHER"
	rdma_back_to "$OBJECTS"
}

# Without a subsystem the port is closed: what comes to be there meanwhile nobody tells. The last to go
# is one of which we hear nothing: Linux as the target does not survive a look at the log while it
# closes the port.
lost_and_made_up_for() {
	target_unexport $OWN "$OTHER"
	follows "$(read_again 1)" "removed from the log: $OTHER at rdma $TARGET4:$OWN"
	wait_until "$SOON" shows dead 1 || fail "it is not dead: $(rnvmf show)"
	run rnvmf disconnect -n "$OTHER"
	target_unexport $OWN "$DENIED"
	complains "^rnvmf: discover at $TARGET4:$OWN: .*; retrying\$"
	target_export $OWN "$OTHER"
	target_export $OWN "$NQN"
	follows "$(read_again 3)" "$(connected_to "$OTHER" $OWN)" "$(connected_to "$NQN" $OWN)"
	wait_until "$SOON" shows live 3 || fail "not all are live: $(rnvmf show)"
}

# shows STATE NUMBER: so many controllers are in this state.
shows() {
	local states
	states=$(rnvmf show -o json | grep -oE '"state":"'"$1"'"')
	[ "$(wc -l <<<"$states")" = "$2" ]
}

# Whoever has a change to tell whenever he is asked is asked more and more seldom; and with its
# program, however that ends, its connection does.
floods_with_changes() {
	EVENTS=1 hostile event result 0x0070f002
	follow_hostile
	wait_until "$FOLLOWED" read_often || fail "the log was read only $(count log) times"
	[ "$(count event)" -le 8 ] || fail "it was asked $(count event) times"
	# Each time it was the same.
	same "lines" 1 "$(wc -l <"$SCRATCH/told")"
	! no_queue_pairs || fail "there is no queue pair of ours"
	kill -KILL "$FOLLOWER"
	wait_until 5 no_queue_pairs || fail "the connection outlives its program"
	end_process "$TARGET"
}

# Before and after its entries, of which there are none, its header is read.
read_often() {
	[ "$(count log)" -ge 8 ]
}

# He is asked again from time to time, and what he has is connected.
tells_no_changes() {
	defer rnvmf disconnect-all
	LOGGED=1 hostile
	follow_hostile
	complains 'the target does not support events for discovery log changes; reading its log every 30 s$'
	follows "following $TARGET4:$SERVICE: 1 record, generation 1" \
		"rnvmf[0-9]+: connected to nqn.2014-08.org.example:hostile0 at $TARGET4:$SERVICE"
	wait_until 60 was_polled || fail "the log was read only $(count log) times"
	# It was the same.
	same "what else is told" '' "$(<"$SCRATCH/told")$(<"$SCRATCH/complaints")"
	kill -TERM "$FOLLOWER"
	ends 0
	run rnvmf disconnect-all
	end_process "$TARGET"
}

# Its header, its entry and its header again, and that twice.
was_polled() {
	[ "$(count log)" -ge 6 ]
}

# Whoever wants to tell no more is asked again with another connection, and not at once each time.
stops_telling() {
	EVENTS=1 hostile event status 0x4105
	follow_hostile
	complains ': the target tells of no more changes; retrying$'
	wait_until "$FOLLOWED" connected_again || fail "it was connected $(count connect) times"
	kill -INT "$FOLLOWER"
	ends 0
	same "lines" 2 "$(sort -u "$SCRATCH/told" "$SCRATCH/complaints" | wc -l)"
	end_process "$TARGET"
}

connected_again() {
	[ "$(count connect)" -ge 3 ]
}

# It is kept alive, and found out if it is not.
falls_silent() {
	EVENTS=0 AFTER=2 hostile keep-alive silent
	follow_hostile -k 1 -o json
	follows '\{"schema":1,"followed":\{"traddr":"'"$TARGET4"'","trsvcid":4477,.*"genctr":1,"numrec":0\}'
	complains '"message":"keep-alive: no response from the target in 1 s",.*"next_attempt":[0-9]+'
	same "signs of life" 3 "$(count keep-alive)"
	kill -TERM "$FOLLOWER"
	ends 0
	end_process "$TARGET"
}

# Reading a long log takes longer than the target waits for a sign of life.
is_kept_alive_while_it_reads() {
	EVENTS=0 LOGGED=1024 SLOW=50 hostile
	follow_hostile -k $((2 * SLOWDOWN))
	wait_until 30 read_for_long || fail "only $(count entries) pieces of the log were read"
	[ "$(count keep-alive)" -gt 0 ] || fail "there was no sign of life"
	# Before it comes to connect to all of them.
	kill -TERM "$FOLLOWER"
	ends 0
	end_process "$TARGET"
}

# For more than half of that time.
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
	floods_with_changes \
	tells_no_changes \
	stops_telling \
	falls_silent \
	is_kept_alive_while_it_reads \
	ends_with_its_module \
	goes_on_with_another_device
