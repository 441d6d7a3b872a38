#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests failing commands: each reports its cause and exit status, and leaves no object behind.

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

# nothing_left: check that no disk, controller or RDMA object remains.
nothing_left() {
	no_disks || fail "a disk remains"
	has "$(rnvmf show -o json)" '"controllers":\[\]'
	rdma_back_to "$OBJECTS"
}

# connect_fails STATUS STAGE PATTERN OPTION...: connect must fail with this exit status, stage and
# message: one line of text, and an object with -o json.
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

# No host responds. The attempt must end after the given time-out, by default 10 s.
no_answer() {
	local began took
	connect_fails 5 connect 'timed out after 2 s: no response through' \
		-a "$NOBODY4" -n "$NQN" --timeout 2
	began=$(now)
	expect 5 rnvmf connect -a "$NOBODY4" -n "$NQN" --timeout 2
	took=$(($(now) - began))
	within "an attempt with a time-out of 2 s took" 2000 $took 1000
	began=$(now)
	expect 5 rnvmf connect -a "$NOBODY4" -n "$NQN"
	has "$ERRORS" 'timed out after 10 s: '
	took=$(($(now) - began))
	within "an attempt with the default time-out took" 10000 $took 1000
	nothing_left
}

no_rdma_device() {
	connect_fails 1 address 'no RDMA device' -a "$NO_RDMA" -n "$NQN"
}

wrong_host_address() {
	connect_fails 1 address 'host address is not' -a "$TARGET4" -n "$NQN" -w 192.0.2.77
	# An address of another family is refused without an attempt.
	expect 1 rnvmf connect -a "$TARGET4" -n "$NQN" -w "$TARGET6"
	has "$ERRORS" '^rnvmf: connect to .*family.*host-traddr'
	nothing_left
}

unknown_name() {
	expect 1 rnvmf connect -a no-such-host.invalid -n "$NQN"
	has "$ERRORS" '^rnvmf: connect to no-such-host.invalid:4420: '
	nothing_left
}

# usage_error PATTERN ARGUMENT...: the command line must be refused with exit status 2.
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

# start_connect: start a connect to an unused address. CONNECT is its PID.
start_connect() {
	# The shell starts background processes with SIGINT ignored.
	env --default-signal=INT rnvmf connect -a "$NOBODY4" -n "$NQN" --timeout 60 \
		>"$SCRATCH/connect" 2>&1 &
	CONNECT=$!
	defer end_process $CONNECT
	wait_until "$SOON" state_is rnvmf0 connecting || fail "rnvmf0 is not in state connecting"
}

# connect_ends STATUS PATTERN: the connect must exit with STATUS and a message that matches.
connect_ends() {
	local status=0
	wait "$CONNECT" || status=$?
	same status "$1" $status
	has "$(<"$SCRATCH/connect")" "$2"
}

interrupted_connect() {
	local signal
	for signal in INT TERM; do
		takes 1000 interrupts_a_connect $signal
	done
}

# interrupts_a_connect SIGNAL: the signal must end the connect.
interrupts_a_connect() {
	local began
	start_connect
	began=$(now)
	kill -"$1" "$CONNECT"
	connect_ends $((128 + $(kill -l "$1"))) '^rnvmf: connect to .*: interrupted$'
	TOOK=$(($(now) - began))
	note "the signal ended the connect after $TOOK ms"
	nothing_left
}

disconnected_while_connecting() {
	takes 1000 disconnects_a_connect
}

disconnects_a_connect() {
	start_connect
	timed_disconnect rnvmf0
	connect_ends 1 '^rnvmf: connect to '
	nothing_left
}

# Without privilege the program may show state, but not change it.
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
	# A file that they may not read, and a discovery that they may not do.
	install -m 600 /dev/null "$SCRATCH/connections"
	expect 6 "${nobody[@]}" rnvmf connect-all -f "$SCRATCH/connections"
	has "$ERRORS" '/connections: Permission denied$'
	expect 6 "${nobody[@]}" rnvmf connect-all -a "$TARGET4"
	has "$ERRORS" 'rnvmf: connect-all: 1 of 1 connections failed$'
	run "${nobody[@]}" rnvmf list
	has "$OUTPUT" "/dev/${CTRL}n1"
	run "${nobody[@]}" rnvmf show "$CTRL"
	same state live "$(ctrl_field "$CTRL" state)"
	# A persistent discovery must not wait, because it can never succeed.
	expect 6 "${nobody[@]}" timeout $((20 * SLOWDOWN)) rnvmf connect-all -p -a "$TARGET4"
	# Root needs both capabilities: CAP_NET_ADMIN alone must not create disks.
	local capability without
	for capability in net_admin sys_admin; do
		without=(setpriv --bounding-set "-$capability" --inh-caps "-$capability")
		expect 6 "${without[@]}" rnvmf connect -a "$TARGET4" -n "$NQN" -D
		expect 6 "${without[@]}" rnvmf disconnect -d "$CTRL"
		expect 6 "${without[@]}" rnvmf discover -a "$TARGET4"
		changes_nothing "${without[@]}"
	done
}

# changes_nothing PREFIX...: commands with this prefix must not change the controller CTRL.
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
	same "the controller" "$before" "$(rnvmf show "$CTRL")"
	has "$(rnvmf stats "$CTRL" -o json)" '"measured":false'
}

# The module is not loaded and cannot be loaded automatically.
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
	# Errors that do not depend on the module are reported first.
	expect 2 rnvmf connect-all -f "$SCRATCH/none"
	has "$ERRORS" 'none: No such file or directory$'
}

# The first command loads the module.
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
