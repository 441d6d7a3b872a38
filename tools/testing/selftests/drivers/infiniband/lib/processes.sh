# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Ending the background processes of a test.

process_ended() {
	! kill -0 "$1" 2>/dev/null
}

# end_process PID: send SIGTERM, and after 10 s SIGKILL. The process may end by itself at any moment.
end_process() {
	kill -TERM "$1" 2>/dev/null || return 0
	wait_until 10 process_ended "$1" || kill -KILL "$1" 2>/dev/null || true
}
