#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in a VM: measures what many controllers and many namespaces cost. Appends lines to /mnt/out/scale:
#
#	controllers NUMBER DRIVER CONNECT DISCONNECT KIB QP CQ MR THREADS
#	namespaces NUMBER DRIVER CONNECT DISCONNECT
#
# CONNECT and DISCONNECT are the microseconds until all disks are there, and gone. KIB is memory, and
# QP, CQ and MR are RDMA resources, with those of the target. THREADS are kernel threads but kworkers.
#
# usage: scale.sh controllers|namespaces NUMBER...

# shellcheck source=tools/testing/bench/side_by_side/drivers.sh
. "$(dirname "$0")/drivers.sh"
# shellcheck source=tools/testing/bench/side_by_side/marks.sh
. "$(dirname "$0")/marks.sh"

RESULT=/mnt/out/scale
# Seconds for disks to come and go.
SOON=1800

what=$1
shift

# resources KIND: print the number of RDMA resources of this kind.
resources() {
	rdma resource show | sed -n "s/.* $1 \([0-9]*\).*/\1/p"
}

threads() {
	# Kernel threads have no command line.
	grep -Lz . /proc/[0-9]*/cmdline 2>/dev/null | sed 's/cmdline/comm/' | xargs cat 2>/dev/null |
		grep -vc '^kworker'
}

# census: set CENSUS to the memory and the numbers of resources and threads.
census() {
	CENSUS=("$(memory_used)" "$(resources qp)" "$(resources cq)" "$(resources mr)" "$(threads)")
}

# timed COMMAND...: set TOOK to its duration in microseconds.
timed() {
	local begin=${EPOCHREALTIME/[.,]/}
	"$@"
	TOOK=$((${EPOCHREALTIME/[.,]/} - begin))
}

# Connect with as many controllers, until all disks are there.
come() {
	local driver=$1 controllers=$2 disks=$3 i
	for ((i = 0; i < controllers; i++)); do
		"connect_$driver" -D -i 2
	done
	wait_until $SOON has_disks "$driver" "$disks" ||
		fail "$driver has ${#FOUND[@]} disks, expected $disks"
}

# Disconnect all, until no disk is left.
go() {
	"disconnect_$1"
	wait_until $SOON has_disks "$1" 0 || fail "$1 does not remove its disks"
}

# controllers NUMBER DRIVER
controllers() {
	local before connect i used=()
	census
	before=("${CENSUS[@]}")
	timed come "$2" "$1" "$1"
	connect=$TOOK
	census
	for i in "${!CENSUS[@]}"; do
		used+=($((CENSUS[i] - before[i])))
	done
	timed go "$2"
	echo "controllers $1 $2 $connect $TOOK ${used[*]}" >>$RESULT
}

# namespaces NUMBER DRIVER
namespaces() {
	local connect
	timed come "$2" 1 "$1"
	connect=$TOOK
	timed go "$2"
	echo "namespaces $1 $2 $connect $TOOK" >>$RESULT
}

# The target has this many namespaces, all on one backend.
namespaces_are() {
	local nsid
	for ((nsid = 2; nsid <= $1; nsid++)); do
		[ -d "$NVMET/subsystems/$NQN/namespaces/$nsid" ] || target_namespace "$NQN" $nsid "$BACKEND"
	done
}

set_up || exit 1
objects=$(rdma_objects)
for number; do
	[ "$what" != namespaces ] || namespaces_are "$number"
	for driver in "${DRIVERS[@]}"; do
		"$what" "$number" "$driver"
		# The target ends its queues later.
		wait_until $SOON rdma_objects_are "$objects" || fail "RDMA objects are left"
	done
done
log_is_clean
