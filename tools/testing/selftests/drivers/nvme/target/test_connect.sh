#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests connects to a target and I/O: addresses, sizes of I/O and of inline data, numbers and sizes of
# queues, reset and deletion of the controller.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-c 1)

setup() {
	load_driver && network_single && backend_memory disk 64 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

after_test() {
	(rdma_back_to "$OBJECTS")
}

# Write, read and compare requests of 512 bytes to 1 MiB.
verifies() {
	local disk
	disk=$(disk "$CTRL" 1)
	verify "$disk" --rw=randwrite --bs=512 --size=128k --iodepth=8
	verify "$disk" --rw=randwrite --bs=4k --size=512k --iodepth=8
	verify "$disk" --rw=randwrite --bs=16k --size=1m --iodepth=8
	verify "$disk" --rw=randwrite --bs=1m --size=2m --iodepth=8
	verify "$disk" --rw=randrw --bsrange=512-256k --size=2m --iodepth=16
}

verifies_with() {
	connect "$@"
	verifies
	disconnect "$CTRL"
}

over_ipv4() {
	verifies_with "$TARGET4"
}

over_ipv6() {
	verifies_with "$TARGET6"
}

# port_with PORT ADDRESS [ATTRIBUTE=VALUE...]: export $NQN at another port, whose service is its name.
port_with() {
	local port=$1 address=$2 setting
	shift 2
	target_port "$port" "$address" "$port"
	for setting; do
		echo "${setting#*=}" >"$NVMET/ports/$port/${setting%%=*}"
	done
	target_export "$port" "$NQN"
}

over_a_wildcard_address() {
	port_with 4430 0.0.0.0
	port_with 4431 ::
	SERVICE=4430 verifies_with "$TARGET4"
	SERVICE=4430 connect "$HOST4"
	disconnect "$CTRL"
	SERVICE=4431 verifies_with "$TARGET6"
}

# inline_data SIZE: a port with this limit tells it, and serves I/O.
inline_data() {
	port_with 4432 "$TARGET4" "param_inline_data_size=$1"
	SERVICE=4432 connect "$TARGET4"
	if ! host_is_rnvmf; then
		run nvme id-ctrl "/dev/$CTRL" -o json
		has "$OUTPUT" "\"ioccsz\":$(((64 + ${2:-$1}) / 16)),"
	fi
	verifies
	disconnect "$CTRL"
}

no_inline_data() {
	inline_data 0
}

inline_data_of_one_block() {
	inline_data 512
}

inline_data_of_a_page() {
	inline_data 4096
}

inline_data_of_four_pages() {
	inline_data 16384
}

# The largest is 16 KiB.
too_much_inline_data() {
	inline_data 65536 16384
}

numbers_of_queues() {
	local queues
	for queues in 1 2; do
		connect "$TARGET4" -i $queues
		verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=2m --iodepth=32 --numjobs=2 \
			--offset_increment=2m
		disconnect "$CTRL"
	done
}

sizes_of_queues() {
	local size
	for size in 16 128; do
		connect "$TARGET4" -Q $size
		verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=2m --iodepth=256
		disconnect "$CTRL"
	done
}

# The port's limit is 128 entries by default, and 256 at most.
size_limit_of_queues() {
	need_core "does not show the size of a queue"
	connect "$TARGET4" -Q 1024
	same sqsize 127 "$(ctrl_field "$CTRL" sqsize)"
	disconnect "$CTRL"
	port_with 4433 "$TARGET4" param_max_queue_size=64
	SERVICE=4433 connect "$TARGET4" -Q 1024
	same sqsize 63 "$(ctrl_field "$CTRL" sqsize)"
	disconnect "$CTRL"
	port_with 4434 "$TARGET4" param_max_queue_size=4096
	SERVICE=4434 connect "$TARGET4" -Q 1024
	same sqsize 255 "$(ctrl_field "$CTRL" sqsize)"
	disconnect "$CTRL"
}

# What Identify Controller tells of the transport: keyed SGLs, one descriptor, 1 MiB.
limits_told() {
	need_core "does not show Identify data"
	connect "$TARGET4"
	run nvme id-ctrl "/dev/$CTRL" -o json
	has "$OUTPUT" '"mdts":8,'
	has "$OUTPUT" '"msdbd":1,'
	has "$OUTPUT" '"icdoff":0,'
	[[ $OUTPUT =~ \"sgls\":([0-9]+) ]] || fail "no SGLS in: $OUTPUT"
	[ $((BASH_REMATCH[1] & 4)) != 0 ] || fail "no keyed SGLs: SGLS is ${BASH_REMATCH[1]}"
	disconnect "$CTRL"
}

# The target knows the host's address.
host_address_told() {
	local file
	need_core "has no entry"
	connect "$TARGET4" -w "$HOST4"
	for file in /sys/kernel/debug/nvmet/"$NQN"/ctrl*/host_traddr; do
		[ -e "$file" ] || skip "nvmet has no debugfs"
		has "$(<"$file")" "$HOST4"
	done
	disconnect "$CTRL"
}

reset_under_io() {
	local _
	connect "$TARGET4"
	start_verify
	for _ in 1 2 3; do
		run "${RESET[@]}" "${RESET_PREFIX}$CTRL"
		comes_back
	done
	is_verified
	disconnect "$CTRL"
}

deletion_under_io() {
	connect "$TARGET4"
	start_io
	disconnect "$CTRL"
	wait_until "$SOON" process_ended "$IO" || fail "fio did not exit"
	target_serves
}

again_and_again() {
	local _
	for _ in 1 2 3 4 5; do
		connect "$TARGET4"
		disconnect "$CTRL"
	done
}

# Two controllers of one host, to two namespaces.
two_at_once() {
	local first
	target_subsystem "$NQN-second"
	backend_memory second 32 4096
	target_namespace "$NQN-second" 1 "$BACKEND"
	target_export 4420 "$NQN-second"
	connect "$TARGET4"
	first=$CTRL
	connect_to "$NQN-second" "$TARGET4"
	start_verify
	verify "$(disk "$first" 1)" --rw=randwrite --bs=16k --size=4m --iodepth=8
	is_verified
	disconnect "$CTRL"
	disconnect "$first"
}

if host_is_rnvmf; then
	RESET=("${RNVMF[@]}" reset) RESET_PREFIX=
else
	RESET=(nvme reset) RESET_PREFIX=/dev/
fi

main_with_known setup \
	over_ipv4 \
	over_ipv6 \
	over_a_wildcard_address \
	no_inline_data \
	inline_data_of_one_block \
	inline_data_of_a_page \
	inline_data_of_four_pages \
	too_much_inline_data \
	numbers_of_queues \
	sizes_of_queues \
	size_limit_of_queues \
	limits_told \
	host_address_told \
	reset_under_io \
	deletion_under_io \
	again_and_again \
	two_at_once
