# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A target that breaks the protocol, hostile_target.c: at one step, in one way, with one value.

# The port that it listens at.
SERVICE=4477

# hostile_build: it is built with the selftests; where they were not, the compiler builds it, if there is
# one.
hostile_build() {
	HOSTILE=$HERE/hostile_target
	[ ! -x "$HOSTILE" ] || return 0
	HOSTILE=$SCRATCH/hostile_target
	gcc -O2 -Wall -Werror -o "$HOSTILE" "$HERE"/hostile_target.c "$HERE"/hostile/*.c -lrdmacm -libverbs
}

# hostile [STEP TWIST [VALUE [OFFSET SIZE]]]: starts the target; what it sees goes to a file. What it
# finds wrong with the host, or with itself, fails the test at its end.
hostile() {
	note "target: ${*:-good}"
	# What is left of the RDMA objects is told once a test, at its end, for it takes its time.
	[ -n "${GUARDED:-}" ] || defer rdma_objects_are_back
	GUARDED=yes
	: >"$SCRATCH/seen"
	# shellcheck disable=SC2153 # of the network
	"$HOSTILE" "$TARGET4" "$SERVICE" "$@" >"$SCRATCH/seen" 2>>"$SCRATCH/found" &
	TARGET=$!
	defer ended_well "$TARGET"
	defer end_process "$TARGET"
	wait_until 10 seen '- ready' ||
		fail "the target does not start: $(<"$SCRATCH/seen")$(<"$SCRATCH/found")"
}

# ended_well PID: a target ends when it is told to, and not because of what the host does.
ended_well() {
	local status=0
	wait "$1" || status=$?
	[ ! -s "$SCRATCH/found" ] && { [ $status = 143 ] || [ $status = 137 ]; } && return 0
	note "a target ended with status $status: $(<"$SCRATCH/found")"
	return 1
}

# event_files: how many files of events the target has open: two once it has served, and one for each of
# its queues.
event_files() {
	readlink "/proc/$TARGET/fd"/* | grep -cxF 'anon_inode:[infinibandevent]' || true
}

# has_let_go: whether nothing is left of the queues of connections that have ended.
has_let_go() {
	[ "$(event_files)" -le 2 ]
}

# device_goes COMMAND...: the RDMA device goes, which COMMAND has to see, and comes back. For the last
# test of a file, as the listeners of the kernel's target come back to the device late.
#
# Before Linux 7.3 soft-RoCE keeps a device until the processes that use it have ended, such as our
# target. Clients in the kernel are told in the reverse order of their registration: so we are told
# before that.
device_goes() {
	local removal
	rdma link delete rnvmf_rxe0 &
	removal=$!
	"$@"
	end_process "$TARGET"
	wait_until 15 process_ended $removal || fail "the device is still being removed"
	run rdma link add rnvmf_rxe0 type rxe netdev rnvmf0
	wait_until 10 rdma_is_up rnvmf_rxe0
}

# seen LINE: whether the target has said so.
seen() {
	grep -qxF -e "$1" "$SCRATCH/seen"
}

# count STEP: how many commands of this step the target has got.
count() {
	grep -c " $1\$" "$SCRATCH/seen"
}

# has_listed TIMES: whether the target was asked so often what namespaces there are.
has_listed() {
	[ "$(count list)" -ge "$1" ]
}

# gone: nothing of the controller is left, and the target is not needed any more.
gone() {
	no_disks || fail "a disk is left"
	has "$(rnvmf show -o json)" '"controllers":\[\]'
	end_process "$TARGET"
}

# As something to be undone: it must not end the test before the rest is.
rdma_objects_are_back() {
	(rdma_back_to "$OBJECTS")
}
