#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests discovery controllers of nvme_rdma_rust: discover and connect-all of nvme-cli.

. "$(dirname "$0")/lib.sh"

OTHER=$NQN-other
DISCOVERY=nqn.2014-08.org.nvmexpress.discovery
IDENTITY=(-q "$HOSTNQN" -I "$HOSTID")

setup() {
	load_driver && network_single && backend_memory disk 16 512 && target_simple "$BACKEND" &&
		target_subsystem "$OTHER" && target_port 4430 "$TARGET4" 4430 && target_export 4430 "$OTHER" &&
		target_referral 4430 first rdma "$TARGET4" 4420
}

reads_the_log() {
	local objects
	objects=$(rdma_objects)
	run nvme discover -t rdma -a "$TARGET4" "${IDENTITY[@]}"
	has "$OUTPUT" "subnqn: *$NQN"$'\n'
	run nvme discover -t rdma -a "$TARGET4" -s 4430 "${IDENTITY[@]}"
	has "$OUTPUT" "subnqn: *$OTHER"$'\n'
	has "$OUTPUT" 'subtype: .*referral'
	no_controllers || fail "a controller remains"
	rdma_back_to "$objects"
}

no_controllers() {
	local controller
	for controller in /sys/class/nvme/nvme*; do
		[ ! -e "$controller" ] || return 1
	done
}

# A discovery controller that stays has no I/O queues, and reports changes.
persistent() {
	connect_to "$DISCOVERY" "$TARGET4" -k 5
	same cntrltype discovery "$(ctrl_field "$CTRL" cntrltype)"
	same queue_count 1 "$(ctrl_field "$CTRL" queue_count)"
	same kato 5 "$(ctrl_field "$CTRL" kato)"
	run nvme discover -t rdma -a "$TARGET4" -d "$CTRL" "${IDENTITY[@]}"
	has "$OUTPUT" "subnqn: *$NQN"$'\n'
	no_disks || fail "a discovery controller has a disk"
	run nvme reset "/dev/$CTRL"
	wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is not live after a reset"
	disconnect "$CTRL"
}

persistent_comes_back() {
	connect_to "$DISCOVERY" "$TARGET4" -k 5 -c 1
	port_goes
	loses
	port_is_back
	comes_back
	disconnect "$CTRL"
}

connects_all() {
	run nvme connect-all -t rdma -a "$TARGET4" -s 4430 "${IDENTITY[@]}"
	defer nvme disconnect-all
	wait_until "$SOON" all_are_live || fail "not all are live: $(nvme list-subsys)"
	run nvme disconnect-all
	no_controllers || fail "a controller remains"
}

# Whether the subsystems of the log and of its referral are connected.
all_are_live() {
	local found
	found=$(nvme list-subsys)
	[[ $found == *"NQN=$NQN"$'\n'* && $found == *"NQN=$OTHER"$'\n'* && $found != *connecting* ]]
}

main setup reads_the_log persistent persistent_comes_back connects_all
