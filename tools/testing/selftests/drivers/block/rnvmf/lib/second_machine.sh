# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Functions of tests with a target on a second machine, which runs neighbour.sh of the test's directory.

# Allows for the start of a machine.
SOON=90

# For `requirements`.
need_wire() {
	if ! modprobe virtio_net || [ ! -e "/sys/class/net/$WIRE" ]; then
		ktap_skip_all "no interface $WIRE to a second machine"
		return 1
	fi
}

# neighbour start|kill: make the test runner, which reads this line, start or kill the second
# machine.
neighbour() {
	note "neighbour: $1"
}

neighbour_is_ready() {
	try ping -q -c 1 -W 1 "$READY4"
	[ "$STATUS" = 0 ]
}

# start_neighbour: start the second machine, and wait for its target.
start_neighbour() {
	neighbour start
	wait_until "$SOON" neighbour_is_ready || fail "the target of the second machine is not ready"
}
