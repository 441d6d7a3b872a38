# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Devices that go while a sample uses them, and come back for what follows.

# ends_without WHAT COMMAND...: COMMAND loads a sample that has more to do than there is time for;
# then WHAT goes: `device`, `peer_device` or `driver`. The sample must say why it ends, and let go.
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
	devices_again || fail "the devices do not come back"
}

# ends_without_its_devices COMMAND...: the same with each of them.
ends_without_its_devices() {
	local what
	for what in device peer_device driver; do
		ends_without "$what" "$@"
	done
}

sample_has_queue_pairs() {
	# Long names are cut off.
	[[ $(rdma resource show qp) == *"comm [${SAMPLE:0:15}"* ]]
}

# Each of these waits until the sample has let go.
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
	# While it has a packet in hand soft-RoCE is in use.
	wait_until 15 driver_unloads || fail "$ERRORS"
}

driver_unloads() {
	try modprobe -r rdma_rxe
	[ "$STATUS" = 0 ]
}

# devices_again: those of the cable that are not there. They stay for the tests that follow.
devices_again() {
	modprobe rdma_rxe || return 1
	[ -e "/sys/class/infiniband/$PEER_DEVICE" ] ||
		ip netns exec "$PEER_NETNS" rdma link add "$PEER_DEVICE" type rxe netdev "$PEER_CABLE" ||
		return 1
	wait_until 10 rdma_is_up "$PEER_DEVICE" && device_again
}
