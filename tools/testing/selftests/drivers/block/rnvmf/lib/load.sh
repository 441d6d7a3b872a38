# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Background I/O during a fault, and verified I/O.

# Time limit for I/O to fail, and for state changes to be seen, in seconds.
SOON=15

# Error text of I/O when the connection is lost: ENOLINK.
LOST='Link has been severed'

# Error texts of I/O when the disk is removed. A removed disk has capacity 0, hence ENOSPC.
# shellcheck disable=SC2034 # read by the tests
REMOVED="$LOST|Input/output error|No space left|No such device"

# Additional fio options of `start_io`.
IO_OPTIONS=()

# start_io: start endless I/O on the first disk of CTRL. IO is the PID of fio. On counted time, I/O at full rate
# would keep the emulator busy for as long as it lasts; the option --rate_iops=0 asks for it.
start_io() {
	local disk rate=0
	disk=$(disk "$CTRL" 1)
	! on_time || rate=400
	fio --name=load --filename="$disk" --direct=1 --ioengine=libaio --rw=randrw --bs=16k --rate_iops=$rate \
		--iodepth=8 --numjobs=2 --size=32m --time_based --runtime=600 --minimal "${IO_OPTIONS[@]}" \
		--output="$SCRATCH/fio-result" >"$SCRATCH/fio" 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until 20 io_flows "$disk" || fail "fio completes no I/O: $(<"$SCRATCH/fio")"
}

# Whether the disk has completed more than 100 reads.
io_flows() {
	local reads
	read -r reads _ <"/sys/block/${1##*/}/stat"
	[ "$reads" -gt 100 ]
}

# io_fails: fail unless fio exits within SOON seconds with ENOLINK.
io_fails() {
	wait_until "$SOON" process_ended "$IO" || fail "fio did not exit within $SOON s"
	has "$(<"$SCRATCH/fio")" "$LOST"
}

# io_fails_after SECONDS BEGAN MORE: like `io_fails`; I/O must not fail before SECONDS after the time BEGAN of `now`,
# nor more than MORE * SLOWDOWN ms later. fio reports the error at once, and exits up to 2 s later.
io_fails_after() {
	local took
	wait_until "$SOON" io_has_failed || fail "no I/O failed within $SOON s"
	took=$(($(now) - $2))
	note "I/O failed after $took ms"
	within "I/O failed after" $(($1 * 1000)) $took "$3"
	io_fails
}

# Whether fio has reported an error with the text LOST.
io_has_failed() {
	[[ $(<"$SCRATCH/fio") =~ $LOST ]]
}

# is_dead PATTERN: the controller CTRL must be in the state dead, with a message that matches. Its
# disk must exist and fail I/O at once. Then disconnect the controller, which must remove the disk.
is_dead() {
	local disk=/dev/${CTRL}n1 began took
	wait_until "$SOON" state_is "$CTRL" dead ||
		fail "the controller is in state $(ctrl_field "$CTRL" state), expected dead"
	has "$(ctrl_field "$CTRL" message)" "$1"
	[ -b "$disk" ] || fail "$disk was removed without a disconnect"
	began=$(now)
	expect 1 dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	took=$(($(now) - began))
	has "$ERRORS" "$LOST"
	at_most "I/O failed only after" $took 500
	disconnect "$CTRL"
	[ ! -e "$disk" ] || fail "$disk remains after the disconnect"
}

# verify DISK OPTION...: write and read back with fio; the checksums must match.
verify() {
	local disk=$1
	shift
	run fio --name=verify --filename="$disk" --direct=1 --ioengine=libaio --verify=crc32c \
		--verify_fatal=1 --verify_state_save=0 --randrepeat=1 --output-format=terse "$@"
}

# Additional fio options of `start_verify`.
VERIFY_OPTIONS=()

# start_verify: start fio on the first disk of CTRL. It rewrites each block for some seconds, then
# reads all back. The write sequence is verified too, so that a late older write is detected. IO is
# its PID.
start_verify() {
	local disk
	disk=$(disk "$CTRL" 1)
	fio --name=verify --filename="$disk" --direct=1 --ioengine=libaio --rw=randwrite \
		--bs=16k --size=2m --io_size=12m --norandommap --serialize_overlap=1 --iodepth=4 \
		--rate_iops=100 --verify=crc32c --verify_fatal=1 --verify_state_save=0 \
		--verify_write_sequence=1 --output-format=terse "${VERIFY_OPTIONS[@]}" >"$SCRATCH/fio" 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until 20 writes_flow "$disk" || fail "fio completes no I/O: $(<"$SCRATCH/fio")"
}

# Whether the disk has completed more than 50 writes.
writes_flow() {
	local stat
	read -ra stat <"/sys/block/${1##*/}/stat"
	[ "${stat[4]}" -gt 50 ]
}

# is_verified: wait until the fio of `start_verify` exits; fail unless its verification succeeds.
is_verified() {
	local status=0
	# With the default keep-alive timeout, each loss may hold writes for 15 s.
	wait_until 60 process_ended "$IO" ||
		fail "fio $IO did not exit; $CTRL is in state $(ctrl_field "$CTRL" state):" \
			"$(ctrl_field "$CTRL" message); fio: $(<"$SCRATCH/fio")"
	wait "$IO" || status=$?
	[ $status = 0 ] || fail "fio exited with status $status: $(<"$SCRATCH/fio")"
}

# start_recovering: connect over a veth pair, start verified I/O and delete the target's port, so
# that the controller reconnects.
start_recovering() {
	start_pair
	# shellcheck disable=SC2034 # read by connect
	CONNECT_OPTIONS=(-c 1)
	connect "$TARGET4"
	start_verify
	port_goes
	loses
}

# Whether a reconnect attempt of the controller CTRL is in progress.
is_trying() {
	try "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT == *"the last one under way"* ]]
}
