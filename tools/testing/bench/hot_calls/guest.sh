#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Runs in the VM: measures verbs calls on the I/O path with the rrdma crate and
# in C, in instructions per call. The VM must be started with `run --icount`.
# Prints a table, or one JSON object with --json.

set -eu

modprobe rdma_rxe
modprobe dummy numdummies=0
ip link add bench0 mtu 4200 type dummy
ip address add 192.0.2.1/24 dev bench0
ip link set bench0 up
rdma link add rxe0 type rxe netdev bench0

# gid_index: wait for the GID of the IPv4 address and print its index.
gid_index() {
	local gids=/sys/class/infiniband/rxe0/ports/1/gids index
	for _ in {1..50}; do
		for index in {0..7}; do
			case $(cat "$gids/$index" 2>/dev/null) in
			*:ffff:c000:0201)
				echo "$index"
				return
				;;
			esac
		done
		sleep 0.1
	done
	return 1
}

index=$(gid_index) || { echo "rxe0: no GID for 192.0.2.1" >&2; exit 1; }

# measure MODULE: load it, and write a line CALL NANOSECONDS for each call in its
# log to /tmp/MODULE.
measure() {
	modprobe "$1" device=rxe0 gid_index="$index"
	for _ in {1..600}; do
		if dmesg | grep -q " $1: \(invalidate\|failed\)"; then
			break
		fi
		sleep 0.1
	done
	dmesg | sed -n "s/.* $1: //p" >"/tmp/$1"
	modprobe -r "$1"
	if [ "$(awk '$2 ~ /^[0-9]+$/ { n++ } END { print n + 0 }' "/tmp/$1")" != 5 ]; then
		cat "/tmp/$1" >&2
		return 1
	fi
}

measure bench_hot_calls_c
measure bench_hot_calls

if [ "${1-}" = --json ]; then
	awk 'NR == FNR { c[$1] = $2; next }
	     { printf "%s\"%s\": {\"c\": %d, \"rust\": %d}", FNR > 1 ? ", " : "{", $1, c[$1], $2 }
	     END { print "}" }' /tmp/bench_hot_calls_c /tmp/bench_hot_calls
else
	printf '%-14s %8s %8s %8s %7s\n' call C Rust more ratio
	awk 'NR == FNR { c[$1] = $2; next }
	     { printf "%-14s %8d %8d %8d %7.3f\n", $1, c[$1], $2, $2 - c[$1], $2 / c[$1] }' \
		/tmp/bench_hot_calls_c /tmp/bench_hot_calls
fi
