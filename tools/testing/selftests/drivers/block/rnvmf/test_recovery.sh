#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests reconnecting after a connection loss: verified I/O continues without errors, or fails after
# the configured times.

. "$(dirname "$0")/lib.sh"

# The host detects a loss and reconnects quickly.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

# Options for tests of a target that disconnects: the keep-alive timeout does not expire.
PATIENT=(-k $((10 * SLOWDOWN)) -c 1 --timeout $((5 * SLOWDOWN)))

LOSSES=200

# Objects that other activity may add to a kmalloc cache. A leak of one object a loss exceeds this.
NOISE=$((LOSSES * 4 / 5))

setup() {
	modprobe rnvmf
}

target_comes_back_under_io() {
	local CONNECT_OPTIONS=("${PATIENT[@]}")
	start_pair
	connect "$TARGET4"
	start_verify
	port_goes
	loses
	has "$(ctrl_field "$CTRL" message)" 'disconnected|connection refused|stopped by the RDMA device'
	port_is_back
	comes_back
	has "$("${RNVMF[@]}" show "$CTRL")" $'\nlast error +[0-9]+ s ago, recovered since: [a-z]'
	is_verified
}

silence_under_io() {
	start_pair
	connect "$TARGET4"
	start_verify
	silence
	loses
	sleep 2
	silence_ends
	comes_back
	is_verified
}

device_comes_back_under_io() {
	start_pair
	connect "$TARGET4"
	start_verify
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	loses
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	is_verified
}

# target_is_at LINK_ADDRESS: set a static neighbour entry for the target at the host.
target_is_at() {
	run ip netns exec "$HOST_NETNS" ip neigh replace "$TARGET4" lladdr "$1" dev rnvmf1 nud permanent
}

# The neighbour entry of the target changes to an unused address and back. The connection manager
# reports the change. fio is paused meanwhile: soft-RoCE would stop a queue pair that retransmits a memory
# registration.
address_moves_under_io() {
	# The keep-alive must not detect the loss first.
	local CONNECT_OPTIONS=(-k $((10 * SOON)) -c 1 --timeout $((5 * SLOWDOWN)) --cqt 0)
	start_pair
	connect "$TARGET4"
	start_verify
	pkill -STOP -x fio
	defer io_goes_on
	wait_until "$SOON" nothing_in_flight || fail "requests are in flight after fio was stopped"
	target_is_at 02:00:00:00:00:99
	loses
	wait_for_log "$SOON" "$CTRL: .*the target does not answer" || fail "the cause is not in the log"
	io_goes_on
	# Each attempt fails, because no host has that address.
	wait_until "$SOON" tries_again || fail "no reconnect attempts: $OUTPUT"
	is_not_live || fail "$CTRL is live"
	target_is_at "$(</sys/class/net/rnvmf0/address)"
	comes_back
	is_verified
}

io_goes_on() {
	pkill -CONT -x fio || true
}

nothing_in_flight() {
	[ "$(tr -d ' \n' <"/sys/block/${CTRL}n1/inflight")" = 00 ]
}

again_and_again() {
	start_pair
	connect "$TARGET4"
	port_goes_and_returns
}

# Only in a long run, because it takes long.
many_losses_without_growth() {
	local CONNECT_OPTIONS=(-k $((5 * SLOWDOWN)) -c 1 --timeout $((5 * SLOWDOWN)) -i 2 -Q 16) objects
	network_single
	backend_memory disk 64 512
	target_simple "$BACKEND"
	connect "$TARGET4"
	objects=$(rdma_objects)
	# What is allocated once and kept is allocated now, also the pages of the backend.
	run dd if=/dev/zero of="$BACKEND" bs=1M count=64 oflag=direct
	start_monitor
	losses 3
	slab_steady_while $NOISE losses_and_back "$objects"
}

# losses_and_back OBJECTS: lose LOSSES connections under I/O, then check that the RDMA objects are
# OBJECTS again.
losses_and_back() {
	start_io
	losses $LOSSES
	end_process $IO
	rdma_back_to "$1"
}

# losses COUNT: lose the connection COUNT times, each time after a reconnect.
losses() {
	local i
	for ((i = 0; i < $1; i++)); do
		LIVE=$(times_live)
		# A write to attr_qid_max makes the target delete its controllers.
		echo $((2 + i % 2)) >"$NVMET/subsystems/$NQN/attr_qid_max"
		wait_until "$SOON" was_live_again || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	done
}

# Print how often the controller has become live.
times_live() {
	awk -v line="ctrl-change $CTRL live" 'index($0, line) == 1 { times++ } END { print times + 0 }' \
		"$SCRATCH/events"
}

was_live_again() {
	[ "$(times_live)" -gt "$LIVE" ]
}

# start_alone: start a write that the target completes only after `thaw`, and a Format NVM that
# waits for exclusive access to the namespace. IO and ALONE are their PIDs.
start_alone() {
	network_pair
	backend_frozen
	target_simple "$BACKEND"
	connect "$TARGET4"
	run fsfreeze --freeze "$SCRATCH/frozen"
	defer thaw_if_frozen
	dd if=/dev/zero of="$(disk "$CTRL" 1)" bs=4k count=1 oflag=direct 2>"$SCRATCH/dd" &
	IO=$!
	defer end_process $IO
	wait_until "$SOON" is_writing || fail "no write is in flight: $(<"$SCRATCH/dd")"
	nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1 >"$SCRATCH/alone" 2>&1 &
	ALONE=$!
	defer end_process $ALONE
	wait_until "$SOON" freezes $ALONE || fail "the Format does not wait: $(<"$SCRATCH/alone")"
}

# backend_frozen: create a loop device on a file in a file system that can be frozen.
backend_frozen() {
	run modprobe loop
	truncate -s 32M "$SCRATCH/image"
	run mkfs.ext4 -q "$SCRATCH/image"
	mkdir "$SCRATCH/frozen"
	run mount -o loop "$SCRATCH/image" "$SCRATCH/frozen"
	defer umount "$SCRATCH/frozen"
	backend_loop frozen/disk 8 512
}

thaw() {
	run fsfreeze --unfreeze "$SCRATCH/frozen"
}

thaw_if_frozen() {
	fsfreeze --unfreeze "$SCRATCH/frozen" 2>"$SCRATCH/errors" || true
}

is_writing() {
	local _ writes
	read -r _ writes <"/sys/block/${CTRL}n1/inflight"
	[ "$writes" = 1 ]
}

# A command that freezes the queue must not block the reconnect that the I/O in flight needs.
lost_while_a_command_waits_to_be_alone() {
	# The target must not detect the loss: it would wait for its write and accept no connection.
	local CONNECT_OPTIONS=(-k 0 -c 1 --timeout $((5 * SLOWDOWN)) --cqt 0)
	start_alone
	silence
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	loses
	silence_ends
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	thaw
	wait_until "$SOON" process_ended $IO || fail "the write did not end"
	wait_until "$SOON" process_ended $ALONE || fail "the command did not end"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
}

# Nor must it block a disconnect.
disconnect_while_a_command_waits_to_be_alone() {
	start_alone
	silence
	disconnect "$CTRL"
	wait_until "$SOON" process_ended $ALONE || fail "the command did not end"
	wait_until "$SOON" process_ended $IO || fail "the write did not end"
	no_disks || fail "a disk remains"
	thaw
}

# hangs: whether a kernel thread is in a function of rnvmf in uninterruptible sleep, as in all calls of the last
# 2 s: a sleep may be short. HUNG has the time of the first of these calls, by thread.
hangs() {
	local thread
	local -A seen=()
	for thread in /proc/[0-9]*; do
		[ -e "$thread/exe" ] && continue
		[[ $(<"$thread/stack") == *"[rnvmf]"* ]] || continue
		! grep -qs '^State:.*disk sleep' "$thread/status" || seen[$thread]=${HUNG[$thread]:-$EPOCHSECONDS}
	done 2>/dev/null
	HUNG=()
	for thread in "${!seen[@]}"; do
		HUNG[$thread]=${seen[$thread]}
		[ $((EPOCHSECONDS - seen[$thread])) -lt 2 ] || return 0
	done
	return 1
}

# Threads that wait for a command with exclusive access must sleep as TASK_IDLE, so that none is
# reported as a hung task. The command's own wait can be interrupted.
waits_to_be_alone_do_not_hang() {
	local CONNECT_OPTIONS=("${PATIENT[@]}")
	local -A HUNG=()
	start_alone
	"${RNVMF[@]}" rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	local rescan=$!
	defer end_process $rescan
	! wait_until 5 hangs || fail "a thread of rnvmf is in uninterruptible sleep"
	! process_ended $rescan || fail "the rescan did not wait: $(<"$SCRATCH/rescan")"
	kill -TERM $ALONE
	wait_until "$SOON" process_ended $ALONE || fail "SIGTERM did not end the Format"
	wait_until "$SOON" process_ended $rescan || fail "the rescan did not end"
	! process_ended $IO || fail "the write ended too early"
	thaw
	wait_until "$SOON" process_ended $IO || fail "the write did not end"
}

# `rnvmf show` and the events report the reconnect attempts.
attempts_are_told() {
	local CONNECT_OPTIONS=("${PATIENT[@]}")
	start_pair
	connect "$TARGET4"
	start_monitor
	port_goes
	wait_until "$SOON" tries_again || fail "no reconnect attempts: $OUTPUT"
	# The target rejects an attempt between the end of its connections and that of its listener.
	wait_until "$SOON" says '^connection refused ' || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	run "${RNVMF[@]}" show "$CTRL"
	has "$OUTPUT" 'attempts to connect +[0-9]+, (next in [0-9]+ s|the last one under way), given up in (5[0-9][0-9]|600) s'
	run "${RNVMF[@]}" set "$CTRL" -l -1
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT == *"attempts to connect"* && $OUTPUT != *"given up in"* ]] ||
		fail "the attempts have a time limit: $OUTPUT"
	has "$OUTPUT" 'error +connection refused '
	wait_until "$SOON" grep -qE "ctrl-change $CTRL connecting .*: connection refused " "$SCRATCH/events" ||
		fail "no event of the failed attempt: $(<"$SCRATCH/events")"
	connected_anew 0 0
	port_is_back
	comes_back
	connected_anew 0 1
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT != *"attempts to connect"* ]] || fail "a live controller shows attempts: $OUTPUT"
}

# Log levels: info for connects, warning for losses and failed attempts, error for a dead
# controller.
log_has_levels() {
	local CONNECT_OPTIONS=("${PATIENT[@]}")
	start_pair
	connect "$TARGET4"
	port_goes
	loses
	wait_until "$SOON" tries_again || fail "no reconnect attempts: $OUTPUT"
	wait_until "$SOON" says '^connection refused ' || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	same "number of connects" 1 "$(logged_as info "$CTRL: connected to $NQN")"
	same "number of warnings of the loss" 1 "$(logged_as warn "$CTRL: connection of queue [0-9]+ lost: ")"
	same "number of warnings of an attempt" 1 "$(logged_as warn "$CTRL: reconnect attempt 1 failed: ")"
	same "number of errors before" 0 "$(logged_as err "$CTRL: ")"
	run "${RNVMF[@]}" set "$CTRL" -l 0
	is_dead 'connection refused'
	same "number of errors" 1 "$(logged_as err "$CTRL: connection refused ")"
}

is_given_up() {
	local began
	start_pair
	connect "$TARGET4" -l 3
	start_io
	began=$(now)
	silence
	# The loss is detected after up to 1.5 times the keep-alive timeout.
	io_fails_after 3 "$began" 2500
	is_dead 'timed out after|does not answer|no response|stopped by the RDMA device'
}

io_fails_before_it_is_given_up() {
	local began
	start_pair
	connect "$TARGET4" -l 600 -F 3
	start_io
	began=$(now)
	silence
	# After the loss, writes in flight are held for 3 times the keep-alive timeout, which grows with SLOWDOWN. The
	# 3 s do not grow.
	io_fails_after 3 "$began" $((5500 - 3000 / SLOWDOWN))
	is_not_live || fail "$CTRL is live"
	! state_is "$CTRL" dead || fail "$CTRL is dead"
	# The attempt in progress had less time than the time-out of an attempt.
	has "$(kernel_log)" "$CTRL: reconnect attempt 1 failed: [^"$'\n'"]* timed out after ([0-2]?[0-9]{1,3} ms|[12] s)"
	silence_ends
	comes_back
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# A changed time-out applies to the attempts that begin afterwards.
attempts_take_as_long_as_is_set() {
	local seconds
	start_pair
	connect "$TARGET4"
	silence
	loses
	for seconds in $((2 * SLOWDOWN)) $((4 * SLOWDOWN)); do
		run "${RNVMF[@]}" set "$CTRL" --timeout "$seconds"
		wait_until "$SOON" attempt_took "$seconds" ||
			fail "no attempt timed out after $seconds s: $(ctrl_field "$CTRL" message)"
	done
	silence_ends
	comes_back
}

# attempt_took SECONDS: whether the last attempt timed out after this time. The message has the time
# of its last step, which is less by up to 1 s.
attempt_took() {
	local took
	[[ $(ctrl_field "$CTRL" message) =~ timed\ out\ after\ ([0-9]+)\ (ms|s) ]] || return 1
	took=${BASH_REMATCH[1]}
	[ "${BASH_REMATCH[2]}" = ms ] || took=$((took * 1000))
	[ "$took" -gt $((($1 - 1) * 1000)) ] && [ "$took" -le $(($1 * 1000)) ]
}

disconnect_while_it_tries() {
	start_pair
	takes 1000 tries_and_disconnects
}

tries_and_disconnects() {
	connect "$TARGET4"
	start_io
	silence
	loses
	wait_until "$SOON" is_trying || fail "no reconnect attempt in progress: $OUTPUT"
	timed_disconnect "$CTRL"
	LOST=$REMOVED io_fails
	silence_ends
}

unloads_while_it_tries() {
	start_pair
	connect "$TARGET4"
	port_goes
	loses
	run rmmod rnvmf
	defer modprobe rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
}

# Another namespace with the same NSID gets a new disk, and no I/O of the old disk.
another_namespace_is_another_disk() {
	local first
	start_pair
	connect "$TARGET4"
	start_io
	first=$(disk_number)
	port_goes
	loses
	target_namespace_delete "$NQN" 1
	backend_memory other 64 512
	target_namespace "$NQN" 1 "$BACKEND"
	port_is_back
	comes_back
	LOST=$REMOVED io_fails
	wait_until "$SOON" other_disk "$first" || fail "no new disk was added"
	run cmp -n 1048576 "$(disk "$CTRL" 1)" /dev/zero
}

# After a reconnect the disk has the new size of its namespace. set_capacity_and_notify() takes a
# lock whose holder may wait for I/O, so the controller's thread, which resumes I/O, must not call
# it.
new_size_is_taken_over() {
	network_pair
	backend_file disk 64
	target_simple "$BACKEND"
	connect "$TARGET4"
	same size 67108864 "$(blockdev --getsize64 "$(disk "$CTRL" 1)")"
	port_goes
	loses
	truncate -s 96M "$BACKEND"
	trace_resizes
	port_is_back
	comes_back
	wait_until "$SOON" size_is 100663296 || fail "the disk did not get its new size"
	trace_has ' rnvmf_resize: '
	trace_lacks "^ *$CTRL-[0-9]+ .* rnvmf_resize: "
}

# trace_resizes: record which thread calls set_capacity_and_notify().
trace_resizes() {
	echo 'p:rnvmf_resize set_capacity_and_notify' >>/sys/kernel/tracing/kprobe_events
	defer forget_resizes
	trace_start kprobes/rnvmf_resize
}

forget_resizes() {
	echo '-:rnvmf_resize' >>/sys/kernel/tracing/kprobe_events
}

size_is() {
	[ "$(blockdev --getsize64 "$(disk "$CTRL" 1)")" = "$1" ]
}

# The target grants fewer I/O queues and then more. The disk's hardware queues follow, and no I/O in
# flight is lost.
queues_follow_what_is_granted() {
	start_pair
	connect "$TARGET4" -i 2
	same queues 2 "$(ctrl_field "$CTRL" nr_io_queues)"
	has_hardware_queues 2 || fail "the disk does not have 2 hardware queues"
	VERIFY_OPTIONS=(--numjobs=2 --io_size=6m --offset_increment=6m)
	start_verify
	# A write to attr_qid_max makes the target delete its controllers.
	echo 1 >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_hardware_queues 1 || fail "the disk does not have 1 hardware queue"
	same queues 1 "$(ctrl_field "$CTRL" nr_io_queues)"
	echo 2 >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_hardware_queues 2 || fail "the disk does not have 2 hardware queues again"
	same queues 2 "$(ctrl_field "$CTRL" nr_io_queues)"
	is_verified
}

has_hardware_queues() {
	local queues=("/sys/block/${CTRL}n1/mq/"*)
	[ ${#queues[@]} = "$1" ]
}

# A permanent rejection by the target ends the reconnect attempts.
# A permanent refusal during a reconnect is a failed attempt: the target may still be starting.
refused_while_the_target_starts() {
	start_pair
	connect "$TARGET4"
	start_verify
	port_goes
	loses
	echo 0 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	port_is_back
	wait_until "$SOON" says 'not allowed' || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	target_unexport 4420 "$NQN"
	# Another subsystem keeps the port open.
	target_subsystem "$NQN-other"
	target_export 4420 "$NQN-other"
	wait_until "$SOON" says 'no such subsystem' || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	echo 1 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	target_offer 4420 "$NQN"
	is_verified
}

# Without further attempts a refusal is final.
refused_for_ever_is_dead() {
	start_pair
	connect "$TARGET4"
	start_io
	port_goes
	loses
	echo 0 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	port_is_back
	wait_until "$SOON" says 'not allowed' || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	run "${RNVMF[@]}" set "$CTRL" -l 0
	io_fails
	is_dead 'not allowed'
}

# shellcheck disable=SC2046 # empty if the run is not long
main setup \
	$(in_a_long_run many_losses_without_growth) \
	target_comes_back_under_io \
	silence_under_io \
	device_comes_back_under_io \
	address_moves_under_io \
	again_and_again \
	attempts_are_told \
	log_has_levels \
	is_given_up \
	io_fails_before_it_is_given_up \
	attempts_take_as_long_as_is_set \
	disconnect_while_it_tries \
	unloads_while_it_tries \
	lost_while_a_command_waits_to_be_alone \
	disconnect_while_a_command_waits_to_be_alone \
	waits_to_be_alone_do_not_hang \
	another_namespace_is_another_disk \
	new_size_is_taken_over \
	queues_follow_what_is_granted \
	refused_while_the_target_starts \
	refused_for_ever_is_dead
