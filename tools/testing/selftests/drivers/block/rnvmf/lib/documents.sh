# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Set-up for the examples in the documents, and the states that the markers of their blocks name.

# The names and addresses in the documents exist, so that the commands run unchanged.
EXAMPLE=nqn.2014-08.org.example:disk
EXAMPLE4=10.0.0.9
EXAMPLE4_OTHER=10.0.1.9
OTHER=$NQN-other
# A subsystem that does not allow the host. It keeps the port open without a log entry for the host.
DENIED=$NQN-denied
HOSTID=${HOSTNQN##*:}
CONNECTIONS=/etc/rnvmf/connections.conf

# Time limit for a line of a background command, in seconds.
FOLLOWED=20

examples_are_addresses() {
	interface_up "" rnvmf0 "$MTU" "$EXAMPLE4/24" "$EXAMPLE4_OTHER/24" &&
		interface_up "$HOST_NETNS" rnvmf1 "$MTU" 10.0.0.2/24 10.0.1.2/24
}

# place FILE: write the standard input to the file; the old file is restored when the test ends.
place() {
	local kept
	mkdir -p "${1%/*}" && kept=$(mktemp -u "$SCRATCH/kept.XXXXXX") || return 1
	if [ -e "$1" ]; then
		mv "$1" "$kept" || return 1
		defer mv "$kept" "$1"
	fi
	defer rm -f "$1"
	cat >"$1"
}

# Commands in the documents have no option for the host NQN, so set the default.
host_is_known() {
	place /etc/nvme/hostnqn <<<"$HOSTNQN" && place /etc/nvme/hostid <<<"$HOSTID"
}

# Create the target of the tests, at one address only, and the example target.
targets() {
	target_load && target_subsystem "$NQN" && target_subsystem "$OTHER" &&
		target_subsystem "$DENIED" &&
		echo 0 >"$NVMET/subsystems/$DENIED/attr_allow_any_host" &&
		backend_memory disk 16 512 && target_namespace "$NQN" 1 "$BACKEND" &&
		target_port 4420 "$TARGET4" && target_export 4420 "$NQN" &&
		target_export 4420 "$DENIED" && example_target
}

# Create the example target: two namespaces, at two addresses.
example_target() {
	local path=$NVMET/subsystems/$EXAMPLE
	target_subsystem "$EXAMPLE" && echo 0123456789 >"$path/attr_serial" &&
		echo 1.0 >"$path/attr_firmware" || return 1
	backend_memory first 64 512 && example_namespace 1 && backend_memory second 16 4096 &&
		example_namespace 2 && target_port 4422 "$EXAMPLE4" && target_export 4422 "$EXAMPLE" &&
		target_port 4423 "$EXAMPLE4_OTHER" 4421 && target_export 4423 "$EXAMPLE"
}

# example_namespace NSID: create a namespace on BACKEND with a fixed UUID.
example_namespace() {
	local path=$NVMET/subsystems/$EXAMPLE/namespaces/$1
	target_namespace "$EXAMPLE" "$1" "$BACKEND" && echo 0 >"$path/enable" &&
		echo "5e1f7e57-0000-4000-8000-0000000000a$1" >"$path/device_uuid" && echo 1 >"$path/enable"
}

# host PROMPT: set HOST to the prefix that runs a command in the host's network namespace: as root
# for the prompt #, else as nobody.
host() {
	HOST=(nsenter "--net=/run/netns/$HOST_NETNS")
	[ "$1" = '#' ] || HOST+=(setpriv --reuid 65534 --regid 65534 --clear-groups)
}

# The states that markers name. The argument of a state_* function is the next command of the block,
# or the text of a block without commands. For a block of output the function sets OUTPUT.

# No controller is connected.
state_nothing() {
	defer all_disconnected
	run "${RNVMF[@]}" disconnect-all
}

all_disconnected() {
	timeout $((60 * SLOWDOWN)) "${RNVMF[@]}" disconnect-all >"$SCRATCH/undone"
}

# The example subsystem is connected.
state_live() {
	state_nothing
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE"
	same connected "rnvmf0: connected to $EXAMPLE at $EXAMPLE4:4420" "$OUTPUT"
}

# A valid file of connections exists. The example subsystem is connected unless the command
# connects.
state_any() {
	case $1 in
	'rnvmf connect'*) state_nothing ;;
	*) state_is rnvmf0 live || state_live ;;
	esac
	[ -e "$CONNECTIONS" ] || place "$CONNECTIONS" <<<"discover -a $EXAMPLE4"
}

# The example subsystem is connected, latency measurement is on, and some I/O has been done.
state_busy() {
	state_live
	run "${RNVMF[@]}" stats rnvmf0 --latency on
	run dd if=/dev/zero of=/dev/rnvmf0n1 bs=4k count=16 oflag=direct
	run dd if=/dev/rnvmf0n1 of=/dev/null bs=4k count=16 iflag=direct
}

# Connected with default, write and poll queues.
state_queues() {
	state_nothing
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 2 -W 1 -P 1
}

# The discovery log of the target of the tests has a referral to another transport.
state_discovery() {
	target_referral 4420 tcp tcp "$TARGET4" 8009
}

# The example target does not listen, and the next reconnect attempt follows after the block.
state_recovering() {
	state_live
	run "${RNVMF[@]}" set rnvmf0 --reconnect-delay 20
	defer ports_are_back
	ports_go
	wait_until "$SOON" goes_on || fail "no reconnect attempts: $("${RNVMF[@]}" show rnvmf0)"
}

# Delete all ports with the same service, the example's last. While another one exists, that one
# rejects the connection, and the error differs.
ports_go() {
	target_unexport 4420 "$DENIED"
	port_goes
	target_unexport 4422 "$EXAMPLE"
	target_port_delete 4422
}

ports_are_back() {
	port_is_back && target_export 4420 "$DENIED" && target_port 4422 "$EXAMPLE4" &&
		target_export 4422 "$EXAMPLE"
}

goes_on() {
	try "${RNVMF[@]}" show rnvmf0
	[[ $OUTPUT =~ attempts\ to\ connect\ +[3-9],\ next\ in\ ([3-9]|[1-9][0-9])\ s ]]
}

# The host's RDMA device is missing.
state_doctor_fault() {
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	defer rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
}

# The third line of the file of connections is invalid. The command connects to the second.
state_wrong_file() {
	state_nothing
	place "$CONNECTIONS" <<-END
		# the database
		-a $EXAMPLE4 -n $EXAMPLE
		-a $EXAMPLE4
	END
}

# Remove the completion file, which the command writes, when the test ends.
state_written() {
	defer rm -f /etc/bash_completion.d/rnvmf
}

# The file of connections has a discovery controller.
state_discover_line() {
	state_nothing
	place "$CONNECTIONS" <<<"discover -a $EXAMPLE4"
}

# Disable the trace events when the test ends.
state_tracing() {
	defer untraced
	state_any "$1"
}

# state_connections TEXT: TEXT is a valid file of connections, and connect-all connects its
# subsystem.
state_connections() {
	state_nothing
	place "$CONNECTIONS" <<<"$1"
	run "${RNVMF[@]}" connect-all
	has "$OUTPUT" "^rnvmf0: connected to $EXAMPLE at "
}

# Commands that are run in the source tree, one block after the other. Installed tests have no tree.
state_checkout() {
	local tree=/opt/rnvmf/src
	[ -d "$tree/build" ] || skip "no source tree with a build in $tree"
	cd "$tree" || exit 1
	case $1 in
	'modprobe -a'*)
		state_nothing
		run modprobe -r rnvmf
		defer modprobe rnvmf
		;;
	esac
}

# Run a persistent discovery while the discovery log changes and the target is unreachable for a
# time.
state_persistent() {
	state_nothing
	defer target_unexport 4420 "$OTHER"
	started "$1"
	tells "rnvmf0: connected to $NQN "
	target_export 4420 "$OTHER"
	tells "rnvmf1: connected to $OTHER "
	target_unexport 4420 "$NQN"
	defer target_export 4420 "$NQN"
	tells "removed from the log: $NQN "
	defer silence_is_over
	silence
	tells '; retrying'
	silence_ends
	wait_until "$FOLLOWED" told_again || fail "the discovery did not reconnect: $(<"$SCRATCH/told")"
	ended
}

# Run a monitor while a controller is connected and disconnected.
state_watched() {
	state_nothing
	started "$1"
	tells ready
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE"
	run "${RNVMF[@]}" disconnect-all
	tells 'ctrl-del rnvmf0 '
	ended
}

# started COMMAND: run a command in the background; its output goes to $SCRATCH/told.
started() {
	: >"$SCRATCH/told"
	host '#'
	"${HOST[@]}" bash -c "exec $1" >"$SCRATCH/told" 2>&1 &
	FOLLOWER=$!
	defer end_process "$FOLLOWER"
}

# End the background command and set OUTPUT to its output.
ended() {
	kill -TERM "$FOLLOWER"
	wait "$FOLLOWER" || fail "the background command exited with status $?"
	OUTPUT=$(<"$SCRATCH/told")
}

silence_is_over() {
	(silence_ends) >/dev/null 2>&1 3>&1 || true
}

# tells TEXT: wait until the output of the background command contains TEXT.
tells() {
	wait_until "$FOLLOWED" grep -qF -e "$1" "$SCRATCH/told" ||
		fail "the background command did not print '$1': $(<"$SCRATCH/told")"
}

told_again() {
	[[ $(tail -n 1 "$SCRATCH/told") = following* ]]
}

# traced_by EVENT...: start recording these events. `untraced` stops and sets OUTPUT to the records,
# without the columns of the tracer.
traced_by() {
	local event
	for event; do
		echo 1 >"/sys/kernel/tracing/events/rnvmf/$event/enable"
	done
	: >/sys/kernel/tracing/trace
	defer untraced
}

untraced() {
	OUTPUT=$(sed -n 's/^.* \(rnvmf_[a-z_]*: \)/\1/p' /sys/kernel/tracing/trace)
	echo 0 >/sys/kernel/tracing/events/rnvmf/enable
	echo 0 >/sys/kernel/tracing/events/rnvmf/filter
}

# Connected with one I/O queue and without keep-alive, so that only the test's commands are traced.
quietly_live() {
	state_nothing
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 1 -k 0
	CTRL=rnvmf0 partitions_are_read
}

state_traced_read() {
	quietly_live
	traced_by rnvmf_queue_command rnvmf_complete_command
	run dd if=/dev/rnvmf0n1 of=/dev/null bs=4k count=1 iflag=direct
	untraced
}

state_traced_states() {
	state_nothing
	traced_by rnvmf_controller_state
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 1
	run "${RNVMF[@]}" reset rnvmf0
	run "${RNVMF[@]}" disconnect -d rnvmf0
	untraced
}

# Trace the CM events of the I/O queue.
state_traced_queue() {
	state_nothing
	traced_by rnvmf_cm_event
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 1
	run "${RNVMF[@]}" disconnect -d rnvmf0
	untraced
	OUTPUT=$(grep 'qid=1,' <<<"$OUTPUT")
	# The host does not wait until the target acknowledges the disconnect. test_trace.sh tests this event.
	[[ $OUTPUT == *event=DISCONNECTED* ]] ||
		OUTPUT+=$'\n''rnvmf_cm_event: rnvmf0: qid=1, event=DISCONNECTED, status=0'
}

# Run the DKMS probe with kernel headers that lack the Rust metadata. Other lines that the probe
# prints in the test VM are removed from OUTPUT. Installed tests have no source tree.
state_headers() {
	local root=$SCRATCH/root headers=$SCRATCH/headers
	[ -e /opt/rnvmf/src/Kbuild ] || skip "no source tree in /opt/rnvmf/src"
	mkdir -p "$headers/include/config"
	echo CONFIG_RUST=y >"$headers/.config"
	touch "$headers/Makefile"
	uname -r >"$headers/include/config/kernel.release"
	run /opt/rnvmf/src/tools/boot/install --root "$root" --dkms "$(command -v rnvmf)"
	expect 1 "$root"/usr/src/rnvmf-*/probe.py "$headers"
	OUTPUT=$(grep -F 'no Rust metadata' <<<"$OUTPUT")
}
