#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests connects and shutdowns at a target that violates the protocol: the host reports the stage and
# the cause, and nothing leaks. test_hostile_random.sh changes replies at random.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile_host.sh"

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
	for step in connect configure controller connect-io descriptors; do
		refused 1 '[a-z-]+' 'target disconnected' $step hang-up
	done
	# A read of the partition table. On CPUs that run freely the target may be late: the connect waits only a
	# second, and succeeds.
	hostile read hang-up
	try rnvmf connect -a "$TARGET4" -s "$SERVICE" -n "$NQN" --timeout $((5 * SLOWDOWN)) -o json
	if ! on_time && [ "$STATUS" = 0 ]; then
		has "$(kernel_log)" 'namespace 1: partition table not read within'
		run rnvmf disconnect -n "$NQN"
	else
		same status 1 "$STATUS"
		has "$ERRORS" '"message":"[^"]*target disconnected'
	fi
	gone
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

# A target that disconnects the I/O queues at a shutdown, as SPDK does, causes no loss: the host has
# disconnected them before.
shuts_down_without_io_queues() {
	hostile configure part
	connect_hostile
	leave
	# The host waits 500 ms for the response, also on a slow kernel.
	! on_time || same "number of shutdowns without response" 0 "$(logged "$CTRL: shutdown: .*no response")"
	same "number of failed shutdowns" "$(logged "$CTRL: shutdown: .*no response")" "$(logged "$CTRL: shutdown: ")"
}

main hostile_setup \
	good_target \
	rejected_requests \
	rejected_io_queues \
	comes_back_without_io_queues \
	refused_connects \
	unusable_controllers \
	odd_but_allowed \
	broken_responses \
	disconnects \
	tells_of_limitations \
	shuts_down_without_io_queues
