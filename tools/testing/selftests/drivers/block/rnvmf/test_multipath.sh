#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests dm-multipath and RAID 1 over disks of two controllers: one path goes away under verified I/O.

. "$(dirname "$0")/lib.sh"

MAP=rnvmf-selftest
SECTORS=$((64 << 11))
# The second leg of the mirror.
OTHER=$NQN-other

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma dummy null_blk dm_multipath dm_round_robin dm_raid raid1 &&
		need_programs rnvmf rdma ip fio dmsetup
}

setup() {
	modprobe -a rnvmf dm_multipath dm_round_robin dm_raid raid1 && network_single &&
		backend_memory one 64 512 && target_simple "$BACKEND" || return 1
	ONE=$BACKEND
	backend_memory two 64 512 && target_subsystem "$OTHER" && target_namespace "$OTHER" 1 "$BACKEND" &&
		target_export 4421 "$OTHER" || return 1
	TWO=$BACKEND
	backend_memory meta1 8 512 && META=("$BACKEND") && backend_memory meta2 8 512 && META+=("$BACKEND")
}

# start_map TABLE: create the map over the disks, and start verified writes to it. DM is its path, IO
# the PID of fio.
start_map() {
	run dmsetup create $MAP --table "0 $SECTORS $1"
	defer remove_map
	# Without udev there is no /dev/mapper/$MAP.
	DM=/dev/dm-$(dmsetup info -c --noheadings -o minor $MAP)
	fio --name=verify --filename="$DM" --direct=1 --ioengine=libaio --rw=randwrite \
		--bs=16k --size=2m --io_size=8m --norandommap --serialize_overlap=1 --iodepth=4 \
		--rate_iops=100 --verify=crc32c --verify_fatal=1 --verify_state_save=0 \
		--verify_write_sequence=1 --output-format=terse >"$SCRATCH/fio" 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until 20 map_is_written || fail "fio completes no I/O: $(<"$SCRATCH/fio")"
}

map_is_written() {
	local stat
	read -ra stat <"/sys/block/${DM##*/}/stat"
	[ "${stat[4]}" -gt 50 ]
}

remove_map() {
	! dmsetup info $MAP >/dev/null 2>&1 || dmsetup remove --retry $MAP
}

# path_goes: remove the port of the first controller. I/O to the map must go on within a second of the moment when
# the controller leaves the state live. If it waited for the target to end the old association, it would take 10 s.
path_goes() {
	local took
	CTRL=$FIRST
	port_goes
	loses
	took=$(time_of_io)
	note "a read and a write took $took ms"
	at_most "I/O went on only after" "$took" 1000
}

# time_of_io: read from the map and write to it, and print the time in milliseconds.
time_of_io() {
	local began
	began=$(now)
	run dd if="$DM" of=/dev/null bs=4k count=1 iflag=direct
	run dd if=/dev/zero of="$DM" bs=4k count=1 seek=16000 oflag=direct
	echo $(($(now) - began))
}

# connect_both SUBSYSTEM OPTION...: connect to $NQN over IPv4 and to SUBSYSTEM over IPv6. FIRST and
# SECOND are the controllers.
connect_both() {
	local other=$1
	shift
	connect "$TARGET4" "$@"
	FIRST=$CTRL
	connect_to "$other" "$TARGET6" "$@"
	SECOND=$CTRL
}

# fails_over OPTION...: two paths to one namespace, with I/O on both.
fails_over() {
	connect_both "$NQN" "$@"
	start_map "multipath 0 0 1 1 round-robin 0 2 0 $(disk "$FIRST" 1) $(disk "$SECOND" 1)"
	path_goes
	is_verified
	has "$(dmsetup status $MAP)" " F [0-9]+ .* A "
	remove_map
	port_is_back
	disconnect "$FIRST"
}

# Requests of dm-multipath are failfast, so they are not held during the outage.
path_fails_over() {
	fails_over
}

path_fails_over_without_retries() {
	fails_over --fast-io-fail-tmo 0
}

# The metadata of the mirror is on local devices. Requests of RAID 1 wait unless fast_io_fail_tmo is 0. After the resync both legs are equal.
mirror_goes_on_with_one_leg() {
	local first second
	connect_both "$OTHER" --fast-io-fail-tmo 0
	first=$(disk "$FIRST" 1) second=$(disk "$SECOND" 1)
	start_map "raid raid1 1 0 2 ${META[0]} $first ${META[1]} $second"
	path_goes
	is_verified
	port_is_back
	wait_until "$SOON" state_is "$FIRST" live || fail "$FIRST is in state $(ctrl_field "$FIRST" state)"
	remove_map
	run dmsetup create $MAP --table "0 $SECTORS raid raid1 3 0 rebuild 0 2 ${META[0]} $first ${META[1]} $second"
	wait_until 60 in_sync || fail "no resync: $(dmsetup status $MAP)"
	remove_map
	sync
	cmp "$ONE" "$TWO" || fail "the legs differ"
}

in_sync() {
	[[ $(dmsetup status $MAP) == *' AA '* ]]
}

main setup \
	path_fails_over \
	path_fails_over_without_retries \
	mirror_goes_on_with_one_leg
