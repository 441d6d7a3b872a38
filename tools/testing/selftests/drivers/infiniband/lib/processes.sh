# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Ending the background processes of a test.

process_ended() {
	! kill -0 "$1" 2>/dev/null
}

# end_process PID: send SIGTERM, and after 10 s SIGKILL.
end_process() {
	process_ended "$1" || kill -TERM "$1"
	wait_until 10 process_ended "$1" || kill -KILL "$1"
}
