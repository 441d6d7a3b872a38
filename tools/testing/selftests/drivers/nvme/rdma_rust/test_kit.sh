#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the kit for tests on hardware: what it refuses, what it finds, and its report.

. "$(dirname "$0")/lib.sh"

KIT=/opt/rnvmf/src/tools/testing/hardware/kit

setup() {
	load_driver
}

# Keep-alive timeout of `start_kit`, in seconds.
KEEP_ALIVE=$SLOWDOWN

# start_kit: connect to a disk, and set DISK_NAME and IDENTITY. The report is in REPORT.
start_kit() {
	[ -x "$KIT" ] || skip "no source tree in /opt/rnvmf/src"
	start_pair
	connect "$TARGET4" -c 1 -k "$KEEP_ALIVE"
	DISK_NAME=$(disk "$CTRL" 1)
	IDENTITY=$(<"/sys/block/${DISK_NAME##*/}/wwid")
	REPORT=$SCRATCH/report
}

# kit OPTION...: run the kit with `try`.
kit() {
	COMMAND_SECONDS=$((400 * SLOWDOWN)) try "$KIT" --report "$REPORT" --seconds 1 --size 8 "$@"
}

# refuses PATTERN OPTION...: the kit must refuse, with this reason, and write nothing.
refuses() {
	local pattern=$1
	shift
	kit "$@"
	same "exit status of $*" 2 "$STATUS"
	has "$ERRORS" "$pattern"
	[ ! -e "$REPORT.txt" ] || fail "there is a report of $*"
}

# passes OPTION...: all tests of the kit must pass.
passes() {
	kit "$@"
	same "exit status of $*: $OUTPUT $ERRORS" 0 "$STATUS"
	python3 -m json.tool "$REPORT.json" >"$SCRATCH/json"
}

sums() {
	dd if="$DISK_NAME" bs=1M iflag=direct 2>/dev/null | sha256sum
}

describes_the_machine() {
	start_kit
	passes
	run grep -F "kernel $(uname -r) " "$REPORT.txt"
	has "$(<"$REPORT.txt")" "module ${DRIVER//-/_}: /"
	has "$(<"$REPORT.txt")" 'device rnvmf_rxe1 port 1: '
	has "$(<"$REPORT.txt")" "controller $CTRL: traddr=$TARGET4"
}

reads_only() {
	local before
	start_kit
	before=$(sums)
	passes --read "$DISK_NAME"
	same contents "$before" "$(sums)"
	has "$OUTPUT" "identity $IDENTITY"
	has "$OUTPUT" 'ok +read 4k: [0-9]+ IOPS'
}

refuses_what_is_unsafe() {
	start_kit
	refuses 'there is no disk' --read nvme99n1
	refuses 'is no disk of an NVMe/RDMA host' --read rnvmf_disk
	refuses 'needs --write' --read "$DISK_NAME" --erase
	refuses 'must be 1 or more' --read "$DISK_NAME" --size 0
	refuses 'cannot write the report' --report "$SCRATCH/none/report"
	refuses "--confirm $IDENTITY" --write "$DISK_NAME"
	refuses "--confirm $IDENTITY" --write "$DISK_NAME" --confirm another
	# Data without a signature.
	run dd if=/dev/urandom of="$DISK_NAME" bs=4k count=1 oflag=direct
	refuses 'first MiB is not zero; .* add --erase' --write "$DISK_NAME" --confirm "$IDENTITY"
	run mkfs.ext4 -q -F "$DISK_NAME"
	refuses 'contents: ext4; .* add --erase' --write "$DISK_NAME" --confirm "$IDENTITY"
	mkdir "$SCRATCH/mounted"
	run mount "$DISK_NAME" "$SCRATCH/mounted"
	defer umount "$SCRATCH/mounted"
	refuses 'in use: .*/mounted is mounted' --write "$DISK_NAME" --confirm "$IDENTITY" --erase
}

refuses_what_has_a_holder() {
	start_kit
	command -v dmsetup >/dev/null || skip "dmsetup not found"
	echo "0 2048 linear $DISK_NAME 0" | dmsetup create rnvmf_holder
	defer dmsetup remove rnvmf_holder
	refuses 'in use: dm-[0-9]+ is on' --write "$DISK_NAME" --confirm "$IDENTITY" --erase
}

writes_with_faults() {
	start_kit
	run mkfs.ext4 -q -F "$DISK_NAME"
	passes --write "$DISK_NAME" --confirm "$IDENTITY" --erase --reset 2 --down $((10 * SLOWDOWN)) --loss \
		"nft 'table inet rnvmf_silence { chain input {
			type filter hook input priority 0; iifname { rnvmf0, rnvmf1 } drop; }; }'" \
		'nft delete table inet rnvmf_silence'
	has "$OUTPUT" 'ok +write and verify 4k to 512k'
	has "$OUTPUT" 'ok +2 resets under verified I/O'
	has "$OUTPUT" 'ok +loss of [0-9]+ s under verified I/O'
	! state_is "$CTRL" connecting || fail "$CTRL is not live"
}

# A mount is refused while the kit runs, and a second kit. The command for the loss does nothing.
keeps_the_disk() {
	local fifo=$SCRATCH/fifo KEEP_ALIVE=60
	start_kit
	mkfifo "$fifo"
	"$KIT" --report "$SCRATCH/first" --seconds 1 --size 8 --write "$DISK_NAME" --confirm "$IDENTITY" \
		--erase --down 1 --loss "cat $fifo" true >"$SCRATCH/first.log" 2>&1 &
	defer end_process $!
	wait_until 300 grep -qs '"running": "loss' "$SCRATCH/first.json"
	refuses 'in use: it is open exclusively' --write "$DISK_NAME" --confirm "$IDENTITY" --erase
	echo >"$fifo"
	wait $! && fail "a loss that was none passed: $(<"$SCRATCH/first.log")"
	has "$(<"$SCRATCH/first.log")" 'FAILED +loss of 1 s .*: no controller lost its connection within 1 s'
}

# Another host overwrites what the kit has written.
tells_of_wrong_data() {
	start_kit
	while dd if=/dev/zero of="$BACKEND" bs=64k count=64 oflag=direct; do :; done 2>/dev/null &
	defer end_process $!
	kit --write "$DISK_NAME" --confirm "$IDENTITY"
	same "exit status" 1 "$STATUS"
	has "$OUTPUT" 'FAILED +write and verify 4k: fio ended'
	has "$OUTPUT" 'skipped +write and verify 1m: a test before it failed'
}

main setup \
	describes_the_machine \
	reads_only \
	refuses_what_is_unsafe \
	refuses_what_has_a_holder \
	writes_with_faults \
	keeps_the_disk \
	tells_of_wrong_data
