#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests native multipath over nvme_rdma_rust: two paths to a namespace, their policies, ANA states,
# and loss and return of a path under verified I/O.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)

# Number of losses of each kind.
LOSSES=$(in_a_long_run 50 3)

setup() {
	load_driver && network_routed && backend_memory disk 64 512 && target_simple "$BACKEND"
}

# connect_both [OPTION...]: connect through the wire (IPv4) and within the target's device (IPv6). FIRST and
# SECOND are the controllers, DISK is the disk that both have.
connect_both() {
	connect "$TARGET6" "$@"
	SECOND=$CTRL
	connect "$TARGET4" "$@"
	FIRST=$CTRL
	both_paths "$FIRST" "$SECOND"
}

# policy NAME: set the I/O policy of the subsystem.
policy() {
	echo "$1" >/sys/class/nvme-subsystem/nvme-subsys*/iopolicy
}

# done_by CONTROLLER: print the number of I/Os that a path has completed.
done_by() {
	local stat
	read -ra stat <"$(echo "/sys/class/nvme/$1"/nvme*c*n*)/stat"
	echo $((stat[0] + stat[4]))
}

# shares: run verified I/O; FIRST_DONE and SECOND_DONE are the numbers of I/Os of each path.
shares() {
	FIRST_DONE=$(done_by "$FIRST")
	SECOND_DONE=$(done_by "$SECOND")
	# Beyond the blocks of `start_verify`.
	verify "$DISK" --rw=randwrite --bs=16k --offset=32m --size=4m --iodepth=8
	FIRST_DONE=$(($(done_by "$FIRST") - FIRST_DONE))
	SECOND_DONE=$(($(done_by "$SECOND") - SECOND_DONE))
	note "$FIRST_DONE and $SECOND_DONE I/Os"
}

# uses_both LEAST: fail unless each path has completed at least LEAST I/Os.
uses_both() {
	[ "$FIRST_DONE" -ge "$1" ] || fail "$FIRST has completed $FIRST_DONE I/Os, expected $1 or more"
	[ "$SECOND_DONE" -ge "$1" ] || fail "$SECOND has completed $SECOND_DONE I/Os, expected $1 or more"
}

policies() {
	connect_both "${LASTING[@]}"
	policy numa
	shares
	[ $FIRST_DONE = 0 ] || [ $SECOND_DONE = 0 ] || fail "policy numa uses both paths"
	policy round-robin
	shares
	uses_both 100
	policy queue-depth
	shares
	uses_both 20
}

# ana PORT STATE: set the ANA state of the namespaces at a port.
ana() {
	echo "$2" >"$NVMET/ports/$1/ana_groups/1/ana_state"
}

# ana_is CONTROLLER STATE: whether the host has seen this state.
ana_is() {
	[ "$(cat "/sys/class/nvme/$1"/nvme*c*n*/ana_state)" = "$2" ]
}

ana_changes() {
	local state
	connect_both
	defer ana 4420 optimized
	defer ana 4421 optimized
	policy round-robin
	CTRL=$FIRST
	start_verify
	for state in non-optimized inaccessible change optimized persistent-loss; do
		ana 4420 $state
		wait_until "$SOON" ana_is "$FIRST" $state || fail "the path is not $state"
	done
	ana 4421 non-optimized
	wait_until "$SOON" ana_is "$SECOND" non-optimized || fail "the path is not non-optimized"
	shares
	# The I/Os that fio had in flight count when they end, after the path was lost.
	[ $FIRST_DONE -le 4 ] || fail "$FIRST_DONE I/Os of a lost path"
	is_verified
}

# Both paths inaccessible: I/O waits.
ana_without_a_path() {
	connect_both
	defer ana 4420 optimized
	defer ana 4421 optimized
	CTRL=$FIRST
	start_verify
	ana 4420 inaccessible
	ana 4421 inaccessible
	wait_until "$SOON" ana_is "$FIRST" inaccessible
	wait_until "$SOON" ana_is "$SECOND" inaccessible
	ana 4420 optimized
	is_verified
}

# loses_path COMMAND...: lose the first path under verified I/O by COMMAND, and I/O must go on at once.
loses_path() {
	local began
	CTRL=$FIRST
	"$@"
	loses
	SECOND_DONE=$(done_by "$SECOND")
	began=$(now)
	run dd if="$DISK" of=/dev/null bs=4k count=1 iflag=direct
	at_most "I/O went on only after" $(($(now) - began)) 1000
	# A request counts a moment after its data has arrived.
	wait_until "$SOON" has_done_more || fail "no I/O on the other path"
}

has_done_more() {
	[ "$(done_by "$SECOND")" -gt "$SECOND_DONE" ]
}

port_fails_over() {
	local name
	for name in numa round-robin queue-depth; do
		connect_both
		policy $name
		CTRL=$FIRST
		start_verify
		loses_path port_goes
		port_is_back
		comes_back
		is_verified
		disconnect "$FIRST"
		disconnect "$SECOND"
	done
}

# A path is lost in silence, and comes back, under verified I/O.
silence_under_io() {
	start_verify
	loses_path silence
	silence_ends
	comes_back
	is_verified
}

silence_fails_over() {
	connect_both
	policy round-robin
	CTRL=$FIRST
	silence_under_io
}

# The first path is lost again and again, silently and with a disconnect.
losses_again_and_again() {
	local number
	connect_both
	policy round-robin
	VERIFY_OPTIONS=(--io_size=4m)
	for ((number = 0; number < LOSSES; number++)); do
		CTRL=$FIRST
		silence_under_io
		start_verify
		loses_path port_goes
		port_is_back
		comes_back
		is_verified
	done
	same "error recoveries" $((2 * LOSSES)) "$(logged "$FIRST: .*starting error recovery")"
}

# Neither path is there for a while.
both_go() {
	connect_both
	policy round-robin
	CTRL=$FIRST
	start_verify
	port_goes
	target_unexport 4421 "$NQN"
	target_port_delete 4421
	CTRL=$FIRST loses
	CTRL=$SECOND loses
	target_listen 4421 "$TARGET6"
	target_offer 4421 "$NQN"
	CTRL=$SECOND comes_back
	port_is_back
	CTRL=$FIRST comes_back
	is_verified
}

path_is_disconnected() {
	connect_both "${LASTING[@]}"
	policy round-robin
	CTRL=$SECOND
	start_verify
	disconnect "$FIRST"
	is_verified
	connect "$TARGET4" "${LASTING[@]}"
	FIRST=$CTRL
	both_paths "$FIRST" "$SECOND"
	shares
	[ $SECOND_DONE -gt 100 ] || fail "the remaining path did nothing"
}

resets_of_both() {
	local _
	connect_both "${LASTING[@]}"
	policy round-robin
	CTRL=$FIRST
	start_verify
	for _ in 1 2 3; do
		run nvme reset "/dev/$FIRST"
		run nvme reset "/dev/$SECOND"
	done
	is_verified
}

# For the last test: nvmet listens on a new device only after a delay.
device_goes() {
	connect_both "${LASTING[@]}"
	policy round-robin
	CTRL=$SECOND
	start_verify
	run rdma link delete rnvmf_rxe1
	is_gone "$FIRST" || fail "$FIRST is in state $(ctrl_field "$FIRST" state)"
	is_verified
	rdma_add "" rnvmf_rxe1 rnvmf1
	connect "$TARGET4"
}

main setup \
	policies \
	ana_changes \
	ana_without_a_path \
	port_fails_over \
	silence_fails_over \
	losses_again_and_again \
	both_go \
	path_is_disconnected \
	resets_of_both \
	device_goes
