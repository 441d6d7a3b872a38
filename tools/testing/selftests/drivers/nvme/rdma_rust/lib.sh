# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Entry point of the tests of nvme_rdma_rust. DRIVER=nvme-rdma tests the C driver instead.

RNVMF_TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../block/rnvmf" && pwd)
. "$RNVMF_TESTS/lib.sh"

DRIVER=${DRIVER:-nvme_rdma_rust}
HOST_OPTIONS=(-q "$HOSTNQN")

requirements() {
	need_root && need_modules nvme_core rdma_rxe nvmet-rdma null_blk &&
		{ modinfo "$DRIVER" >/dev/null 2>&1 || skip_all "module $DRIVER not found"; } &&
		need_programs rdma ip fio nvme
}

# load_driver: load the driver in place of the other one.
load_driver() {
	modprobe -r nvme-rdma nvme_rdma_rust 2>/dev/null
	modprobe "$DRIVER"
}

# nvme_connect [OPTION...]: connect to the subsystem $NQN, and set CTRL to the controller's name.
nvme_connect() {
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" "${HOST_OPTIONS[@]}" "$@" -o json
	[[ $OUTPUT =~ \"(nvme[0-9]+)\" ]] || fail "no controller in: $OUTPUT"
	CTRL=${BASH_REMATCH[1]}
	defer nvme_gone "$CTRL"
}

nvme_gone() {
	[ ! -e "/sys/class/nvme/$1" ] || nvme disconnect -d "$1"
}

# nvme_disk NSID: set DISK to the block device of a namespace of $CTRL, through any path.
nvme_disk() {
	wait_until 10 nvme_has_disk "$1" || fail "$CTRL has no namespace $1"
}

nvme_has_disk() {
	local path
	for path in "/sys/class/nvme/$CTRL/$CTRL"*n* "/sys/class/nvme/$CTRL"/nvme*c*n*; do
		[ -e "$path/nsid" ] && [ "$(<"$path/nsid")" = "$1" ] || continue
		path=${path##*/}
		DISK=/dev/$(sed -E 's/c[0-9]+n/n/' <<<"$path")
		[ -b "$DISK" ] && return
	done
	return 1
}

# state_is STATE: test the state of $CTRL.
state_is() {
	[ "$(cat "/sys/class/nvme/$CTRL/state" 2>/dev/null)" = "$1" ]
}
