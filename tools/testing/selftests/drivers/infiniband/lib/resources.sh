# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Leak checks: RDMA objects and slab memory before and after a test.

# rdma_objects: print the number of RDMA objects of each type on each device, those of the target
# included. Omitted are the completion queues of ib_core's shared pool, which the device keeps. Also
# omitted are the indexes of devices and the numbers of CQs, which change when a device is re-added.
# As the reference of a leak check, call it before the first connection or while all are established:
# the target frees the objects of a closed connection late.
rdma_objects() {
	{ rdma resource show && rdma resource show cq; } |
		sed -E '/\[ib_core\]/d; s/^[0-9]+: //; s/ cqn? [0-9]+//' | sort
}

rdma_objects_are() {
	[ "$(rdma_objects)" = "$1" ]
}

# rdma_back_to OBJECTS: fail unless `rdma_objects` returns to OBJECTS within 20 s. The target frees
# its objects late.
rdma_back_to() {
	wait_until 20 rdma_objects_are "$1" ||
		fail "RDMA objects leaked: before '$1', now '$(rdma_objects)'"
}

# Whether a queue pair of soft-RoCE holds a reference on its module. With lockdep it does
# (rxe_reclassify_send_socket()), and the devices must be deleted before the module is unloaded.
queue_pairs_hold_soft_roce() {
	[ -e /proc/lockdep ]
}

# Free the unused objects of all slab caches, so that the counts show only objects in use.
slab_shrink() {
	local cache
	for cache in /sys/kernel/slab/*; do
		[ -L "$cache" ] || echo 1 >"$cache/shrink"
	done
}

# slab_count: store the number of objects in use of each kmalloc cache in SLAB.
slab_count() {
	local name active _
	declare -gA SLAB=()
	slab_shrink
	while read -r name active _; do
		[[ $name != kmalloc-* ]] || SLAB[$name]=$active
	done </proc/slabinfo
}

# slab_grew OBJECTS: whether a kmalloc cache grew by at least OBJECTS since `slab_count`. GROWN lists
# the caches.
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

# slab_steady_while OBJECTS COMMAND...: run COMMAND until no kmalloc cache grows by OBJECTS during a
# run; fail after one run more than there are CPUs. After each run the caches have 20 s to shrink,
# because the connection managers keep closed connections for some seconds.
#
# For each CPU a cache keeps a sheaf of 60 objects until a grace period ends, and counts them as in
# use. So a cache may grow once for each CPU without a leak; a leak shows in one more run.
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
	fail "kmalloc caches grew (objects):$GROWN"
}
