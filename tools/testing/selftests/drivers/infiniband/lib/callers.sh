# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Counts of kernel trace events by calling module, kept by histogram triggers.

CALLERS=/sys/kernel/tracing/instances/rnvmf_callers

# Events of memory allocations. A slab that allocates pages for its objects is counted twice.
# shellcheck disable=SC2034 # read by the tests
ALLOCATIONS=(kmem/kmalloc kmem/kmem_cache_alloc kmem/mm_page_alloc)

# The CPU is part of the key, so that no two CPUs insert the same key. __tracing_map_insert() drops
# an event if another CPU is inserting its key and does not run meanwhile.
COUNTED_BY=common_cpu,common_stacktrace

# callers_start EVENT...: start counting these events.
callers_start() {
	local event
	mkdir "$CALLERS"
	for event; do
		echo "hist:keys=$COUNTED_BY:size=4096" >"$CALLERS/events/$event/trigger" || return 1
	done
}

# callers_clear EVENT...: reset the counts to 0.
callers_clear() {
	local event
	for event; do
		echo "hist:keys=$COUNTED_BY:clear" >>"$CALLERS/events/$event/trigger" || return 1
	done
}

# callers_end EVENT...: stop counting and remove the trace instance.
callers_end() {
	local event
	for event; do
		echo "!hist:keys=$COUNTED_BY" >"$CALLERS/events/$event/trigger" || return 1
	done
	rmdir "$CALLERS"
}

# callers EVENT [SKIPPED]: print `MODULE COUNT` for each module that called EVENT. The caller is the
# innermost module on the stack that does not match the extended regular expression SKIPPED. Events
# without a module on the stack are not printed.
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
