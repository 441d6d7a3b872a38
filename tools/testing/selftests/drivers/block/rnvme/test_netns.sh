#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Network namespaces: a controller belongs to the one that it was connected in.

. "$(dirname "$0")/lib.sh"

setup() {
	modprobe rnvme && network_pair && backend_memory disk 16 512 && target_simple "$BACKEND"
}

# Who is elsewhere does not see it and cannot touch it.
controllers_are_seen_at_home_only() {
	connect "$TARGET4"
	has "$("${RNVME[@]}" show)" "$CTRL"
	has "$(rnvme show -o json)" '"controllers":\[\]'
	has "$(rnvme list -o json)" '"namespaces":\[\]'
	expect 3 rnvme show "$CTRL"
	expect 3 rnvme disconnect -d "$CTRL"
	expect 3 rnvme disconnect -n "$NQN"
	run rnvme disconnect-all
	same state live "$(ctrl_field "$CTRL" state)"
}

# The same subsystem from two namespaces: not a duplicate, and the numbers do not clash.
same_subsystem_from_both() {
	local here
	connect "$TARGET4"
	# Here the target is on the same device.
	run rnvme connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN"
	here=${OUTPUT%%:*}
	defer rnvme disconnect -d "$here"
	[ "$here" != "$CTRL" ] || fail "both controllers are $here"
	run dd if="$(disk "$here" 1)" of=/dev/null bs=4k count=1 iflag=direct
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
}

events_are_heard_at_home_only() {
	local there=("${RNVME[@]}")
	RNVME=(rnvme)
	start_monitor
	RNVME=("${there[@]}")
	connect "$TARGET4"
	disconnect "$CTRL"
	run rnvme connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN.here"
	run rnvme disconnect -d "${OUTPUT%%:*}"
	wait_until 10 grep -q ctrl-del "$SCRATCH/events" || fail "no event of our own"
	same "controllers made" 1 "$(grep -c ctrl-add "$SCRATCH/events")"
}

# Without a name for its namespace nobody can ask rnvme for a controller; the module's end is its own.
unloads_after_the_namespace_went() {
	connect "$TARGET4"
	run ip netns del "$HOST_NETNS"
	defer modprobe rnvme
	run rmmod rnvme
	no_disks || fail "a disk is left of an unloaded module"
	RNVME=(rnvme)
}

main setup \
	controllers_are_seen_at_home_only \
	same_subsystem_from_both \
	events_are_heard_at_home_only \
	unloads_after_the_namespace_went
