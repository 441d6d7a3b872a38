# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Which modules an event of the kernel comes from, counted by the kernel itself.

CALLERS=/sys/kernel/tracing/instances/rnvmf_callers

# What allocates memory. What a slab takes from the pages for its objects counts twice.
# shellcheck disable=SC2034 # read by the tests
ALLOCATIONS=(kmem/kmalloc kmem/kmem_cache_alloc kmem/mm_page_alloc)

# Each processor counts for itself. If two met a stack for the first time at once, and the one that
# makes its place in the table took long, as it does where a host has more to do, the other would give
# up and count nothing (__tracing_map_insert).
COUNTED_BY=common_cpu,common_stacktrace

# callers_start EVENT...: count these from now on.
callers_start() {
	local event
	mkdir "$CALLERS"
	for event; do
		echo "hist:keys=$COUNTED_BY:size=4096" >"$CALLERS/events/$event/trigger" || return 1
	done
}

# callers_clear EVENT...: count from none again.
callers_clear() {
	local event
	for event; do
		echo "hist:keys=$COUNTED_BY:clear" >>"$CALLERS/events/$event/trigger" || return 1
	done
}

# callers_end EVENT...
callers_end() {
	local event
	for event; do
		echo "!hist:keys=$COUNTED_BY" >"$CALLERS/events/$event/trigger" || return 1
	done
	rmdir "$CALLERS"
}

# callers EVENT [SKIPPED]: a line for each module, with how often the event came from it: the
# innermost of the stack, but for those that match the extended regular expression. The kernel itself
# is none.
callers() {
	awk -v skipped="^(${2:-none})\$" '
		/Dropped: [1-9]/ { print "dropped", $2; exit }
		/^{/ { module = ""; inside = 1 }
		inside && !module && match($0, /\[[a-z][a-z0-9_]*\]/) {
			found = substr($0, RSTART + 1, RLENGTH - 2)
			if (found !~ skipped)
				module = found
		}
		/^}/ {
			sub(/.*hitcount: */, "")
			if (module)
				times[module] += $1
			inside = 0
		}
		END { for (module in times) print module, times[module] }
	' "$CALLERS/events/$1/hist"
}
