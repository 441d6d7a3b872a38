# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# I/O that is verified, and I/O that runs while something happens to it.

# An I/O that cannot be done any more must end within this time, in seconds.
SOON=15

# What an I/O ends with when its connection is lost: ENOLINK.
LOST='Link has been severed'

# ... and when its disk is taken away, for good: such a disk has no room either.
# shellcheck disable=SC2034 # read by the tests
REMOVED="$LOST|Input/output error|No space left|No such device"

# start_io: I/O without end on the first disk of CTRL; its process is in IO.
start_io() {
	local disk
	disk=$(disk "$CTRL" 1)
	fio --name=load --filename="$disk" --direct=1 --ioengine=libaio --rw=randrw --bs=16k \
		--iodepth=8 --numjobs=2 --size=32m --time_based --runtime=600 --minimal \
		--output="$SCRATCH/fio-result" >"$SCRATCH/fio" 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until 20 io_flows "$disk" || fail "there is no I/O: $(<"$SCRATCH/fio")"
}

# Some hundred requests have been done.
io_flows() {
	local reads
	read -r reads _ <"/sys/block/${1##*/}/stat"
	[ "$reads" -gt 100 ]
}

# io_fails: the I/O ends soon, with errors.
io_fails() {
	wait_until "$SOON" process_ended "$IO" || fail "after $SOON s fio still waits"
	has "$(<"$SCRATCH/fio")" "$LOST"
}

# io_fails_after SECONDS BEGAN: it does so when it was to, since that moment, and not much later.
io_fails_after() {
	local took
	io_fails
	took=$(($(now) - $2))
	note "I/O failed after $took ms"
	within "I/O waited" $(($1 * 1000)) $took $(($1 * 1000 + 6000 * SLOWDOWN))
}

# is_dead PATTERN: the controller of CTRL is dead and says why; its disk is there and refuses I/O at
# once; and it can be taken away.
is_dead() {
	local disk=/dev/${CTRL}n1 began took
	wait_until "$SOON" state_is "$CTRL" dead ||
		fail "the controller is $(ctrl_field "$CTRL" state) and not dead"
	has "$(ctrl_field "$CTRL" message)" "$1"
	[ -b "$disk" ] || fail "$disk went without a disconnect"
	began=$(now)
	expect 1 dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	took=$(($(now) - began))
	has "$ERRORS" "$LOST"
	[ $took -lt $((2000 * SLOWDOWN)) ] || fail "the error took $took ms"
	disconnect "$CTRL"
	[ ! -e "$disk" ] || fail "$disk is still there after the disconnect"
}

# verify DISK OPTION...: what fio writes must have its checksums when it is read.
verify() {
	local disk=$1
	shift
	run fio --name=verify --filename="$disk" --direct=1 --ioengine=libaio --verify=crc32c \
		--verify_fatal=1 --verify_state_save=0 --randrepeat=1 --output-format=terse "$@"
}

# More options of fio's for `start_verify`.
VERIFY_OPTIONS=()

# start_verify: writes for some seconds, each block again and again, and then reads all of it back: an
# earlier write that comes late is seen, too. Its process is in IO.
start_verify() {
	fio --name=verify --filename="$(disk "$CTRL" 1)" --direct=1 --ioengine=libaio --rw=randwrite \
		--bs=16k --size=2m --io_size=12m --norandommap --serialize_overlap=1 --iodepth=4 \
		--rate_iops=100 --verify=crc32c --verify_fatal=1 --verify_state_save=0 \
		--verify_write_sequence=1 --output-format=terse "${VERIFY_OPTIONS[@]}" >"$SCRATCH/fio" 2>&1 &
	IO=$!
	defer end_process $IO
	wait_until 20 writes_flow || fail "there is no I/O: $(<"$SCRATCH/fio")"
}

writes_flow() {
	local stat
	read -ra stat <"/sys/block/${CTRL}n1/stat"
	[ "${stat[4]}" -gt 50 ]
}

# is_verified: what was written is there.
is_verified() {
	local status=0
	wait_until 60 process_ended "$IO" || fail "fio still waits; $CTRL is $(ctrl_field "$CTRL" state)"
	wait "$IO" || status=$?
	[ $status = 0 ] || fail "fio ended with status $status: $(<"$SCRATCH/fio")"
}

# start_recovering: the target went under verified I/O, on a cable of its own; it is tried again.
start_recovering() {
	start_pair
	# shellcheck disable=SC2034 # read by connect
	CONNECT_OPTIONS=(-c 1)
	connect "$TARGET4"
	start_verify
	port_goes
	loses
}

# An attempt to connect again is under way.
is_trying() {
	try "${RNVMF[@]}" show "$CTRL"
	[[ $OUTPUT == *"the last one under way"* ]]
}
