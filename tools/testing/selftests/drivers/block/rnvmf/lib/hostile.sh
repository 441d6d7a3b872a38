# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs hostile_target.c, a target that violates the protocol at one step, in one way, with one
# value.

# RDMA port of the hostile target.
SERVICE=4477

# hostile_build: set HOSTILE to the target built with the selftests, or compile it.
hostile_build() {
	HOSTILE=$HERE/hostile_target
	[ ! -x "$HOSTILE" ] || return 0
	HOSTILE=$SCRATCH/hostile_target
	gcc -O2 -Wall -Werror -o "$HOSTILE" "$HERE"/hostile_target.c "$HERE"/hostile/*.c -lrdmacm -libverbs
}

# hostile [STEP TWIST [VALUE [OFFSET SIZE]]]: start the target. Its log of commands goes to
# $SCRATCH/seen. Violations by the host that it reports, and its own errors, go to $SCRATCH/found
# and fail the test when it ends.
hostile() {
	note "target: ${*:-good}"
	# The check for leaked RDMA objects is slow, so it runs once, at the end of the test.
	[ -n "${GUARDED:-}" ] || defer rdma_objects_are_back
	GUARDED=yes
	: >"$SCRATCH/seen"
	# shellcheck disable=SC2153 # of the network
	"$HOSTILE" "$TARGET4" "$SERVICE" "$@" >"$SCRATCH/seen" 2>>"$SCRATCH/found" &
	TARGET=$!
	defer ended_well "$TARGET"
	defer end_process "$TARGET"
	wait_until "$SOON" seen '- ready' ||
		fail "the target did not start: $(<"$SCRATCH/seen")$(<"$SCRATCH/found")"
}

# ended_well PID: fail unless the target was ended by a signal of the test and has reported nothing.
ended_well() {
	local status=0
	wait "$1" || status=$?
	[ ! -s "$SCRATCH/found" ] && { [ $status = 143 ] || [ $status = 137 ]; } && return 0
	note "the target exited with status $status: $(<"$SCRATCH/found")"
	return 1
}

# event_files: print how many event files the target has open: two after its first connection, and
# one for each queue.
event_files() {
	readlink "/proc/$TARGET/fd"/* | grep -cxF 'anon_inode:[infinibandevent]' || true
}

# has_let_go: whether the target has freed the queues of ended connections.
has_let_go() {
	[ "$(event_files)" -le 2 ]
}

# register_last: register rnvmf's ib_client after that of ib_uverbs, for `device_goes`. Clients are
# removed in reverse order, and before Linux 7.3 ib_uverbs waits for the programs that use the device,
# such as the target.
register_last() {
	run modprobe -r rnvmf
	run modprobe ib_uverbs
	run modprobe rnvmf
}

# device_goes COMMAND...: remove the RDMA device, run COMMAND, which must see the removal, and add
# the device again. For the last test of a file: nvmet listens on the new device only after a delay.
#
# Before Linux 7.3 soft-RoCE waits for processes with the device open, such as the hostile target,
# before it removes the device. Kernel clients are removed in the reverse order of their
# registration, so rnvmf is removed before that wait.
device_goes() {
	local removal
	rdma link delete rnvmf_rxe0 &
	removal=$!
	"$@"
	end_process "$TARGET"
	wait_until "$SOON" process_ended $removal || fail "the removal of rnvmf_rxe0 did not end"
	run rdma link add rnvmf_rxe0 type rxe netdev rnvmf0
	wait_until 10 rdma_is_up rnvmf_rxe0
}

# seen LINE: whether the target has logged this line.
seen() {
	grep -qxF -e "$1" "$SCRATCH/seen"
}

# count STEP: print how many commands of this step the target has received.
count() {
	grep -c " $1\$" "$SCRATCH/seen"
}

# few_events BEGAN: fail if the host has sent too many Asynchronous Event Requests since the time BEGAN of
# `now`. Its delays double, beginning with 100 ms: 8 requests take 7 s. If the target is late by a second, the
# delays begin again: that is at most 4 requests more a second.
few_events() {
	local most=8
	on_time || most=$((8 + 4 * ($(now) - $1) / 1000))
	[ "$(count event)" -le $most ] || fail "$(count event) event requests, expected at most $most"
}

# has_listed TIMES: whether the host has read the namespace list at least TIMES times.
has_listed() {
	[ "$(count list)" -ge "$1" ]
}

# gone: check that no controller and no disk remain, and end the target.
gone() {
	no_disks || fail "a disk remains"
	has "$(rnvmf show -o json)" '"controllers":\[\]'
	end_process "$TARGET"
}

# `rdma_back_to` as a deferred command. In a subshell its `fail` does not skip the other deferred
# commands.
rdma_objects_are_back() {
	(rdma_back_to "$OBJECTS")
}
