#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A connection that is lost comes back by itself, and no byte of what was written meanwhile is
# wrong; or it is given up when the user said so.

. "$(dirname "$0")/lib.sh"

# A host that is quick to see a loss, and to try again.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

LOSSES=200

# What other activity may add to a kmalloc cache meanwhile; one object leaked a loss is more.
NOISE=$((LOSSES * 4 / 5))

setup() {
	modprobe rnvmf
}

target_comes_back_under_io() {
	start_pair
	connect "$TARGET4"
	start_verify
	port_goes
	loses
	has "$(ctrl_field "$CTRL" message)" 'disconnected|connection refused'
	port_is_back
	comes_back
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

# target_is_at LINK_ADDRESS: the host takes it there from now on.
target_is_at() {
	run ip netns exec "$HOST_NETNS" ip neigh replace "$TARGET4" lladdr "$1" dev rnvmf1 nud permanent
}

# The address of the target leads to another machine, of which the connection manager tells, and back.
address_moves_under_io() {
	# Nothing else tells of it that soon.
	local CONNECT_OPTIONS=(-k $((10 * SOON)) -c 1 --timeout $((5 * SLOWDOWN)))
	start_pair
	connect "$TARGET4"
	start_verify
	target_is_at 02:00:00:00:00:99
	loses
	has "$(kernel_log)" "$CTRL: .*the target does not answer"
	# That nobody is there ends each attempt.
	wait_until "$SOON" tries_again || fail "no attempts: $OUTPUT"
	is_not_live || fail "it is live"
	target_is_at "$(</sys/class/net/rnvmf0/address)"
	comes_back
	is_verified
}

again_and_again() {
	local _
	start_pair
	connect "$TARGET4"
	start_verify
	for _ in 1 2 3; do
		port_goes
		loses
		port_is_back
		comes_back
	done
	is_verified
}

# For a long run: it takes its time.
many_losses_without_growth() {
	local CONNECT_OPTIONS=(-k $((5 * SLOWDOWN)) -c 1 --timeout $((5 * SLOWDOWN)) -i 2 -Q 16) objects
	network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
	connect "$TARGET4"
	# What is made once and kept is made now, and the backend has its pages.
	run dd if=/dev/zero of="$BACKEND" bs=1M count=64 oflag=direct
	start_monitor
	losses 3
	objects=$(rdma_objects)
	slab_steady_while $NOISE losses_and_back "$objects"
}

# losses_and_back OBJECTS: under I/O, after which there are these RDMA objects again.
losses_and_back() {
	start_io
	losses $LOSSES
	end_process $IO
	rdma_back_to "$1"
}

# losses COUNT
losses() {
	local i
	for ((i = 0; i < $1; i++)); do
		LIVE=$(times_live)
		# The target ends its controllers when this is written.
		echo $((2 + i % 2)) >"$NVMET/subsystems/$NQN/attr_qid_max"
		wait_until "$SOON" was_live_again || fail "it is $(ctrl_field "$CTRL" state)"
	done
}

# How often the controller has come back.
times_live() {
	awk -v line="ctrl-change $CTRL live" 'index($0, line) == 1 { times++ } END { print times + 0 }' \
		"$SCRATCH/events"
}

was_live_again() {
	[ "$(times_live)" -gt "$LIVE" ]
}

# start_alone: a process writes, which the target does not end before thaw(), and another waits for
# that, as it wants to format the namespace without any I/O beside it. They are in IO and ALONE.
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
	wait_until "$SOON" is_writing || fail "there is no I/O: $(<"$SCRATCH/dd")"
	nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1 >"$SCRATCH/alone" 2>&1 &
	ALONE=$!
	defer end_process $ALONE
	wait_until "$SOON" freezes $ALONE || fail "it does not wait: $(<"$SCRATCH/alone")"
}

# backend_frozen: a loop device in a file system that can be frozen.
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

# freezes PROCESS
freezes() {
	[[ $(cat "/proc/$1/task/$1/stack" "/proc/$1/wchan" 2>/dev/null) == *freeze* ]]
}

# Who holds I/O back does not hold up the recovery that the I/O under way needs.
lost_while_a_command_waits_to_be_alone() {
	# The target must not hear of it: it would wait for its write, and answer nobody until then.
	local CONNECT_OPTIONS=(-k 0 -c 1 --timeout $((5 * SLOWDOWN)))
	start_alone
	silence
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	loses
	silence_ends
	rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
	comes_back
	thaw
	wait_until "$SOON" process_ended $IO || fail "the write still waits"
	wait_until "$SOON" process_ended $ALONE || fail "the command still waits"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
}

# Nor a removal, while some of the disks are frozen.
disconnect_while_a_command_waits_to_be_alone() {
	start_alone
	silence
	disconnect "$CTRL"
	wait_until "$SOON" process_ended $ALONE || fail "the command still waits"
	wait_until "$SOON" process_ended $IO || fail "the write still waits"
	no_disks || fail "a disk is left"
	thaw
}

# hangs: a thread of the kernel is in a function of ours, and not idle.
hangs() {
	local thread
	for thread in /proc/[0-9]*; do
		[ -e "$thread/exe" ] && continue
		[[ $(cat "$thread/stack" 2>/dev/null) == *"[rnvmf]"* ]] || continue
		! grep -q '^State:.*disk sleep' "$thread/status" || return 0
	done
	return 1
}

# However long one waits to be alone, others are idle who wait for him, so that none is reported as
# a hung task; and he can be interrupted.
waits_to_be_alone_do_not_hang() {
	start_alone
	"${RNVMF[@]}" rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	local rescan=$!
	defer end_process $rescan
	! wait_until 3 hangs || fail "a thread hangs"
	! process_ended $rescan || fail "it did not wait: $(<"$SCRATCH/rescan")"
	kill -TERM $ALONE
	wait_until "$SOON" process_ended $ALONE || fail "it cannot be interrupted"
	wait_until "$SOON" process_ended $rescan || fail "the disks are not looked at"
	! process_ended $IO || fail "the write has ended"
	thaw
	wait_until "$SOON" process_ended $IO || fail "the write still waits"
}

# How it goes on can be seen.
attempts_are_told() {
	start_pair
	connect "$TARGET4"
	start_monitor
	port_goes
	wait_until "$SOON" tries_again || fail "no attempts: $OUTPUT"
	run "${RNVMF[@]}" show "$CTRL"
	has "$OUTPUT" 'attempts to connect +[0-9]+, (next in [0-9]+ s|the last one under way), given up in (5[0-9][0-9]|600) s'
	run "${RNVMF[@]}" set "$CTRL" -l -1
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT == *"attempts to connect"* && $OUTPUT != *"given up in"* ]] || fail "it has an end: $OUTPUT"
	has "$OUTPUT" 'error +connection refused '
	has "$(<"$SCRATCH/events")" "ctrl-change $CTRL connecting .*: connection refused "
	connected_anew 0 0
	port_is_back
	comes_back
	connected_anew 0 1
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT != *"attempts to connect"* ]] || fail "attempts of a live controller: $OUTPUT"
}

# What somebody may have to see to, and what somebody has to, can be told from the rest of the log.
log_has_levels() {
	start_pair
	connect "$TARGET4"
	port_goes
	loses
	wait_until "$SOON" tries_again || fail "no attempts: $OUTPUT"
	same "lines of a connection" 1 "$(logged_as info "$CTRL: connected to $NQN")"
	same "warnings of the loss" 1 "$(logged_as warn "$CTRL: connection of queue [0-9]+ lost: ")"
	same "warnings of an attempt" 1 "$(logged_as warn "$CTRL: reconnect attempt 1 failed: ")"
	same "errors so far" 0 "$(logged_as err "$CTRL: ")"
	run "${RNVMF[@]}" set "$CTRL" -l 0
	is_dead 'connection refused'
	same "errors" 1 "$(logged_as err "$CTRL: connection refused ")"
}

is_given_up() {
	local began
	start_pair
	connect "$TARGET4" -l 3
	start_io
	began=$(now)
	silence
	io_fails_after 3 "$began"
	is_dead 'timed out after|does not answer|keep-alive: no response'
}

io_fails_before_it_is_given_up() {
	local began
	start_pair
	connect "$TARGET4" -l 600 -F 3
	start_io
	began=$(now)
	silence
	io_fails_after 3 "$began"
	is_not_live || fail "it is live"
	! state_is "$CTRL" dead || fail "it is dead"
	# The attempt that was under way had less time than the user gives to one.
	has "$(ctrl_field "$CTRL" message)" 'timed out after ([0-2]?[0-9]{1,3} ms|[12] s)'
	silence_ends
	comes_back
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# What is set while it tries counts for the attempts that begin from then on.
attempts_take_as_long_as_is_set() {
	local seconds
	start_pair
	connect "$TARGET4"
	silence
	loses
	for seconds in $((2 * SLOWDOWN)) $((4 * SLOWDOWN)); do
		run "${RNVMF[@]}" set "$CTRL" --timeout "$seconds"
		wait_until "$SOON" attempt_took "$seconds" ||
			fail "no attempt of $seconds s, but: $(ctrl_field "$CTRL" message)"
	done
	silence_ends
	comes_back
}

# attempt_took SECONDS: the last one failed then. Its last step has less, as the others took their time.
attempt_took() {
	local took
	[[ $(ctrl_field "$CTRL" message) =~ timed\ out\ after\ ([0-9]+)\ (ms|s) ]] || return
	took=${BASH_REMATCH[1]}
	[ "${BASH_REMATCH[2]}" = ms ] || took=$((took * 1000))
	[ "$took" -gt $((($1 - 1) * 1000)) ] && [ "$took" -le $(($1 * 1000)) ]
}

disconnect_while_it_tries() {
	start_pair
	one_takes 1000 tries_and_disconnects
}

tries_and_disconnects() {
	connect "$TARGET4"
	start_io
	silence
	loses
	wait_until "$SOON" is_trying || fail "it does not try: $OUTPUT"
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
	no_disks || fail "a disk is left of an unloaded module"
}

# Another namespace under the same number gets none of what was meant for the first.
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
	wait_until "$SOON" other_disk "$first" || fail "there is no new disk"
	run cmp -n 1048576 "$(disk "$CTRL" 1)" /dev/zero
}

# A disk goes on with the size that its namespace has now. User space is told of it by the kernel, with a
# lock that others have who wait for I/O: so not by the thread that lets I/O go on.
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
	wait_until "$SOON" size_is 100663296 || fail "its size is another one"
	trace_has ' rnvmf_resize: '
	trace_lacks "^ *$CTRL-[0-9]+ .* rnvmf_resize: "
}

# trace_resizes: who has the kernel tell user space of another size.
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

# The disks follow the number of queues that the target grants, fewer and then more, and what was
# on its way on each of them gets there.
queues_follow_what_is_granted() {
	start_pair
	connect "$TARGET4" -i 2
	same queues 2 "$(ctrl_field "$CTRL" nr_io_queues)"
	has_hardware_queues 2 || fail "the disk has other queues"
	VERIFY_OPTIONS=(--numjobs=2 --io_size=6m --offset_increment=6m)
	start_verify
	# The target ends its controllers when this is written.
	echo 1 >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_hardware_queues 1 || fail "the disk does not have one queue"
	same queues 1 "$(ctrl_field "$CTRL" nr_io_queues)"
	echo 2 >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_hardware_queues 2 || fail "the disk does not have two queues"
	same queues 2 "$(ctrl_field "$CTRL" nr_io_queues)"
	is_verified
}

has_hardware_queues() {
	local queues=("/sys/block/${CTRL}n1/mq/"*)
	[ ${#queues[@]} = "$1" ]
}

# Asking again is in vain if the target says so.
refused_for_ever_is_dead() {
	start_pair
	connect "$TARGET4"
	start_io
	port_goes
	loses
	echo 0 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	port_is_back
	io_fails
	is_dead 'not allowed'
}

# shellcheck disable=SC2046 # none, where the run is not long
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
	refused_for_ever_is_dead
