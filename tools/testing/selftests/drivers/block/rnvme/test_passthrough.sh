#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The ioctls of NVMe disks: nvme-cli works on ours as on the kernel's own, and no command that a
# program may send, by mistake or on purpose, does harm.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-k 1 -c 1 --timeout 5)

setup() {
	modprobe rnvme && network_pair && backend_memory disk 16 512 && target_simple "$BACKEND"
}

# connect_with_c: the kernel's own host; its disk is left in THEIRS.
connect_with_c() {
	modprobe nvme-rdma
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -q "$HOSTNQN" -o json
	[[ $OUTPUT =~ nvme[0-9]+ ]] || fail "no controller in: $OUTPUT"
	defer nvme disconnect -d "${BASH_REMATCH[0]}"
	THEIRS=/dev/${BASH_REMATCH[0]}n1
	wait_until 10 test -b "$THEIRS" || fail "$THEIRS is not there"
}

# said COMMAND DISK OPTION...: what nvme-cli says about a disk, less what is another with each
# controller.
said() {
	local command=$1 disk=$2
	shift 2
	run nvme "$command" "$disk" "$@"
	grep -Ev '"?cntlid"?' <<<"$OUTPUT" | sed "s/${disk##*/}/DISK/g"
}

programs_see_what_they_see_of_the_c_host() {
	local disk ours theirs query
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	connect_with_c
	for query in 'id-ctrl' 'id-ns' 'id-ns -o json' 'ns-descs' 'list-ns' 'get-ns-id' 'effects-log --csi=0' \
		'error-log' 'get-feature -f 7' 'get-log --log-id=5 --log-len=4096'; do
		# shellcheck disable=SC2086 # words of a command line
		ours=$(said ${query%% *} "$disk" ${query#"${query%% *}"})
		# shellcheck disable=SC2086
		theirs=$(said ${query%% *} "$THEIRS" ${query#"${query%% *}"})
		[ -n "$ours" ] || fail "nvme $query says nothing"
		same "nvme $query" "$theirs" "$ours"
	done
	# The C host asks to be told of paths, too.
	has "$(said get-feature "$disk" -f 0xb)" 'value:0x0*100$'
	run nvme smart-log "$disk"
	has "$OUTPUT" 'critical_warning'
	# What is found by /sys/class/nvme are not ours.
	run nvme list
	[[ $OUTPUT != *rnvme* ]] || fail "nvme list knows our disks: $OUTPUT"
}

programs_move_data() {
	local disk data=$SCRATCH/data back=$SCRATCH/back
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	dd if=/dev/urandom of="$data" bs=4096 count=16 status=none
	run nvme write "$disk" -s 8 -c 127 -z 65536 -d "$data"
	run nvme read "$disk" -s 8 -c 127 -z 65536 -d "$back"
	run cmp "$data" "$back"
	run cmp "$data" <(dd if="$disk" bs=4096 skip=1 count=16 iflag=direct status=none)
	run nvme flush "$disk"
	run nvme write-zeroes "$disk" -s 8 -c 7
	run nvme read "$disk" -s 8 -c 7 -z 4096 -d "$back"
	run cmp -n 4096 "$back" /dev/zero
	run nvme dsm "$disk" -d -s 16 -b 8
}

errors_are_the_targets() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	try nvme read "$disk" -s 0xffffffff -c 0 -z 512 -d "$SCRATCH/back"
	[ "$STATUS" != 0 ] || fail "a read after the end succeeds"
	has "$OUTPUT$ERRORS" 'LBA Out of Range|Internal Error'
	try nvme admin-passthru "$disk" --opcode=0xc0
	has "$OUTPUT$ERRORS" 'Invalid Command Opcode'
}

what_would_do_harm_is_refused() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run python3 "$HERE/ioctls.py" refused "$disk"
	has "$OUTPUT" '^[1-9][0-9]* refused$'
	state_is "$CTRL" live || fail "it is $(ctrl_field "$CTRL" state)"
}

random_commands_do_no_harm() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run python3 "$HERE/ioctls.py" random "$disk" 2000
	has "$OUTPUT" success
	has "$OUTPUT" status
	has "$OUTPUT" EINVAL
	run dd if="$disk" of=/dev/null bs=64k count=4 iflag=direct
	state_is "$CTRL" live || fail "it is $(ctrl_field "$CTRL" state)"
}

# as_nobody COMMAND...: not as root, but with access to the disk.
as_nobody() {
	try setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
}

others_may_only_ask_what_it_is() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	chmod 666 "$disk"
	as_nobody nvme id-ctrl "$disk"
	same "status of id-ctrl" 0 "$STATUS"
	for command in 'smart-log' 'get-feature -f 7' 'list-ns' 'flush -n 1' \
		'read -s 0 -c 0 -z 512 -d /dev/null' 'admin-passthru --opcode=0xc0'; do
		# shellcheck disable=SC2086
		as_nobody nvme ${command%% *} "$disk" ${command#"${command%% *}"}
		[ "$STATUS" != 0 ] || fail "nobody may: nvme $command"
		has "$OUTPUT$ERRORS" 'Permission denied'
	done
}

# No packet comes through any more, and nobody says so.
silence() {
	run tc qdisc add dev rnvme0 root netem loss 100%
	defer silence_ends
}

silence_ends() {
	tc qdisc delete dev rnvme0 root 2>/dev/null || true
}

# What is asked while the connection is lost ends when that is seen; afterwards all is well.
ends_with_the_connection() {
	local disk asked=()
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	silence
	nvme id-ctrl "$disk" >"$SCRATCH/id" 2>&1 &
	asked+=($!)
	nvme read "$disk" -s 0 -c 0 -z 512 -d "$SCRATCH/back" >"$SCRATCH/read" 2>&1 &
	asked+=($!)
	for process in "${asked[@]}"; do
		defer end_process "$process"
		wait_until "$SOON" process_ended "$process" || fail "nvme waits for a connection that is lost"
	done
	has "$(<"$SCRATCH/id")" 'Host Path|HOST_PATH|0x370'
	silence_ends
	wait_until "$SOON" state_is "$CTRL" live || fail "it is $(ctrl_field "$CTRL" state)"
	run nvme id-ctrl "$disk"
	run nvme flush "$disk"
}

# A disk that is open while it goes is gone for who asks.
disks_go_while_they_are_asked() {
	local i process asked
	for i in {1..4}; do
		connect "$TARGET4"
		ask_all_the_time "/dev/${CTRL}n1" &
		asked=$!
		defer end_process $asked
		wait_until 10 test -s "$SCRATCH/asked" || fail "nothing is asked in round $i"
		disconnect "$CTRL"
		wait_until "$SOON" process_ended $asked || fail "a disk that is gone is asked on"
		rm "$SCRATCH/asked"
	done
	connect "$TARGET4"
	mkfifo "$SCRATCH/go"
	python3 "$HERE/ioctls.py" gone "/dev/${CTRL}n1" <"$SCRATCH/go" >"$SCRATCH/asked" 2>&1 &
	process=$!
	defer end_process $process
	exec {asked}>"$SCRATCH/go"
	wait_until 10 grep -qs '^0$' "$SCRATCH/asked" || fail "identify says: $(<"$SCRATCH/asked")"
	disconnect "$CTRL"
	echo go >&"$asked"
	exec {asked}>&-
	wait "$process" || fail "$(<"$SCRATCH/asked")"
}

ask_all_the_time() {
	while nvme id-ctrl "$1" >>"$SCRATCH/asked" 2>&1 && nvme flush "$1" >>"$SCRATCH/asked" 2>&1; do
		:
	done
}

main setup \
	programs_see_what_they_see_of_the_c_host \
	programs_move_data \
	errors_are_the_targets \
	what_would_do_harm_is_refused \
	random_commands_do_no_harm \
	others_may_only_ask_what_it_is \
	ends_with_the_connection \
	disks_go_while_they_are_asked
