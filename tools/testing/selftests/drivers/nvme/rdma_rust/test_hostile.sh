#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests nvme_rdma_rust against the hostile target of rnvmf's tests: the controller recovers, the log
# has the cause, and nothing leaks. The C driver recovers, too, with other messages.
#
# The lines below end with arguments of hostile_target.c: the step at which it violates the protocol,
# the twist, and the value.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

CONNECT_OPTIONS=(-c 1)

# XOR mask that makes an rkey invalid; see lib/hostile_host.sh of rnvmf.
NO_KEY=0x80000000

setup() {
	load_driver && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

leave() {
	disconnect "$CTRL"
	no_disks || fail "a disk remains"
	end_process "$TARGET"
}

# compare SIZE: write SIZE bytes in one request, read them back and compare.
compare() {
	head -c "$1" /dev/urandom >"$SCRATCH/wrote"
	run dd if="$SCRATCH/wrote" of="$DISK" bs="$1" oflag=direct
	run dd if="$DISK" of="$SCRATCH/read" bs="$1" count=1 iflag=direct
	cmp "$SCRATCH/wrote" "$SCRATCH/read" || fail "read data differs from written data"
}

connect_hostile() {
	connect "$TARGET4" "$@"
	wait_until "$SOON" has_disk "$CTRL" 1 || fail "$CTRL has no namespace 1"
}

# works ARGUMENT...: the reply is unusual but valid.
works() {
	hostile "$@"
	connect_hostile
	compare 4096
	compare 65536
	compare 1048576
	same state live "$(ctrl_field "$CTRL" state)"
	leave
}

# start_trap read|write: access the block that is the target's step trap-read or trap-write. TRAP is
# the PID.
start_trap() {
	case $1 in
	read) dd if="$DISK" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/trap" & ;;
	write) dd if=/dev/zero of="$DISK" bs=64k seek=64 count=1 oflag=direct 2>"$SCRATCH/trap" & ;;
	esac
	TRAP=$!
	defer end_process $TRAP
}

# recovers PATTERN STEP TWIST...: the target violates the protocol until the host has lost the
# connection, with a line that matches in the log. Then the I/O must succeed.
recovers() {
	local pattern=$1
	shift
	note "expect: $pattern"
	start_log again
	hostile "$@"
	connect_hostile
	start_trap "${1#trap-}"
	wait_for_log "$SOON" "$CTRL: .*starting error recovery" || fail "no error recovery: $(kernel_log | tail -3)"
	driver_is_c || has_cause "$pattern"
	kill -USR1 "$TARGET"
	wait_until 30 process_ended "$TRAP" || fail "the I/O did not end: $(kernel_log | tail -3)"
	wait "$TRAP" || fail "the I/O failed: $(<"$SCRATCH/trap")"
	comes_back
	compare 65536
	leave
}

# has_cause PATTERN: fail unless the first loss has one line, with a cause that matches. A second loss may follow
# before the target gets the signal to behave, on CPUs that run freely: the host connects again after a second.
has_cause() {
	local lines
	! on_time || same "losses" 1 "$(logged "$CTRL: .*: starting error recovery")"
	lines=$(kernel_log | grep -E "$CTRL: (.*: starting error recovery|Reconnecting in )" |
		sed '/: Reconnecting in /,$d')
	[[ $lines != *$'\n'* && $lines =~ ($1).*:\ starting\ error\ recovery ]] ||
		fail "no line, or several, with the cause of the loss: '$lines': $(kernel_log | grep "$CTRL" | tail -5)"
}

# refused PATTERN ARGUMENT...: the connect must fail, with a line that matches in the log.
refused() {
	local pattern=$1
	shift
	note "expect: $pattern"
	start_log again
	hostile "$@"
	nvme_connect "$NQN" "$TARGET4"
	same status 1 "$STATUS"
	driver_is_c || [ "$(logged "$pattern")" -ge 1 ] ||
		fail "no line with the cause: $(kernel_log | tail -5)"
	[ ! -e /sys/class/nvme/nvme0 ] || fail "a controller remains"
	end_process "$TARGET"
}

good_target() {
	works
}

leaves_keys_alone() {
	works controller keep
	works read keep
	works write keep
}

broken_responses() {
	local step
	for step in trap-read trap-write; do
		recovers 'not in flight' $step cid 0x0fff
		recovers 'response of 15 bytes' $step length 15
		recovers 'response of 0 bytes' $step length 0
		recovers 'receive failed' $step length 64
		recovers 'the target disconnected' $step hang-up
	done
}

# An RDMA WRITE with immediate data consumes a receive, which has an earlier response. The C driver takes it for
# a response.
writes_in_place_of_a_response() {
	driver_is_c || recovers 'RDMA WRITE with immediate data' trap-read immediate
}

# The second response may come before the completion of the SEND: the command is still in flight then.
answers_twice() {
	recovers 'not in flight|answered twice' trap-read twice
	recovers 'not in flight|answered twice' trap-write twice
}

foreign_invalidations() {
	recovers 'failed' trap-read key "$NO_KEY"
	recovers 'failed' trap-write key "$NO_KEY"
}

# The target leaves the first read unanswered, and invalidates its key, which is valid, with the response
# to the second. Both must succeed on the next connection.
invalidates_another_key() {
	local first
	hostile trap-read swap
	connect_hostile -i 1
	start_trap read
	first=$TRAP
	wait_until "$SOON" count trap-read >"$SCRATCH/count" || fail "the target received no read"
	start_trap read
	wait_for_log "$SOON" "$CTRL: .*starting error recovery" || fail "no error recovery: $(kernel_log | tail -3)"
	driver_is_c || has_cause 'another request'
	kill -USR1 "$TARGET"
	wait_until 30 process_ended "$TRAP" || fail "the second read did not end: $(kernel_log | tail -3)"
	wait "$TRAP" || fail "the second read failed: $(<"$SCRATCH/trap")"
	wait_until 30 process_ended "$first" || fail "the first read did not end: $(kernel_log | tail -3)"
	comes_back
	compare 65536
	leave
}

# The connection ends while nvme-core waits for the end of a firmware activation. nvme-core then makes
# the controller live without a connect. The disk is there before: nvme_fw_act_work() warns about one that
# is added meanwhile.
lost_while_firmware_is_activated() {
	EVENTS=0 FIRST=1 hostile trap-read activate
	connect_hostile
	start_trap read
	driver_is_c || wait_for_log "$SOON" "$CTRL: .*starting error recovery" || fail "no error recovery: $(kernel_log | tail -3)"
	comes_back
	wait_until 30 process_ended "$TRAP" || fail "the read did not end: $(kernel_log | tail -3)"
	wait "$TRAP" || fail "the read failed: $(<"$SCRATCH/trap")"
	compare 65536
	leave
}

# becomes_administrative: connect, then reset the controller, which is an administrative one from then on. It
# has no I/O queues, and nvme-core would make it live without them.
becomes_administrative() {
	! driver_is_c || skip "nvme-rdma goes on without I/O queues"
	start_log again
	AFTER=1 hostile controller poke 3 111 1
	connect_hostile
	try nvme reset "/dev/$CTRL"
	wait_for_log "$SOON" "$CTRL: the target no longer has I/O queues" ||
		fail "no refusal in the log: $(kernel_log | tail -5)"
	[ "$(ctrl_field "$CTRL" state)" != live ] || fail "$CTRL is live"
}

administrative_for_a_time() {
	becomes_administrative
	kill -USR1 "$TARGET"
	comes_back
	compare 65536
	leave
}

# A change of CPUs visits all tag sets. The kernel must have forgotten that of the controller.
deleted_while_administrative() {
	local cpu=/sys/devices/system/cpu/cpu1/online
	becomes_administrative
	leave
	[ -w $cpu ] || skip "CPU 1 is always online"
	echo 0 >$cpu
	echo 1 >$cpu
}

# The target inserts and strips protection information of 8 bytes at the end of each block (FLBAS.META_EXT), and
# checks that the commands say so.
leaves_protection_to_the_target() {
	local blocks
	for PROTECTION in 1 2 3; do
		export PROTECTION
		hostile namespace poke 0x10 26 1
		connect_hostile -i 1
		read -r blocks <"/sys/block/${DISK##*/}/size"
		same "size of the disk in sectors, with protection type $PROTECTION" 16384 "$blocks"
		compare 4096
		compare 65536
		leave
	done
	unset PROTECTION
}

# A command that the target does not answer times out. Scripts look for the line that nvme-rdma logs.
times_out() {
	local limit
	hostile trap-read silent
	connect_hostile
	for limit in "/sys/class/nvme/$CTRL"/nvme*n1/queue/io_timeout; do
		echo $((500 * SLOWDOWN)) >"$limit"
	done
	start_trap read
	wait_for_log "$SOON" "$CTRL: .*starting error recovery" || fail "no error recovery: $(kernel_log | tail -3)"
	logs "$CTRL: I/O tag [0-9]+ \([0-9a-f]{4}\) opcode 0x2 \((Read|I/O Cmd)\) QID [12] timeout" ||
		fail "no line of the time-out: $(kernel_log | grep -F 'I/O tag')"
	kill -USR1 "$TARGET"
	wait_until 30 process_ended "$TRAP" || fail "the read did not end: $(kernel_log | tail -3)"
	wait "$TRAP" || fail "the read failed: $(<"$SCRATCH/trap")"
	comes_back
	leave
}

# resets_subsystem TWIST...: the target supports NVM subsystem resets, but violates the protocol when the host
# sets NSSR. Before that the host sets CC twice. The controller, which is in the state RESETTING meanwhile, must
# become live again.
resets_subsystem() {
	AFTER=2 FIRST=1 hostile configure "$@"
	connect_hostile
	try nvme subsystem-reset "/dev/$CTRL"
	note "nvme subsystem-reset: status $STATUS, '$ERRORS'"
	[ "$STATUS" != 0 ] || fail "no error of a reset that the target did not accept"
	comes_back
	compare 65536
	leave
}

subsystem_resets_that_fail() {
	! driver_is_c || skip "nvme-rdma stays in the state RESETTING"
	resets_subsystem status 0x2
	resets_subsystem hang-up
}

# A target that resets itself at once answers nothing any more. The host notices by the time-out of its command.
subsystem_reset_that_is_dropped() {
	! driver_is_c || skip "nvme-rdma stays in the state RESETTING"
	local limit=/sys/module/nvme_core/parameters/admin_timeout
	echo $((2 * SLOWDOWN)) >"$limit"
	defer eval "echo 60 >$limit"
	resets_subsystem silent
}

# The target does not answer the connection request. SIGINT ends `nvme connect`, which leaves nothing.
connect_is_interrupted() {
	local began connect
	hostile request silent
	env --default-signal=INT nvme connect -t rdma -a "$TARGET4" -s "$SERVICE" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" \
		2>"$SCRATCH/errors" >"$SCRATCH/output" &
	connect=$!
	defer end_process $connect
	wait_until "$SOON" seen '- request' || fail "the target got no connection request"
	began=$(now)
	kill -INT $connect
	wait_until "$SOON" process_ended $connect || fail "nvme connect did not end: $(kernel_log | tail -3)"
	at_most "the end of nvme connect took" $(($(now) - began)) 1000
	[ ! -e /sys/class/nvme/nvme0 ] || fail "a controller remains"
	end_process "$TARGET"
}

failed_connects() {
	! driver_is_c || COMMAND_SECONDS=$((180 * SLOWDOWN))
	refused 'rejected' request reject 6 4
	refused 'failed to connect queue: 0' connect status 0x184
	refused 'the target disconnected' connect hang-up
	refused 'the target disconnected' controller hang-up
	refused 'the target disconnected' connect-io hang-up
	refused 'not in flight' connect cid 0x0fff
	refused 'response of 15 bytes' capabilities length 15
	refused 'keyed' controller poke 1 536 4
	refused 'unable to set any I/O queues' queues status 0x4006
}

main setup \
	good_target \
	leaves_keys_alone \
	broken_responses \
	writes_in_place_of_a_response \
	answers_twice \
	foreign_invalidations \
	invalidates_another_key \
	lost_while_firmware_is_activated \
	administrative_for_a_time \
	deleted_while_administrative \
	leaves_protection_to_the_target \
	times_out \
	subsystem_resets_that_fail \
	subsystem_reset_that_is_dropped \
	connect_is_interrupted \
	failed_connects
