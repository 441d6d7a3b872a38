#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests loading nvme_rdma_rust, and unloading it in each state of a controller.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)

setup() {
	load_driver
}

# unloads: unload the driver, which deletes its controllers.
unloads() {
	defer modprobe "$DRIVER"
	run rmmod "${DRIVER//-/_}"
	wait_until "$SOON" no_disks || fail "a disk remains after the module was unloaded"
	[ ! -e "/sys/class/nvme/$CTRL" ] || fail "$CTRL remains after the module was unloaded"
	[[ $(rdma resource show cm_id) != *'[nvme_rdma'* ]] || fail "RDMA objects remain"
}

while_live() {
	start_pair
	connect "$TARGET4"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	unloads
}

# A disk with native multipath holds no reference to the module of a path.
under_io() {
	start_pair
	connect "$TARGET4"
	start_io
	unloads
	wait_until "$SOON" process_ended "$IO" || fail "fio did not exit"
	has "$(<"$SCRATCH/fio")" "$REMOVED"
}

while_waiting_to_reconnect() {
	start_pair
	connect "$TARGET4"
	port_goes
	loses
	will_try_again || fail "no reconnect attempt failed"
	unloads
}

during_an_attempt() {
	! driver_is_c || skip "nvme-rdma waits until the connection manager gives up"
	start_attempt
	unloads
}

# A reset waits for a silent target; the unload waits for the reset, whose commands time out.
while_resetting() {
	! driver_is_c || skip "nvme_rdma_reset_ctrl_work() warns if the controller is being deleted"
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	silence
	echo 1 >"/sys/class/nvme/$CTRL/reset_controller" &
	defer end_process $!
	wait_until "$SOON" state_is "$CTRL" resetting || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	COMMAND_SECONDS=$((180 * SLOWDOWN)) unloads
}

# A connect holds a reference to the module.
while_connecting() {
	local creator
	! driver_is_c || skip "nvme-rdma waits until the connection manager gives up"
	start_pair
	run ip neighbour replace "$NOBODY4" dev rnvmf1 lladdr 02:00:00:00:00:99
	run ip route add "$NOBODY4" dev rnvmf1 src "$HOST4" table $TABLE
	nvme connect -t rdma -a "$NOBODY4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" >"$SCRATCH/connect" 2>&1 &
	creator=$!
	defer end_process $creator
	wait_until "$SOON" host_connects_to "$NOBODY4" || fail "the connect created no RDMA objects"
	expect 1 rmmod "${DRIVER//-/_}"
	has "$ERRORS" 'in use|busy'
	# The removal of the device ends the connect.
	run rdma link delete rnvmf_rxe1
	wait_until 10 process_ended $creator || fail "the connect did not end"
	CTRL=nvme0
	unloads
}

again_and_again() {
	local _
	start_pair
	for _ in 1 2 3 4 5; do
		connect "$TARGET4"
		unloads
		modprobe "$DRIVER"
	done
}

# both_drivers: load both drivers, ours under another name.
both_drivers() {
	! driver_is_c || skip "the C driver has no parameter for its name"
	start_pair
	rm "$ALIAS"
	modprobe -r nvme_rdma_rust
	defer load_driver
	run modprobe nvme_rdma_rust transport=rdma-rust
	run modprobe nvme-rdma
}

# Another name lets both drivers serve. nvme-cli knows only its own names.
under_another_name() {
	both_drivers
	same "lines of another driver" 0 "$(logged 'nvme_rdma was loaded')"
	connect "$TARGET4"
	has "$(rdma resource show cm_id)" 'comm \[nvme_rdma\] '
	disconnect "$CTRL"
	echo "transport=rdma-rust,traddr=$TARGET4,trsvcid=4420,nqn=$NQN,hostnqn=$HOSTNQN,hostid=$HOSTID" \
		>/dev/nvme-fabrics
	CTRL=nvme0
	defer disconnect_if_there "$CTRL"
	same transport rdma-rust "$(ctrl_field "$CTRL" transport)"
	has "$(rdma resource show cm_id)" 'comm \[nvme_rdma_rust\] '
	verify "$(disk "$CTRL" 1)" --rw=write --bs=64k --size=1m
	disconnect "$CTRL"
	modprobe -r nvme_rdma_rust
	expect 1 modprobe nvme_rdma_rust transport=a-name-of-more-than-fifteen-bytes
}

# connect_ours: create a controller of the driver under its other name, and set CTRL to its name.
connect_ours() {
	local before=(/sys/class/nvme/nvme[0-9]*)
	echo "transport=rdma-rust,traddr=$TARGET4,trsvcid=4420,nqn=$NQN,hostnqn=$HOSTNQN,hostid=$HOSTID" \
		>/dev/nvme-fabrics
	CTRL=$(comm -13 <(printf '%s\n' "${before[@]##*/}") <(ls /sys/class/nvme))
	defer disconnect_if_there "$CTRL"
	wait_until "$SOON" state_is "$CTRL" live
}

# A disk moves from one driver to the other and back, as a second path to it, under I/O.
moves_over_and_back() {
	local c ours disk
	both_drivers
	connect "$TARGET4"
	c=$CTRL
	start_verify
	connect_ours
	ours=$CTRL
	same "disk" "$(disk "$c" 1)" "$(disk "$ours" 1)"
	disconnect "$c"
	run rmmod nvme_rdma
	run modprobe nvme-rdma
	connect "$TARGET4"
	# The disk goes with its last path.
	both_paths "$CTRL" "$ours"
	disconnect "$ours"
	run rmmod nvme_rdma_rust
	is_verified
}

# served_by MODULE: connect, and check which driver serves.
served_by() {
	connect "$TARGET4"
	has "$(rdma resource show cm_id)" "comm \\[$1\\] "
	disconnect "$CTRL"
}

# nvme-fabrics serves with the transport that registered first under a name, and loads nvme-rdma with
# each connect.
with_the_c_driver() {
	local second='nvme_rdma_rust: nvme_rdma was loaded, too, but nvme_rdma_rust was first'
	! driver_is_c || skip "the C driver does not look for another one"
	start_pair
	rm "$ALIAS"
	modprobe -r nvme_rdma_rust
	defer load_driver
	run modprobe nvme-rdma
	run modprobe nvme_rdma_rust
	same "lines of the first" 1 "$(logged_as warn 'nvme_rdma_rust: nvme_rdma was loaded first')"
	served_by nvme_rdma
	run rmmod nvme_rdma
	same "lines of the second" 0 "$(logged "$second")"
	served_by nvme_rdma_rust
	served_by nvme_rdma_rust
	same "lines of the second" 1 "$(logged_as warn "$second")"
	run rmmod nvme_rdma
	run modprobe nvme-rdma
	same "lines of the second" 2 "$(logged "$second")"
}

main setup \
	while_live \
	under_io \
	while_waiting_to_reconnect \
	during_an_attempt \
	while_resetting \
	while_connecting \
	again_and_again \
	under_another_name \
	moves_over_and_back \
	with_the_c_driver
