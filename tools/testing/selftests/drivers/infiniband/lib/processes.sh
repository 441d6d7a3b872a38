# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Ending the background processes of a test.

# process_ended PID: whether a process has ended, also if the shell has not waited for it. The shell may
# miss the signal that tells of the end, and while it polls without a child, nothing has it look again.
process_ended() {
	local stat
	read -r stat 2>/dev/null <"/proc/$1/stat" || return 0
	# PID (NAME) STATE ...
	stat=${stat##*) }
	[ "${stat%% *}" = Z ]
}

# end_process PID: send SIGTERM, and after 10 s SIGKILL, and wait for the end. The process may end by itself at any
# moment. One that waits for I/O may not end.
end_process() {
	kill -TERM "$1" 2>/dev/null || return 0
	wait_until 10 process_ended "$1" && return 0
	kill -KILL "$1" 2>/dev/null || true
	wait_until 10 process_ended "$1" || true
}
