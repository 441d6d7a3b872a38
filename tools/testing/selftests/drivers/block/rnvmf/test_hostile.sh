#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the host against a target that violates the protocol: the host reports the cause, and
# nothing leaks. test_hostile_random.sh changes replies at random.
#
# The target is hostile_target.c. The lines below end with its arguments: the step at which it
# violates the protocol, the twist, and the value.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# No reconnect: a lost connection makes the controller dead.
CONNECT_OPTIONS=(--ctrl-loss-tmo 0)

# Time limit of a disconnect, in milliseconds.
AT_ONCE=$((6000 * SLOWDOWN))

# XOR mask that makes an rkey invalid. The upper 24 bits of an rkey are the index of the region,
# which soft-RoCE keeps below 2^20. A lower bit could give the key of another region, if their lower
# bytes, which start at random, are equal.
NO_KEY=0x80000000

# Number of attempts of a command: the first and 5 retries.
ATTEMPTS=6

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

# refused STATUS STAGE PATTERN ARGUMENT...: the connect must fail with this status, stage and
# message.
refused() {
	local status=$1 stage=$2 pattern=$3
	shift 3
	hostile "$@"
	expect "$status" rnvmf connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" \
		--timeout $((5 * SLOWDOWN)) -o json
	has "$ERRORS" "\"message\":\"[^\"]*($pattern)"
	has "$ERRORS" "\"stage\":\"$stage\""
	gone
}

connect_hostile() {
	connect "$TARGET4" --timeout $((5 * SLOWDOWN)) "$@"
}

disconnects_at_once() {
	local began took
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	[ $took -lt $AT_ONCE ] || fail "the disconnect took $took ms: $(tail -3 "$SCRATCH/seen")"
}

leave() {
	disconnects_at_once
	gone
}

# compare DISK SIZE: write SIZE bytes in one request, read them back and compare.
compare() {
	local path=$1
	head -c "$2" /dev/urandom >"$SCRATCH/wrote"
	run dd if="$SCRATCH/wrote" of="$path" bs="$2" oflag=direct
	run dd if="$path" of="$SCRATCH/read" bs="$2" count=1 iflag=direct
	cmp "$SCRATCH/wrote" "$SCRATCH/read" || fail "read data differs from written data"
}

# works ARGUMENT...: connecting and I/O must succeed, because the reply is unusual but valid.
works() {
	hostile "$@"
	connect_hostile
	compare "$(disk "$CTRL" 1)" "${BYTES:-65536}"
	run "${RNVMF[@]}" stats "$CTRL" -o json
	STATS=$OUTPUT
	leave
}

# without_disk PATTERN ARGUMENT...: the namespace must be rejected. The reason must be in the output
# of connect, in `rnvmf show` and in the kernel log.
without_disk() {
	local pattern=$1
	shift
	hostile "$@"
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 1: .*($pattern)"
	no_disks || fail "the rejected namespace has a disk"
	refuses "$pattern"
	# A rescan rejects it again, without another log line.
	run "${RNVMF[@]}" rescan "$CTRL"
	refuses "$pattern"
	leave
}

# refuses PATTERN: the only namespace must have no disk, for this reason, which is logged once.
refuses() {
	run "${RNVMF[@]}" show "$CTRL" -o json
	has "$OUTPUT" "\"nr_refused_namespaces\":1,\"refused_namespaces\":\[\{\"nsid\":1,\"reason\":\"[^\"]*($1)[^\"]*\"\}\]"
	run "${RNVMF[@]}" show "$CTRL"
	has "$OUTPUT" "no disk +namespace 1: .*($1)"
	same warnings 1 "$(logged_as warn "$CTRL: namespace 1: no disk: .*($1)")"
}

# trap_io read|write: access the block that is the target's step trap-read or trap-write.
trap_io() {
	case $1 in
	read) try dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct ;;
	write) try dd if=/dev/zero of="/dev/${CTRL}n1" bs=64k seek=64 count=1 oflag=direct ;;
	esac
}

# fails COUNT ERROR CAUSE STEP TWIST...: I/O must fail with ERROR after COUNT attempts, with one log
# line for CAUSE. The controller must stay live.
fails() {
	local count=$1 error=$2 cause=$3 lines
	shift 3
	hostile "$@"
	connect_hostile
	lines=$(logged "${CTRL}n1: .* failed: ")
	trap_io "${1#trap-}"
	same status 1 "$STATUS"
	has "$ERRORS" "$error"
	same attempts "$count" "$(count "$1")"
	has "$(kernel_log | grep -F "${CTRL}n1: " | tail -1)" "${CTRL}n1: $cause"
	same "number of failures in the log" $((lines + 1)) "$(logged "${CTRL}n1: .* failed: ")"
	has "$(rnvmf stats "$CTRL" -o json)" "\"retries\":$((count - 1))[,}]"
	same state live "$(ctrl_field "$CTRL" state)"
	leave
}

# dies PATTERN STEP TWIST...: I/O must fail and the controller must be dead, with a message that
# matches.
dies() {
	local pattern=$1
	shift
	hostile "$@"
	connect_hostile
	trap_io "${1#trap-}"
	same status 1 "$STATUS"
	has "$ERRORS" "$LOST"
	is_dead "$pattern"
	gone
}

# Without a twist the target works, so that failures below are due to the twist.
good_target() {
	local path size
	hostile
	connect_hostile
	path=$(disk "$CTRL" 1)
	# Data in the capsule, in a memory region, and in several commands.
	for size in 4096 65536 2097152; do
		compare "$path" $size
	done
	leave
}

rejected_requests() {
	refused 1 connect 'rejected by target: .*length of private data' request reject 1 4
	refused 1 connect 'rejected by target: .*send queue size' request reject 4 4
	refused 1 connect 'rejected by target: target is out of resources' request reject 6 4
	refused 1 connect 'rejected by target: .*controller identifier' request reject 9 4
	refused 1 connect 'rejected by target: .*0x77' request reject 0x77 4
	refused 1 connect 'connection refused' request reject 3 2
	refused 1 connect 'connection refused|rejected' request reject 0 0
}

# The target refuses the first or the second I/O queue.
# The queues connect in parallel, so the target may get the requests in any order.
rejected_io_queues() {
	AFTER=1 refused 1 connect 'rejected by target: target is out of resources' request reject 6 4
	has "$ERRORS" '"qid":[12]'
	AFTER=2 refused 1 connect 'rejected by target: .*send queue size' request reject 4 4
	has "$ERRORS" '"qid":[12]'
	AFTER=1 refused 5 connect 'timed out after' request silent
	has "$ERRORS" '"qid":[12]'
	AFTER=2 refused 5 connect 'timed out after' request silent
	has "$ERRORS" '"qid":[12]'
}

# The same during a reconnect.
comes_back_without_io_queues() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile
	connect_hostile
	first=$(disk_number)
	SEES='0 queues' comes_back_after 'rejected by target: target is out of resources' 1 request reject 6 4
	same disk "$first" "$(disk_number)"
	SEES='0 queues' comes_back_after 'timed out after' 1 request silent
	same disk "$first" "$(disk_number)"
	SEES='0 queues' comes_back_after 'rejected by target: .*send queue size' 2 request reject 4 4
	same disk "$first" "$(disk_number)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# comes_back_after PATTERN AFTER ARGUMENT...: restart the target with a twist, with which the
# reconnect must fail with PATTERN after the target has logged the line SEES. Then restart it
# without a twist; the reconnect must succeed.
comes_back_after() {
	local pattern=$1 after=$2
	shift 2
	end_process "$TARGET"
	loses
	AFTER=$after hostile "$@"
	wait_until "$SOON" says "$pattern" || fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
	is_not_live || fail "$CTRL is live"
	seen "${SEES:-0 controller}" || fail "the last command was: $(tail -1 "$SCRATCH/seen")"
	end_process "$TARGET"
	hostile
	comes_back
}

refused_connects() {
	local stage=fabrics-connect data=0x10000
	refused 1 $stage 'connect format' connect status 0x180
	refused 1 $stage 'busy' connect status 0x181
	refused 1 $stage 'invalid queue identifier' connect status 0x182 42
	refused 1 $stage 'byte 7 of the command' connect status 0x182 7
	refused 1 $stage 'invalid host identifier' connect status 0x182 $((data))
	refused 1 $stage 'no such subsystem' connect status 0x182 $((data + 256))
	refused 1 $stage 'byte 9 of the connect data' connect status 0x182 $((data + 9))
	refused 1 $stage 'discovery' connect status 0x183
	refused 1 $stage 'host is not allowed' connect status 0x184
	refused 1 $stage 'authentication' connect status 0x191
	refused 1 $stage 'authentication' connect result 0x20001
	refused 1 $stage 'rejected by target: ' connect status 0x6
	refused 1 $stage 'rejected by target: ' connect-io status 0x182 42
}

unusable_controllers() {
	refused 1 enable 'queue|command set' capabilities result 0
	refused 1 enable 'page' capabilities result 0x000f0020000f003f
	refused 1 queues 'queue size of the controller 1 ' capabilities result 0x2001010000
	refused 5 enable 'become ready within 500 ms' status result 0
	refused 1 enable 'fatal' status result 3
	refused 1 enable 'Property Set' configure status 0x4002
	refused 1 identify 'connected to controller 1, identified 7' controller poke 7 78 2
	refused 1 identify 'I/O controller' controller poke 2 111 1
	refused 1 identify 'I/O controller' controller poke 3 111 1
	refused 1 identify 'keep alive' controller poke 0 320 2
	refused 1 identify 'keyed SGL' controller poke 1 536 4
	refused 1 identify 'command capsules of 0 ' controller poke 0 1792 4
	refused 1 identify 'response capsules of 0 ' controller poke 0 1796 4
	refused 1 queues 'MAXCMD of the controller 1 ' controller poke 1 514 2
	refused 1 queues 'Number of Queues' queues status 0x4006
}

unusable_namespaces() {
	without_disk 'not attached' namespace poke 0 8 8
	without_disk '9223372036854775808 blocks' namespace poke 0x8000000000000000 0 8
	without_disk 'blocks of 2.0 ' namespace poke 0 130 1
	without_disk 'blocks of 2.8 ' namespace poke 8 130 1
	without_disk 'blocks of 2.63 ' namespace poke 63 130 1
	without_disk '8 bytes of metadata' namespace poke 8 128 2
	without_disk 'command set 2' descriptors poke 0x0200000104 0 8
	refused 1 namespaces 'listed after' list poke 0x100000001 0 8
	refused 1 namespaces 'listed after' list poke 0xffffffff 0 4
	without_disk 'type 1 has the wrong length 15' descriptors poke 0x0f01 0 4
	without_disk 'type 3 has the wrong length 15' descriptors poke 0x0f03 0 4
}

# A namespace without blocks gets a disk of size 0, whose I/O sends no command.
namespace_without_blocks() {
	local path
	hostile namespace poke 0 0 8
	connect_hostile
	path=$(disk "$CTRL" 1)
	same size 0 "$(blockdev --getsize64 "$path")"
	run dd if="$path" of="$SCRATCH/read" bs=4k count=1 iflag=direct
	[ ! -s "$SCRATCH/read" ] || fail "data was read from an empty disk"
	expect 1 dd if=/dev/zero of="$path" bs=4k count=1 oflag=direct
	has "$ERRORS" 'No space left'
	same "number of reads and writes" 0 "$(grep -cE ' (read|write)$' "$SCRATCH/seen" || true)"
	same state live "$(ctrl_field "$CTRL" state)"
	leave
}

# A namespace without identifiers is identified by its controller; with another serial number it is
# another namespace.
comes_back_as_another() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile descriptors status 0x4002
	connect_hostile
	first=$(disk_number)
	goes_and_is_back descriptors status 0x4002
	same disk "$first" "$(disk_number)"
	SERIAL=x goes_and_is_back descriptors status 0x4002
	wait_until "$SOON" other_disk "$first" || fail "no new disk for the other controller's namespace"
	leave
}

# goes_and_is_back [ARGUMENT...]: restart the target and wait for the reconnect.
goes_and_is_back() {
	end_process "$TARGET"
	loses
	hostile "$@"
	comes_back
}

# Write cache and preferred boundary may change without a new disk; the block size may not.
comes_back_with_other_abilities() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile controller poke 0 525 1
	connect_hostile
	first=$(disk_number)
	caches 'write through'
	goes_and_is_back controller poke 1 525 1
	caches 'write back'
	# NOIOB: an optimal I/O boundary of 64 blocks of 512 bytes.
	goes_and_is_back namespace poke 64 46 2
	wait_until "$SOON" limit_is chunk_sectors 64 || fail "chunk_sectors is not 64"
	same disk "$first" "$(disk_number)"
	compare "$(disk "$CTRL" 1)" 65536
	# Another block size makes a new disk.
	goes_and_is_back namespace poke 12 130 1
	wait_until "$SOON" other_disk "$first" || fail "another block size made no new disk"
	leave
}

caches() {
	wait_until "$SOON" limit_is write_cache "$1" ||
		fail "write_cache is '$(queue_limit "$(disk "$CTRL" 1)" write_cache)', expected '$1'"
}

# limit_is NAME VALUE: whether a queue limit of the first disk has this value.
limit_is() {
	[ "$(queue_limit "$(disk "$CTRL" 1)" "$1")" = "$2" ]
}

# A disk takes over that the target supports less: no in-capsule data, transfers of 8 KiB. A reconnect
# fails if queues have only 32 entries, because requests have tags beyond these.
comes_back_with_less() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first less
	hostile
	connect_hostile
	first=$(disk_number)
	for less in 'controller poke 4 1792 4' 'controller poke 1 77 1'; do
		# shellcheck disable=SC2086 # words of a command line
		goes_and_is_back $less
		same disk "$first" "$(disk_number)"
		compare "$(disk "$CTRL" 1)" 65536
	done
	wait_until "$SOON" limit_is max_hw_sectors_kb 8 || fail "max_hw_sectors_kb is not 8"
	comes_back_after 'the target no longer supports the queue size of the disks' 0 \
		capabilities result 0x200101001f
	same disk "$first" "$(disk_number)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# A command at which the target disconnects ends after some losses, and the controller is live again.
poison_command_ends() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	hostile trap-write hang-up
	connect_hostile
	trap_io write
	same status 1 "$STATUS"
	has "$ERRORS" "$LOST"
	same "number of commands" 7 "$(count trap-write)"
	comes_back
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# With Traffic Based Keep Alive (CTRATT.TBKAS), commands that end do not show that commands are sent:
# they may have been sent long before. With few commands the host therefore sends keep-alives.
few_commands_do_not_keep_alive() {
	hostile controller poke 0x40 96 4
	connect_hostile -k 4
	wait_until "$SOON" is_kept_alive || fail "no Keep Alive command"
	leave
}

# Whether the target has received a Keep Alive command. Reads a block.
is_kept_alive() {
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
	[ "$(count keep-alive)" -ge 2 ]
}

# A namespace that the target lists a moment after it accepts the connection keeps its disk. One that is
# not listed in two scans loses it.
lists_its_namespaces_late() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	hostile
	connect_hostile
	first=$(disk_number)
	FIRST=1 goes_and_is_back list poke 0 0 4
	same "number of scans" 2 "$(count list)"
	compare "$(disk "$CTRL" 1)" 65536
	same disk "$first" "$(disk_number)"
	goes_and_is_back list poke 0 0 4
	wait_until "$SOON" no_disks || fail "the disk of a namespace that is gone remains"
	# A disk that is gone already needs no second scan.
	same "number of scans" 2 "$(count list)"
	leave
}

# The reason of a rejected namespace may change, until it gets a disk.
comes_back_with_another_refusal() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	hostile namespace poke 8 128 2
	connect_hostile
	refuses '8 bytes of metadata'
	goes_and_is_back namespace poke 0 8 8
	refuses 'not attached'
	goes_and_is_back
	wait_until "$SOON" test -b "/dev/${CTRL}n1" || fail "no disk was added"
	same refusals 0 "$(ctrl_field "$CTRL" nr_refused_namespaces)"
	run "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT != *"no disk"* ]] || fail "the namespace is still shown as rejected: $OUTPUT"
	leave
}

# If a namespace cannot be identified temporarily, the reconnect fails, and the disk stays.
cannot_tell_for_a_moment() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first step
	hostile
	connect_hostile
	first=$(disk_number)
	for step in namespace descriptors; do
		end_process "$TARGET"
		loses
		hostile $step status 0x6
		wait_until "$SOON" says 'namespace 1: .*internal error' ||
			fail "message of $CTRL: $(ctrl_field "$CTRL" message)"
		end_process "$TARGET"
		hostile
		comes_back
		same disk "$first" "$(disk_number)"
	done
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# A disk that is being removed, but is kept by a user, does not matter for a reconnect: its
# namespace need not be identified. Its removal is notified when it is complete.
cannot_tell_of_what_is_lost() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) process asked
	NAMESPACES=2 hostile
	connect_hostile
	start_monitor
	mkfifo "$SCRATCH/come"
	python3 "$HERE/ioctls.py" keeping "/dev/${CTRL}n2" <"$SCRATCH/come" >"$SCRATCH/keeping" 2>&1 &
	process=$!
	defer end_process $process
	exec {asked}>"$SCRATCH/come"
	wait_until "$SOON" grep -qs '^keeping$' "$SCRATCH/keeping" ||
		fail "no page fault: $(<"$SCRATCH/keeping")"
	NAMESPACES=2 OTHER=2 goes_and_is_back
	wait_until "$SOON" logged_once "$CTRL: namespace 2 changed its identifiers" ||
		fail "the changed identifiers are not in the log"
	NAMESPACES=2 OTHER=2 AFTER=1 goes_and_is_back namespace status 0x6
	compare "$(disk "$CTRL" 1)" 65536
	! grep "^ns-del" "$SCRATCH/events" >&2 || fail "ns-del before the disk was removed"
	echo come >&"$asked"
	exec {asked}>&-
	wait "$process" || fail "$(<"$SCRATCH/keeping")"
	wait_until "$SOON" grep -q "^ns-del ${CTRL}n2 nsid 2 " "$SCRATCH/events" ||
		fail "no ns-del after the disk was removed"
	kill -USR1 "$TARGET"
	wait_until "$SOON" no_refusals || fail "namespace 2 is still rejected"
	compare "$(disk "$CTRL" 2)" 65536
	leave
}

logged_once() {
	[ "$(logged "$1")" = 1 ]
}

# A failed scan is repeated, with growing delays.
looks_again_by_itself() {
	AFTER=1 hostile list status 0x6
	connect_hostile
	expect 1 "${RNVMF[@]}" rescan "$CTRL"
	has "$ERRORS" 'internal error'
	wait_until "$SOON" has_listed 6 || fail "only $(count list) scans"
	# The next delay is more than 3 s.
	kill -USR1 "$TARGET"
	wait_until "$SOON" has_listed 7 || fail "no scan after the target recovered"
	sleep 2
	same "number of scans" 7 "$(count list)"
	same state live "$(ctrl_field "$CTRL" state)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# A new namespace that cannot be identified gets its disk later, without a rescan by the user.
new_disks_come_by_themselves() {
	NAMESPACES=2 AFTER=1 hostile namespace status 0x6
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 2: .*internal error"
	comes_by_itself
	leave
	# With Do Not Retry there is no further scan.
	NAMESPACES=2 AFTER=1 hostile namespace status 0x4006
	connect_hostile
	sleep 2
	same "number of scans" 1 "$(count list)"
	leave
	# A disconnect does not wait for the next scan.
	NAMESPACES=2 AFTER=1 hostile namespace status 0x6
	connect_hostile
	wait_until "$SOON" has_listed 3 || fail "only $(count list) scans, expected 3"
	leave
}

# A namespace that is not ready (NSTAT.NRDY) gets its disk when it is.
not_ready_for_a_moment() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	NAMESPACES=2 VERSION=0x20000 AFTER=1 hostile independent poke 0 14 1
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 2: .*not ready"
	comes_by_itself
	# A disk that exists stays.
	first=$(disk_number)
	VERSION=0x20000 goes_and_is_back independent poke 0 14 1
	same disk "$first" "$(disk_number)"
	leave
}

# One malformed namespace of three costs neither of the others its disk, at the first connect and
# after a loss.
one_of_three_is_malformed() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	NAMESPACES=3 AFTER=1 hostile descriptors poke 0x0f01 0 4
	connect_hostile
	has "$ERRORS" "^rnvmf: $CTRL: no disk: namespace 2: .*wrong length 15"
	compare "$(disk "$CTRL" 1)" 65536
	end_process "$TARGET"
	loses
	NAMESPACES=3 AFTER=1 hostile descriptors poke 0x0f01 0 4
	comes_back
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

new_disks_come_by_themselves_after_a_loss() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	hostile
	connect_hostile
	NAMESPACES=2 AFTER=1 goes_and_is_back namespace status 0x6
	comes_by_itself
	leave
}

# comes_by_itself: the second namespace must get its disk once the target can identify it.
comes_by_itself() {
	same refusals 1 "$(ctrl_field "$CTRL" nr_refused_namespaces)"
	[ ! -e "/dev/${CTRL}n2" ] || fail "a namespace that cannot be identified has a disk"
	kill -USR1 "$TARGET"
	wait_until "$SOON" test -b "/dev/${CTRL}n2" ||
		fail "no disk after $(count list) scans: $(ctrl_field "$CTRL" reason)"
	compare "$(disk "$CTRL" 2)" 65536
	wait_until "$SOON" no_refusals || fail "namespace 2 is still rejected"
	same state live "$(ctrl_field "$CTRL" state)"
	compare "$(disk "$CTRL" 1)" 65536
}

no_refusals() {
	[ "$(ctrl_field "$CTRL" nr_refused_namespaces)" = 0 ]
}

# A rescan during a running scan reports the result of the next scan, not that of the running one.
asked_for_during_a_look() {
	SLOW=2000 AFTER=1 hostile list status 0x6
	connect "$TARGET4" --timeout $((30 * SLOWDOWN))
	expect 1 "${RNVMF[@]}" rescan "$CTRL"
	wait_until "$SOON" has_listed 3 || fail "only $(count list) scans, expected 3 before the rescan"
	# The target still fails the running scan.
	kill -USR1 "$TARGET"
	run "${RNVMF[@]}" rescan "$CTRL"
	same "number of scans" 4 "$(count list)"
	leave
}

# An endless namespace list, in which only namespace 1 is active.
endless_list() {
	local began took
	hostile list fill
	began=$(now)
	connect "$TARGET4" --timeout $((60 * SLOWDOWN)) -k $((2 * SLOWDOWN))
	took=$(($(now) - began))
	[ "$(count keep-alive)" -ge $((took / (2000 * SLOWDOWN))) ] ||
		fail "only $(count keep-alive) Keep Alive commands in $took ms"
	has "$ERRORS" "no disk: 1007 more namespaces"
	same namespaces 1 "$(ctrl_field "$CTRL" nr_namespaces)"
	same refusals 1023 "$(ctrl_field "$CTRL" nr_refused_namespaces)"
	same "number of reasons" 16 "$(rnvmf show "$CTRL" -o json | grep -o '"reason":' | wc -l)"
	same "number of warnings of a namespace" 16 "$(logged_as warn "$CTRL: namespace [0-9]+: no disk: ")"
	same "number of warnings of the others" 1 "$(logged_as warn "$CTRL: 1007 more namespaces have no disk")"
	same "number of warnings of the limit" 1 "$(logged_as warn "$CTRL: more than 1024 namespaces")"
	same "number of identified namespaces" 1024 "$(count namespace)"
	same "number of read pages of the list" 2 "$(count list)"
	leave
}

odd_but_allowed() {
	works controller poke 0 77 1
	works controller poke 31 77 1
	# IOCCSZ without in-capsule data.
	works controller poke 4 1792 4
	# More in-capsule data than the target has room for. Small requests, because 64 KiB in
	# adjacent pages could be sent in one capsule.
	BYTES=4096 works controller poke 0xffffffff 1792 4
	works controller poke 0xffffffff 540 4
	works controller poke 1 1800 2
	works controller poke 0 514 2
	works queues result 0
	works queues result 0xffffffff
	works descriptors status 0x4002
	# The host ignores SQHD and counts its commands in flight by their responses.
	works controller head 0xffff
	works read head 0xffff
	works write head 1
	# The host ignores CRQSIZE.
	ENTRIES=0 works queues result 0
	ENTRIES=65535 works queues result 0
}

# Connection requests beyond the listener's backlog are dropped, those within it are not answered:
# all connects must time out.
more_requests_than_there_is_room_for() {
	local pids=() pid status
	hostile
	kill -STOP "$TARGET"
	for _ in {1..10}; do
		timeout -k 5 "$COMMAND_SECONDS" rnvmf connect -D -a "$TARGET4" -s "$SERVICE" -n "$NQN" \
			--timeout $((3 * SLOWDOWN)) >>"$SCRATCH/connects" 2>&1 &
		pids+=($!)
		defer end_process $!
	done
	for pid in "${pids[@]}"; do
		status=0
		wait "$pid" || status=$?
		same "status ($(<"$SCRATCH/connects"))" 5 $status
	done
	kill -KILL "$TARGET"
	gone
}

# The target may leave invalidation to the host.
leaves_keys_alone() {
	works controller keep
	works read keep
	has "$STATS" '"local_invalidations":[1-9]'
	works write keep
	has "$STATS" '"local_invalidations":[1-9]'
}

broken_responses() {
	refused 1 fabrics-connect 'not in flight' connect cid 0x0fff
	refused 1 fabrics-connect 'not in flight' connect cid 0x1000
	refused 1 enable 'not in flight|answered twice' capabilities twice
	refused 1 enable 'response of 15 bytes' capabilities length 15
	refused 1 enable 'response of 0 bytes' capabilities length 0
	refused 1 enable 'receive failed' capabilities length 17
	refused 1 identify 'receive failed' controller length 64
	refused 1 enable 'failed' capabilities key "$NO_KEY"
	refused 1 identify 'failed' controller key "$NO_KEY"
}

disconnects() {
	local step
	for step in connect configure controller connect-io descriptors read; do
		refused 1 '[a-z-]+' 'target disconnected' $step hang-up
	done
}

silences() {
	local step
	refused 5 connect 'timed out after' request silent
	for step in connect capabilities controller connect-io; do
		refused 5 '[a-z-]+' 'no response|become ready' $step silent
	done
}

# Reads without a response, as of the partition table, do not keep the disk from being added.
silent_partition_table() {
	local began took
	began=$(now)
	hostile read silent
	connect_hostile
	took=$(($(now) - began))
	[ $took -lt $((4000 * SLOWDOWN)) ] || fail "the connect took $took ms"
	disk "$CTRL" 1
	has "$(kernel_log)" "$CTRL: namespace 1: partition table not read within"
	end_process "$TARGET"
	is_dead 'disconnected'
}

no_keep_alive() {
	hostile keep-alive silent
	# The connect must take less than half of the keep-alive timeout.
	connect_hostile -k $((5 * SLOWDOWN))
	is_dead 'keep-alive'
	gone
}

# A Keep Alive during the connect must not extend the connect time-out, after which the program
# gives up.
no_keep_alive_while_it_connects() {
	SLOW=$((2600 * SLOWDOWN)) hostile keep-alive silent
	expect 5 rnvmf connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" -i 1 \
		--timeout $((10 * SLOWDOWN)) -k $((10 * SLOWDOWN)) -o json
	has "$ERRORS" '"stage":"keep-alive"'
	same "number of Keep Alive commands" 1 "$(count keep-alive)"
	gone
}

# The target ends each connection when it receives a certain read, which the host retries on the
# next one. Connections that drop early count as one loss: delays grow and ctrl_loss_tmo applies.
hangs_up_again_and_again() {
	local CONNECT_OPTIONS=(--ctrl-loss-tmo $((10 * SLOWDOWN)))
	hostile trap-read hang-up
	connect_hostile
	start_reader
	wait_until 60 process_ended "$READER" || fail "the read did not end after $(count trap-read) attempts"
	has "$(<"$SCRATCH/reader")" "$LOST"
	# The last attempt may begin shortly before ctrl_loss_tmo expires, and has only that time.
	is_dead 'disconnected|timed out after [0-9]+ ms'
	# The delays are 0.25, 0.5, 1, 2, ... up to 10 s, or a quarter less.
	[ "$(count trap-read)" -le $((6 + 2 * SLOWDOWN)) ] ||
		fail "$(count trap-read) attempts, expected at most $((6 + 2 * SLOWDOWN))"
	gone
}

failed_io() {
	# Media and other errors with Do Not Retry.
	local read='read of 8 blocks at 8192 failed' write='write of 128 blocks at 8192 failed'
	local once='do not retry, after 0 retries$' again='after 5 retries$'
	fails 1 'No data' "$read: unrecovered read error \(sct 0x2, sc 0x81\), $once" \
		trap-read status 0x4281
	fails 1 'No space' "$write: capacity exceeded \(sct 0x0, sc 0x81\), $once" \
		trap-write status 0x4081
	fails 1 'Input/output error|Remote I/O error' "$read: LBA out of range .*, $once" \
		trap-read status 0x4080
	# Without Do Not Retry.
	fails $ATTEMPTS 'Input/output error' "$read: internal error .*, $again" trap-read status 0x6
	fails $ATTEMPTS 'Input/output error' "$write: internal error .*, $again" trap-write status 0x6
}

# The target may request retry delays after the host has enabled them (ACRE), not before.
retries_are_delayed() {
	local began took
	began=$(now)
	DELAY=10 fails $ATTEMPTS 'Input/output error' 'read of .* failed: internal error' trap-read status 0x0806
	took=$(($(now) - began))
	same "number of Set Features commands" 1 "$(count behavior)"
	[ $took -ge $((1000 * (ATTEMPTS - 1))) ] ||
		fail "retries took $took ms, expected at least $((1000 * (ATTEMPTS - 1))) ms"
	# Targets without retry delays, and targets that fail the Set Features, work too.
	works
	! seen '0 behavior' || fail "the host enabled ACRE for a target without retry delays"
	DELAY=10 works behavior status 0x4002
	same "number of failed Set Features commands" 1 "$(count behavior)"
	has "$(kernel_log | tail -20)" 'Host Behavior Support'
}

# Each of the 5 delays of a read is 1 s, also while other reads fail.
retries_are_not_put_off() {
	local began took others
	DELAY=10 hostile trap-read status 0x0806
	connect_hostile
	touch "$SCRATCH/goes-on"
	fail_again_and_again &
	others=$!
	defer end_process $others
	wait_until 10 grep -q ' trap-read$' "$SCRATCH/seen" || fail "the target received no read"
	began=$(now)
	trap_io read
	took=$(($(now) - began))
	note "the read failed after $took ms"
	within "the read took" 4000 $took $((8000 * SLOWDOWN))
	rm "$SCRATCH/goes-on"
	wait_until 60 process_ended $others || fail "the other reads did not end"
	leave
}

# Start some reads a second, while the file goes-on exists.
fail_again_and_again() {
	while [ -e "$SCRATCH/goes-on" ]; do
		dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/others" &
		sleep 0.3
	done
	wait
}

broken_io() {
	dies 'response to command' trap-read cid 0x0fff
	dies 'response to command' trap-write cid 0x1000
	dies 'response of 15 bytes' trap-read length 15
	dies 'receive failed' trap-write length 17
	dies 'disconnected' trap-write hang-up
	dies 'failed' trap-read key "$NO_KEY"
	# The target writes to wrong memory and sends no response.
	dies 'QP access error' trap-read move 0x100000
	dies 'QP access error' trap-write steal
}

# A duplicate response to I/O ends the connection.
answers_io_twice() {
	hostile trap-read twice
	connect_hostile
	trap_io read
	is_dead 'response to command|answered twice'
	gone
}

# The target writes the data after the response, when its access has ended.
data_after_the_answer() {
	hostile trap-read late
	connect_hostile
	trap_io read
	is_dead 'QP access error'
	gone
}

# The same when the target leaves invalidation to the host. The host invalidates the key before it
# completes the command.
data_after_the_answer_that_keeps_the_key() {
	hostile trap-read keep-late $((500 * SLOWDOWN))
	connect_hostile
	trap_io read
	same "status of the read" 0 "$STATUS"
	has "$(rnvmf stats "$CTRL" -o json)" '"local_invalidations":[1-9]'
	is_dead 'QP access error'
	gone
}

# Discards and Write Zeroes are well-formed; the target checks them.
discards_and_zeroes() {
	hostile controller poke 0x0c 520 2
	connect_hostile
	run blkdiscard "$(disk "$CTRL" 1)"
	run blkdiscard --zeroout --offset 4096 --length 65536 "$(disk "$CTRL" 1)"
	# The namespace deallocates the blocks, which read as zeroes then.
	limit_is write_zeroes_unmap_max_hw_bytes "$(queue_limit "$(disk "$CTRL" 1)" write_zeroes_max_bytes)" ||
		fail "no limit of zeroing with deallocation"
	count discard >"$SCRATCH/count" || fail "the target received no discard"
	count zeroes >"$SCRATCH/count" || fail "the target received no Write Zeroes"
	leave
}

# One block is written atomically; more if the namespace says so (NAWUPF), but not across a boundary.
writes_atomically() {
	hostile
	connect_hostile
	may_write_atomically 512 0
	leave
	hostile namespace poke 2 24 1
	connect_hostile
	may_write_atomically 4096 8192
	leave
}

# may_write_atomically BYTES BOUNDARY: these must be the limits, and RWF_ATOMIC must follow them.
may_write_atomically() {
	limit_is atomic_write_max_bytes "$1" || fail "atomic_write_max_bytes is not $1"
	limit_is atomic_write_unit_max_bytes "$1" || fail "atomic_write_unit_max_bytes is not $1"
	limit_is atomic_write_boundary_bytes "$2" || fail "atomic_write_boundary_bytes is not $2"
	run python3 - "$(disk "$CTRL" 1)" "$1" <<'END'
import errno, mmap, os, sys
RWF_ATOMIC = 0x40
path, size = sys.argv[1], int(sys.argv[2])
disk = os.open(path, os.O_RDWR | os.O_DIRECT)
memory = mmap.mmap(-1, 1 << 20)
assert os.pwritev(disk, [memoryview(memory)[:size]], 0, RWF_ATOMIC) == size
try:
    os.pwritev(disk, [memoryview(memory)[:2 * size]], 0, RWF_ATOMIC)
    sys.exit("no error")
except OSError as error:
    assert error.errno == errno.EINVAL, error
END
}

# The log tells once that only one path is used, unless dm-multipath is, and that the RDMA device is
# software.
tells_of_limitations() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	told_of 0 1
	told_of 1 2 controller poke 1 76 1
	told_of 2 3 controller poke 2 76 1
	CONNECT_OPTIONS+=(-F 0)
	told_of 2 4 controller poke 3 76 1
}

# told_of PATHS DEVICES ARGUMENT...: connect and reconnect; then the log must have this many lines.
told_of() {
	local paths=$1 devices=$2
	shift 2
	hostile "$@"
	connect_hostile
	goes_and_is_back "$@"
	same "lines on paths" "$paths" "$(logged "$CTRL: the subsystem may have other paths")"
	same "lines on the device" "$devices" "$(logged "$CTRL: rnvmf_rxe0 is a software RDMA device")"
	leave
}

# The target inserts and strips protection information of 8 bytes, and checks that the commands say so.
leaves_protection_to_the_target() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) first
	for PROTECTION in 1 2 3; do
		export PROTECTION
		hostile controller poke 0x0c 520 2
		connect_hostile
		same metadata_bytes 8 "$(<"/sys/block/${CTRL}n1/metadata_bytes")"
		compare "$(disk "$CTRL" 1)" 65536
		run blkdiscard --zeroout --offset 65536 --length 65536 "$(disk "$CTRL" 1)"
		leave
	done
	hostile
	connect_hostile
	first=$(disk_number)
	PROTECTION=0 goes_and_is_back
	wait_until "$SOON" other_disk "$first" || fail "no new disk without protection information"
	compare "$(disk "$CTRL" 1)" 65536
	leave
	unset PROTECTION
}

# A namespace with an EUI-64 as its only identifier.
knows_an_eui() {
	local sysfs
	EUI=0x1122334455667788 hostile
	connect_hostile
	sysfs=/sys/block/${CTRL}n1
	same eui '11 22 33 44 55 66 77 88' "$(<"$sysfs/eui")"
	same wwid eui.1122334455667788 "$(<"$sysfs/wwid")"
	[ ! -e "$sysfs/uuid" ] || fail "unexpected UUID: $(<"$sysfs/uuid")"
	has "$(rnvmf list -o json)" '"eui64":"1122334455667788"'
	leave
}

# A target that disconnects the I/O queues at a shutdown, as SPDK does, causes no loss: the host has
# disconnected them before.
shuts_down_without_io_queues() {
	hostile configure part
	connect_hostile
	leave
	same "number of failed shutdowns" 0 "$(logged "$CTRL: shutdown: ")"
}

# A request without a response is retried on each new connection, but not endlessly.
never_answers_io_again_and_again() {
	local CONNECT_OPTIONS=(--reconnect-delay 1) reader
	hostile trap-read silent
	connect_hostile
	echo 1000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/reader" &
	reader=$!
	defer end_process "$reader"
	wait_until $((60 * SLOWDOWN)) process_ended "$reader" ||
		fail "the read did not end after $(count trap-read) attempts"
	has "$(<"$SCRATCH/reader")" "$LOST"
	same attempts $ATTEMPTS "$(count trap-read)"
	comes_back
	leave
}

# A retry delay that the target requests is limited. A disconnect or a loss of the target ends it
# early.
wants_io_again_much_later() {
	local DELAY=0xffff
	export DELAY
	hostile trap-read status 0x1821
	connect_hostile
	start_reader
	wait_until $((20 * SLOWDOWN)) sent_again || fail "the read is not retried"
	disconnects_at_once
	reader_ends
	gone
	hostile trap-read status 0x1821
	connect_hostile
	start_reader
	end_process "$TARGET"
	is_dead 'disconnected'
	reader_ends
	gone
}

# start_reader: start a read of the block for trap-read, and wait until the target receives it.
# READER is its PID.
start_reader() {
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>"$SCRATCH/reader" &
	READER=$!
	defer end_process "$READER"
	wait_until 10 count trap-read >"$SCRATCH/count" || fail "the target received no read"
}

sent_again() {
	[ "$(count trap-read)" -ge 2 ]
}

reader_ends() {
	wait_until $((5 * SLOWDOWN)) process_ended "$READER" || fail "the read did not end"
}

never_answers_io() {
	hostile trap-read silent
	connect_hostile
	echo 1000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	trap_io read
	same status 1 "$STATUS"
	is_dead 'on queue [0-9]+ timed out'
	gone
}

# start_deaf: start writes to a target that posts no receives again, and wait until the host's
# device gets an RNR NAK. WRITER is the PID.
start_deaf() {
	local refused
	hostile write deaf
	connect_hostile
	# In-capsule data, because soft-RoCE repeats memory registrations when it retransmits.
	refused=$(times_refused)
	dd if=/dev/zero of="$(disk "$CTRL" 1)" bs=4k count=400 oflag=direct 2>"$SCRATCH/writer" &
	WRITER=$!
	defer end_process "$WRITER"
	wait_until 20 was_refused "$refused" ||
		fail "no RNR NAK after $(count write) writes: $(<"$SCRATCH/writer")"
}

# Print how many RNR NAKs the device has received.
times_refused() {
	cat /sys/class/infiniband/rnvmf_rxe0/ports/1/hw_counters/rcvd_rnr_err
}

was_refused() {
	[ "$(times_refused)" -gt "$1" ]
}

# The host waits for a target without posted receives.
waits_for_receives() {
	local status=0
	start_deaf
	! process_ended "$WRITER" || fail "dd exited: $(<"$SCRATCH/writer")"
	kill -USR1 "$TARGET"
	wait_until "$SOON" process_ended "$WRITER" || fail "dd did not exit after $(count write) writes"
	wait "$WRITER" || status=$?
	same "status of dd with output '$(<"$SCRATCH/writer")'" 0 $status
	same writes 400 "$(count write)"
	same state live "$(ctrl_field "$CTRL" state)"
	compare "$(disk "$CTRL" 1)" 65536
	leave
}

# The host waits for receives no longer than for a response.
waits_for_receives_in_vain() {
	local status=0
	start_deaf
	echo 1000 >"/sys/block/${CTRL}n1/queue/io_timeout"
	# The waiting request still has the time-out with which it was started.
	wait_until 40 process_ended "$WRITER" || fail "the write did not end"
	wait "$WRITER" || status=$?
	same status 1 $status
	has "$(<"$SCRATCH/writer")" "$LOST"
	is_dead 'on queue [0-9]+ timed out'
	gone
}

# A response invalidates the key of another command in flight.
invalidates_another_key() {
	local first
	hostile trap-read swap
	connect_hostile
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>/dev/null &
	first=$!
	defer end_process "$first"
	wait_until 10 count trap-read >"$SCRATCH/count" || fail "the target received no read"
	trap_io read
	same status 1 "$STATUS"
	wait_until "$SOON" process_ended "$first" || fail "the first read did not end"
	is_dead 'another request'
	gone
}

# A stopped target answers neither commands nor a disconnect.
stops() {
	local began took
	hostile
	connect_hostile -k 0
	kill -STOP "$TARGET"
	began=$(now)
	disconnect "$CTRL"
	took=$(($(now) - began))
	kill -CONT "$TARGET"
	note "disconnect took $took ms"
	[ $took -lt $((1500 * SLOWDOWN)) ] || fail "the disconnect took $took ms"
	gone
}

# Removing many disks takes longer than the keep-alive interval. After it the disconnect must not
# wait for the response to the Keep Alive.
stops_while_disks_go() {
	local disconnect began took
	NAMESPACES=80 hostile
	connect "$TARGET4" -k $((4 * SLOWDOWN)) --timeout $((60 * SLOWDOWN))
	kill -STOP "$TARGET"
	rnvmf disconnect -d "$CTRL" >"$SCRATCH/disconnect" 2>&1 &
	disconnect=$!
	defer end_process $disconnect
	wait_until 60 no_disks || fail "disks remain"
	began=$(now)
	wait_until 60 process_ended $disconnect || fail "the disconnect did not exit"
	took=$(($(now) - began))
	kill -CONT "$TARGET"
	wait $disconnect || fail "the disconnect failed: $(<"$SCRATCH/disconnect")"
	note "the disconnect ended $took ms after the removal of the last disk"
	[ $took -lt $((1500 * SLOWDOWN)) ] ||
		fail "the disconnect ended $took ms after the removal of the last disk"
	gone
}

# If the controller dies during a scan, its disks must not stay frozen: a command with exclusive
# submission fails at once.
alone_with_the_dead() {
	local scan
	# Without an effects log the host sends no command before.
	SLOW=1000 hostile controller poke 0 261 1
	connect "$TARGET4" --timeout $((30 * SLOWDOWN))
	rnvmf rescan "$CTRL" >"$SCRATCH/rescan" 2>&1 &
	scan=$!
	defer end_process $scan
	wait_until "$SOON" has_listed 2 || fail "the namespaces are not scanned"
	end_process "$TARGET"
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	try timeout $((5 * SLOWDOWN)) nvme admin-passthru "/dev/${CTRL}n1" --opcode=0x80 -n 1
	has "$OUTPUT$ERRORS" 'Host Path|HOST_PATH|0x370'
	leave
}

# A disconnect during the first scan of very many namespaces stops adding disks.
goes_while_disks_come() {
	local connect began took made
	NAMESPACES=250 hostile
	start_monitor
	"${RNVMF[@]}" connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" --timeout 600 \
		>"$SCRATCH/connect" 2>&1 &
	connect=$!
	defer end_process $connect
	wait_until 60 test -b /dev/rnvmf0n3 || fail "no disks are added: $(<"$SCRATCH/connect")"
	began=$(now)
	disconnect rnvmf0
	took=$(($(now) - began))
	wait_until "$SOON" process_ended $connect || fail "the connect did not exit"
	made=$(grep -c '^ns-add' "$SCRATCH/events")
	note "disconnect took $took ms; $made disks were added"
	[ "$made" -lt 125 ] || fail "$made of 250 disks were added in spite of the disconnect"
	gone
}

# Each namespace has the time limit for itself: all together take much longer.
slow_for_each_namespace() {
	local count=$((8 * SLOWDOWN))
	NAMESPACES=$count SLOW=250 hostile
	connect "$TARGET4" --timeout $((4 * SLOWDOWN))
	same "namespaces" $count "$(ctrl_number nr_namespaces)"
	run rnvmf reset "$CTRL"
	same "namespaces" $count "$(ctrl_number nr_namespaces)"
	connected_anew 1 0
}

# A reset holds I/O until all namespaces are identified, but not longer than fast_io_fail_tmo.
slow_namespaces_hold_no_io_for_long() {
	local CONNECT_OPTIONS=(--reconnect-delay 1)
	NAMESPACES=$((8 * SLOWDOWN)) SLOW=250 hostile
	connect "$TARGET4" --timeout "$SLOWDOWN" --fast_io_fail_tmo "$SLOWDOWN"
	try rnvmf reset "$CTRL"
	same "failed resets" 1 "$(logged "$CTRL: reset failed: ")"
	comes_back
	connected_anew 0 1
	same "expired limits" 1 "$(logged "$CTRL: fast_io_fail_tmo expired: failing I/O")"
}

main setup \
	slow_for_each_namespace \
	slow_namespaces_hold_no_io_for_long \
	good_target \
	rejected_requests \
	rejected_io_queues \
	comes_back_without_io_queues \
	refused_connects \
	unusable_controllers \
	unusable_namespaces \
	namespace_without_blocks \
	comes_back_as_another \
	comes_back_with_other_abilities \
	comes_back_with_less \
	poison_command_ends \
	few_commands_do_not_keep_alive \
	lists_its_namespaces_late \
	comes_back_with_another_refusal \
	cannot_tell_for_a_moment \
	cannot_tell_of_what_is_lost \
	looks_again_by_itself \
	new_disks_come_by_themselves \
	not_ready_for_a_moment \
	one_of_three_is_malformed \
	new_disks_come_by_themselves_after_a_loss \
	asked_for_during_a_look \
	endless_list \
	odd_but_allowed \
	more_requests_than_there_is_room_for \
	leaves_keys_alone \
	broken_responses \
	disconnects \
	silences \
	silent_partition_table \
	no_keep_alive \
	no_keep_alive_while_it_connects \
	failed_io \
	retries_are_delayed \
	retries_are_not_put_off \
	broken_io \
	answers_io_twice \
	data_after_the_answer \
	data_after_the_answer_that_keeps_the_key \
	discards_and_zeroes \
	writes_atomically \
	tells_of_limitations \
	leaves_protection_to_the_target \
	knows_an_eui \
	shuts_down_without_io_queues \
	never_answers_io \
	never_answers_io_again_and_again \
	hangs_up_again_and_again \
	wants_io_again_much_later \
	waits_for_receives \
	waits_for_receives_in_vain \
	invalidates_another_key \
	stops_while_disks_go \
	goes_while_disks_come \
	alone_with_the_dead \
	stops
