# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The host: controllers, their disks and what is known about them.

# The program, run where the host is; `network_pair` moves it.
RNVMF=(rnvmf)

# Options of every connect of a test.
CONNECT_OPTIONS=()

# connect ADDRESS [OPTION...]: connect to the subsystem $NQN; the controller's name is left in CTRL,
# and the test disconnects it at its end.
connect() {
	connect_to "$NQN" "$@"
}

# connect_to SUBSYSTEM ADDRESS [OPTION...]: at the port $SERVICE, where it is set.
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

# timed_disconnect CONTROLLER: how many milliseconds it takes is left in TOOK. That the program has to be
# started and looks for the controller, which takes long where many machines are emulated, is no part of
# that: so long it takes to show it.
timed_disconnect() {
	local began starting
	began=$(now)
	run "${RNVMF[@]}" show "$1"
	starting=$(($(now) - began))
	began=$(now)
	disconnect "$1"
	TOOK=$(($(now) - began - starting))
	note "disconnected after $TOOK ms, and $starting to begin with"
}

disconnect_if_there() {
	timeout 60 "${RNVMF[@]}" disconnect -d "$1" >"$SCRATCH/errors" 2>&1
	case $? in
	0 | 3) ;;
	*) note "disconnecting $1: $(<"$SCRATCH/errors")"; return 1 ;;
	esac
}

# disk CONTROLLER NSID: its path; it must be there.
disk() {
	local path=/dev/${1}n$2
	[ -b "$path" ] || fail "$path is not there"
	echo "$path"
}

# ctrl_field CONTROLLER FIELD: a field of the controller, as `rnvmf show` has it.
ctrl_field() {
	run "${RNVMF[@]}" show "$1" -o json
	[[ $OUTPUT =~ \"$2\":\"?([^\",}]*) ]] || fail "no $2 in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# ctrl_number FIELD: a number of the controller of CTRL, as `rnvmf show` has it.
ctrl_number() {
	run "${RNVMF[@]}" show "$CTRL" -o json
	[[ $OUTPUT =~ \"$1\":(-?[0-9]+) ]] || fail "no $1 in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# connected_anew RESETS RECONNECTS: so often the controller of CTRL was, as the program and sysfs tell.
connected_anew() {
	local controller=/sys/class/rnvmf/$CTRL
	same "resets and reconnects" "$1 $2" "$(ctrl_number nr_resets) $(ctrl_number nr_reconnects)"
	same "the same in sysfs" "$1 $2" "$(<"$controller/reset_count") $(<"$controller/reconnect_count")"
}

# start_monitor: what happens from now on goes to $SCRATCH/events.
start_monitor() {
	: >"$SCRATCH/events"
	"${RNVMF[@]}" monitor >"$SCRATCH/events" 2>&1 &
	defer end_process $!
	wait_until 15 told ready || fail "the monitor is not ready: $(<"$SCRATCH/events")"
}

# told LINE: whether the monitor has told it.
told() {
	grep -qxF -e "$1" "$SCRATCH/events"
}

# queue_limit DISK NAME: a limit of the block layer for the disk.
queue_limit() {
	local value
	read -r value <"/sys/block/${1##*/}/queue/$2"
	echo "$value"
}

# state_is CONTROLLER STATE: false also where there is no such controller.
state_is() {
	try "${RNVMF[@]}" show "$1" -o json
	[[ $STATUS = 0 && $OUTPUT == *"\"state\":\"$2\""* ]]
}

# sees_deleting: looks until the controller of CTRL is being removed. As that may take no longer than half a
# second it neither pauses nor starts a process. sysfs says so in whatever namespace the controller is.
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

# loses: the controller of CTRL sees that its connection is lost.
loses() {
	wait_until "$SOON" is_not_live || fail "the loss is not seen"
}

# tries_again: the first attempt to connect again has failed.
tries_again() {
	try "${RNVMF[@]}" show "$CTRL" -o json
	[[ $OUTPUT =~ \"attempts\":[2-9] ]]
}

# comes_back: it is live again.
comes_back() {
	wait_until "$SOON" state_is "$CTRL" live ||
		fail "it is $(ctrl_field "$CTRL" state): $(ctrl_field "$CTRL" message)"
}

# disk_number: the number that no other disk has, before or after, of the first disk of CTRL; none
# if it is not there.
disk_number() {
	cat "/sys/block/${CTRL}n1/diskseq" 2>/dev/null
}

# other_disk NUMBER: whether there is a first disk, and it is not the one that had that number.
other_disk() {
	local number
	number=$(disk_number) && [ "$number" != "$1" ]
}

# Whether there is no disk of a controller.
no_disks() {
	local disk
	for disk in /sys/block/rnvmf[0-9]*n[0-9]*; do
		[ ! -e "$disk" ] || return 1
	done
}

unmount_if_mounted() {
	! mountpoint -q "$1" || umount "$1"
}

# It has a queue pair: it is connecting, at least.
owns_queue_pair() {
	[[ $(rdma resource show qp) == *'[rnvmf]'* ]]
}

# as_nobody COMMAND...: not as root.
as_nobody() {
	try setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
}

# may DEVICE r|w: of which commands nobody is denied who has it open so.
may() {
	chmod 666 "$1"
	as_nobody python3 "$HERE/ioctls.py" may "$1" "$2"
	same "status ($ERRORS)" 0 "$STATUS"
	echo "$OUTPUT"
}

# may_is SAID COMMAND allowed|denied: what `may` says of a command.
may_is() {
	same "$2" "$3" "$(sed -n "s/^$2 //p" <<<"$1")"
}
