# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The NVMe host: controllers, their disks and their state.

# Command line of rnvmf; `network_pair` runs it in the host's network namespace.
RNVMF=(rnvmf)

# Options that `connect` and `connect_to` add.
CONNECT_OPTIONS=()

# After each case: no controller of rnvmf or nvme-core is left, which a later case or file would find. Those of
# rnvmf are removed.
after_test() {
	wait_until "$SOON" all_are_removed && return 0
	note "controllers are left: $LEFT"
	timeout $((60 * SLOWDOWN)) rnvmf disconnect-all >&3 2>&1
	return 1
}

# all_are_removed: whether there is no controller. LEFT has those that there are.
all_are_removed() {
	LEFT=$(compgen -G '/sys/class/rnvmf/*'; compgen -G '/sys/class/nvme/*') || true
	[ -z "$LEFT" ]
}

# connect ADDRESS [OPTION...]: connect to the subsystem $NQN and set CTRL to the controller's name.
# The controller is disconnected when the test ends.
connect() {
	connect_to "$NQN" "$@"
}

# connect_to SUBSYSTEM ADDRESS [OPTION...]: like `connect`, to another subsystem. The port is
# $SERVICE, by default 4420.
connect_to() {
	local nqn=$1 address=$2
	shift 2
	run "${RNVMF[@]}" connect -t rdma -a "$address" -s "${SERVICE:-4420}" -n "$nqn" -q "$HOSTNQN" \
		"${CONNECT_OPTIONS[@]}" "$@"
	CTRL=${OUTPUT%%:*}
	defer disconnect_if_there "$CTRL"
	has "$CTRL" '^rnvmf[0-9]+$'
}

disconnect() {
	run "${RNVMF[@]}" disconnect -d "$1"
}

# partitions_are_read: wait until the disks of CTRL do not read their partition tables any more. A connect waits
# only a second for each disk, and logs if that is not enough.
partitions_are_read() {
	local DONE='' late
	late=$(logged "$CTRL: namespace [0-9]+: partition table not read within")
	! on_time || same "number of partition tables that are not read in time" 0 "$late"
	[ "$late" = 0 ] || wait_until 60 reads_no_more || fail "the disks of $CTRL are not idle"
}

# reads_no_more: whether the disks of CTRL do no I/O for a second, and did none since the last call. DONE is what
# they had done then.
reads_no_more() {
	local before=$DONE
	sleep 1
	DONE=$(cat "/sys/block/$CTRL"n*/stat)
	[ "$DONE" = "$before" ]
}

# freezes PROCESS: whether the process waits for the freeze of a queue.
freezes() {
	[[ $(<"/proc/$1/task/$1/stack")$(<"/proc/$1/wchan") == *freeze* ]] 2>/dev/null
}

# timed_disconnect CONTROLLER: disconnect and set TOOK to the duration in milliseconds, the start of the program
# included.
timed_disconnect() {
	local began
	began=$(now)
	disconnect "$1"
	TOOK=$(($(now) - began))
	note "disconnect took $TOOK ms"
}

disconnect_if_there() {
	timeout $((60 * SLOWDOWN)) "${RNVMF[@]}" disconnect -d "$1" >"$SCRATCH/errors" 2>&1
	case $? in
	0 | 3) ;;
	*) note "disconnect of $1 failed: $(<"$SCRATCH/errors")"; return 1 ;;
	esac
}

# disk CONTROLLER NSID: print the path of the disk; fail if it does not exist.
disk() {
	local path=/dev/${1}n$2
	[ -b "$path" ] || fail "$path does not exist"
	echo "$path"
}

# ctrl_field CONTROLLER FIELD: print a field of the controller from `rnvmf show -o json`.
ctrl_field() {
	run "${RNVMF[@]}" show "$1" -o json
	[[ $OUTPUT =~ \"$2\":\"?([^\",}]*) ]] || fail "no $2 in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# ctrl_number FIELD: print a number of the controller CTRL from `rnvmf show -o json`.
ctrl_number() {
	run "${RNVMF[@]}" show "$CTRL" -o json
	[[ $OUTPUT =~ \"$1\":(-?[0-9]+) ]] || fail "no $1 in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# connected_anew RESETS RECONNECTS: check the reset and reconnect counts of the controller CTRL, in
# `rnvmf show` and in sysfs.
connected_anew() {
	local controller=/sys/class/rnvmf/$CTRL
	same "resets and reconnects" "$1 $2" "$(ctrl_number nr_resets) $(ctrl_number nr_reconnects)"
	same "reset_count and reconnect_count" "$1 $2" \
		"$(<"$controller/reset_count") $(<"$controller/reconnect_count")"
}

# start_monitor: start `rnvmf monitor`; its output goes to $SCRATCH/events.
start_monitor() {
	: >"$SCRATCH/events"
	"${RNVMF[@]}" monitor >"$SCRATCH/events" 2>&1 &
	defer end_process $!
	wait_until "$SOON" told ready || fail "the monitor is not ready: $(<"$SCRATCH/events")"
}

# told LINE: whether the monitor has printed this line.
told() {
	grep -qxF -e "$1" "$SCRATCH/events"
}

# queue_limit DISK NAME: print a queue limit of the disk.
queue_limit() {
	local value
	read -r value <"/sys/block/${1##*/}/queue/$2"
	echo "$value"
}

# state_is CONTROLLER STATE: whether the controller exists and is in this state, in sysfs and for the program. sysfs
# has a controller only after its first connect. It is asked first, because a program takes the emulator long.
state_is() {
	local state
	! { read -r state <"/sys/class/rnvmf/$1/state"; } 2>/dev/null || [ "$state" = "$2" ] || return 1
	try "${RNVMF[@]}" show "$1" -o json
	[[ $STATUS = 0 && $OUTPUT == *"\"state\":\"$2\""* ]]
}

# sees_deleting: wait until the controller CTRL is in the state deleting; fail after 10 s, or if it
# is gone. The state may last less than half a second, so the loop neither sleeps nor starts a
# process. sysfs shows the controller in every network namespace.
sees_deleting() {
	local state end=$((SECONDS + 10 * SLOWDOWN))
	while [ $SECONDS -lt $end ]; do
		{ read -r state <"/sys/class/rnvmf/$CTRL/state"; } 2>/dev/null || return 1
		[ "$state" != deleting ] || return 0
	done
	return 1
}

is_not_live() {
	! state_is "$CTRL" live
}

# loses: wait until the controller CTRL has left the state live.
loses() {
	wait_until "$SOON" is_not_live || fail "$CTRL did not detect the connection loss"
}

# says PATTERN: whether the error message of CTRL matches.
says() {
	grep -qE -e "$1" <<<"$(ctrl_field "$CTRL" message)"
}

# tries_again: whether the first reconnect attempt has failed.
tries_again() {
	try "${RNVMF[@]}" show "$CTRL" -o json
	[[ $OUTPUT =~ \"attempts\":[2-9] ]]
}

# comes_back: wait until the controller CTRL is live.
comes_back() {
	wait_until "$SOON" state_is "$CTRL" live ||
		fail "$CTRL is in state $(ctrl_field "$CTRL" state): $(ctrl_field "$CTRL" message)"
}

# port_goes_and_returns: close the port of the target three times under verified I/O of CTRL, each time
# until the controller is live again. Its longest pause between attempts (-c) must be 1 s.
port_goes_and_returns() {
	local _ began
	start_verify
	for _ in 1 2 3; do
		began=$(now)
		port_goes
		loses
		at_most "the loss was detected after" $(($(now) - began)) 1000
		port_is_back
		began=$(now)
		comes_back
		at_most "the reconnect took" $(($(now) - began)) 2500
	done
	is_verified
}

# disk_number: print the disk sequence number of the first disk of CTRL, which is unique since boot;
# nothing if there is no disk.
disk_number() {
	local number
	{ read -r number <"/sys/block/${CTRL}n1/diskseq"; } 2>/dev/null && echo "$number"
}

# other_disk NUMBER: whether the first disk exists and has another sequence number.
other_disk() {
	local number
	number=$(disk_number) && [ "$number" != "$1" ]
}

# Whether no disk of rnvmf exists.
no_disks() {
	local disk
	for disk in /sys/block/rnvmf[0-9]*n[0-9]*; do
		[ ! -e "$disk" ] || return 1
	done
}

unmount_if_mounted() {
	! mountpoint -q "$1" || umount "$1"
}

# Whether rnvmf owns a queue pair, that is, a controller is at least connecting.
owns_queue_pair() {
	[[ $(rdma resource show qp) == *'[rnvmf]'* ]]
}

# as_nobody COMMAND...: like `try`, as the user nobody without capabilities.
as_nobody() {
	try setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
}

# may DEVICE r|w: print which passthrough commands the user nobody may send after opening the device
# for reading or writing.
may() {
	chmod 666 "$1"
	as_nobody python3 "$HERE/ioctls.py" may "$1" "$2"
	same "status ($ERRORS)" 0 "$STATUS"
	echo "$OUTPUT"
}

# may_is OUTPUT COMMAND allowed|denied: check the line for COMMAND in the output of `may`.
may_is() {
	same "$2" "$3" "$(sed -n "s/^$2 //p" <<<"$1")"
}
