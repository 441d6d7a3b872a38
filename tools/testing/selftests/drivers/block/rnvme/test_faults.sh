#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Memory is short at each place in turn: every allocation of the paths of connect, reset, disconnect
# and removal fails once in a long run, of which another one takes a part. Each time that is told,
# nothing is left behind, and the next attempt finds things as they were. For a kernel with FAILSLAB,
# FAIL_PAGE_ALLOC and FAULT_INJECTION_STACKTRACE_FILTER.

. "$(dirname "$0")/lib.sh"

# Quick attempts after a loss, and queues as small as they may be: each entry is some allocations more.
CONNECT_OPTIONS=(-i 2 -Q 16 -c 1 --timeout 20)

# What can be made to fail: allocations of the slabs, and of pages.
KINDS=(failslab fail_page_alloc)
DEBUGFS=/sys/kernel/debug
# One of so many fails: most are those of a loop.
STRIDE=$((TIMES > 1 ? 1 : 7))

requirements() {
	need_root && need_modules rnvme rdma_rxe nvmet-rdma dummy null_blk && need_programs rnvme rdma ip &&
		need_faults
}

need_faults() {
	if [ ! -e "$DEBUGFS/${KINDS[0]}/require-start" ] || [ ! -e "$DEBUGFS/${KINDS[1]}/require-start" ]; then
		ktap_skip_all "the kernel cannot be made to fail allocations"
		return 1
	fi
}

setup() {
	modprobe rnvme && network_single && backend_memory disk 16 512 && target_simple "$BACKEND" &&
		faults_are_ours
}

# symbol_range PATTERN NAME: the addresses of a function, from and to, of those with such a line in the
# table of symbols.
symbol_range() {
	awk -v name="$2" 'found && $1 != from { print from, $1; exit }
		$3 ~ name "$" { from = $1; found = 1 }' <(grep -e "$1" /proc/kallsyms | sort)
}

# module_range NAME: the addresses of its code.
module_range() {
	awk -v module="[$1]" '$4 == module && $2 ~ /[Tt]/ { print $1 }' /proc/kallsyms | sort |
		sed -n '1p; $p'
}

# only_within KIND FROM TO: such an allocation fails only on behalf of a function between these.
only_within() {
	[ $# = 3 ] || fail "no such function"
	fault_setting "$1" require-start "0x$2" && fault_setting "$1" require-end "0x$3"
}

# Only what happens on behalf of rnvme fails, and may do so wherever the kernel may sleep.
faults_are_ours() {
	local kind all reject
	mapfile -t all < <(module_range rnvme)
	# In blk_mq_alloc_tag_set the kernel itself fails to clean up (a WARNING of
	# cleanup_srcu_struct).
	read -ra reject < <(symbol_range '[^]]$' '^blk_mq_alloc_tag_set')
	[ ${#reject[@]} = 2 ] || return 1
	for kind in "${KINDS[@]}"; do
		only_within "$kind" "${all[@]}" &&
			fault_setting "$kind" reject-start "0x${reject[0]}" &&
			fault_setting "$kind" reject-end "0x${reject[1]}" &&
			fault_setting "$kind" ignore-gfp-wait N &&
			fault_setting "$kind" verbose "${FAULT_VERBOSE:-0}" &&
			fault_setting "$kind" times 0 &&
			fault_setting "$kind" probability 100 || return 1
		defer fault_setting "$kind" probability 0
	done
	fault_setting fail_page_alloc min-order 0 && fault_setting fail_page_alloc ignore-gfp-highmem N &&
		caches_count 1 && fault_setting failslab cache-filter Y || return 1
	defer caches_count 0
	defer fault_setting failslab cache-filter N
}

# caches_count 0|1: whether what is allocated of the slabs counts. What the kernel notes down about
# allocations does not: it is more than they are, and does without.
caches_count() {
	local cache
	for cache in /sys/kernel/slab/*; do
		case $cache in
		*/kmemleak_* | */debug_objects_cache) ;;
		*) [ -L "$cache" ] || echo "$1" >"$cache/failslab" ;;
		esac
	done
}

# fault_setting KIND NAME VALUE
fault_setting() {
	echo "$3" >"$DEBUGFS/$1/$2"
}

# The kernel counts the allocations of a kind that could fail, while one is to, and fails the one whose
# number is a multiple of `interval`. So after a failure the interval is what it has counted.
declare -A COUNTED=()

# fail_next KIND N: the Nth such allocation from now on fails, once.
fail_next() {
	local interval=$((${COUNTED[$1]:-0} + $2))
	fault_setting "$1" interval $interval
	fault_setting "$1" times 1
	# Where every allocation would fail it does not count.
	[ $interval = 1 ] || COUNTED[$1]=$interval
}

# has_failed KIND: no failure is outstanding.
has_failed() {
	[ "$(<"$DEBUGFS/$1/times")" = 0 ]
}

# in_turn KIND STEP: calls STEP, in which one allocation after the other fails, by the stride, until it
# gets by with none; and then until the failure that is outstanding has come, so that it is known how
# many were counted.
in_turn() {
	NTH=0
	until [ $NTH -gt 0 ] && ! has_failed "$1"; do
		NTH=$((NTH ? NTH + STRIDE : 1))
		fail_next "$1" $NTH
		"$2" "$1"
	done
	until has_failed "$1"; do
		"$2" "$1"
	done
	note "$1: one of $STRIDE failed, of less than $NTH allocations"
	[ $NTH -gt 1 ] || fail "no allocation failed"
}

# may_fail KIND: what was tried last may have failed if an allocation has, and then says so. But for
# the name of a disk: add_disk does not look whether it could be made, and device_add misses it.
may_fail() {
	[ "$STATUS" != 0 ] || return 0
	has_failed "$1" || fail "before allocation $NTH: status $STATUS without cause: $ERRORS"
	[[ $ERRORS =~ out\ of\ memory|[Cc]annot\ allocate\ memory|disk:.*error\ -22 ]] ||
		fail "allocation $NTH: $ERRORS"
}

# connects, is reset and disconnects; the connect may fail, or the reset.
life() {
	try rnvme connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" "${CONNECT_OPTIONS[@]}"
	may_fail "$1"
	if [ "$STATUS" = 0 ]; then
		CTRL=${OUTPUT%%:*}
		try rnvme reset "$CTRL"
		may_fail "$1"
		comes_back
		run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
		disconnect "$CTRL"
	fi
	# One that nobody could be told of goes by itself.
	wait_until "$SOON" no_controllers || fail "after allocation $NTH: $(rnvme show)"
	no_disks || fail "a disk is left"
}

no_controllers() {
	[[ $(rnvme show -o json) == *'"controllers":[]'* ]]
}

# memory none|all: what is allocated from now on fails, or gets by.
memory() {
	local kind times=0
	[ "$1" = all ] || times=-1
	for kind in "${KINDS[@]}"; do
		fault_setting "$kind" interval 1 && fault_setting "$kind" times $times || return 1
	done
}

# Whoever has no memory left can still see what there is, and be rid of it.
disconnects_without_memory() {
	connect "$TARGET4"
	defer memory all
	memory none
	run rnvme show -o json
	has "$OUTPUT" "\"device\":\"$CTRL\""
	disconnect "$CTRL"
	no_disks || fail "a disk is left"
}

# First of all each that tells of something: whoever waits for that does not wait in vain.
a_life_in_which_objects_fail() {
	local all tell
	mapfile -t all < <(module_range rnvme)
	read -ra tell < <(symbol_range '\[rnvme\]$' 4Host4tell)
	only_within failslab "${tell[@]}"
	STRIDE=1 in_turn failslab life
	only_within failslab "${all[@]}"
	in_turn failslab life
}

a_life_in_which_pages_fail() {
	in_turn fail_page_alloc life
}

main setup \
	disconnects_without_memory \
	a_life_in_which_objects_fail \
	a_life_in_which_pages_fail
