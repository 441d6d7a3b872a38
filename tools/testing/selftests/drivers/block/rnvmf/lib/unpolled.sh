# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# A process that submits a polled read, and polls for it only when it is told.

# start_unpolled DISK: submit a polled read without polling for it. IO is the PID of the process.
start_unpolled() {
	mkfifo "$SCRATCH/poll"
	python3 "$HERE/unpolled.py" "$1" <>"$SCRATCH/poll" >"$SCRATCH/unpolled" 2>&1 &
	IO=$!
	defer rm "$SCRATCH/poll"
	defer end_process $IO
	wait_until "$SOON" grep -qs sent "$SCRATCH/unpolled" || fail "$(<"$SCRATCH/unpolled")"
}

# polls RESULT: let the process poll, and check its result.
polls() {
	echo >"$SCRATCH/poll"
	wait_until "$SOON" process_ended "$IO" || fail "the polled read did not end"
	same result "sent $1" "$(tr '\n' ' ' <"$SCRATCH/unpolled" | sed 's/ $//')"
}
