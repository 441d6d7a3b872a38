#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests rnvmf on devices that break the rules of the verbs. The module test_liar replaces an operation of the
# host's soft-RoCE.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/broken_device.sh"

CONNECT_OPTIONS=(-c 1 -i 1 --timeout $((5 * SLOWDOWN)))
HASTY=(-k "$SLOWDOWN")
PATIENT=(-k $((10 * SLOWDOWN)))

NO_EVENTS='Asynchronous Event Request: out of memory'

# The write is not sent again: the target may still execute the first one.
WRITE_ENDS=1

setup() {
	modprobe rnvmf
}

has_a_second_disk() {
	[ -b "/dev/${CTRL}n2" ]
}

main setup \
	event_request_is_refused \
	completions_come_late
