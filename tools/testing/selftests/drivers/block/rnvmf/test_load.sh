#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests loading and unloading of the modules rnvmf and rrdma, idle, connecting and connected.

. "$(dirname "$0")/lib.sh"

setup() {
	network_single && backend_memory disk 16 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

load() {
	run modprobe rnvmf
	[[ -d /sys/module/rnvmf && -d /sys/module/rrdma ]] || fail "rnvmf or rrdma is not loaded"
}

unload() {
	run modprobe -r rnvmf
	[[ ! -d /sys/module/rnvmf && ! -d /sys/module/rrdma ]] ||
		fail "rnvmf or rrdma is still loaded"
}

loads_and_unloads_20_times() {
	local _
	for _ in {1..20}; do
		load
		unload
	done
}

depends_on_rrdma() {
	unload
	has ",$(modinfo -F depends rnvmf)," ',rrdma,'
	expect 1 insmod "$(modinfo -n rnvmf)"
	has "$ERRORS" 'Unknown symbol'
	[ ! -d /sys/module/rnvmf ] || fail "rnvmf was loaded without rrdma"
}

unloads_in_order_only() {
	load
	expect 1 rmmod rrdma
	has "$ERRORS" 'in use'
	run rmmod rnvmf
	run rmmod rrdma
}

takes_devices_that_come_and_go() {
	load
	ip link add rnvmf2 type dummy
	defer interface_delete rnvmf2
	interface_up "" rnvmf2 "$MTU" 198.51.100.1/24
	rdma_add "" rnvmf_rxe2 rnvmf2
	rdma_delete rnvmf_rxe2
	unload
}

unloads_while_connected() {
	load
	connect "$TARGET4"
	disk "$CTRL" 1 >/dev/null
	run rmmod rnvmf
	no_disks || fail "a disk remains after the module was unloaded"
	rdma_back_to "$OBJECTS"
}

# The connect waits for a response from an unused address.
unloads_while_connecting() {
	local began took
	load
	rnvmf connect -t rdma -a "$NOBODY4" -n "$NQN" -q "$HOSTNQN" --timeout 60 \
		>"$SCRATCH/connect" 2>&1 &
	local pid=$!
	defer end_process $pid
	wait_until "$SOON" state_is rnvmf0 connecting || fail "rnvmf0 is not in state connecting"
	began=$(now)
	run rmmod rnvmf
	took=$(($(now) - began))
	at_most "unloading took" $took 1000
	wait_until "$SOON" process_ended $pid || fail "the connect did not exit: $(<"$SCRATCH/connect")"
	rdma_back_to "$OBJECTS"
}

stays_while_a_disk_is_open() {
	local disk
	load
	connect "$TARGET4"
	disk=$(disk "$CTRL" 1)
	exec 7<"$disk"
	expect 1 rmmod rnvmf
	has "$ERRORS" 'in use|busy'
	run dd if="$disk" of=/dev/null bs=4k count=1 iflag=direct
	exec 7<&-
	run rmmod rnvmf
}

main setup \
	loads_and_unloads_20_times \
	depends_on_rrdma \
	unloads_in_order_only \
	takes_devices_that_come_and_go \
	unloads_while_connected \
	unloads_while_connecting \
	stays_while_a_disk_is_open
