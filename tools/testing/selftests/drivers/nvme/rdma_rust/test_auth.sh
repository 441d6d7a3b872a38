#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests DH-HMAC-CHAP over nvme_rdma_rust: one way, mutual, wrong keys, and authentication again under
# I/O.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-c 1)

requirements() {
	need_root && need_modules nvme-core nvme-rdma "$DRIVER" rdma_rxe nvmet-rdma dummy null_blk &&
		need_programs rdma ip fio nvme
}

setup() {
	load_driver && network_single && backend_memory disk 64 512 && target_simple "$BACKEND" || return 1
	HOST_KEY=$(key "$HOSTNQN") && CTRL_KEY=$(key "$HOSTNQN") && WRONG_KEY=$(key "$HOSTNQN")
}

key() {
	nvme gen-dhchap-key --hmac=1 -n "$1"
}

# keys HOST_KEY [CTRL_KEY [GROUP]]: admit the host to the subsystem until the test ends, with these keys.
keys() {
	local host=$NVMET/hosts/$HOSTNQN
	target_host "$NQN" "$HOSTNQN"
	[ -e "$host/dhchap_key" ] || skip "nvmet has no authentication"
	echo "$1" >"$host/dhchap_key"
	[ -z "${2:-}" ] || echo "$2" >"$host/dhchap_ctrl_key"
	# nvmet does not load it.
	modprobe -q dh_generic || true
	echo "${3:-null}" >"$host/dhchap_dhgroup"
}

# works: connect with these options, and do I/O.
works() {
	connect "$TARGET4" "$@"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=16k --size=1m --iodepth=4
}

# refused OPTION...: the connect must fail, and no controller remain.
refused() {
	! driver_is_c || skip "nvme-rdma waits for a command whose connection the target has ended"
	nvme_connect "$NQN" "$TARGET4" "$@"
	[ "$STATUS" = 1 ] || fail "the connect succeeded: $OUTPUT"
	note "$ERRORS"
	[ ! -e /sys/class/nvme/nvme0 ] || fail "a controller remains"
	[ "$(logged 'nvme nvme0: .*(auth|AUTH)')" -ge 1 ] || fail "no line about authentication: $(kernel_log)"
}

one_way() {
	keys "$HOST_KEY"
	works -S "$HOST_KEY"
}

mutual() {
	keys "$HOST_KEY" "$CTRL_KEY"
	works -S "$HOST_KEY" -C "$CTRL_KEY"
}

with_diffie_hellman() {
	keys "$HOST_KEY" "$CTRL_KEY" ffdhe2048
	works -S "$HOST_KEY" -C "$CTRL_KEY"
}

wrong_host_key() {
	keys "$HOST_KEY"
	refused -S "$WRONG_KEY"
	works -S "$HOST_KEY"
}

wrong_controller_key() {
	keys "$HOST_KEY" "$CTRL_KEY"
	refused -S "$HOST_KEY" -C "$WRONG_KEY"
	works -S "$HOST_KEY" -C "$CTRL_KEY"
}

# A target that cannot prove that it has the key of the controller.
downgrade_to_one_way() {
	keys "$HOST_KEY"
	refused -S "$HOST_KEY" -C "$CTRL_KEY"
}

without_key() {
	keys "$HOST_KEY"
	refused
}

reset_authenticates() {
	keys "$HOST_KEY" "$CTRL_KEY"
	connect "$TARGET4" -S "$HOST_KEY" -C "$CTRL_KEY"
	start_verify
	run nvme reset "/dev/$CTRL"
	comes_back
	is_verified
}

reconnect_authenticates() {
	keys "$HOST_KEY" "$CTRL_KEY"
	connect "$TARGET4" -S "$HOST_KEY" -C "$CTRL_KEY"
	start_verify
	port_goes
	loses
	port_is_back
	comes_back
	is_verified
}

# A write of a secret authenticates all queues again.
again_under_io() {
	local other _
	keys "$HOST_KEY"
	connect "$TARGET4" -S "$HOST_KEY"
	start_verify
	trace_authentications
	for _ in 1 2 3; do
		echo "$HOST_KEY" >"/sys/class/nvme/$CTRL/dhchap_secret"
	done
	# One that is under way would fail with another key of the target.
	wait_until 60 authentication_ends ||
		fail "authentication does not end: $(grep -v '^#' "$TRACE/trace")"
	other=$(key "$HOSTNQN")
	echo "$other" >"$NVMET/hosts/$HOSTNQN/dhchap_key"
	echo "$other" >"/sys/class/nvme/$CTRL/dhchap_secret"
	is_verified
	same state live "$(ctrl_field "$CTRL" state)"
	same secret "$other" "$(ctrl_field "$CTRL" dhchap_secret)"
}

# trace_authentications: record the work item of nvme-core that authenticates all queues again.
trace_authentications() {
	local event
	trace_start workqueue/workqueue_queue_work workqueue/workqueue_execute_end
	for event in queue_work execute_end; do
		echo 'function.function == nvme_ctrl_auth_work' \
			>"$TRACE/events/workqueue/workqueue_$event/filter"
	done
	trace_clear
}

# authentication_ends: whether the work item has ended since it was queued last. Each write of a secret cancels the
# item if it has not begun (nvme_auth_stop()), so it ends less often than it is queued.
authentication_ends() {
	[[ $(grep -v '^#' "$TRACE/trace" | tail -n 1) == *' workqueue_execute_end: '* ]]
}

main setup \
	one_way \
	mutual \
	with_diffie_hellman \
	wrong_host_key \
	wrong_controller_key \
	downgrade_to_one_way \
	without_key \
	reset_authenticates \
	reconnect_authenticates \
	again_under_io
