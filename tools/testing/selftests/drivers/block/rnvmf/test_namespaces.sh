#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests that the disks of a live controller follow the namespaces of the target.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# Ports of the kernel's target and of the hostile target.
REAL=4420
HOSTILE_PORT=$SERVICE
# A port that a test creates and deletes.
OWN=4430

# Time limit for a change of the target to be seen at the host, in seconds.
FOLLOWED=10

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	backend_memory one 64 512 && ONE=$BACKEND && backend_memory two 16 4096 && TWO=$BACKEND &&
		target_simple "$ONE" || return 1
	OBJECTS=$(rdma_objects)
}

connect_real() {
	SERVICE=$REAL connect "$TARGET4"
}

# Without reconnect: a lost connection makes the controller dead.
connect_hostile() {
	SERVICE=$HOSTILE_PORT connect "$TARGET4" --ctrl-loss-tmo 0 --timeout $((5 * SLOWDOWN))
}

# namespace NSID enable|disable|ATTRIBUTE [VALUE]: enable or disable a namespace of the kernel's
# target, or set an attribute.
namespace() {
	local path=$NVMET/subsystems/$NQN/namespaces/$1
	case $2 in
	enable) echo 1 >"$path/enable" ;;
	disable) echo 0 >"$path/enable" ;;
	*) echo "$3" >"$path/$2" ;;
	esac
}

wait_told() {
	wait_until "$FOLLOWED" told "$1" || fail "no event '$1' in: $(<"$SCRATCH/events")"
}

appears() {
	wait_until "$FOLLOWED" [ -b "/dev/$1" ] || fail "$1 was not added"
}

goes() {
	wait_until "$FOLLOWED" is_gone "$1" || fail "$1 was not removed"
}

is_gone() {
	[ ! -e "/sys/block/$1" ] && [ ! -e "/dev/$1" ]
}

# attribute_is DISK NAME VALUE: whether a sysfs attribute of the disk has this value.
attribute_is() {
	local value
	read -r value <"/sys/block/$1/$2" && [ "$value" = "$3" ]
}

# becomes DISK NAME VALUE: wait until the attribute has this value; fail after FOLLOWED seconds.
becomes() {
	wait_until "$FOLLOWED" attribute_is "$@" || fail "$2 of $1 is $(<"/sys/block/$1/$2"), expected $3"
}

# A namespace is added and removed without an effect on I/O to another one.
come_and_go_under_io() {
	connect_real
	start_monitor
	VERIFY_OPTIONS=(--io_size=4m)
	start_verify
	target_namespace "$NQN" 2 "$TWO"
	appears "${CTRL}n2"
	same "size of a block" 4096 "$(queue_limit "${CTRL}n2" logical_block_size)"
	namespace 2 disable
	goes "${CTRL}n2"
	wait_told "ns-del ${CTRL}n2 nsid 2 16.78 MB"
	namespace 2 enable
	appears "${CTRL}n2"
	run dd if="/dev/${CTRL}n2" of=/dev/null bs=64k count=1 iflag=direct
	wait_until "$FOLLOWED" added_twice || fail "fewer than 2 ns-add events: $(<"$SCRATCH/events")"
	is_verified
	same "namespaces" 2 "$(ctrl_number nr_namespaces)"
}

added_twice() {
	[ "$(grep -cxF "ns-add ${CTRL}n2 nsid 2 16.78 MB" "$SCRATCH/events")" = 2 ]
}

# Removal of a namespace removes its disk; I/O on the open disk fails and does not hang.
goes_under_io() {
	target_namespace "$NQN" 2 "$TWO"
	connect_real
	same "namespaces" 2 "$(ctrl_number nr_namespaces)"
	start_io
	namespace 1 disable
	defer namespace 1 enable
	goes "${CTRL}n1"
	LOST=$REMOVED io_fails
	same state live "$(ctrl_field "$CTRL" state)"
	run dd if="/dev/${CTRL}n2" of=/dev/null bs=64k count=1 iflag=direct
}

size_is_followed() {
	local number
	backend_file disk 8
	target_namespace "$NQN" 3 "$BACKEND"
	connect_real
	start_monitor
	appears "${CTRL}n3"
	number=$(<"/sys/block/${CTRL}n3/diskseq")
	truncate -s 24M "$BACKEND"
	namespace 3 revalidate_size 1
	becomes "${CTRL}n3" size 49152
	wait_told "ns-change ${CTRL}n3 nsid 3 25.17 MB"
	run dd if=/dev/urandom of="/dev/${CTRL}n3" bs=1M seek=20 count=1 oflag=direct
	same "number of capacity changes in the log" 1 "$(logged "${CTRL}n3: detected capacity change")"
	truncate -s 16M "$BACKEND"
	namespace 3 revalidate_size 1
	becomes "${CTRL}n3" size 32768
	same "diskseq" "$number" "$(<"/sys/block/${CTRL}n3/diskseq")"
}

# The host sets the protection by the same controller.
write_protection_is_followed() {
	connect_real
	defer protect 0
	protect 1
	becomes "${CTRL}n1" ro 1
	expect 1 dd if=/dev/zero of="/dev/${CTRL}n1" bs=4k count=1 oflag=direct
	protect 0
	becomes "${CTRL}n1" ro 0
	run dd if=/dev/zero of="/dev/${CTRL}n1" bs=4k count=1 oflag=direct
}

# protect 0|1: set the Namespace Write Protection feature of namespace 1.
protect() {
	run nvme set-feature "/dev/${CTRL}n1" -n 1 -f 0x84 --value="$1"
}

# Another namespace with the same NSID gets a new disk with its identifiers.
another_is_another_disk() {
	local number uuid=5e1f7e57-0000-4000-8000-0000000000aa
	connect_real
	number=$(disk_number)
	namespace 1 disable
	namespace 1 device_uuid "$uuid"
	namespace 1 enable
	wait_until "$FOLLOWED" other_disk "$number" || fail "no new disk was added"
	becomes "${CTRL}n1" uuid "$uuid"
}

# Of two namespaces with the same identifiers only the first gets a disk, and keeps it.
identifiers_of_another() {
	connect_real
	target_namespace "$NQN" 2 "$TWO"
	appears "${CTRL}n2"
	namespace 2 disable
	namespace 2 device_uuid "$(<"$NVMET/subsystems/$NQN/namespaces/1/device_uuid")"
	namespace 2 enable
	wait_until "$FOLLOWED" is_said_to_be 2 1 || fail "namespace 2 is not rejected: $OUTPUT"
	goes "${CTRL}n2"
	namespace 1 disable
	defer namespace 1 enable
	goes "${CTRL}n1"
	appears "${CTRL}n2"
	namespace 1 enable
	wait_until "$FOLLOWED" is_said_to_be 1 2 || fail "namespace 1 is not rejected: $OUTPUT"
	is_gone "${CTRL}n1" || fail "both namespaces have a disk"
	run dd if="/dev/${CTRL}n2" of=/dev/null bs=64k count=1 iflag=direct
}

# is_said_to_be NSID OTHER: whether NSID is rejected because of the identifiers of OTHER.
is_said_to_be() {
	run rnvmf show "$CTRL"
	[[ $OUTPUT == *"namespace $1: duplicate identifiers: same as namespace $2"* ]]
}

# The same holds for namespaces of two subsystems, so that links by identifier stay unambiguous.
# After the first disk is removed, the other namespace gets its disk without a rescan by the user.
identifiers_of_another_subsystem() {
	local other=$NQN-other first second uuid
	connect_real
	first=$CTRL
	target_subsystem "$other"
	target_namespace "$other" 7 "$TWO"
	NQN=$other namespace 7 disable
	uuid=$(<"$NVMET/subsystems/$NQN/namespaces/1/device_uuid")
	NQN=$other namespace 7 device_uuid "$uuid"
	NQN=$other namespace 7 enable
	target_export 4420 "$other"
	SERVICE=$REAL connect_to "$other" "$TARGET4"
	second=$CTRL
	run rnvmf show "$second"
	has "$OUTPUT" "namespace 7: duplicate identifiers: in use by ${first}n1 of another subsystem"
	is_gone "${second}n7" || fail "both namespaces have a disk"
	disconnect "$first"
	wait_until $((2 * FOLLOWED)) [ -b "/dev/${second}n7" ] || fail "${second}n7 was not added"
	run rnvmf show "$second"
	[[ $OUTPUT != *"duplicate identifiers"* ]] || fail "namespace 7 is still rejected: $OUTPUT"
	connect_real
	run rnvmf show "$CTRL"
	has "$OUTPUT" "namespace 1: duplicate identifiers: in use by ${second}n7 of another subsystem"
	is_gone "${CTRL}n1" || fail "both namespaces have a disk"
}

# Two namespaces are enabled and disabled continuously, with events, also during resets. I/O to
# another namespace is not disturbed, and finally the disks match the namespaces. A listed namespace
# may be gone when the host identifies it; then the reset fails and the host reconnects.
resets_under_a_flood_of_events() {
	local flood scan _
	target_namespace "$NQN" 2 "$TWO"
	backend_file disk 8
	target_namespace "$NQN" 3 "$BACKEND"
	connect_real -c 1 --timeout $((10 * SLOWDOWN))
	VERIFY_OPTIONS=(--io_size=4m)
	start_verify
	come_and_go_all_the_time &
	flood=$!
	defer end_process $flood
	for _ in {1..4}; do
		scan=$(ctrl_number scan)
		wait_until "$SOON" looked_since "$scan" || fail "the namespaces are not scanned"
		try rnvmf reset "$CTRL"
		[ "$STATUS" = 0 ] ||
			has "$ERRORS" 'namespace [23]: .*internal path error.*; reconnecting continues'
		comes_back
	done
	! process_ended $flood || fail "come_and_go_all_the_time ended"
	end_process $flood
	namespace 2 enable
	namespace 3 disable
	appears "${CTRL}n2"
	goes "${CTRL}n3"
	same state live "$(ctrl_field "$CTRL" state)"
	# A scan of an older state may still be about to remove the disk.
	run rnvmf rescan "$CTRL"
	same "namespaces" 2 "$(ctrl_number nr_namespaces)"
	same "size of a block" 4096 "$(queue_limit "${CTRL}n2" logical_block_size)"
	run dd if="/dev/${CTRL}n2" of=/dev/null bs=64k count=1 iflag=direct
	is_verified
}

come_and_go_all_the_time() {
	local step nsid
	while true; do
		for step in disable enable; do
			for nsid in 2 3; do
				namespace $nsid $step
			done
		done
	done
}

# A change that follows a burst of changes is seen within 3 s, although the burst made the pauses between events
# as long as they get.
change_after_a_flood_of_events() {
	local flood scan began ms
	backend_file disk 8
	target_namespace "$NQN" 3 "$BACKEND"
	connect_real
	change_size_all_the_time &
	flood=$!
	defer end_process $flood
	scan=$(ctrl_number scan)
	wait_until $((2 * FOLLOWED)) looked_since $((scan + 4)) || fail "the namespaces are not scanned"
	end_process $flood
	change_size 24
	becomes "${CTRL}n3" size 49152
	# The next pause has begun.
	began=$(now)
	change_size 32
	becomes "${CTRL}n3" size 65536
	ms=$(($(now) - began))
	! on_time || [ $ms -le 3000 ] || fail "the change was seen after $ms ms, expected at most 3000"
}

# change_size MIB: set the size of namespace 3, whose file is BACKEND.
change_size() {
	truncate -s "$1M" "$BACKEND"
	namespace 3 revalidate_size 1
}

change_size_all_the_time() {
	while true; do
		change_size 8
		change_size 16
	done
}

# looked_since NUMBER: whether a scan has ended after the scan NUMBER.
looked_since() {
	[ "$(ctrl_number scan)" -gt "$1" ]
}

# Changes without a connection are followed after the reconnect. A rescan before that fails and says
# so.
rescan_while_connecting() {
	own_port
	SERVICE=$OWN connect "$TARGET4" -c 1 --timeout $((5 * SLOWDOWN))
	target_unexport "$OWN" "$NQN"
	target_port_delete "$OWN"
	loses
	expect 1 rnvmf rescan "$CTRL"
	has "$ERRORS" "^rnvmf: rescan $CTRL: the controller is (connecting|resetting); it scans"
	target_namespace "$NQN" 2 "$TWO"
	own_port
	comes_back
	appears "${CTRL}n2"
	run rnvmf rescan "$CTRL"
	same "the output of rescan" "$CTRL: 2 disks" "$OUTPUT"
}

own_port() {
	target_port "$OWN" "$TARGET4" "$OWN" && target_export "$OWN" "$NQN"
}

# Without events only a rescan by the user reads the namespaces.
rescan_on_demand() {
	local number
	AFTER=1 hostile list poke 0 0 4
	connect_hostile
	disk "$CTRL" 1 >"$SCRATCH/disk"
	run rnvmf rescan "$CTRL" -o json
	same "the output of rescan" "{\"schema\":1,\"device\":\"$CTRL\",\"nr_namespaces\":0}" "$OUTPUT"
	is_gone "${CTRL}n1" || fail "${CTRL}n1 was not removed"
	same events 0 "$(count event || true)"
	number=$(ctrl_number scan)
	run rnvmf rescan "$CTRL"
	same scan $((number + 1)) "$(ctrl_number scan)"
	expect 3 rnvmf rescan no-such
	disconnect "$CTRL"
	gone
}

# nvmet sends the event of a new namespace before it lists the namespace, so a scan may miss it. Here the
# rescan finds no namespace, the next scan finds it.
told_of_before_it_is_listed() {
	AFTER=1 FIRST=1 hostile list poke 0 0 4
	connect_hostile
	NUMBER=$(disk_number)
	run rnvmf rescan "$CTRL"
	wait_until "$FOLLOWED" other_disk "$NUMBER" || fail "no disk after $(count list) scans"
	same "number of scans" 3 "$(count list)"
	leave
}

# A namespace with an event that is never listed causes only one more scan.
told_of_and_never_listed() {
	hostile changed poke 7 0 4
	connect_hostile
	run rnvmf rescan "$CTRL"
	wait_until "$SOON" has_listed 3 || fail "no second scan after the event"
	sleep 1
	same "number of scans" 3 "$(count list)"
	leave
}

# looks_again ARGUMENT...: connect, then rescan while the hostile target has this twist.
looks_again() {
	AFTER=1 hostile "$@"
	connect_hostile
	NUMBER=$(disk_number)
	try rnvmf rescan "$CTRL"
}

leave() {
	local began took
	same state live "$(ctrl_field "$CTRL" state)"
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	at_most "the disconnect took" $took 1000
	gone
}

# A rescan follows changes: new identifiers make a new disk, a new size does not.
changes_of_all_kinds() {
	looks_again descriptors poke 0x77 4 8
	other_disk "$NUMBER" || fail "new identifiers made no new disk"
	has "$(kernel_log)" 'namespace 1 changed its identifiers'
	leave
	looks_again namespace poke 4096 0 8
	same size 4096 "$(<"/sys/block/${CTRL}n1/size")"
	other_disk "$NUMBER" && fail "a new size made a new disk"
	leave
}

# An invalid namespace list changes no disk, and the rescan reports it.
unreadable_list() {
	looks_again list poke 0xffffffff 0 4
	same "status of the rescan" 1 "$STATUS"
	has "$ERRORS" "rescan $CTRL: list of active namespaces"
	same "disk" "$NUMBER" "$(disk_number)"
	leave
}

# A flood of events is handled at a limited rate.
floods_with_events() {
	local began
	began=$(now)
	EVENTS=1 hostile event result 0x00040002
	connect_hostile
	wait_until "$FOLLOWED" heard_often || fail "$(count event) events, expected at least 4"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=16 iflag=direct
	few_events "$began"
	leave
}

heard_often() {
	[ "$(count event)" -ge 4 ]
}

# A persistent internal error resets the controller, at a limited rate.
resets_when_the_target_says_so() {
	EVENTS=1 hostile event result 0x00010300
	connect_hostile
	wait_until "$FOLLOWED" connected_again || fail "fewer than two resets"
	has "$(kernel_log)" "$CTRL: asynchronous event: persistent internal error"
	disconnect "$CTRL"
	gone
}

connected_again() {
	[ "$(count connect)" -ge 3 ]
}

# After a failed Asynchronous Event Request the host sends no further one, and works without events.
tells_no_events() {
	EVENTS=1 hostile event status 0x4105
	connect_hostile
	wait_for_log "$FOLLOWED" "$CTRL: no more asynchronous events: " ||
		fail "the failed Asynchronous Event Request is not in the log"
	run rnvmf rescan "$CTRL"
	same events 1 "$(count event || true)"
	leave
}

# An event without a pending request is a protocol violation.
answers_twice() {
	EVENTS=2 AFTER=1 hostile event twice
	connect_hostile
	# The second response may come before the completion of the SEND.
	is_dead 'not in flight|answered twice'
	gone
}

# A disconnect does not wait for a scan.
disconnect_during_a_rescan() {
	local began took pid status=0
	AFTER=1 hostile list silent
	connect_hostile
	rnvmf rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	pid=$!
	defer end_process $pid
	wait_until "$FOLLOWED" has_listed 2 || fail "the namespace list was not read"
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	at_most "the disconnect took" $took 1000
	wait $pid || status=$?
	same "status of the rescan" 1 $status
	has "$(<"$SCRATCH/rescan")" 'removed meanwhile'
	gone
}

# A connection loss ends a scan; the host scans again after the reconnect.
loss_during_a_rescan() {
	EVENTS=0 AFTER=1 hostile list hang-up
	SERVICE=$HOSTILE_PORT connect "$TARGET4" -c 1 --timeout $((2 * SLOWDOWN))
	expect 1 rnvmf rescan "$CTRL"
	has "$ERRORS" 'the namespaces are scanned after the reconnect'
	disconnect "$CTRL"
	gone
}

# A loss during the partition scan of disks, whose reads get no response. Namespace 2 has another UUID
# after it, so its disk is replaced. The others stay, and all partition tables are read then.
another_while_its_partitions_are_read() {
	hostile
	SERVICE=$HOSTILE_PORT connect "$TARGET4" -c 1
	start_monitor
	end_process "$TARGET"
	loses
	NAMESPACES=3 hostile read silent
	wait_until "$SOON" is_read || fail "the partition tables are not read"
	wait_until "$SOON" disks_have_come || fail "the disks were not added: $(<"$SCRATCH/events")"
	end_process "$TARGET"
	loses
	NAMESPACES=3 OTHER=2 hostile
	comes_back
	wait_until "$SOON" is_replaced || fail "the disk was not replaced: $(<"$SCRATCH/events")"
	has "$(kernel_log)" 'namespace 2 changed its identifiers: removing disk'
	run rnvmf rescan "$CTRL"
	same "number of disks" 3 "$(ctrl_number nr_namespaces)"
	has "$(<"/sys/block/${CTRL}n2/uuid")" "$(printf '5f%02x$' $((0x5d + 2)))"
	same "the events" "ns-add ${CTRL}n2 ns-add ${CTRL}n3 ns-del ${CTRL}n2 ns-add ${CTRL}n2" \
		"$(grep -oE '^ns-(add|del) [^ ]+' "$SCRATCH/events" | paste -sd ' ')"
	disconnect "$CTRL"
	gone
}

is_replaced() {
	[ "$(grep -cE "^ns-add ${CTRL}n2 " "$SCRATCH/events")" -ge 2 ]
}

is_read() {
	[ "$(count read)" -ge 1 ]
}

disks_have_come() {
	[ "$(grep -cE "^ns-add ${CTRL}n[23] " "$SCRATCH/events")" -ge 2 ] && [ -b "/dev/${CTRL}n3" ]
}

# block_is BYTES: the first disk of CTRL must be another one than NUMBER, with this block size.
block_is() {
	other_disk "$NUMBER" || fail "the format made no new disk"
	same "bytes of a block" "$1" "$(queue_limit "${CTRL}n1" logical_block_size)"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs="$1" count=4 iflag=direct
	NUMBER=$(disk_number)
}

# After a format, through the controller or through the disk itself, the new disk exists at once.
formatted_is_another_disk() {
	hostile
	connect_hostile
	NUMBER=$(disk_number)
	run nvme format "/dev/$CTRL" -n 1 --lbaf=1 --force
	block_is 4096
	run nvme admin-passthru "$(disk "$CTRL" 1)" --opcode=0x80 -n 1 --cdw10=0
	block_is 512
	try nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1 --cdw10=7
	has "$OUTPUT$ERRORS" 'Invalid (Namespace )?Format'
	same "disk" "$NUMBER" "$(disk_number)"
	leave
}

# The host follows the effects log: after a command that changes the namespace inventory it scans
# before the ioctl returns, even if the target fails the command.
effects_are_followed() {
	local number
	hostile
	connect_hostile
	number=$(ctrl_number scan)
	try nvme admin-passthru "/dev/$CTRL" --opcode=0xc0
	has "$OUTPUT$ERRORS" 'Invalid Command Opcode'
	same scan $((number + 1)) "$(ctrl_number scan)"
	try nvme admin-passthru "/dev/$CTRL" --opcode=0xc2
	same scan $((number + 1)) "$(ctrl_number scan)"
	leave
}

# others_may TWIST...: set MAY to the commands that the user nobody may send to the disk, with this
# twist of the effects log.
others_may() {
	hostile effects "$@"
	connect_hostile
	MAY=$(may "$(disk "$CTRL" 1)" w)
	leave
}

# The effects log has only a read: first as supported, then with a further effect.
what_others_may_send_is_in_the_log() {
	local read=$((1024 + 4 * 2))
	others_may poke 1 $read 4
	may_is "$MAY" 'io 0x2' allowed
	may_is "$MAY" 'io64 0x2' allowed
	may_is "$MAY" 'io 0x1' denied
	may_is "$MAY" 'io 0x0' denied
	others_may poke $((1 | 1 << 2)) $read 4
	may_is "$MAY" 'io 0x2' denied
	# The effects log cannot be read.
	others_may status 0x4002
	may_is "$MAY" 'io 0x2' denied
	may_is "$MAY" 'identify 0x1' allowed
}

# I/O waits while a command with exclusive submission is in flight. A disconnect ends both, even if
# the command was sent through the disk.
alone_without_io() {
	local asked reads reader
	hostile other silent
	connect_hostile
	nvme admin-passthru "$(disk "$CTRL" 1)" --opcode=0xc1 >"$SCRATCH/alone" 2>&1 &
	asked=$!
	defer end_process $asked
	wait_until "$SOON" seen '0 other' || fail "the target received no command: $(<"$SCRATCH/alone")"
	# Those of the partition table.
	reads=$(count read)
	dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct >"$SCRATCH/read" 2>&1 &
	reader=$!
	defer end_process $reader
	wait_until "$SOON" waits_for_thaw $reader || fail "the read does not wait: $(<"$SCRATCH/read")"
	same reads "$reads" "$(count read)"
	disconnect "$CTRL"
	wait_until "$SOON" process_ended $asked || fail "the command did not end"
	wait_until "$SOON" process_ended $reader || fail "the read did not end"
	gone
}

# start_format STEP TWIST...: start a format of a disk with dirty pages. DIRTY is a file descriptor
# of the disk, ASKED the PID of the format.
start_format() {
	hostile "$@"
	connect_hostile
	exec {DIRTY}<>"$(disk "$CTRL" 1)"
	head -c 65536 /dev/urandom >&"$DIRTY"
	nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1 >"$SCRATCH/format" 2>&1 &
	ASKED=$!
	defer end_process "$ASKED"
}

# goes_unwritten: disconnect; the dirty pages must not be written.
goes_unwritten() {
	disconnect "$CTRL"
	exec {DIRTY}>&-
	wait_until "$SOON" process_ended "$ASKED" || fail "the command did not end"
	same writes 0 "$(count write || true)"
	has "$(kernel_log)" "$CTRL: namespace 1 may have changed: removing disk"
	gone
}

# During a format the block size is unknown, so a disconnect must not write dirty pages.
goes_while_it_formats() {
	start_format format silent
	wait_until "$SOON" seen '0 format' || fail "the target received no Format: $(<"$SCRATCH/format")"
	goes_unwritten
}

# The same after a format, until the host has identified the namespace again.
goes_when_it_was_formatted() {
	AFTER=1 start_format namespace silent
	wait_until "$SOON" looked_twice ||
		fail "the namespace is not identified again: $(<"$SCRATCH/format")"
	goes_unwritten
}

looked_twice() {
	[ "$(count namespace)" -ge 2 ]
}

# A namespace that cannot be identified after a format loses its disk without writes. Once it can be
# identified it gets a new disk.
formatted_and_not_to_be_seen() {
	local before
	AFTER=1 start_format namespace status 0x82
	before=$(disk_number || true)
	wait_until "$SOON" process_ended "$ASKED" || fail "the command did not end"
	has "$(kernel_log)" "$CTRL: namespace 1 may have changed: removing disk"
	exec {DIRTY}>&-
	kill -USR1 "$TARGET"
	wait_until "$FOLLOWED" other_disk "$before" || fail "no new disk was added"
	same writes 0 "$(count write || true)"
	leave
}

# The disks of a controller are removed together. All have the same backend. One is in use, one has dirty
# pages, and one goes because its namespace does.
many_are_removed() {
	local nsid last=40
	for nsid in $(seq 2 $last); do
		target_namespace "$NQN" "$nsid" "$ONE"
	done
	connect_real
	start_monitor
	start_io
	dd if=/dev/urandom of="$SCRATCH/data" bs=64k count=1 status=none
	dd if="$SCRATCH/data" of="/dev/${CTRL}n2" bs=64k seek=768 status=none
	namespace 3 disable
	wait_told "ns-del ${CTRL}n3 nsid 3 67.11 MB"
	timed_disconnect "$CTRL"
	LOST=$REMOVED io_fails
	for nsid in 1 2 $(seq 4 $last); do
		wait_told "ns-del ${CTRL}n$nsid nsid $nsid 67.11 MB"
	done
	no_disks || fail "disks are left: $(echo /sys/block/rnvmf*)"
	cmp -n 65536 -i 0:$((768 * 65536)) "$SCRATCH/data" "$ONE" || fail "the dirty pages were not written"
	rdma_back_to "$OBJECTS"
}

# Without memory to map CPUs to hardware queues, all CPUs use the first one. blk-mq frees the tags of the
# others with the first disk. Disks that are made at the same time must not free them again.
many_are_made_without_a_queue() {
	local nsid last=40 round
	[ "$(nproc)" -gt 1 ] || skip "there is one hardware queue"
	modinfo rrdma_test_no_cpu_groups >"$SCRATCH/modinfo" || fail "the test module is not installed"
	modprobe rrdma_test_no_cpu_groups || skip 'the kernel has no kprobe of group_cpus_evenly()'
	defer rmmod rrdma_test_no_cpu_groups
	for nsid in $(seq 2 $last); do
		target_namespace "$NQN" "$nsid" "$ONE"
	done
	for round in {1..4}; do
		connect_real
		run dd if="$(disk "$CTRL" $last)" of=/dev/null bs=4k count=16 iflag=direct
		same "disks in round $round" $last "$(disks_of "$CTRL")"
		same "hardware queues with CPUs" 1 "$(count_of "/sys/block/${CTRL}n1/mq/"*)"
		disconnect "$CTRL"
	done
	rdma_back_to "$OBJECTS"
}

# disks_of CONTROLLER: print the number of its disks.
disks_of() {
	count_of /sys/block/"$1"n*
}

# count_of [FILE...]: print the number of the files.
count_of() {
	echo $#
}

waits_for_thaw() {
	grep -qs queue_enter "/proc/$1/stack"
}

main setup \
	come_and_go_under_io \
	many_are_removed \
	many_are_made_without_a_queue \
	goes_under_io \
	size_is_followed \
	write_protection_is_followed \
	another_is_another_disk \
	identifiers_of_another \
	identifiers_of_another_subsystem \
	resets_under_a_flood_of_events \
	change_after_a_flood_of_events \
	rescan_while_connecting \
	rescan_on_demand \
	told_of_before_it_is_listed \
	told_of_and_never_listed \
	changes_of_all_kinds \
	unreadable_list \
	floods_with_events \
	resets_when_the_target_says_so \
	tells_no_events \
	answers_twice \
	formatted_is_another_disk \
	effects_are_followed \
	what_others_may_send_is_in_the_log \
	alone_without_io \
	goes_while_it_formats \
	goes_when_it_was_formatted \
	formatted_and_not_to_be_seen \
	disconnect_during_a_rescan \
	loss_during_a_rescan \
	another_while_its_partitions_are_read
