# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs in a VM whose clock counts instructions: functions that measure. Source it after drivers.sh.

MARK=/opt/rnvmf/src/build/bench/mark
OUT=/mnt/out
# Number of controllers whose memory is measured.
# shellcheck disable=SC2034 # read by the scripts
CONTROLLERS=8

# fio_run DRIVER OUTPUT OPTION...
fio_run() {
	run fio --name=load --filename="${DISKS[$1]}" --direct=1 --ioengine=libaio --thread \
		--norandommap --gtod_reduce=1 --output-format=json --output="$2" "${@:3}"
}

# mark LABEL: let the plugin write its counts since the previous mark.
mark() {
	echo "$1 $("$MARK")" >>$OUT/marks
}

# mark_check: execute a known number of instructions, to check the plugin.
mark_check() {
	local times
	mapfile -t times < <("$MARK" 1000000)
	printf '%s\n' "check-begin ${times[0]}" "check-end ${times[1]}" >>$OUT/marks
}

# symbols: store where the kernel's functions are, for the marks that no earlier call was for.
symbols() {
	cat /proc/kallsyms >"$OUT/kallsyms.$(wc -l <$OUT/marks)"
}

# memory_used: print the memory in use in KiB. Slabs count by their objects, not by their pages: the
# free space in a slab is used again.
memory_used() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	slab_shrink
	# Drains the per-CPU lists of free pages, which count as used.
	echo 1 >/proc/sys/vm/compact_memory
	awk 'FILENAME ~ /meminfo/ { kib[$1] = $2 }
	     FILENAME ~ /slabinfo/ && FNR > 2 { objects += $2 * $4 }
	     END { printf "%d\n", kib["MemTotal:"] - kib["MemFree:"] - kib["Slab:"] + objects / 1024 }' \
		/proc/meminfo /proc/slabinfo
}
