#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What cannot be done is refused: with the reason, with its exit status, and without a trace.

. "$(dirname "$0")/lib.sh"

CLOSED=$NQN.closed

# An address on an interface without an RDMA device.
NO_RDMA=198.51.100.1
# An address that no route leads to.
NO_ROUTE=203.0.113.1

setup() {
	modprobe rnvmf && network_single && backend_memory disk 16 512 && target_simple "$BACKEND" &&
		target_subsystem "$CLOSED" && target_host "$CLOSED" "$HOSTNQN.friend" &&
		target_export 4420 "$CLOSED" || return 1
	ip link add rnvmf2 type dummy && defer interface_delete rnvmf2 &&
		interface_up "" rnvmf2 1500 "$NO_RDMA/24" || return 1
	OBJECTS=$(rdma_objects)
}

# nothing_left: as if the failed command had never been.
nothing_left() {
	no_disks || fail "a disk is left"
	has "$(rnvmf show -o json)" '"controllers":\[\]'
	rdma_back_to "$OBJECTS"
}

# connect_fails STATUS STAGE PATTERN OPTION...: connecting fails at that stage with that message,
# which is one line for people, and an object for programs.
connect_fails() {
	local status=$1 stage=$2 pattern=$3
	shift 3
	expect "$status" rnvmf connect "$@"
	same output "" "$OUTPUT"
	has "$ERRORS" "^rnvmf: connect to .*$pattern"
	same "number of lines" 1 "$(wc -l <"$SCRATCH/errors")"
	nothing_left
	expect "$status" rnvmf connect "$@" -o json
	has "$ERRORS" "^\{\"schema\":1,\"error\":\{\"status\":$status,\"message\":\"[^\"]*$pattern"
	has "$ERRORS" "\"failure\":\{\"stage\":\"$stage\",\"errno\":[1-9]"
	nothing_left
}

wrong_subsystem() {
	connect_fails 1 fabrics-connect "no such subsystem .*${NQN}[.]wrong" -a "$TARGET4" -n "$NQN.wrong"
}

refused_host() {
	connect_fails 1 fabrics-connect "host is not allowed.*$CLOSED" \
		-a "$TARGET4" -n "$CLOSED" -q "$HOSTNQN"
	run rnvmf connect -a "$TARGET4" -n "$CLOSED" -q "$HOSTNQN.friend"
	run rnvmf disconnect-all
}

nobody_listens() {
	connect_fails 1 connect 'connection refused' -a "$TARGET4" -s 4499 -n "$NQN"
	connect_fails 1 connect 'connection refused' -a "$TARGET6" -s 4499 -n "$NQN"
}

no_route() {
	connect_fails 1 address 'no route' -a "$NO_ROUTE" -n "$NQN"
}

# The network takes the packets, and nobody answers: for as long as the user says, or ten seconds.
no_answer() {
	local began took
	connect_fails 5 connect 'timed out after 2 s: no response through' \
		-a "$NOBODY4" -n "$NQN" --timeout 2
	began=$(now)
	expect 5 rnvmf connect -a "$NOBODY4" -n "$NQN" --timeout 2
	took=$(($(now) - began))
	within "an attempt of two seconds took" 2000 $took $((2000 + 2000 * SLOWDOWN))
	began=$(now)
	expect 5 rnvmf connect -a "$NOBODY4" -n "$NQN"
	has "$ERRORS" 'timed out after 10 s: '
	took=$(($(now) - began))
	within "an attempt took" 10000 $took $((10000 + 2000 * SLOWDOWN))
	nothing_left
}

no_rdma_device() {
	connect_fails 1 address 'no RDMA device' -a "$NO_RDMA" -n "$NQN"
}

wrong_host_address() {
	connect_fails 1 address 'host address is not' -a "$TARGET4" -n "$NQN" -w 192.0.2.77
	# This needs no try: it is refused at once.
	expect 1 rnvmf connect -a "$TARGET4" -n "$NQN" -w "$TARGET6"
	has "$ERRORS" '^rnvmf: connect to .*family.*host-traddr'
	nothing_left
}

unknown_name() {
	expect 1 rnvmf connect -a no-such-host.invalid -n "$NQN"
	has "$ERRORS" '^rnvmf: connect to no-such-host.invalid:4420: '
	nothing_left
}

# usage_error PATTERN ARGUMENT...: refused before anything is done.
usage_error() {
	local pattern=$1
	shift
	expect 2 rnvmf "$@"
	has "$ERRORS" "^rnvmf: .*$pattern"
	same "number of lines" 1 "$(wc -l <"$SCRATCH/errors")"
}

wrong_command_lines() {
	usage_error 'frobnicate' frobnicate
	usage_error 'traddr' connect -n "$NQN"
	usage_error 'nqn' connect -a "$TARGET4"
	usage_error 'tcp' connect -t tcp -a "$TARGET4" -n "$NQN"
	usage_error '65536' connect -a "$TARGET4" -s 65536 -n "$NQN"
	usage_error '15' connect -a "$TARGET4" -n "$NQN" -Q 15
	usage_error '1025' connect -a "$TARGET4" -n "$NQN" -Q 1025
	usage_error 'io-queues' connect -a "$TARGET4" -n "$NQN" -i 0
	usage_error 'x' connect -a "$TARGET4" -n "$NQN" -k x
	usage_error 'hostid' connect -a "$TARGET4" -n "$NQN" -I 12
	usage_error 'bogus' list --bogus
	usage_error 'xml' list -o xml
	usage_error '' disconnect
	nothing_left
}

not_found() {
	expect 3 rnvmf disconnect -d rnvmf77
	has "$ERRORS" '^rnvmf: .*rnvmf77'
	expect 3 rnvmf disconnect -n "$NQN.other"
	has "$ERRORS" "^rnvmf: .*$NQN.other"
	expect 3 rnvmf show rnvmf77
	run rnvmf disconnect-all
}

# start_connect: one that nobody answers; its process is in CONNECT.
start_connect() {
	# Nothing started by the shell in the background minds SIGINT, unless told to.
	env --default-signal=INT rnvmf connect -a "$NOBODY4" -n "$NQN" --timeout 60 \
		>"$SCRATCH/connect" 2>&1 &
	CONNECT=$!
	defer end_process $CONNECT
	wait_until 10 state_is rnvmf0 connecting || fail "it does not even try to connect"
}

# connect_ends STATUS PATTERN: it fails so, and says why.
connect_ends() {
	local status=0
	wait "$CONNECT" || status=$?
	same status "$1" $status
	has "$(<"$SCRATCH/connect")" "$2"
}

interrupted_connect() {
	local signal
	for signal in INT TERM; do
		one_takes 1000 interrupts_a_connect $signal
	done
}

# interrupts_a_connect SIGNAL: it is that which ends it.
interrupts_a_connect() {
	local began
	start_connect
	began=$(now)
	kill -"$1" "$CONNECT"
	connect_ends $((128 + $(kill -l "$1"))) '^rnvmf: connect to .*: interrupted$'
	TOOK=$(($(now) - began))
	note "the connect ended after $TOOK ms"
	nothing_left
}

disconnected_while_connecting() {
	one_takes 1000 disconnects_a_connect
}

disconnects_a_connect() {
	start_connect
	timed_disconnect rnvmf0
	connect_ends 1 '^rnvmf: connect to '
	nothing_left
}

# The caller may look, and not touch.
without_privilege() {
	local nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups)
	connect "$TARGET4"
	expect 6 "${nobody[@]}" rnvmf connect -a "$TARGET4" -n "$NQN" -D
	has "$ERRORS" '^rnvmf: connect to .*permission denied'
	expect 6 "${nobody[@]}" rnvmf disconnect -d "$CTRL"
	has "$ERRORS" '^rnvmf: .*permission denied'
	expect 6 "${nobody[@]}" rnvmf disconnect -n "$NQN"
	expect 6 "${nobody[@]}" rnvmf disconnect-all
	changes_nothing "${nobody[@]}"
	# A file that they may not read, and one connection of one that they may not make.
	install -m 600 /dev/null "$SCRATCH/connections"
	expect 6 "${nobody[@]}" rnvmf connect-all -f "$SCRATCH/connections"
	has "$ERRORS" '/connections: Permission denied$'
	expect 6 "${nobody[@]}" rnvmf connect-all -a "$TARGET4"
	has "$ERRORS" 'rnvmf: connect-all: 1 of 1 connections failed$'
	run "${nobody[@]}" rnvmf list
	has "$OUTPUT" "/dev/${CTRL}n1"
	run "${nobody[@]}" rnvmf show "$CTRL"
	same state live "$(ctrl_field "$CTRL" state)"
	# Nor is there anything to wait for.
	expect 6 "${nobody[@]}" timeout 20 rnvmf connect-all -p -a "$TARGET4"
	# Root without one of the capabilities is no better: a disk is more than the network's.
	local capability without
	for capability in net_admin sys_admin; do
		without=(setpriv --bounding-set "-$capability" --inh-caps "-$capability")
		expect 6 "${without[@]}" rnvmf connect -a "$TARGET4" -n "$NQN" -D
		expect 6 "${without[@]}" rnvmf disconnect -d "$CTRL"
		expect 6 "${without[@]}" rnvmf discover -a "$TARGET4"
		changes_nothing "${without[@]}"
	done
}

# changes_nothing PREFIX...: who runs commands so may not change what is connected.
changes_nothing() {
	local verb before
	before=$(rnvmf show "$CTRL")
	for verb in "reset $CTRL" "rescan $CTRL" "set $CTRL --reconnect-delay 3" \
		"stats $CTRL --latency on"; do
		# shellcheck disable=SC2086 # words of a command
		expect 6 "$@" rnvmf $verb
		has "$ERRORS" "^rnvmf: .*$CTRL.*: permission denied"
		same "number of lines" 1 "$(wc -l <"$SCRATCH/errors")"
	done
	same "what is connected" "$before" "$(rnvmf show "$CTRL")"
	has "$(rnvmf stats "$CTRL" -o json)" '"measured":false'
}

# A module that is neither there nor to be had.
without_module() {
	local helper verb
	run modprobe -r rnvmf
	defer modprobe rnvmf
	helper=$(</proc/sys/kernel/modprobe)
	defer eval "echo $helper >/proc/sys/kernel/modprobe"
	echo /bin/false >/proc/sys/kernel/modprobe
	for verb in list show disconnect-all monitor "connect -a $TARGET4 -n $NQN" "disconnect -d rnvmf0"; do
		# shellcheck disable=SC2086 # words of a command
		expect 7 rnvmf $verb
		has "$ERRORS" '^rnvmf: .*module is not loaded.*modprobe rnvmf'
	done
	# What is wrong in any case is told before that.
	expect 2 rnvmf connect-all -f "$SCRATCH/none"
	has "$ERRORS" 'none: No such file or directory$'
}

# The module is loaded when the program asks for it.
loads_module() {
	run modprobe -r rnvmf
	run rnvmf list
	[ -d /sys/module/rnvmf ] || fail "the module was not loaded"
}

main setup \
	wrong_subsystem \
	refused_host \
	nobody_listens \
	no_route \
	no_answer \
	no_rdma_device \
	wrong_host_address \
	unknown_name \
	wrong_command_lines \
	not_found \
	interrupted_connect \
	disconnected_while_connecting \
	without_privilege \
	without_module \
	loads_module
