#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests resets: I/O waits and continues, and the target sees an orderly reset. Also tests that
# changed settings apply at once.

. "$(dirname "$0")/lib.sh"

# The host reconnects quickly, and has no keep-alive that would detect a silent target.
CONNECT_OPTIONS=(-c 1 -k 0)

RESETS=$(in_a_long_run 200 25)

# Objects that other activity may add to a kmalloc cache. A leak of one object a reset exceeds this.
NOISE=$((RESETS * 4 / 5))

# Less I/O than in other files, because there are many tests.
VERIFY_OPTIONS=(--io_size=6m)

setup() {
	modprobe rnvmf
}

resets_under_io() {
	local _
	start_pair
	connect "$TARGET4"
	start_verify
	for _ in 1 2; do
		run "${RNVMF[@]}" reset "$CTRL"
		same output "$CTRL: reset" "$OUTPUT"
		same state live "$(ctrl_field "$CTRL" state)"
	done
	has "$("${RNVMF[@]}" reset "$CTRL" -o json)" "\"device\":\"$CTRL\""
	is_verified
	connected_anew 3 0
}

# A reset disables the controller and enables a new one. A disconnect shuts that one down.
target_is_told() {
	network_single
	backend_memory disk 64 512
	target_simple "$BACKEND"
	connect "$TARGET4"
	trace_start "$COMMANDS"
	run rnvmf reset "$CTRL"
	# CC without EN is written twice: to disable the old controller and to configure the new
	# one.
	same "number of CC writes without EN" 2 "$(traced 'ofst=0x14, value=0x460060')"
	same "number of CC writes with EN" 1 "$(traced 'ofst=0x14, value=0x460061')"
	disconnect "$CTRL"
	same "number of shutdowns" 1 "$(traced 'ofst=0x14, value=0x464061')"
}

many_resets_without_growth() {
	local objects
	network_single
	backend_memory disk 64 512
	target_simple "$BACKEND"
	# Fewer tags than requests of fio.
	connect "$TARGET4" -i 1 -Q 16
	objects=$(rdma_objects)
	# What is allocated once and kept is allocated now, also the pages of the backend.
	run dd if=/dev/zero of="$BACKEND" bs=1M count=64 oflag=direct
	resets 3
	slab_steady_while "$NOISE" resets_and_back "$objects"
}

# resets_and_back OBJECTS: reset RESETS times under I/O, then check that the RDMA objects are
# OBJECTS again.
resets_and_back() {
	IO_OPTIONS=(--rate_iops=0)
	start_io
	resets "$RESETS" all_tags_are_taken
	end_process $IO
	rdma_back_to "$1"
}

# resets COUNT [CONDITION]: reset COUNT times, each time when CONDITION is true.
resets() {
	local i
	for ((i = 0; i < $1; i++)); do
		[ $# = 1 ] || wait_until "$SOON" "$2" ||
			fail "reset $i: $2 is not true; $(inflight) requests in flight"
		run rnvmf reset "$CTRL"
	done
}

# inflight: print the number of requests in flight.
inflight() {
	local reads writes
	read -r reads writes <"/sys/block/${CTRL}n1/inflight"
	echo $((reads + writes))
}

no_tag_is_taken() {
	[ "$(inflight)" = 0 ]
}

# A queue of 16 entries holds 15 commands.
all_tags_are_taken() {
	[ "$(inflight)" -ge 15 ]
}

# A flood of admin commands from user space must not starve the host's own admin commands.
resets_under_a_flood_of_admin_commands() {
	local _ asked
	start_pair
	connect "$TARGET4" --timeout $((10 * SLOWDOWN))
	: >"$SCRATCH/asked"
	for _ in {1..6}; do
		ask_all_the_time &
		defer end_process $!
	done
	for _ in 1 2 3; do
		asked=$(wc -l <"$SCRATCH/asked")
		wait_until 20 asked_since "$asked" || fail "no admin commands are completed"
		run "${RNVMF[@]}" reset "$CTRL"
	done
}

ask_all_the_time() {
	while [ -b "/dev/${CTRL}n1" ]; do
		if nvme id-ctrl "/dev/${CTRL}n1" >/dev/null 2>&1; then
			echo answered
		fi >>"$SCRATCH/asked"
	done
}

# asked_since NUMBER: whether at least NUMBER + 10 commands have completed.
asked_since() {
	[ "$(wc -l <"$SCRATCH/asked")" -ge $(($1 + 10)) ]
}

only_a_live_one() {
	start_pair
	expect 3 "${RNVMF[@]}" reset rnvmf77
	has "$ERRORS" 'no controller rnvmf77'
	connect "$TARGET4"
	port_goes
	wait_until "$SOON" state_is "$CTRL" connecting || fail "$CTRL is not in state connecting"
	expect 1 "${RNVMF[@]}" reset "$CTRL"
	has "$ERRORS" "reset $CTRL: the controller is connecting; only a live controller can be reset"
	run "${RNVMF[@]}" set "$CTRL" -l 0
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is not in state dead"
	expect 1 "${RNVMF[@]}" reset "$CTRL"
	has "$ERRORS" 'the controller is dead'
}

# start_reset: start a reset that cannot end, because the target is silent. RESET is its PID. The state is
# resetting at first, and connecting after some seconds.
#
# fio is paused while the silence begins. When soft-RoCE retransmits lost packets it repeats memory
# registrations, which fails and moves the queue pair to the error state. The connection would then
# be lost before the reset.
start_reset() {
	if pkill -STOP -x fio; then
		defer io_goes_on
		wait_until "$SOON" no_tag_is_taken || fail "$(inflight) requests in flight after fio was stopped"
	fi
	silence
	"${RNVMF[@]}" reset "$CTRL" >"$SCRATCH/reset" 2>&1 &
	RESET=$!
	defer end_process $RESET
	wait_until "$SOON" is_not_live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	io_goes_on
}

io_goes_on() {
	pkill -CONT -x fio || true
}

# reset_ends STATUS PATTERN: the reset must exit with STATUS and a message that matches. If nothing else ends it, it
# takes up to two connect time-outs, of 2 s each.
reset_ends() {
	local status=0
	wait_until 6 process_ended "$RESET" || fail "the reset did not exit"
	wait "$RESET" || status=$?
	same "status of the reset with output '$(<"$SCRATCH/reset")'" "$1" $status
	has "$(<"$SCRATCH/reset")" "$2"
}

# The state is resetting until the first attempt. Before that, the reset waits for the silent target for 10 s.
not_two_at_once() {
	local state=resetting
	on_time || state='(resetting|connecting)'
	start_pair
	connect "$TARGET4"
	start_reset
	expect 1 "${RNVMF[@]}" reset "$CTRL"
	has "$ERRORS" "the controller is $state"
	silence_ends
	comes_back
}

target_goes_during_a_reset() {
	start_pair
	connect "$TARGET4" --timeout $((2 * SLOWDOWN))
	start_verify
	start_reset
	reset_ends 5 "reset $CTRL: .*; reconnecting continues"
	silence_ends
	comes_back
	is_verified
	connected_anew 0 1
}

target_refuses_after_a_reset() {
	start_pair
	connect "$TARGET4"
	start_verify
	echo 0 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	expect 1 "${RNVMF[@]}" reset "$CTRL" -o json
	has "$ERRORS" 'this host is not allowed.*"stage":"fabrics-connect"'
	echo 1 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	is_verified
}

disconnect_during_a_reset() {
	start_pair
	takes 1000 resets_and_disconnects
}

resets_and_disconnects() {
	connect "$TARGET4"
	start_io
	start_reset
	timed_disconnect "$CTRL"
	LOST=$REMOVED io_fails
	reset_ends 1 'the controller was removed meanwhile'
	silence_ends
}

unload_during_a_reset() {
	start_pair
	connect "$TARGET4"
	start_reset
	run rmmod rnvmf
	defer modprobe rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
	reset_ends 1 'the controller was removed meanwhile'
}

settings_are_shown() {
	start_pair
	connect "$TARGET4"
	run "${RNVMF[@]}" set "$CTRL" --reconnect-delay 3 --ctrl-loss-tmo 100 --fast_io_fail_tmo 7 \
		--timeout 20
	same output "$CTRL: set" "$OUTPUT"
	run "${RNVMF[@]}" show "$CTRL"
	has "$OUTPUT" 'connect timeout +20 s'
	has "$OUTPUT" 'reconnect delay +3 s'
	has "$OUTPUT" 'given up after +100 s'
	has "$OUTPUT" 'I/O fails after +7 s'
	# Other settings stay.
	run "${RNVMF[@]}" set "$CTRL" -l -1 -o json
	has "$OUTPUT" "\"device\":\"$CTRL\""
	run "${RNVMF[@]}" show "$CTRL" -o json
	has "$OUTPUT" '"connect_timeout":20000,"reconnect_delay":3,"ctrl_loss_tmo":-1,"fast_io_fail_tmo":7'
	same "reconnect_delay in sysfs" 3 "$(<"/sys/class/rnvmf/$CTRL/reconnect_delay")"
	expect 2 "${RNVMF[@]}" set "$CTRL"
	expect 2 "${RNVMF[@]}" set "$CTRL" -k 5
	has "$ERRORS" "unexpected argument '-k'"
	expect 2 "${RNVMF[@]}" set "$CTRL" -c 0
	expect 2 "${RNVMF[@]}" set "$CTRL" --timeout 0
	has "$ERRORS" "invalid value '0' for '--timeout"
	expect 2 "${RNVMF[@]}" set "$CTRL" --timeout 601
	expect 3 "${RNVMF[@]}" set rnvmf77 -c 1
	run "${RNVMF[@]}" reset "$CTRL"
	same "reconnect_delay after a reset" 3 "$(ctrl_number reconnect_delay)"
}

# Time-outs that are set during a connection loss apply at once, and count from the loss.
settings_count_while_it_tries() {
	start_pair
	connect "$TARGET4"
	start_io
	port_goes
	loses
	run "${RNVMF[@]}" set "$CTRL" -F 0
	io_fails
	! state_is "$CTRL" dead || fail "$CTRL is dead"
	# With a longer time-out I/O waits again, until the target is back.
	run "${RNVMF[@]}" set "$CTRL" -F -1
	wait_until "$SOON" is_held_again || fail "I/O is not queued again"
	dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct 2>"$SCRATCH/dd" &
	IO=$!
	defer end_process $IO
	port_is_back
	comes_back
	wait $IO || fail "a read failed: $(<"$SCRATCH/dd")"
	port_goes
	loses
	run "${RNVMF[@]}" set "$CTRL" -l 0
	is_dead 'connection refused|disconnected'
}

is_held_again() {
	[[ $(kernel_log) == *"fast_io_fail_tmo raised: holding I/O again"* ]]
}

main setup \
	resets_under_io \
	target_is_told \
	many_resets_without_growth \
	resets_under_a_flood_of_admin_commands \
	only_a_live_one \
	not_two_at_once \
	target_goes_during_a_reset \
	target_refuses_after_a_reset \
	disconnect_during_a_reset \
	unload_during_a_reset \
	settings_are_shown \
	settings_count_while_it_tries
