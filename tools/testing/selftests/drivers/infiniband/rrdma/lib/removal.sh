# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Removal of devices that a sample uses. The devices are added again for the tests that follow.

# ends_without WHAT COMMAND...: COMMAND loads a sample that does not end during the test. Then remove
# WHAT: `device`, `peer_device` or `driver`. The sample must log why it stops and release the device.
ends_without() {
	local what=$1
	shift
	"$@"
	wait_until 15 sample_has_queue_pairs || fail "$SAMPLE has no queue pair: $(sample_log)"
	pause
	defer devices_again
	"lose_$what"
	sample_result
	has "$RESULT" '^stopped at [a-z ]+: the device is removed$'
	same "number of results" 1 "$(wc -l <<<"$RESULT")"
	sample_unload
	devices_again || fail "cannot add the RDMA devices again"
}

# ends_without_its_devices COMMAND...: `ends_without` for each of the three.
ends_without_its_devices() {
	local what
	for what in device peer_device driver; do
		ends_without "$what" "$@"
	done
}

sample_has_queue_pairs() {
	# The kernel truncates the name to TASK_COMM_LEN - 1 characters.
	[[ $(rdma resource show qp) == *"comm [${SAMPLE:0:15}"* ]]
}

# The lose_* functions return once the sample has released the device.

lose_device() {
	run rdma link delete "$DEVICE"
}

lose_peer_device() {
	run ip netns exec "$PEER_NETNS" rdma link delete "$PEER_DEVICE"
}

lose_driver() {
	if queue_pairs_hold_soft_roce; then
		lose_device
		[ ! -e "/sys/class/infiniband/$PEER_DEVICE" ] || lose_peer_device
	fi
	# soft-RoCE holds a reference on its module while it processes a packet.
	wait_until 15 driver_unloads || fail "$ERRORS"
}

driver_unloads() {
	try modprobe -r rdma_rxe
	[ "$STATUS" = 0 ]
}

# devices_again: add DEVICE and PEER_DEVICE if they are missing. They remain for the next tests.
devices_again() {
	modprobe rdma_rxe || return 1
	[ -e "/sys/class/infiniband/$PEER_DEVICE" ] ||
		ip netns exec "$PEER_NETNS" rdma link add "$PEER_DEVICE" type rxe netdev "$PEER_CABLE" ||
		return 1
	wait_until 10 rdma_is_up "$PEER_DEVICE" && device_again
}
