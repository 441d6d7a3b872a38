#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the NVMe ioctls of disks and controllers: nvme-cli works as with the C host (nvme-rdma), and
# no command from user space does harm.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# Connects use the port of the kernel's target, a few that of the hostile target.
HOSTILE_PORT=$SERVICE
SERVICE=4420

CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1 --timeout $((5 * SLOWDOWN)))

setup() {
	modprobe rnvmf && modprobe rdma_ucm && hostile_build && network_pair &&
		backend_memory disk 16 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

# connect_with_c: connect with the C host and set THEIRS to its controller device.
connect_with_c() {
	modprobe nvme-rdma
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -q "$HOSTNQN" -o json
	[[ $OUTPUT =~ nvme[0-9]+ ]] || fail "no controller in: $OUTPUT"
	THEIRS=/dev/${BASH_REMATCH[0]}
	defer nvme disconnect -d "${BASH_REMATCH[0]}"
	wait_until "$SOON" test -b "${THEIRS}n1" || fail "${THEIRS}n1 does not exist"
}

# said COMMAND DEVICE OPTION...: print the output of an nvme-cli command, without the controller ID
# and with the device's name replaced.
said() {
	local command=$1 device=$2
	shift 2
	run nvme "$command" "$device" "$@"
	grep -Ev '"?cntlid"?' <<<"$OUTPUT" | sed "s/${device##*/}/DEVICE/g"
}

# same_answers OURS THEIRS QUERY...: nvme-cli must print the same for both devices.
same_answers() {
	local our=$1 their=$2 ours theirs query
	shift 2
	for query; do
		# shellcheck disable=SC2086 # words of a command line
		ours=$(said ${query%% *} "$our" ${query#"${query%% *}"})
		# shellcheck disable=SC2086
		theirs=$(said ${query%% *} "$their" ${query#"${query%% *}"})
		[ -n "$ours" ] || fail "nvme $query prints nothing"
		same "nvme $query" "$theirs" "$ours"
	done
}

programs_see_what_they_see_of_the_c_host() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	connect_with_c
	same_answers "$disk" "${THEIRS}n1" 'id-ctrl' 'id-ns' 'id-ns -o json' 'ns-descs' 'list-ns' \
		'get-ns-id' 'effects-log --csi=0' 'error-log' 'get-feature -f 7' \
		'get-log --log-id=5 --log-len=4096'
	same_answers "/dev/$CTRL" "$THEIRS" 'id-ctrl' 'id-ns -n 1' 'list-ns' 'get-feature -f 7' \
		'effects-log' 'get-property --offset=0 --human-readable' 'show-regs' \
		'get-log --log-id=5 --log-len=4096'
	same "the node" "$(stat -c '%F %a %U %G' "$THEIRS")" "$(stat -c '%F %a %U %G' "/dev/$CTRL")"
	run nvme smart-log "/dev/$CTRL"
	has "$OUTPUT" 'critical_warning'
	# The C host also enables ANA change events, so its value differs.
	has "$(said get-feature "$disk" -f 0xb)" 'value:0x0*900$'
	run nvme smart-log "$disk"
	has "$OUTPUT" 'critical_warning'
	# `nvme list` reads /sys/class/nvme, where rnvmf has no entries.
	run nvme list
	[[ $OUTPUT != *rnvmf* ]] || fail "nvme list shows disks of rnvmf: $OUTPUT"
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
	[ "$STATUS" != 0 ] || fail "a read beyond the end succeeded"
	has "$OUTPUT$ERRORS" 'LBA Out of Range|Internal Error'
	try nvme admin-passthru "$disk" --opcode=0xc0
	has "$OUTPUT$ERRORS" 'Invalid Command Opcode'
}

# The target supports neither command. The host still drains I/O before each, and resumes it after.
commands_that_want_to_be_alone_do_no_harm() {
	local i
	connect "$TARGET4"
	start_verify
	for i in {1..4}; do
		try nvme admin-passthru "/dev/$CTRL" --opcode=0x80 -n 1
		has "$OUTPUT$ERRORS" 'Invalid Command Opcode'
		try nvme admin-passthru "$(disk "$CTRL" 1)" --opcode=0x84
		has "$OUTPUT$ERRORS" 'Invalid Command Opcode'
	done
	is_verified
}

# plain CALL: print the result of an ioctl without argument on the controller.
plain() {
	run python3 "$HERE/ioctls.py" call "/dev/$CTRL" "$1"
	echo "$OUTPUT"
}

controllers_are_reset_and_looked_at() {
	local number
	connect "$TARGET4"
	run nvme reset "/dev/$CTRL"
	same "state after the reset" live "$(ctrl_field "$CTRL" state)"
	has "$(kernel_log)" "$CTRL: reset"
	number=$(ctrl_number scan)
	run nvme ns-rescan "/dev/$CTRL"
	wait_until "$SOON" scanned $((number + 1)) || fail "the namespaces were not rescanned"
	# The target does not support NVM Subsystem Reset.
	same "reset of the subsystem" ENOTTY "$(plain subsystem-reset)"
	# The target now refuses the host, so the reset fails for good.
	echo 0 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
	defer allow_all
	same "reset" ENETRESET "$(plain reset)"
	try nvme id-ctrl "/dev/$CTRL"
	[ "$STATUS" != 0 ] || fail "a command to a dead controller succeeded"
	has "$OUTPUT$ERRORS" 'Resource temporarily unavailable'
}

allow_all() {
	echo 1 >"$NVMET/subsystems/$NQN/attr_allow_any_host"
}

scanned() {
	[ "$(ctrl_number scan)" -ge "$1" ]
}

# A signal must end the ioctl that waits for a reset.
resets_can_be_interrupted() {
	local process status=0
	# A keep-alive timeout that does not expire during the test, so that only the reset ends the
	# connection.
	local CONNECT_OPTIONS=(-k 30 -c 1 --timeout $((5 * SLOWDOWN)))
	connect "$TARGET4"
	silence
	python3 "$HERE/ioctls.py" call "/dev/$CTRL" reset >"$SCRATCH/reset" 2>&1 &
	process=$!
	defer end_process $process
	wait_until "$SOON" is_not_live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	kill -KILL $process
	wait_until "$SOON" process_ended $process || fail "SIGKILL did not end the wait for the reset"
	wait $process || status=$?
	same "status of the killed process" 137 $status
	is_not_live || fail "the reset ended before the signal"
	silence_ends
	comes_back
}

what_would_do_harm_is_refused() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run python3 "$HERE/ioctls.py" refused "$disk"
	has "$OUTPUT" '^[1-9][0-9]* refused$'
	run python3 "$HERE/ioctls.py" refused "/dev/$CTRL"
	has "$OUTPUT" '^[1-9][0-9]* refused$'
	state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
}

random_commands_do_no_harm() {
	local disk
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	run python3 "$HERE/ioctls.py" random "$disk" 2000
	has "$OUTPUT" success
	has "$OUTPUT" status
	has "$OUTPUT" EINVAL
	run python3 "$HERE/ioctls.py" random "/dev/$CTRL" 500
	has "$OUTPUT" success
	has "$OUTPUT" status
	has "$OUTPUT" ENOTTY
	run dd if="$disk" of=/dev/null bs=64k count=4 iflag=direct
	state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
}

others_may_do_what_the_disk_is_for() {
	local disk command
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	as_nobody nvme id-ctrl "/dev/$CTRL"
	[ "$STATUS" != 0 ] || fail "the user nobody can open the controller"
	chmod 666 "$disk" "/dev/$CTRL"
	as_nobody nvme id-ctrl "$disk"
	same "status of id-ctrl" 0 "$STATUS"
	as_nobody nvme id-ctrl "/dev/$CTRL"
	same "status of id-ctrl of the controller" 0 "$STATUS"
	for command in smart-log reset ns-rescan subsystem-reset; do
		as_nobody nvme $command "/dev/$CTRL"
		[ "$STATUS" != 0 ] || fail "the user nobody can run nvme $command on the controller"
		has "$OUTPUT$ERRORS" 'Permission denied'
	done
	for command in 'flush -n 1' 'read -s 0 -c 0 -z 512 -d /dev/null'; do
		# shellcheck disable=SC2086
		as_nobody nvme ${command%% *} "$disk" ${command#"${command%% *}"}
		same "status of nvme $command ($ERRORS)" 0 "$STATUS"
	done
	# nvme-cli opens disks read-only.
	for command in 'smart-log' 'get-feature -f 7' 'list-ns' 'admin-passthru --opcode=0xc0' \
		'write-zeroes -s 0 -c 0' 'io-passthru --opcode=0x80 -n 1'; do
		# shellcheck disable=SC2086
		as_nobody nvme ${command%% *} "$disk" ${command#"${command%% *}"}
		[ "$STATUS" != 0 ] || fail "the user nobody can run nvme $command on the disk"
		has "$OUTPUT$ERRORS" 'Permission denied'
	done
}

# partition DISK: write a partition table with one partition of 64 blocks at block 8.
partition() {
	{
		head -c 446 /dev/zero
		printf '\0\0\0\0\x83\0\0\0\x08\0\0\0\x40\0\0\0'
		head -c 48 /dev/zero
		printf '\x55\xaa'
	} >"$SCRATCH/table"
	run dd if="$SCRATCH/table" of="$1" bs=512 oflag=direct
}

# rnvmf must deny the same commands as the C host, for each way to open the device.
permissions_are_those_of_the_c_host() {
	local disk ours theirs mode
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	connect_with_c
	for mode in r w; do
		ours=$(may "$disk" $mode)
		theirs=$(may "${THEIRS}n1" $mode)
		same "permissions on a disk opened $mode" "$theirs" "$ours"
		may_is "$ours" 'io 0x2' allowed
		may_is "$ours" 'io64 0x0' allowed
		may_is "$ours" 'io 0x80' denied
		may_is "$ours" 'io64 0x1' "$([ $mode = w ] && echo allowed || echo denied)"
		same "permissions on the controller" "$(may "$THEIRS" $mode)" "$(may "/dev/$CTRL" $mode)"
	done
	# The C host checks for a partition only in NVME_IOCTL_IO64_CMD, so only these lines are
	# compared.
	partition "$disk"
	defer dd if=/dev/zero of="$disk" bs=512 count=1 oflag=direct status=none
	run blockdev --rereadpt "$disk"
	run blockdev --rereadpt "${THEIRS}n1"
	wait_until "$SOON" test -b "${disk}p1" -a -b "${THEIRS}n1p1" || fail "the partitions do not exist"
	ours=$(may "${disk}p1" w)
	same "permissions on a partition" "$(may "${THEIRS}n1p1" w | grep ^io64)" "$(grep ^io64 <<<"$ours")"
	ours=$(grep -v -e ^flags -e ^another <<<"$ours")
	[[ $ours != *allowed* ]] || fail "allowed on a partition: $(grep allowed <<<"$ours")"
}

# A page fault that blocks while an ioctl copies its command or its data must delay neither a freeze of
# the disk nor its removal.
memory_that_does_not_come_keeps_no_disk() {
	keeps_no_disk held
	keeps_no_disk late write
	keeps_no_disk late read
}

# keeps_no_disk CALL [ARGUMENT]: the same for a call of ioctls.py.
keeps_no_disk() {
	local process asked freezing
	connect "$TARGET4"
	rm -f "$SCRATCH/come" "$SCRATCH/held"
	mkfifo "$SCRATCH/come"
	python3 "$HERE/ioctls.py" "$1" "/dev/${CTRL}n1" "${@:2}" <"$SCRATCH/come" >"$SCRATCH/held" 2>&1 &
	process=$!
	defer end_process $process
	exec {asked}>"$SCRATCH/come"
	wait_until "$SOON" grep -qs '^held$' "$SCRATCH/held" || fail "no page fault: $(<"$SCRATCH/held")"
	freeze_disk &
	freezing=$!
	wait_until "$SOON" process_ended $freezing || fail "$*: the disk cannot be frozen"
	disconnect "$CTRL"
	echo come >&"$asked"
	exec {asked}>&-
	wait "$process" || fail "$*: $(<"$SCRATCH/held")"
}

# freeze_disk: change the number of requests, which freezes the disk. It is refused while somebody changes the
# hardware queues or the I/O scheduler.
freeze_disk() {
	until echo 32 >"/sys/block/${CTRL}n1/queue/nr_requests"; do
		sleep 0.1
	done 2>/dev/null
}

answers_32_bit_processes() {
	grep -q ' blkdev_compat_ptr_ioctl$' /proc/kallsyms || skip 'the kernel has no compat ioctls'
	connect "$TARGET4"
	run python3 "$HERE/ioctls.py" compat "/dev/$CTRL"
	has "$OUTPUT" '^status 0 model Linux$'
	run python3 "$HERE/ioctls.py" compat "$(disk "$CTRL" 1)"
	has "$OUTPUT" '^status 0 model Linux$'
}

# Drop all packets from the target, without an error.
silence() {
	run tc qdisc add dev rnvmf0 root netem loss 100%
	defer silence_ends
}

silence_ends() {
	tc qdisc delete dev rnvmf0 root 2>/dev/null || true
}

# connect_idle: connect to a hostile target whose effects log lets anyone read, and stop its
# process, so that commands are acknowledged but not answered until `works_again`. Packet loss would
# not do: soft-RoCE may exhaust its retries.
connect_idle() {
	local SERVICE=$HOSTILE_PORT CONNECT_OPTIONS=(-k 600)
	hostile effects poke 1 $((1024 + 4 * 2)) 4
	connect "$TARGET4"
	kill -STOP "$TARGET"
	defer works_again
}

works_again() {
	process_ended "$TARGET" || kill -CONT "$TARGET"
}

# Without privilege a command has at most the time-out of the disk, because the removal of the disk
# waits for the command.
others_are_no_more_patient_than_the_disk() {
	local disk
	connect_idle
	disk=$(disk "$CTRL" 1)
	echo 1000 >"/sys/block/${disk##*/}/queue/io_timeout"
	chmod 666 "$disk"
	as_nobody python3 "$HERE/ioctls.py" patient "$disk"
	same "status ($ERRORS)" 0 "$STATUS"
	same outcome 0x370 "$OUTPUT"
	has "$(kernel_log)" 'on queue [0-9]+ timed out'
	works_again
	leave
}

# Without privilege a command also has at least the time-out of the disk, because its expiry ends
# the connection.
others_are_no_less_patient() {
	local disk asking status=0
	connect_idle
	disk=$(disk "$CTRL" 1)
	chmod 666 "$disk"
	setpriv --reuid=65534 --regid=65534 --clear-groups -- python3 "$HERE/ioctls.py" hasty "$disk" \
		>"$SCRATCH/hasty" 2>&1 &
	asking=$!
	defer end_process $asking
	sleep $((3 * SLOWDOWN))
	! process_ended $asking || fail "the commands ended early: $(<"$SCRATCH/hasty")"
	works_again
	wait_until 30 process_ended $asking || fail "the commands did not complete"
	wait $asking || status=$?
	same "status ($(<"$SCRATCH/hasty"))" 0 $status
	same state live "$(ctrl_field "$CTRL" state)"
	connected_anew 0 0
	leave
}

# Commands in flight during a connection loss end when the host detects it; later ones succeed.
ends_with_the_connection() {
	local disk began asked=()
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	began=$(now)
	silence
	nvme id-ctrl "$disk" >"$SCRATCH/id" 2>&1 &
	asked+=($!)
	nvme read "$disk" -s 0 -c 0 -z 512 -d "$SCRATCH/back" >"$SCRATCH/read" 2>&1 &
	asked+=($!)
	for process in "${asked[@]}"; do
		defer end_process "$process"
		wait_until "$SOON" process_ended "$process" || fail "nvme did not exit after the connection loss"
	done
	at_most "the commands ended only after" $(($(now) - began)) 2000
	has "$(<"$SCRATCH/id")" 'Host Path|HOST_PATH|0x370'
	has "$(<"$SCRATCH/read")" 'Host Path|HOST_PATH|0x370'
	silence_ends
	wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	run nvme id-ctrl "$disk"
	run nvme flush "$disk"
}

# connect_hostile ARGUMENT...: start the hostile target and connect, with options for reconnecting. An attempt
# takes at most PATIENCE seconds, by default 5.
connect_hostile() {
	local SERVICE=$HOSTILE_PORT
	local CONNECT_OPTIONS=(-k $((5 * SLOWDOWN)) -c 1 --timeout $((${PATIENCE:-5} * SLOWDOWN)))
	hostile "$@"
	connect "$TARGET4"
}

# send DEVICE OPCODES MS: send admin commands one after the other, each with a time-out of MS, and print their
# results.
send() {
	run python3 "$HERE/ioctls.py" send "$@"
	echo "$OUTPUT"
}

# A command without a response ends the connection after its own time-out. Commands that wait for it
# end after theirs, without an effect. The first time-out is long enough for the second program.
commands_may_take_as_long_as_they_say() {
	local first status=0
	connect_hostile other silent
	python3 "$HERE/ioctls.py" send "/dev/$CTRL" 0xc5 $((3000 * SLOWDOWN)) >"$SCRATCH/first" 2>&1 &
	first=$!
	defer end_process $first
	wait_until "$SOON" count other >"$SCRATCH/count" || fail "the target received no command"
	# One command without effects, and one whose effects the host reads from the effects log
	# first.
	same "results meanwhile" $'EBUSY\nEBUSY' "$(send "/dev/$CTRL" 0x06,0xc5 200)"
	same "state meanwhile" live "$(ctrl_field "$CTRL" state)"
	wait $first || status=$?
	same "status of the first command" 0 $status
	same "result of the first command" 0x370 "$(<"$SCRATCH/first")"
	has "$(kernel_log)" "$CTRL: .*on queue [0-9]+ timed out"
	comes_back
	same "commands" 1 "$(count other)"
	leave
}

# The same for an I/O command.
io_may_take_as_long_as_it_says() {
	connect_hostile trap-read silent
	try nvme io-passthru "/dev/${CTRL}n1" --opcode=2 -n 1 --cdw10=8192 -l 512 -r \
		--timeout=$((1000 * SLOWDOWN))
	[ "$STATUS" != 0 ] || fail "a read without a response succeeded"
	has "$OUTPUT$ERRORS" 'Host Path|HOST_PATH|0x370'
	has "$(kernel_log)" "$CTRL: .*on queue [0-9]+ timed out"
	comes_back
	# The host must not retry a passthrough command.
	same "reads" 1 "$(count trap-read)"
	run nvme read "/dev/${CTRL}n1" -s 0 -c 0 -z 512 -d "$SCRATCH/back"
	leave
}

# failed DEVICE: send a command that the target fails after it has sent the data; print the status, and whether
# the process got data.
failed() {
	run python3 "$HERE/ioctls.py" failed "$1"
	echo "$OUTPUT"
}

# A process gets the data that a target sends before it fails the command, as from the C host.
failed_commands_have_data() {
	connect_hostile trap-read fault 0x4281
	run dd if=/dev/urandom of="/dev/${CTRL}n1" bs=4k seek=1024 count=1 oflag=direct
	same "a failed read" '0x4281 with data' "$(failed "/dev/${CTRL}n1")"
	leave
	connect_hostile changed fault 0x4006
	same "a failed Get Log Page" '0x4006 with data' "$(failed "/dev/$CTRL")"
	leave
}

# Without a connection the reset and rescan ioctls fail with EBUSY.
what_is_not_live_is_busy() {
	local name process asked
	for name in reset rescan; do
		connect_hostile
		mkfifo "$SCRATCH/$name"
		python3 "$HERE/ioctls.py" open "/dev/$CTRL" $name <"$SCRATCH/$name" >"$SCRATCH/said" 2>&1 &
		process=$!
		defer end_process $process
		exec {asked}>"$SCRATCH/$name"
		wait_until "$SOON" grep -qsx opened "$SCRATCH/said" || fail "the device was not opened: $(<"$SCRATCH/said")"
		end_process "$TARGET"
		loses
		echo now >&"$asked"
		exec {asked}>&-
		wait $process || fail "$(<"$SCRATCH/said")"
		same "result of a $name" $'opened\nEBUSY' "$(<"$SCRATCH/said")"
		leave
	done
}

# A signal ends the ioctl that waits for a reset; the reset continues.
waits_for_a_reset_end_with_a_signal() {
	AFTER=1 PATIENCE=10 connect_hostile connect silent
	start_asking reset
	wait_until "$SOON" is_not_live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	ends_with_a_signal
	is_not_live || fail "the reset ended before the signal"
	kill -USR1 "$TARGET"
	comes_back
	leave
}

# A command that requires exclusive submission waits for a read without a response. A signal ends
# that wait, and the command is not sent.
waits_to_be_alone_end_with_a_signal() {
	local reader
	connect_hostile trap-read silent
	dd if="/dev/${CTRL}n1" of=/dev/null bs=4k skip=1024 count=1 iflag=direct 2>/dev/null &
	reader=$!
	defer end_process $reader
	wait_until "$SOON" count trap-read >"$SCRATCH/count" || fail "the target received no read"
	# The host reads the effects log, and then waits.
	start_asking 0xc1
	wait_until "$SOON" looked_up 2 || fail "the host did not read the effects log"
	wait_until "$SOON" sleeps "$ASKING" || fail "the process does not sleep"
	ends_with_a_signal
	same "commands" 0 "$(count other || true)"
	leave
}

# looked_up TIMES: whether the host has read the effects log at least TIMES times. The first time is
# during the connect.
looked_up() {
	[ "$(count effects)" -ge "$1" ]
}

# sleeps PROCESS: whether the process sleeps. The wait for exclusive submission polls for signals.
sleeps() {
	[[ $(<"/proc/$1/stat") =~ \)\ [SD]\  ]]
}

# start_asking CALL: start an ioctl that a signal interrupts. ASKING is its PID.
start_asking() {
	python3 "$HERE/ioctls.py" signal "/dev/$CTRL" "$1" >"$SCRATCH/asking" 2>&1 &
	ASKING=$!
	defer end_process "$ASKING"
	wait_until "$SOON" grep -qsx asks "$SCRATCH/asking" || fail "ioctls.py did not start: $(<"$SCRATCH/asking")"
}

ends_with_a_signal() {
	kill -USR1 "$ASKING"
	wait_until "$SOON" process_ended "$ASKING" || fail "the signal did not end the ioctl"
	same result $'asks\nEINTR' "$(<"$SCRATCH/asking")"
}

leave() {
	disconnect "$CTRL"
	gone
}

# ioctls on an open disk fail once it is removed.
disks_go_while_they_are_asked() {
	local i asked
	for i in {1..4}; do
		connect "$TARGET4"
		ask_all_the_time "/dev/${CTRL}n1" &
		asked=$!
		defer end_process $asked
		wait_until "$SOON" test -s "$SCRATCH/asked" || fail "no command was sent in round $i"
		disconnect "$CTRL"
		wait_until "$SOON" process_ended $asked || fail "commands to a removed disk succeed"
		rm "$SCRATCH/asked"
	done
	connect "$TARGET4"
	open_while_it_goes "/dev/${CTRL}n1"
}

# The same for a controller. Its open file holds a reference on the module.
controllers_go_while_they_are_asked() {
	connect "$TARGET4"
	open_while_it_goes "/dev/$CTRL" is_in_use
	[ ! -e "/dev/$CTRL" ] || fail "/dev/$CTRL was not removed"
	run modprobe -r rnvmf
	run modprobe rnvmf
	connect "$TARGET4"
	run nvme id-ctrl "/dev/$CTRL"
}

is_in_use() {
	try rmmod rnvmf
	has "$ERRORS" 'in use'
}

# open_while_it_goes DEVICE [COMMAND...]: open the device, disconnect the controller and run
# COMMAND. Later ioctls on the open file must fail with ENODEV.
open_while_it_goes() {
	local process asked
	rm -f "$SCRATCH/go" "$SCRATCH/asked"
	mkfifo "$SCRATCH/go"
	python3 "$HERE/ioctls.py" gone "$1" <"$SCRATCH/go" >"$SCRATCH/asked" 2>&1 &
	process=$!
	defer end_process $process
	exec {asked}>"$SCRATCH/go"
	wait_until "$SOON" grep -qs '^0$' "$SCRATCH/asked" || fail "Identify failed: $(<"$SCRATCH/asked")"
	disconnect "$CTRL"
	"${@:2}"
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
	commands_that_want_to_be_alone_do_no_harm \
	controllers_are_reset_and_looked_at \
	resets_can_be_interrupted \
	what_would_do_harm_is_refused \
	random_commands_do_no_harm \
	others_may_do_what_the_disk_is_for \
	permissions_are_those_of_the_c_host \
	memory_that_does_not_come_keeps_no_disk \
	answers_32_bit_processes \
	others_are_no_more_patient_than_the_disk \
	others_are_no_less_patient \
	ends_with_the_connection \
	commands_may_take_as_long_as_they_say \
	io_may_take_as_long_as_it_says \
	failed_commands_have_data \
	what_is_not_live_is_busy \
	waits_for_a_reset_end_with_a_signal \
	waits_to_be_alone_end_with_a_signal \
	disks_go_while_they_are_asked \
	controllers_go_while_they_are_asked
