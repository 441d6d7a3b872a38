# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The examples of the documents, made true, and the states that their blocks name.

# The names and addresses that the documents use are made true, so that nothing has to be replaced.
EXAMPLE=nqn.2014-08.org.example:disk
EXAMPLE4=10.0.0.9
EXAMPLE4_OTHER=10.0.1.9
OTHER=$NQN-other
# A subsystem that keeps a port open, and of which our host is told nothing.
DENIED=$NQN-denied
HOSTID=${HOSTNQN##*:}
CONNECTIONS=/etc/rnvmf/connections.conf

# What is printed later must be there within this time, in seconds.
FOLLOWED=20

examples_are_addresses() {
	interface_up "" rnvmf0 "$MTU" "$EXAMPLE4/24" "$EXAMPLE4_OTHER/24" &&
		interface_up "$HOST_NETNS" rnvmf1 "$MTU" 10.0.0.2/24 10.0.1.2/24
}

# place FILE: this is what the file has, until all is undone: the standard input.
place() {
	local kept
	mkdir -p "${1%/*}" && kept=$(mktemp -u "$SCRATCH/kept.XXXXXX") || return 1
	if [ -e "$1" ]; then
		mv "$1" "$kept" && defer mv "$kept" "$1"
	fi
	defer rm -f "$1"
	cat >"$1"
}

# Commands in documents do not say who asks.
host_is_known() {
	place /etc/nvme/hostnqn <<<"$HOSTNQN" && place /etc/nvme/hostid <<<"$HOSTID"
}

# The target of the tests, at one address only, and that of the example.
targets() {
	target_load && target_subsystem "$NQN" && target_subsystem "$OTHER" &&
		target_subsystem "$DENIED" &&
		echo 0 >"$NVMET/subsystems/$DENIED/attr_allow_any_host" &&
		backend_memory disk 16 512 && target_namespace "$NQN" 1 "$BACKEND" &&
		target_port 4420 "$TARGET4" && target_export 4420 "$NQN" &&
		target_export 4420 "$DENIED" && example_target
}

# Two disks, at two addresses.
example_target() {
	local path=$NVMET/subsystems/$EXAMPLE
	target_subsystem "$EXAMPLE" && echo 0123456789 >"$path/attr_serial" &&
		echo 1.0 >"$path/attr_firmware" || return 1
	backend_memory first 64 512 && example_namespace 1 && backend_memory second 16 4096 &&
		example_namespace 2 && target_port 4422 "$EXAMPLE4" && target_export 4422 "$EXAMPLE" &&
		target_port 4423 "$EXAMPLE4_OTHER" 4421 && target_export 4423 "$EXAMPLE"
}

# example_namespace NSID: of the backend, with an identity that is the same each time.
example_namespace() {
	local path=$NVMET/subsystems/$EXAMPLE/namespaces/$1
	target_namespace "$EXAMPLE" "$1" "$BACKEND" && echo 0 >"$path/enable" &&
		echo "5e1f7e57-0000-4000-8000-0000000000a$1" >"$path/device_uuid" && echo 1 >"$path/enable"
}

# host PROMPT: who types, where the host is, is left in HOST: root, or nobody.
host() {
	HOST=(nsenter "--net=/run/netns/$HOST_NETNS")
	[ "$1" = '#' ] || HOST+=(setpriv --reuid 65534 --regid 65534 --clear-groups)
}

# The states that blocks name. Each is given the command that is typed next, or the text of a block that
# is no commands, and leaves in OUTPUT what a block of output is compared with.

state_nothing() {
	defer all_disconnected
	run "${RNVMF[@]}" disconnect-all
}

all_disconnected() {
	timeout 60 "${RNVMF[@]}" disconnect-all >"$SCRATCH/undone"
}

# The example is connected.
state_live() {
	state_nothing
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE"
	same connected "rnvmf0: connected to $EXAMPLE at $EXAMPLE4:4420" "$OUTPUT"
}

# What the command needs, and a file of connections that is good.
state_any() {
	case $1 in
	'rnvmf connect'*) state_nothing ;;
	*) state_is rnvmf0 live || state_live ;;
	esac
	[ -e "$CONNECTIONS" ] || place "$CONNECTIONS" <<<"discover -a $EXAMPLE4"
}

# It is connected, the times are measured, and there was some I/O.
state_busy() {
	state_live
	run "${RNVMF[@]}" stats rnvmf0 --latency on
	run dd if=/dev/zero of=/dev/rnvmf0n1 bs=4k count=16 oflag=direct
	run dd if=/dev/rnvmf0n1 of=/dev/null bs=4k count=16 iflag=direct
}

# Queues of all kinds.
state_queues() {
	state_nothing
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 2 -W 1 -P 1
}

# The log of the target of the tests has a referral to another transport.
state_discovery() {
	target_referral 4420 tcp tcp "$TARGET4" 8009
}

# The machine that has the example listens no more, and some attempts have failed: the next is not at once.
state_recovering() {
	state_live
	run "${RNVMF[@]}" set rnvmf0 --reconnect-delay 3
	defer ports_are_back
	ports_go
	wait_until 20 goes_on || fail "no attempts: $("${RNVMF[@]}" show rnvmf0)"
}

# All that have the same service, the others first: as long as one is there, it is he who refuses.
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
	"${RNVMF[@]}" show rnvmf0 | grep -qE '^attempts to connect +[3-9], next '
}

# The host's RDMA device is missing.
state_doctor_fault() {
	run ip netns exec "$HOST_NETNS" rdma link delete rnvmf_rxe1
	defer rdma_add "$HOST_NETNS" rnvmf_rxe1 rnvmf1
}

# A file of connections whose third line is wrong.
state_wrong_file() {
	place "$CONNECTIONS" <<-END
		# the database
		-a $EXAMPLE4 -n $EXAMPLE
		-a $EXAMPLE4
	END
}

# What the program writes is taken away.
state_written() {
	defer rm -f /etc/bash_completion.d/rnvmf
}

# The file has a discovery controller.
state_discover_line() {
	state_nothing
	place "$CONNECTIONS" <<<"discover -a $EXAMPLE4"
}

# What is switched on is not left so.
state_tracing() {
	defer untraced
	state_any "$1"
}

# state_connections TEXT: the file is good, and what it names is connected.
state_connections() {
	state_nothing
	place "$CONNECTIONS" <<<"$1"
	run "${RNVMF[@]}" connect-all
	has "$OUTPUT" "^rnvmf0: connected to $EXAMPLE at "
}

# The commands of the tree, in turn. Where the tests were installed there is none.
state_checkout() {
	local tree=/opt/rnvmf/src
	[ -d "$tree/build" ] || skip "there is no tree that was built"
	cd "$tree" || exit 1
	case $1 in
	'modprobe -a'*)
		state_nothing
		run modprobe -r rnvmf
		defer modprobe rnvmf
		;;
	esac
}

# What follows while the target's log changes, and it does not answer for some time. It is told in turn.
state_persistent() {
	state_nothing
	defer target_unexport 4420 "$OTHER"
	started "$1"
	tells "rnvmf0: connected to $NQN "
	target_export 4420 "$OTHER"
	tells "rnvmf1: connected to $OTHER "
	target_unexport 4420 "$NQN"
	defer target_export 4420 "$NQN"
	tells "offered no more: $NQN "
	defer silence_is_over
	silence
	tells 'it is tried again'
	silence_ends
	wait_until "$FOLLOWED" told_again || fail "not followed again: $(<"$SCRATCH/told")"
	ended
}

# While another is connected and disconnected.
state_watched() {
	state_nothing
	started "$1"
	tells ready
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE"
	run "${RNVMF[@]}" disconnect-all
	tells 'ctrl-del rnvmf0 '
	ended
}

# started COMMAND: in the background; what it tells goes to a file.
started() {
	: >"$SCRATCH/told"
	host '#'
	"${HOST[@]}" bash -c "exec $1" >"$SCRATCH/told" 2>&1 &
	FOLLOWER=$!
	defer end_process "$FOLLOWER"
}

# It is told to end, and what it told is in OUTPUT.
ended() {
	kill -TERM "$FOLLOWER"
	wait "$FOLLOWER" || fail "it ended with status $?"
	OUTPUT=$(<"$SCRATCH/told")
}

silence_is_over() {
	(silence_ends) >/dev/null 2>&1 3>&1 || true
}

# tells TEXT
tells() {
	wait_until "$FOLLOWED" grep -qF -e "$1" "$SCRATCH/told" ||
		fail "not told: '$1' but: $(<"$SCRATCH/told")"
}

told_again() {
	[[ $(tail -n 1 "$SCRATCH/told") = following* ]]
}

# traced_by EVENT...: what is recorded of these events from now on; `untraced` leaves it in OUTPUT,
# without the columns on the left.
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

# One I/O queue, and nothing but what is asked for: no keep-alive.
quietly_live() {
	state_nothing
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 1 -k 0
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

# Of the queue for I/O.
state_traced_queue() {
	state_nothing
	traced_by rnvmf_cm_event
	run "${RNVMF[@]}" connect -a "$EXAMPLE4" -n "$EXAMPLE" -i 1
	run "${RNVMF[@]}" disconnect -d rnvmf0
	untraced
	OUTPUT=$(grep 'qid=1,' <<<"$OUTPUT")
}

# Headers without what Rust needs, as DKMS has them: what else our VM lacks is left out. Where the tests
# were installed there are no sources.
state_headers() {
	local root=$SCRATCH/root headers=$SCRATCH/headers
	[ -e /opt/rnvmf/src/Kbuild ] || skip "there is no tree of sources"
	mkdir -p "$headers/include/config"
	echo CONFIG_RUST=y >"$headers/.config"
	touch "$headers/Makefile"
	uname -r >"$headers/include/config/kernel.release"
	run /opt/rnvmf/src/tools/boot/install --root "$root" --dkms "$(command -v rnvmf)"
	expect 1 "$root"/usr/src/rnvmf-*/probe.py "$headers"
	OUTPUT=$(grep -F 'no Rust metadata' <<<"$OUTPUT")
}
