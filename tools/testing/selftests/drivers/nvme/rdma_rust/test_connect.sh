#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests connects of nvme_rdma_rust with nvme-cli: options, errors, I/O, and what sysfs shows.

. "$(dirname "$0")/lib.sh"

POLLED=(--ioengine=io_uring --hipri=1)

setup() {
	load_driver && network_single && backend_memory disk 64 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

# attribute_is NAME VALUE: check a sysfs attribute of $CTRL.
attribute_is() {
	same "$1" "$2" "$(ctrl_field "$CTRL" "$1")"
}

connects_and_disconnects() {
	connect "$TARGET4"
	attribute_is state live
	attribute_is transport rdma
	attribute_is address "traddr=$TARGET4,trsvcid=4420"
	attribute_is subsysnqn "$NQN"
	attribute_is hostnqn "$HOSTNQN"
	attribute_is cntrltype io
	[ -b "$(disk "$CTRL" 1)" ]
	disconnect "$CTRL"
	no_disks || fail "a disk remains"
}

over_ipv6() {
	connect "$TARGET6"
	attribute_is address "traddr=$TARGET6,trsvcid=4420"
	verify "$(disk "$CTRL" 1)" --rw=write --bs=64k --size=1m
}

# The default port is 4420.
without_port() {
	run nvme connect -t rdma -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" -o json
	[[ $OUTPUT =~ \"(nvme[0-9]+)\" ]] || fail "no controller in: $OUTPUT"
	CTRL=${BASH_REMATCH[1]}
	defer disconnect_if_there "$CTRL"
	attribute_is address "traddr=$TARGET4,trsvcid=4420"
}

# The port may be in any base.
hexadecimal_port() {
	writes_options "traddr=$TARGET4,trsvcid=0x1144" || fail "no controller: $ERRORS"
	CTRL=nvme0
	defer disconnect_if_there "$CTRL"
	attribute_is state live
	attribute_is address "traddr=$TARGET4,trsvcid=0x1144"
}

reads_what_it_wrote() {
	connect "$TARGET4"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bsrange=512-256k --size=16m --iodepth=16
}

kinds_of_queues() {
	local disk
	connect "$TARGET4" -i 1 -W 1 -P 1
	attribute_is queue_count 4
	same "hardware queues" 3 "$(disk "$CTRL" 1 >"$SCRATCH/disk"; hardware_queues)"
	[ "$(logged "$CTRL: mapped 1/1/1 default/read/poll queues")" = 1 ] ||
		fail "wrong numbers of queues: $(kernel_log)"
	disk=$(<"$SCRATCH/disk")
	verify "$disk" "${POLLED[@]}" --rw=randrw --bs=4k-64k --size=2m --iodepth=8
	verify "$disk" --rw=randrw --bs=4k-64k --size=2m --iodepth=8
}

# There is at most one queue of each kind for each CPU. The C driver counts more, and fails.
as_many_queues_as_processors() {
	local cpus
	! driver_is_c || skip "nvme-fabrics does not limit write and poll queues"
	cpus=$(nproc)
	connect "$TARGET4" -i 9 -W 9 -P 9
	attribute_is queue_count $((3 * cpus + 1))
	verify "$(disk "$CTRL" 1)" "${POLLED[@]}" --rw=randwrite --bs=16k --size=1m --iodepth=4
}

queue_sizes() {
	connect "$TARGET4" -Q 16
	attribute_is sqsize 15
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=1m --iodepth=32
	disconnect "$CTRL"
	# nvmet offers 128 entries.
	connect "$TARGET4" -Q 1024
	attribute_is sqsize 127
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=2m --iodepth=256
}

source_address() {
	connect "$TARGET4" -w "$HOST4"
	attribute_is address "traddr=$TARGET4,trsvcid=4420,host_traddr=$HOST4"
	disconnect "$CTRL"
	connect_refused 'cannot assign requested address' 'nvme0: .*99' "$NQN" "$TARGET4" -w 198.51.100.7
}

type_of_service() {
	connect "$TARGET4" --tos=32
	verify "$(disk "$CTRL" 1)" --rw=write --bs=64k --size=1m
}

keep_alive() {
	connect "$TARGET4" -k 7
	attribute_is kato 7
	disconnect "$CTRL"
	connect "$TARGET4" -k "$SLOWDOWN"
	trace_start "$COMMANDS"
	wait_until 3 keep_alives 3 || fail "fewer than 3 Keep Alive commands in $((3 * SLOWDOWN)) s"
	attribute_is state live
}

# keep_alives COUNT: whether the target has received so many Keep Alive commands.
keep_alives() {
	[ "$(traced nvme_admin_keep_alive)" -ge "$1" ]
}

duplicates() {
	connect "$TARGET4"
	nvme_connect "$NQN" "$TARGET4"
	same status 1 "$STATUS"
	has "$ERRORS" 'already connected'
	# nvme-cli checks, too. The kernel's answer is EALREADY.
	writes_options "traddr=$TARGET4,trsvcid=4420" || same error 'Operation already in progress' "$ERRORS"
	connect "$TARGET4" -D
	attribute_is state live
}

# writes_options OPTIONS: create a controller of the subsystem $NQN without nvme-cli. ERRORS is the
# error text.
writes_options() {
	local line="transport=rdma,nqn=$NQN,hostnqn=$HOSTNQN,hostid=$HOSTID,$1"
	try python3 -c 'import os, sys
try:
    os.write(os.open("/dev/nvme-fabrics", os.O_RDWR), sys.argv[1].encode())
except OSError as error:
    sys.exit(error.strerror)' "$line"
	[ "$STATUS" = 0 ]
}

# refused ERROR LOG OPTIONS: creating a controller must fail with this error, and with one line of the
# driver in the kernel log, which tells why.
refused() {
	start_log refused
	! writes_options "$3" || fail "a controller was created with $3"
	[[ $ERRORS =~ $1 ]] || fail "$3: '$ERRORS' does not match '$1'"
	same "number of lines with '$2' for $3" 1 "$(logged "$2")"
}

# C names the cause of a rejection only in ECONNRESET. Its log has a second line.
wrong_targets() {
	local reset='Connection (refused|reset)'
	refused "$reset" 'invalid service ID' "traddr=$TARGET4,trsvcid=4499"
	refused "$reset" 'rejected: .*consumer defined|consumer defined' "traddr=$HOST4,trsvcid=4420"
	refused 'Network is unreachable' '(address resolution|resolve_addr) failed.*-101' traddr=198.51.100.1
	refused 'Cannot assign' '(address resolution|resolve_addr) failed.*-99' \
		"traddr=$TARGET4,host_traddr=198.51.100.7"
	refused 'Invalid argument' 'malformed address passed: 192.0.2.256' traddr=192.0.2.256
	refused 'Invalid argument' 'malformed .*address passed: .*192.0.2.256' \
		"traddr=$TARGET4,host_traddr=192.0.2.256"
	refused 'Invalid argument' "malformed address passed: $TARGET4:70000" "traddr=$TARGET4,trsvcid=70000"
	refused 'Invalid argument' "missing parameter 'traddr=%s'" trsvcid=4420
	NQN=$NQN-none refused 'Input/output error' 'Connect Invalid Data Parameter' "traddr=$TARGET4"
	no_disks || fail "a disk exists"
	[ ! -e /sys/class/nvme/nvme0 ] || fail "a controller remains"
}

# What nvme-cli lists is as with the C driver.
lists() {
	connect "$TARGET4"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	run nvme list -o json
	has "$OUTPUT" "\"DevicePath\":\"$(<"$SCRATCH/disk")\""
	has "$OUTPUT" '"SectorSize":512'
	run nvme list-subsys -o json
	has "$(tr -d ' \n' <<<"$OUTPUT")" '"Name":"'"$CTRL"'","Transport":"rdma","Address":"traddr='"$TARGET4"',trsvcid=4420","State":"live"'
	run nvme show-topology
	has "$OUTPUT" "$CTRL rdma traddr=$TARGET4,trsvcid=4420 live optimized"
	run nvme id-ctrl "/dev/$CTRL"
	has "$OUTPUT" 'subnqn *: '"$NQN"
}

# RDMA objects are freed.
leaks_nothing() {
	connect "$TARGET4"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	disconnect "$CTRL"
	NQN=$NQN-none writes_options "traddr=$TARGET4" || rdma_back_to "$OBJECTS"
}

main setup \
	connects_and_disconnects \
	over_ipv6 \
	without_port \
	hexadecimal_port \
	reads_what_it_wrote \
	kinds_of_queues \
	as_many_queues_as_processors \
	queue_sizes \
	source_address \
	type_of_service \
	keep_alive \
	duplicates \
	wrong_targets \
	lists \
	leaks_nothing
