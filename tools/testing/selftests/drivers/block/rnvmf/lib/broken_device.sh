# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Cases of both hosts for devices that break the rules of the verbs, see tools/testing/modules/liar.c.
# A test file defines `has_a_second_disk`, and the options HASTY and PATIENT of a connection with a short and
# a long keep-alive time-out.

# host_lies LIE: make the host's device tell this lie, until `host_is_honest` or the test ends.
host_lies() {
	modprobe -n -q rrdma_test_liar || skip "no module rrdma_test_liar"
	defer host_is_honest
	run modprobe rrdma_test_liar device=rnvmf_rxe1 "lie=$1"
}

host_is_honest() {
	[ ! -e /sys/module/rrdma_test_liar ] || modprobe -r rrdma_test_liar
}

has_no_second_disk() {
	! has_a_second_disk
}

# The device has no memory for an Asynchronous Event Request. Without one the target reports no events. NO_EVENTS is
# the line of the loss.
event_request_is_refused() {
	start_pair
	connect "$TARGET4" "${PATIENT[@]}"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	host_lies aer
	# An event, after which the host sends the next request.
	backend_memory other 16 512
	target_namespace "$NQN" 2 "$BACKEND"
	wait_for_log "$SOON" "$CTRL: $NO_EVENTS" ||
		fail "no line with the cause: $(kernel_log | tail -5)"
	comes_back
	wait_until "$SOON" has_a_second_disk || fail "the disk of an added namespace does not exist"
	target_namespace_delete "$NQN" 2
	wait_until "$SOON" has_no_second_disk || fail "the disk of a removed namespace remains"
}

# The completions of the device come only after the host has given up waiting for them. The device may access the
# data until then. WRITE_ENDS is the exit status of the write then.
completions_come_late() {
	local path reads writes status=0
	start_pair
	connect "$TARGET4" "${HASTY[@]}"
	path=$(disk "$CTRL" 1)
	host_lies deaf
	dd if="$path" of="$SCRATCH/read" bs=4k count=1 iflag=direct 2>"$SCRATCH/reads" &
	reads=$!
	defer end_process $reads
	dd if=/dev/zero of="$path" bs=4k count=1 oflag=direct 2>"$SCRATCH/writes" &
	writes=$!
	defer end_process $writes
	wait_for_log 90 "$CTRL: command [0-9]+ on queue 1: never completed by the RDMA device" 2 || fail "no lines of the commands: $(kernel_log | tail -5)"
	! process_ended $reads || fail "the read ended, but the device may access its data: $(<"$SCRATCH/reads")"
	! process_ended $writes || fail "the write ended, but the device may access its data: $(<"$SCRATCH/writes")"
	run modprobe -r rrdma_test_liar
	wait_until 90 state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	wait_until "$SOON" process_ended $reads || fail "the read does not end: the device has completed it"
	wait $reads || fail "the read failed: $(<"$SCRATCH/reads")"
	wait_until "$SOON" process_ended $writes || fail "the write does not end: the device has completed it"
	wait $writes || status=$?
	same "exit status of the write" "$WRITE_ENDS" $status
	same "lines about dropped requests" 0 "$(logged 'dropped without')"
}
