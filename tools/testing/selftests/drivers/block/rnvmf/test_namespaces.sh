#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The disks of a controller that is live follow the namespaces of its target.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# The port that the kernel's target listens at, of the two.
REAL=4420
HOSTILE_PORT=$SERVICE
# A port of a test's own, that comes and goes.
OWN=4430

# What tells how many disks there are, and the like, must be so within this time, in seconds.
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

# A loss is for good.
connect_hostile() {
	SERVICE=$HOSTILE_PORT connect "$TARGET4" --ctrl-loss-tmo 0 --timeout $((5 * SLOWDOWN))
}

# namespace NSID enable|disable|...: of the kernel's target.
namespace() {
	local path=$NVMET/subsystems/$NQN/namespaces/$1
	case $2 in
	enable) echo 1 >"$path/enable" ;;
	disable) echo 0 >"$path/enable" ;;
	*) echo "$3" >"$path/$2" ;;
	esac
}

wait_told() {
	wait_until "$FOLLOWED" told "$1" || fail "'$1' is not told but: $(<"$SCRATCH/events")"
}

appears() {
	wait_until "$FOLLOWED" [ -b "/dev/$1" ] || fail "there is no $1"
}

goes() {
	wait_until "$FOLLOWED" is_gone "$1" || fail "there still is $1"
}

is_gone() {
	[ ! -e "/sys/block/$1" ] && [ ! -e "/dev/$1" ]
}

# attribute_is DISK NAME VALUE: of the disk in sysfs.
attribute_is() {
	local value
	read -r value <"/sys/block/$1/$2" && [ "$value" = "$3" ]
}

# becomes DISK NAME VALUE
becomes() {
	wait_until "$FOLLOWED" attribute_is "$@" || fail "$2 of $1 is $(<"/sys/block/$1/$2"), not $3"
}

# Namespaces come and go, and I/O to another one does not care.
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
	wait_until "$FOLLOWED" added_twice || fail "it is not told twice: $(<"$SCRATCH/events")"
	is_verified
	same "namespaces" 2 "$(ctrl_number nr_namespaces)"
}

added_twice() {
	[ "$(grep -cxF "ns-add ${CTRL}n2 nsid 2 16.78 MB" "$SCRATCH/events")" = 2 ]
}

# A namespace that goes takes its disk with it: who has it open gets errors, and nobody hangs.
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
	same "lines in the log" 1 "$(logged "${CTRL}n3: detected capacity change")"
	truncate -s 16M "$BACKEND"
	namespace 3 revalidate_size 1
	becomes "${CTRL}n3" size 32768
	same "number of the disk" "$number" "$(<"/sys/block/${CTRL}n3/diskseq")"
}

# Asked for by the host itself, of this controller.
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

# protect 0|1: the feature of namespace 1 to be protected against writes.
protect() {
	run nvme set-feature "/dev/${CTRL}n1" -n 1 -f 0x84 --value="$1"
}

# Another namespace under the same number is another disk, which says who it is.
another_is_another_disk() {
	local number uuid=5e1f7e57-0000-4000-8000-0000000000aa
	connect_real
	number=$(disk_number)
	namespace 1 disable
	namespace 1 device_uuid "$uuid"
	namespace 1 enable
	wait_until "$FOLLOWED" other_disk "$number" || fail "there is no other disk"
	becomes "${CTRL}n1" uuid "$uuid"
}

# Of two that say that they are the same one only one gets a disk, and keeps it.
identifiers_of_another() {
	connect_real
	target_namespace "$NQN" 2 "$TWO"
	appears "${CTRL}n2"
	namespace 2 disable
	namespace 2 device_uuid "$(<"$NVMET/subsystems/$NQN/namespaces/1/device_uuid")"
	namespace 2 enable
	wait_until "$FOLLOWED" is_said_to_be 2 1 || fail "no such line: $OUTPUT"
	goes "${CTRL}n2"
	namespace 1 disable
	defer namespace 1 enable
	goes "${CTRL}n1"
	appears "${CTRL}n2"
	namespace 1 enable
	wait_until "$FOLLOWED" is_said_to_be 1 2 || fail "no such line: $OUTPUT"
	is_gone "${CTRL}n1" || fail "both have a disk"
	run dd if="/dev/${CTRL}n2" of=/dev/null bs=64k count=1 iflag=direct
}

# is_said_to_be NSID OTHER
is_said_to_be() {
	run rnvmf show "$CTRL"
	[[ $OUTPUT == *"namespace $1: duplicate identifiers: same as namespace $2"* ]]
}

# Nor have two subsystems disks of the same identifiers: by one of them the same data is found, whoever
# came last. When the disk is gone, the other one has one without being asked to look.
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
	is_gone "${second}n7" || fail "both have a disk"
	disconnect "$first"
	wait_until $((6 * FOLLOWED)) [ -b "/dev/${second}n7" ] || fail "there is no ${second}n7"
	run rnvmf show "$second"
	[[ $OUTPUT != *"duplicate identifiers"* ]] || fail "it is still said: $OUTPUT"
	connect_real
	run rnvmf show "$CTRL"
	has "$OUTPUT" "namespace 1: duplicate identifiers: in use by ${second}n7 of another subsystem"
	is_gone "${CTRL}n1" || fail "both have a disk"
}

# Namespaces come and go all the time, which the target tells, also while the host connects anew: I/O
# to another one does not care, and in the end the disks are those that there are. The target may list a
# namespace that it cannot identify any more: then the reset fails, and the host tries again.
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
	for _ in {1..10}; do
		scan=$(ctrl_number scan)
		wait_until 20 looked_since "$scan" || fail "nobody looks at the namespaces"
		try rnvmf reset "$CTRL"
		[ "$STATUS" = 0 ] ||
			has "$ERRORS" 'namespace [23]: .*internal path error.*; reconnecting continues'
		comes_back
	done
	! process_ended $flood || fail "the namespaces do not come and go any more"
	end_process $flood
	namespace 2 enable
	namespace 3 disable
	appears "${CTRL}n2"
	goes "${CTRL}n3"
	same state live "$(ctrl_field "$CTRL" state)"
	# The disk may be one that is about to go, by a look at what there was before.
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

# looked_since NUMBER: at the namespaces.
looked_since() {
	[ "$(ctrl_number scan)" -gt "$1" ]
}

# What changes while there is no connection is followed when there is one, and a rescan says so.
rescan_while_connecting() {
	own_port
	SERVICE=$OWN connect "$TARGET4" -c 1 --timeout $((5 * SLOWDOWN))
	target_unexport "$OWN" "$NQN"
	target_port_delete "$OWN"
	loses
	expect 1 rnvmf rescan "$CTRL"
	has "$ERRORS" "^rnvmf: rescan $CTRL: the controller is (connecting|resetting): it looks at"
	target_namespace "$NQN" 2 "$TWO"
	own_port
	comes_back
	appears "${CTRL}n2"
	run rnvmf rescan "$CTRL"
	same "what rescan says" "$CTRL: 2 disks" "$OUTPUT"
}

own_port() {
	target_port "$OWN" "$TARGET4" "$OWN" && target_export "$OWN" "$NQN"
}

# A controller that tells nothing is looked at when somebody asks.
rescan_on_demand() {
	local number
	AFTER=1 hostile list poke 0 0 4
	connect_hostile
	disk "$CTRL" 1 >"$SCRATCH/disk"
	run rnvmf rescan "$CTRL" -o json
	same "what rescan says" "{\"schema\":1,\"device\":\"$CTRL\",\"nr_namespaces\":0}" "$OUTPUT"
	is_gone "${CTRL}n1" || fail "the disk is still there"
	same events 0 "$(count event || true)"
	number=$(ctrl_number scan)
	run rnvmf rescan "$CTRL"
	same scan $((number + 1)) "$(ctrl_number scan)"
	expect 3 rnvmf rescan no-such
	disconnect "$CTRL"
	gone
}

# Linux's target tells of a namespace before it lists it: a look may come in between.
told_of_before_it_is_listed() {
	local asked
	SLOW=1000 AFTER=1 hostile list poke 0 0 4
	connect "$TARGET4" --timeout $((30 * SLOWDOWN))
	NUMBER=$(disk_number)
	rnvmf rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	asked=$!
	defer end_process $asked
	wait_until "$SOON" has_listed 2 || fail "nobody looks: $(<"$SCRATCH/rescan")"
	# This look sees none, and the next ones all.
	kill -USR1 "$TARGET"
	wait $asked || fail "$(<"$SCRATCH/rescan")"
	wait_until "$FOLLOWED" other_disk "$NUMBER" || fail "after $(count list) looks there is no disk"
	same looks 3 "$(count list)"
	leave
}

# Of what does not come at all only the first look after it was told is followed by another one.
told_of_and_never_listed() {
	hostile changed poke 7 0 4
	connect_hostile
	run rnvmf rescan "$CTRL"
	wait_until "$SOON" has_listed 3 || fail "nobody looks for what was told"
	sleep 1
	same looks 3 "$(count list)"
	leave
}

# looks_again TARGET...: the target is as it says from the second look on, which the user asks for.
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
	[ $took -lt $((6000 * SLOWDOWN)) ] || fail "the disconnect took $took ms"
	gone
}

# What the target says of its namespaces is believed, but no I/O goes to what is another one.
changes_of_all_kinds() {
	looks_again descriptors poke 0x77 4 8
	other_disk "$NUMBER" || fail "the disk is the same"
	has "$(kernel_log)" 'namespace 1 changed its identifiers'
	leave
	looks_again namespace poke 4096 0 8
	same size 4096 "$(<"/sys/block/${CTRL}n1/size")"
	other_disk "$NUMBER" && fail "the disk is another one"
	leave
}

# What cannot be read changes nothing, and is told.
unreadable_list() {
	looks_again list poke 0xffffffff 0 4
	same "status of the rescan" 1 "$STATUS"
	has "$ERRORS" "rescan $CTRL: list of active namespaces"
	same "disk" "$NUMBER" "$(disk_number)"
	leave
}

# A target that has an event whenever it is asked keeps nobody busy.
floods_with_events() {
	EVENTS=1 hostile event result 0x00040002
	connect_hostile
	wait_until "$FOLLOWED" heard_often || fail "only $(count event) events"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=16 iflag=direct
	# The pauses double from a tenth of a second.
	[ "$(count event)" -le 8 ] || fail "it was asked $(count event) times"
	leave
}

heard_often() {
	[ "$(count event)" -ge 4 ]
}

# One that always has an internal error is reset more and more seldom.
resets_when_the_target_says_so() {
	EVENTS=1 hostile event result 0x00010300
	connect_hostile
	wait_until "$FOLLOWED" connected_again || fail "it was not reset twice"
	has "$(kernel_log)" "$CTRL: asynchronous event: persistent internal error"
	disconnect "$CTRL"
	gone
}

connected_again() {
	[ "$(count connect)" -ge 3 ]
}

log_has() {
	[ "$(logged "$1")" -gt 0 ]
}

# One that tells nothing is not asked again, and that is all.
tells_no_events() {
	EVENTS=1 hostile event status 0x4105
	connect_hostile
	wait_until "$FOLLOWED" log_has "$CTRL: no more asynchronous events: " || fail "it is not in the log"
	run rnvmf rescan "$CTRL"
	same events 1 "$(count event || true)"
	leave
}

# An event that nobody asked for breaks the protocol.
answers_twice() {
	EVENTS=2 AFTER=1 hostile event twice
	connect_hostile
	is_dead 'not in flight|answered'
	gone
}

# A disconnect does not wait for a look at the namespaces.
disconnect_during_a_rescan() {
	local began took pid status=0
	AFTER=1 hostile list silent
	connect_hostile
	rnvmf rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	pid=$!
	defer end_process $pid
	wait_until "$FOLLOWED" has_listed 2 || fail "nobody looked"
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	[ $took -lt $((3000 * SLOWDOWN)) ] || fail "the disconnect took $took ms"
	wait $pid || status=$?
	same "status of the rescan" 1 $status
	has "$(<"$SCRATCH/rescan")" 'removed meanwhile'
	gone
}

# Nor does a loss, or what comes after it: then the look is due again.
loss_during_a_rescan() {
	EVENTS=0 AFTER=1 hostile list hang-up
	SERVICE=$HOSTILE_PORT connect "$TARGET4" -c 1 --timeout $((2 * SLOWDOWN))
	expect 1 rnvmf rescan "$CTRL"
	has "$ERRORS" 'the namespaces are scanned after the reconnect'
	disconnect "$CTRL"
	gone
}

# A disk that is being made when the connection is lost is not made, nor gets any I/O, if there is
# another namespace in its place when there is a connection again.
another_while_its_disk_is_made() {
	lost_while_made 2
	has "$(kernel_log)" 'namespace 2 changed its identifiers: not adding its disk'
}

# And what was found before a loss is not made after it.
another_before_its_disk_is_made() {
	lost_while_made 3
}

# lost_while_made NSID: the connection is lost while the disk of the second of three namespaces is
# searched for partitions, before that of the third is made; after that this one is another one.
lost_while_made() {
	hostile
	SERVICE=$HOSTILE_PORT connect "$TARGET4" -c 1
	start_monitor
	end_process "$TARGET"
	loses
	NAMESPACES=3 hostile read silent
	wait_until "$SOON" is_read || fail "the second disk is not being made"
	comes_back
	same "disks" 1 "$(ctrl_number nr_namespaces)"
	end_process "$TARGET"
	loses
	NAMESPACES=3 OTHER=$1 hostile
	comes_back
	wait_until "$SOON" disks_have_come || fail "they have not come: $(<"$SCRATCH/events")"
	run rnvmf rescan "$CTRL"
	same "disks" 3 "$(ctrl_number nr_namespaces)"
	has "$(<"/sys/block/${CTRL}n$1/uuid")" "$(printf '5f%02x$' $((0x5d + $1)))"
	same "what came and went" "ns-add ${CTRL}n2 ns-add ${CTRL}n3" \
		"$(grep -oE '^ns-(add|del) [^ ]+' "$SCRATCH/events" | paste -sd ' ')"
	disconnect "$CTRL"
	gone
}

is_read() {
	[ "$(count read)" -ge 1 ]
}

disks_have_come() {
	[ "$(grep -cE "^ns-add ${CTRL}n[23] " "$SCRATCH/events")" -ge 2 ] && [ -b "/dev/${CTRL}n3" ]
}

# block_is BYTES: of the first disk of CTRL, which is another one than NUMBER's.
block_is() {
	other_disk "$NUMBER" || fail "the disk is the one that it was"
	same "bytes of a block" "$1" "$(queue_limit "${CTRL}n1" logical_block_size)"
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs="$1" count=4 iflag=direct
	NUMBER=$(disk_number)
}

# Who formats a namespace, by the controller or by the disk that it is the end of, finds the new disk.
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

# What the target's log of effects says is done: a look at the namespaces, which is over when the
# command is, although the target does not know it.
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

# others_may TWIST...: what others than root may send to the disk of a target with such a log of effects;
# it is left in MAY.
others_may() {
	hostile effects "$@"
	connect_hostile
	MAY=$(may "$(disk "$CTRL" 1)" w)
	leave
}

# The log says of a read, which is the only command in it, that it is supported, and then more.
what_others_may_send_is_in_the_log() {
	local read=$((1024 + 4 * 2))
	others_may poke 1 $read 4
	may_is "$MAY" 'io 0x2' allowed
	may_is "$MAY" 'io64 0x2' allowed
	may_is "$MAY" 'io 0x1' denied
	may_is "$MAY" 'io 0x0' denied
	others_may poke $((1 | 1 << 2)) $read 4
	may_is "$MAY" 'io 0x2' denied
	# There is none to be seen.
	others_may status 0x4002
	may_is "$MAY" 'io 0x2' denied
	may_is "$MAY" 'identify 0x1' allowed
}

# No I/O is beside a command that wants to be alone; both end with the controller, although it is
# the disk that was asked.
alone_without_io() {
	local asked reads reader
	hostile other silent
	connect_hostile
	reads=$(count read)
	nvme admin-passthru "$(disk "$CTRL" 1)" --opcode=0xc1 >"$SCRATCH/alone" 2>&1 &
	asked=$!
	defer end_process $asked
	wait_until "$SOON" seen '0 other' || fail "the target is not asked: $(<"$SCRATCH/alone")"
	dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct >"$SCRATCH/read" 2>&1 &
	reader=$!
	defer end_process $reader
	wait_until "$SOON" waits_for_thaw $reader || fail "it reads: $(<"$SCRATCH/read")"
	same reads "$reads" "$(count read)"
	disconnect "$CTRL"
	wait_until "$SOON" process_ended $asked || fail "the command is waited for yet"
	wait_until "$SOON" process_ended $reader || fail "the read is waited for yet"
	gone
}

# start_format STEP TWIST...: a disk that has something to write yet, which DIRTY is, is formatted; the
# process that asked for it is ASKED.
start_format() {
	hostile "$@"
	connect_hostile
	exec {DIRTY}<>"$(disk "$CTRL" 1)"
	head -c 65536 /dev/urandom >&"$DIRTY"
	nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1 >"$SCRATCH/format" 2>&1 &
	ASKED=$!
	defer end_process "$ASKED"
}

# goes_unwritten: the controller goes, and what there is to write with it.
goes_unwritten() {
	disconnect "$CTRL"
	exec {DIRTY}>&-
	wait_until "$SOON" process_ended "$ASKED" || fail "the command is waited for yet"
	same writes 0 "$(count write || true)"
	has "$(kernel_log)" "$CTRL: namespace 1 may have changed: removing disk"
	gone
}

# What is being formatted when the controller goes is not written to any more: nobody knows by then how
# large its blocks are.
goes_while_it_formats() {
	start_format format silent
	wait_until "$SOON" seen '0 format' || fail "the target is not asked: $(<"$SCRATCH/format")"
	goes_unwritten
}

# So it is where that is over, and nobody has looked at what came of it.
goes_when_it_was_formatted() {
	AFTER=1 start_format namespace silent
	wait_until "$SOON" looked_twice || fail "nobody looks at what it is: $(<"$SCRATCH/format")"
	goes_unwritten
}

looked_twice() {
	[ "$(count namespace)" -ge 2 ]
}

# What was formatted, or may have been, and cannot be looked at is not written to any more. Once it can be
# there is a disk for what it is now.
formatted_and_not_to_be_seen() {
	local before
	AFTER=1 start_format namespace status 0x82
	before=$(disk_number || true)
	wait_until "$SOON" process_ended "$ASKED" || fail "the command is waited for yet"
	has "$(kernel_log)" "$CTRL: namespace 1 may have changed: removing disk"
	exec {DIRTY}>&-
	kill -USR1 "$TARGET"
	wait_until "$FOLLOWED" other_disk "$before" || fail "there is no other disk"
	same writes 0 "$(count write || true)"
	leave
}

waits_for_thaw() {
	grep -qs queue_enter "/proc/$1/stack"
}

main setup \
	come_and_go_under_io \
	goes_under_io \
	size_is_followed \
	write_protection_is_followed \
	another_is_another_disk \
	identifiers_of_another \
	identifiers_of_another_subsystem \
	resets_under_a_flood_of_events \
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
	another_while_its_disk_is_made \
	another_before_its_disk_is_made
