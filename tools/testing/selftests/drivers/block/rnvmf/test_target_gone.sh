#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests loss of the target, or of the path to it: the host detects it in time, reports the cause and
# fails I/O.

. "$(dirname "$0")/lib.sh"

# Errors by which the host detects a silent target: a missing response, or exhausted retries.
NO_ANSWER='keep-alive: no response|transport retry counter exceeded|stopped by the RDMA device'

# No reconnect: a lost connection makes the controller dead.
CONNECT_OPTIONS=(--ctrl-loss-tmo 0)

setup() {
	modprobe rnvmf
}

# The connect resolves the neighbour.
neighbour_not_yet_known() {
	start_pair
	ip -n "$HOST_NETNS" neighbour flush dev rnvmf1
	connect "$TARGET4"
	disconnect "$CTRL"
	ip -n "$HOST_NETNS" neighbour flush dev rnvmf1
	connect "$TARGET6"
}

# The target closes all connections of the port, and its listener.
port_removed_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	target_unexport 4420 "$NQN"
	target_port_delete 4420
	io_fails
	# soft-RoCE may repeat a memory registration before the disconnect is known, and then stops the queue pair.
	is_dead 'disconnected|stopped by the RDMA device'
	expect 1 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN"
	has "$ERRORS" 'connection refused'
}

# The target removes the controller while the connection is idle; the host detects the disconnect.
port_removed_while_idle() {
	start_pair
	connect "$TARGET4" -k 0
	target_unexport 4420 "$NQN"
	is_dead 'disconnected'
}

target_driver_unloaded_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	target_unexport 4420 "$NQN"
	target_unexport 4421 "$NQN"
	run rmmod nvmet-rdma
	io_fails
	is_dead 'disconnected|stopped by the RDMA device'
}

# The target disables the namespace; the controller stays live.
namespace_disabled_under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	echo 0 >"$NVMET/subsystems/$NQN/namespaces/1/enable"
	wait_until "$SOON" process_ended "$IO" || fail "fio did not exit"
	has "$(<"$SCRATCH/fio")" 'error'
	same state live "$(ctrl_field "$CTRL" state)"
	disconnect "$CTRL"
}

# The keep-alive detects a silent target within 1.5 times its timeout. With I/O in flight the device may
# detect it earlier.
silence_under_io() {
	start_pair
	takes 3500 finds_out_under_io
}

finds_out_under_io() {
	connect "$TARGET4" -k $((2 * SLOWDOWN))
	start_io
	finds_out_in_silence
	io_fails
	is_dead "$NO_ANSWER"
	silence_ends
}

silence_while_idle() {
	start_pair
	takes 3500 finds_out_while_idle
}

finds_out_while_idle() {
	connect "$TARGET4" -k $((2 * SLOWDOWN))
	finds_out_in_silence
	is_dead "$NO_ANSWER"
	silence_ends
}

# finds_out_in_silence: silence the target. TOOK is the time until the controller leaves the state live.
finds_out_in_silence() {
	local began
	began=$(now)
	silence
	loses
	TOOK=$(($(now) - began))
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	note "loss detected after $TOOK ms: $(ctrl_field "$CTRL" message)"
	has "$(ctrl_field "$CTRL" stage)" '^(keep-alive|transport)$'
}

# Disconnecting a live controller removes its disks and shuts the controller down. With one disk and one I/O queue
# the benchmark's guard checks for less than 100 ms.
disconnect_of_a_live_one() {
	local nsid
	start_pair
	for nsid in 2 3 4; do
		backend_memory "disk$nsid" 64 512
		target_namespace "$NQN" "$nsid" "$BACKEND"
	done
	takes 500 connects_and_disconnects
}

connects_and_disconnects() {
	connect "$TARGET4"
	[ -b "/dev/${CTRL}n4" ] || fail "/dev/${CTRL}n4 does not exist"
	same state live "$(ctrl_field "$CTRL" state)"
	timed_disconnect "$CTRL"
	no_disks || fail "a disk remains"
}

# Disconnecting from a silent target must not wait long for it.
disconnect_in_silence() {
	start_pair
	takes 1000 disconnects_in_silence
}

disconnects_in_silence() {
	connect "$TARGET4" -k 0
	silence
	timed_disconnect "$CTRL"
	silence_ends
}

# Disconnecting a dead controller must not wait for the target at all.
# hold DISK: start a process that has the disk open exclusively, as a file system does. HOLDER is its
# PID.
hold() {
	python3 - "$1" "$SCRATCH/held" <<-'PYTHON' &
		import os, signal, sys
		os.open(sys.argv[1], os.O_RDONLY | os.O_EXCL)
		open(sys.argv[2], "w").close()
		signal.pause()
	PYTHON
	HOLDER=$!
	defer end_process $HOLDER
	wait_until "$SOON" [ -e "$SCRATCH/held" ] || fail "$1 is not open"
}

# A connect replaces a dead controller, unless its disk is in use.
dead_one_is_replaced() {
	local id options again=(connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN")
	start_pair
	connect "$TARGET4"
	hold "$(disk "$CTRL" 1)"
	port_goes
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	port_is_back
	for options in '' --idempotent; do
		# shellcheck disable=SC2086 # no word if empty
		expect 4 "${RNVMF[@]}" "${again[@]}" $options
		has "$ERRORS" "^rnvmf: [^:]*:4420: $CTRL exists and is dead: .*; /dev/${CTRL}n1 is in use: unmount it and connect again, or rnvmf disconnect -d $CTRL\$"
	done
	id=$(ctrl_field "$CTRL" id)
	end_process "$HOLDER"
	run "${RNVMF[@]}" "${again[@]}" --ctrl-loss-tmo 0
	same "standard output" "$CTRL: connected to $NQN at $TARGET4:4420" "$OUTPUT"
	[ "$(ctrl_field "$CTRL" id)" != "$id" ] || fail "$CTRL is not a new controller"
	run dd if="/dev/${CTRL}n1" of=/dev/null bs=4k count=1 iflag=direct
	port_goes
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	port_is_back
	run "${RNVMF[@]}" connect-all -a "$TARGET4" -q "$HOSTNQN"
	has "$OUTPUT" "$CTRL: connected to $NQN at $TARGET4:4420"
	disconnect "$CTRL"
}

disconnect_of_a_dead_one() {
	start_pair
	takes 1000 dies_and_disconnects
}

dies_and_disconnects() {
	connect "$TARGET4"
	port_goes
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	timed_disconnect "$CTRL"
	port_is_back
}

# A disconnect removes a disk that is in use.
disconnect_under_io() {
	local disk
	start_pair
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	start_io
	disconnect "$CTRL"
	LOST=$REMOVED io_fails
	[ ! -e "$disk" ] || fail "$disk was not removed"
}

# The target goes away during a disconnect, so dirty pages cannot be written. The disconnect must
# end.
disconnect_with_dirty_pages() {
	local disk pid
	start_pair
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run dd if=/dev/zero of="$disk" bs=1M count=48 conv=notrunc
	"${RNVMF[@]}" disconnect -d "$CTRL" >"$SCRATCH/disconnect" 2>&1 &
	pid=$!
	defer end_process $pid
	wait_until "$SOON" not_live || fail "the disconnect did not begin"
	target_unexport 4420 "$NQN"
	wait_until 30 process_ended $pid || fail "the disconnect did not exit"
	wait $pid
	[ ! -e "$disk" ] || fail "$disk was not removed"
}

not_live() {
	! state_is "$CTRL" live
}

# Lost packets are retransmitted, or the host reconnects, and the data is correct; see test_loss.sh.
loses_packets() {
	local CONNECT_OPTIONS=(-c 1) COMMAND_SECONDS=$((300 * SLOWDOWN))
	start_pair
	connect "$TARGET4" -k 0
	echo 5000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	run tc qdisc add dev rnvmf0 root netem loss 0.5% seed 7
	run fio --name=verify --filename="$(disk "$CTRL" 1)" --direct=1 --ioengine=libaio \
		--rw=randwrite --bs=16k --size=2m --iodepth=4 --verify=crc32c --verify_fatal=1 \
		--verify_state_save=0 --minimal
	comes_back
}

main setup \
	neighbour_not_yet_known \
	port_removed_under_io \
	port_removed_while_idle \
	target_driver_unloaded_under_io \
	namespace_disabled_under_io \
	silence_under_io \
	silence_while_idle \
	disconnect_of_a_live_one \
	disconnect_in_silence \
	disconnect_of_a_dead_one \
	dead_one_is_replaced \
	disconnect_under_io \
	disconnect_with_dirty_pages \
	loses_packets
