#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests discovery at a target: subsystems, referrals, and the address of a port with a wildcard.

. "$(dirname "$0")/lib.sh"

setup() {
	load_driver && network_single && backend_memory disk 16 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

after_test() {
	(rdma_back_to "$OBJECTS")
}

# discover ADDRESS [SERVICE]: OUTPUT is the discovery log in JSON, without spaces.
discover() {
	if host_is_rnvmf; then
		run "${RNVMF[@]}" discover -t rdma -a "$1" -s "${2:-4420}" -q "$HOSTNQN" -o json
	else
		run nvme discover -t rdma -a "$1" -s "${2:-4420}" -q "$HOSTNQN" -I "$HOSTID" -o json
	fi
	OUTPUT=$(tr -d ' \n' <<<"$OUTPUT")
}

lists_subsystems() {
	discover "$TARGET4"
	has "$OUTPUT" "\"$NQN\""
	has "$OUTPUT" "\"traddr\":\"$TARGET4\""
	discover "$TARGET6"
	has "$OUTPUT" "\"traddr\":\"$TARGET6\""
}

lists_referrals() {
	target_referral 4420 other rdma "$TARGET4" 4499
	discover "$TARGET4"
	has "$OUTPUT" '"trsvcid":"4499"'
}

# The log has the address that the host has used.
wildcard_address() {
	target_port 4430 0.0.0.0 4430
	target_export 4430 "$NQN"
	target_port 4431 :: 4431
	target_export 4431 "$NQN"
	discover "$TARGET4" 4430
	has "$OUTPUT" "\"traddr\":\"$TARGET4\""
	discover "$HOST4" 4430
	has "$OUTPUT" "\"traddr\":\"$HOST4\""
	discover "$TARGET6" 4431
	has "$OUTPUT" "\"traddr\":\"$TARGET6\""
}

# Only subsystems that the host may use.
allowed_hosts() {
	target_subsystem "$NQN-denied"
	echo 0 >"$NVMET/subsystems/$NQN-denied/attr_allow_any_host"
	target_export 4420 "$NQN-denied"
	discover "$TARGET4"
	[[ $OUTPUT != *"$NQN-denied"* ]] || fail "a subsystem that the host may not use is listed"
}

main_with_known setup lists_subsystems lists_referrals wildcard_address allowed_hosts
