# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs in a VM whose clock counts instructions: functions that measure. Source it after drivers.sh.

OUT=/mnt/out
# The program that marks, and the marks so far: in memory. While the VM waits for a file of the host, its clock
# goes from timer to timer, and a loaded host would lengthen what is measured.
MARK=/tmp/mark
MARKS=/tmp/marks
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
	echo "$1 $("$MARK")" >>$MARKS
}

# marks_begin: copy the program. Execute a known number of instructions, to check the plugin.
marks_begin() {
	local times
	cp /opt/rnvmf/src/build/bench/mark $MARK
	mapfile -t times < <("$MARK" 1000000)
	printf '%s\n' "check-begin ${times[0]}" "check-end ${times[1]}" >$MARKS
}

# marks_end: pass the marks to the host.
marks_end() {
	cp $MARKS $OUT
}

# symbols: store where the kernel's functions are, for the marks that no earlier call was for.
symbols() {
	cat /proc/kallsyms >"$OUT/kallsyms.$(wc -l <$MARKS)"
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
