# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the kernel holds for us: RDMA objects and memory, before and after.

# rdma_objects: the number of RDMA objects of each kind on each device, ours and the target's, but
# without the completion queues that the device shares out: it keeps those. A device that went and
# came back has another number, and another place, and so has a completion queue.
rdma_objects() {
	rdma resource show | sed 's/^[0-9]*: //; s/ cq [0-9]*//' | sort
	rdma resource show cq | sed '/\[ib_core\]/d; s/ cqn [0-9]*//' | sort
}

rdma_objects_are() {
	[ "$(rdma_objects)" = "$1" ]
}

# rdma_back_to OBJECTS: the objects must be those again soon. The target frees its own late.
rdma_back_to() {
	wait_until 15 rdma_objects_are "$1" ||
		fail "RDMA objects were '$1' and are '$(rdma_objects)'"
}

# Whether queue pairs of soft-RoCE keep its module loaded, as each does in a kernel with lockdep
# (rxe_reclassify_send_socket). Then its devices must go before.
queue_pairs_hold_soft_roce() {
	[ -e /proc/lockdep ]
}

# Give what is free in the slabs back, so that what is left is in use.
slab_shrink() {
	local cache
	for cache in /sys/kernel/slab/*; do
		[ -L "$cache" ] || echo 1 >"$cache/shrink"
	done
}

# slab_count: remember the objects in use of each kmalloc cache, in SLAB.
slab_count() {
	local name active _
	declare -gA SLAB=()
	slab_shrink
	while read -r name active _; do
		[[ $name != kmalloc-* ]] || SLAB[$name]=$active
	done </proc/slabinfo
}

# slab_grew OBJECTS: whether a kmalloc cache has so many objects more than when they were counted;
# GROWN tells which.
slab_grew() {
	local name active _
	GROWN=
	slab_shrink
	while read -r name active _; do
		if [[ $name = kmalloc-* && $((active - ${SLAB[$name]:-0})) -ge $1 ]]; then
			GROWN+=" $name by $((active - ${SLAB[$name]:-0}))"
		fi
	done </proc/slabinfo
	[ -n "$GROWN" ]
}

slab_is_steady() {
	! slab_grew "$1"
}

# slab_steady_while OBJECTS COMMAND...: run the command, which may not leave a kmalloc cache with so
# many objects more. Connections that were closed are remembered by the connection managers for
# some seconds.
#
# For each processor a cache keeps a sheaf of 60 objects that go after a grace period, and counts
# them as in use. So it may look grown once for each processor, and what is really left behind
# shows once more.
slab_steady_while() {
	local most=$1 i
	shift
	for ((i = 0; i <= $(nproc); i++)); do
		slab_count
		"$@"
		if wait_until 20 slab_is_steady "$most"; then
			return 0
		fi
	done
	fail "memory in use grew:$GROWN objects"
}
