#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests rnvmf over soft-iWARP, which runs on TCP connections.

RDMA_TYPE=siw

. "$(dirname "$0")/lib.sh"

# The host detects a loss and reconnects quickly.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

# Less I/O than in other files, because there are many tests.
VERIFY_OPTIONS=(--io_size=6m)

setup() {
	modprobe rnvmf && network_single && backend_memory disk 64 512 && target_simple "$BACKEND"
}

connects_and_disconnects() {
	local objects
	objects=$(rdma_objects)
	for _ in 1 2 3; do
		connect "$TARGET4"
		disk "$CTRL" 1
		disconnect "$CTRL"
	done
	rdma_back_to "$objects"
}

connects_over_ipv6() {
	connect "$TARGET6"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=256k --iodepth=4
}

# Sizes from one block, which is in the capsule, to more than the largest command.
data_of_all_sizes() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bs=512 --size=64k --iodepth=8
	verify "$disk" --rw=randwrite --bs=16k --size=2m --iodepth=8
	verify "$disk" --rw=write --bs=2m --size=8m --iodepth=2
}

# Soft-iWARP compares only a part of the key, so a remote invalidation proves nothing and the host
# invalidates locally.
target_is_not_believed_to_invalidate() {
	connect "$TARGET4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=4 iflag=direct
	run rnvmf stats "$CTRL" -o json
	has "$OUTPUT" '"local_invalidations":[1-9]'
	[[ ! $OUTPUT =~ \"remote_invalidations\":[1-9] ]] || fail "remote invalidation is used: $OUTPUT"
}

# Discards, Write Zeroes and flushes.
other_commands() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run dd if=/dev/urandom of="$disk" bs=1M count=4 oflag=direct
	run dd if="$disk" of="$SCRATCH/before" bs=1M count=4 iflag=direct
	run blkdiscard -z -o 1M -l 1M "$disk"
	run blkdiscard -o 2M -l 1M "$disk"
	run dd if=/dev/zero of="$SCRATCH/before" bs=1M seek=1 count=2 conv=notrunc
	run nvme flush "$disk"
	run cmp -n 4194304 "$SCRATCH/before" "$disk"
}

commands_of_users() {
	connect "$TARGET4"
	run nvme id-ctrl "/dev/${CTRL}"
	has "$OUTPUT" 'mn +: Linux'
	run dd if=/dev/urandom of="$SCRATCH/data" bs=16k count=1
	run nvme write "$(disk "$CTRL" 1)" -s 8 -c 31 -z 16384 -d "$SCRATCH/data"
	run nvme read "$(disk "$CTRL" 1)" -s 8 -c 31 -z 16384 -d "$SCRATCH/read"
	run cmp "$SCRATCH/data" "$SCRATCH/read"
}

each_kind_of_queue() {
	connect "$TARGET4" -i 1 -W 1 -P 1
	same "polled queues" 1 "$(ctrl_number nr_poll_queues)"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=16k --size=1m --iodepth=8
	verify "$(disk "$CTRL" 1)" --ioengine=io_uring --hipri=1 --rw=randrw --bs=4k-64k --size=1m \
		--iodepth=8
}

resets_under_io() {
	connect "$TARGET4"
	start_verify
	for _ in 1 2; do
		run rnvmf reset "$CTRL"
		same state live "$(ctrl_field "$CTRL" state)"
	done
	is_verified
}

target_comes_back_under_io() {
	connect "$TARGET4"
	start_verify
	port_goes
	loses
	port_is_back
	comes_back
	is_verified
}

# All packets are dropped. TCP would retransmit for 15 minutes; the keep-alive detects it earlier.
silence_under_io() {
	connect "$TARGET4"
	start_verify
	target_is_silent
	loses
	has "$(ctrl_field "$CTRL" message)" 'in time|timed out|no response'
	silence_ends_here
	comes_back
	is_verified
}

target_is_silent() {
	defer silence_ends_here
	run nft "table inet rnvmf_silence { chain input {
		type filter hook input priority 0; tcp sport 4420 drop; tcp dport 4420 drop; }; }"
}

# iWARP does not tell whether the target has ended the old connection, so a write in flight is held for its time.
in_flight_writes_are_held() {
	local writer
	connect "$TARGET4"
	target_is_silent
	dd if=/dev/zero of="$(disk "$CTRL" 1)" bs=4k count=1 oflag=direct 2>"$SCRATCH/errors" &
	writer=$!
	defer end_process $writer
	loses
	wait_for_log "$SOON" "$CTRL: holding in-flight writes for" || fail "no write is held: $(kernel_log | grep "$CTRL")"
	silence_ends_here
	comes_back
	wait $writer || fail "the write failed: $(<"$SCRATCH/errors")"
}

device_comes_back_under_io() {
	connect "$TARGET4"
	start_verify
	run rdma link delete rnvmf_rxe0
	loses
	! owns_queue_pair || fail "a queue pair remains after the device was removed"
	run rdma link add rnvmf_rxe0 type siw netdev rnvmf0
	wait_until "$SOON" rdma_is_up rnvmf_rxe0
	# nvmet does not listen on the new device by itself.
	port_goes
	port_is_back
	comes_back
	is_verified
}

# When the stream ends, the device flushes the queue pair before its connection manager reports the
# disconnect.
is_given_up() {
	connect "$TARGET4" -l 0
	start_io
	port_goes
	io_fails
	port_is_back
	is_dead 'closed by the target or the network|connection refused|stopped by the RDMA device'
}

disconnect_under_io() {
	local began took
	connect "$TARGET4"
	start_io
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	LOST=$REMOVED io_fails
	note "disconnect took $took ms"
	at_most "the disconnect took" $took 1000
}

unloads_while_it_tries() {
	connect "$TARGET4"
	port_goes
	loses
	run rmmod rnvmf
	defer modprobe rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
	port_is_back
}

namespaces_are_followed() {
	connect "$TARGET4"
	backend_memory other 16 4096
	target_namespace "$NQN" 2 "$BACKEND"
	wait_until "$SOON" [ -b "/dev/${CTRL}n2" ] || fail "${CTRL}n2 was not added"
	run dd if="$(disk "$CTRL" 2)" of=/dev/null bs=64k count=1 iflag=direct
	target_namespace_delete "$NQN" 2
	wait_until "$SOON" is_gone "${CTRL}n2" || fail "${CTRL}n2 was not removed"
}

is_gone() {
	[ ! -e "/sys/block/$1" ]
}

what_is_discovered_is_connected() {
	run rnvmf discover -a "$TARGET4" -q "$HOSTNQN" -o json
	has "$OUTPUT" "\"subnqn\":\"$NQN\""
	run rnvmf connect-all -a "$TARGET4" -q "$HOSTNQN" "${CONNECT_OPTIONS[@]}"
	CTRL=${OUTPUT%%:*}
	defer disconnect_if_there "$CTRL"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

nobody_listens() {
	try rnvmf connect -t rdma -a "$TARGET4" -s 4499 -n "$NQN" -q "$HOSTNQN"
	same status 1 "$STATUS"
	has "$ERRORS" '^rnvmf: connect to .*: .+$'
}

modprobe -qn siw || {
	ktap_print_header
	ktap_skip_all "module siw not found"
	exit "$KSFT_SKIP"
}

main setup \
	connects_and_disconnects \
	connects_over_ipv6 \
	data_of_all_sizes \
	target_is_not_believed_to_invalidate \
	other_commands \
	commands_of_users \
	each_kind_of_queue \
	resets_under_io \
	target_comes_back_under_io \
	silence_under_io \
	in_flight_writes_are_held \
	device_comes_back_under_io \
	is_given_up \
	disconnect_under_io \
	unloads_while_it_tries \
	namespaces_are_followed \
	what_is_discovered_is_connected \
	nobody_listens
