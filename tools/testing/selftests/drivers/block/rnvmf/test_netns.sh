#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests network namespaces: a controller belongs to the namespace in which it was connected.

. "$(dirname "$0")/lib.sh"

setup() {
	modprobe rnvmf && network_pair && backend_memory disk 16 512 && target_simple "$BACKEND"
}

# From another namespace the controller can neither be seen nor changed.
controllers_are_seen_at_home_only() {
	connect "$TARGET4"
	has "$("${RNVMF[@]}" show)" "$CTRL"
	has "$(rnvmf show -o json)" '"controllers":\[\]'
	has "$(rnvmf list -o json)" '"namespaces":\[\]'
	expect 3 rnvmf show "$CTRL"
	expect 3 rnvmf disconnect -d "$CTRL"
	expect 3 rnvmf disconnect -n "$NQN"
	run rnvmf disconnect-all
	same state live "$(ctrl_field "$CTRL" state)"
}

# The same subsystem from two namespaces is no duplicate, and the controllers have different names.
same_subsystem_from_both() {
	local here
	connect "$TARGET4"
	# The host in the initial namespace uses the target's RDMA device.
	run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN"
	here=${OUTPUT%%:*}
	defer rnvmf disconnect -d "$here"
	[ "$here" != "$CTRL" ] || fail "both controllers are $here"
	run dd if="$(disk "$here" 1)" of=/dev/null bs=4k count=1 iflag=direct
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
}

events_are_heard_at_home_only() {
	local there=("${RNVMF[@]}")
	RNVMF=(rnvmf)
	start_monitor
	RNVMF=("${there[@]}")
	connect "$TARGET4"
	disconnect "$CTRL"
	run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN.here"
	run rnvmf disconnect -d "${OUTPUT%%:*}"
	wait_until "$SOON" grep -q ctrl-del "$SCRATCH/events" || fail "no event of the monitor's namespace"
	same "number of ctrl-add events" 1 "$(grep -c ctrl-add "$SCRATCH/events")"
}

# count_classes: count the RoCE packets that reach the target, with DSCP 8 and others.
count_classes() {
	local match='iifname "rnvmf0" udp dport 4791'
	run nft "table inet rnvmf_tos {
		counter marked { }
		counter others { }
		chain input {
			type filter hook input priority 0;
			$match ip dscp 8 counter name marked
			$match ip dscp != 8 counter name others
			$match ip6 dscp 8 counter name marked
			$match ip6 dscp != 8 counter name others
		}
	}"
}

# Packets must have the given type of service, over IPv4 and IPv6. A TOS of 32 is DSCP 8.
packets_have_the_type_of_service() {
	local target
	count_classes
	defer nft delete table inet rnvmf_tos
	for target in "$TARGET4" "$TARGET6"; do
		connect "$target" -T 32
		moves_packets
		[ "$(packets marked)" -gt 0 ] || fail "no packet to $target has DSCP 8"
		same "packets to $target without DSCP 8" 0 "$(packets others)"
		disconnect "$CTRL"
		connect "$target"
		moves_packets
		same "packets to $target with DSCP 8 without -T" 0 "$(packets marked)"
		[ "$(packets others)" -gt 0 ] || fail "no packet to $target was counted"
		disconnect "$CTRL"
	done
}

# Reset the counters and read from the disk.
moves_packets() {
	run nft reset counters table inet rnvmf_tos
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=4 iflag=direct
}

# packets COUNTER: print the number of counted packets.
packets() {
	run nft list counter inet rnvmf_tos "$1"
	[[ $OUTPUT =~ packets\ ([0-9]+) ]] || fail "no count in: $OUTPUT"
	echo "${BASH_REMATCH[1]}"
}

# A controller in a deleted network namespace cannot be reached by the program, but unloading the
# module removes it.
unloads_after_the_namespace_went() {
	connect "$TARGET4"
	run ip netns del "$HOST_NETNS"
	defer modprobe rnvmf
	run rmmod rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
	RNVMF=(rnvmf)
}

main setup \
	controllers_are_seen_at_home_only \
	same_subsystem_from_both \
	events_are_heard_at_home_only \
	packets_have_the_type_of_service \
	unloads_after_the_namespace_went
