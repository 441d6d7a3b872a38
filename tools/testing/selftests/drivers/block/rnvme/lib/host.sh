# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The host: controllers, their disks and what is known about them.

# The program, run where the host is; `network_pair` moves it.
RNVME=(rnvme)

# connect ADDRESS [OPTION...]: connect to the subsystem $NQN; the controller's name is left in CTRL,
# and the test disconnects it at its end.
connect() {
	connect_to "$NQN" "$@"
}

# connect_to SUBSYSTEM ADDRESS [OPTION...]: at the port $SERVICE, where it is set.
connect_to() {
	local nqn=$1 address=$2
	shift 2
	run "${RNVME[@]}" connect -t rdma -a "$address" -s "${SERVICE:-4420}" -n "$nqn" -q "$HOSTNQN" "$@"
	CTRL=${OUTPUT%%:*}
	defer disconnect_if_there "$CTRL"
	has "$CTRL" '^rnvme[0-9]+$'
}

disconnect() {
	run "${RNVME[@]}" disconnect -d "$1"
}

disconnect_if_there() {
	timeout 60 "${RNVME[@]}" disconnect -d "$1" >"$SCRATCH/errors" 2>&1
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

# ctrl_field CONTROLLER FIELD: a field of the controller, as `rnvme show` has it.
ctrl_field() {
	run "${RNVME[@]}" show "$1" -o json
	[[ $OUTPUT =~ \"$2\":\"?([^\",}]*) ]] || fail "no $2 in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# queue_limit DISK NAME: a limit of the block layer for the disk.
queue_limit() {
	local value
	read -r value <"/sys/block/${1##*/}/queue/$2"
	echo "$value"
}

# state_is CONTROLLER STATE: false also where there is no such controller.
state_is() {
	try "${RNVME[@]}" show "$1" -o json
	[[ $STATUS = 0 && $OUTPUT == *"\"state\":\"$2\""* ]]
}

# Whether there is no disk of a controller.
no_disks() {
	local disk
	for disk in /sys/block/rnvme[0-9]*n[0-9]*; do
		[ ! -e "$disk" ] || return 1
	done
}

process_ended() {
	! kill -0 "$1" 2>/dev/null
}

# end_process PID: a process of the test must not outlive it.
end_process() {
	process_ended "$1" || kill -TERM "$1"
	wait_until 10 process_ended "$1" || kill -KILL "$1"
}

unmount_if_mounted() {
	! mountpoint -q "$1" || umount "$1"
}
