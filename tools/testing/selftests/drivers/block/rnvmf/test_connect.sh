#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests connecting and disconnecting: addresses, options, several controllers and namespaces.

. "$(dirname "$0")/lib.sh"

TWO=$NQN.two
EIGHT=$NQN.eight

setup() {
	modprobe rnvmf && network_single && target_load &&
		target_port 4420 "$TARGET4" && target_port 4421 "$TARGET6" &&
		subsystem "$NQN" 1 && subsystem "$TWO" 2 && subsystem "$EIGHT" 8
}

# subsystem NQN NAMESPACES: create a subsystem whose namespaces differ in size.
subsystem() {
	local nsid
	target_subsystem "$1" || return 1
	for ((nsid = 1; nsid <= $2; nsid++)); do
		backend_memory "$2_$nsid" $((8 + nsid)) 512 &&
			target_namespace "$1" $nsid "$BACKEND" || return 1
	done
	target_export 4420 "$1" && target_export 4421 "$1"
}

# field_is FIELD VALUE: check a field of the controller CTRL.
field_is() {
	same "$1" "$2" "$(ctrl_field "$CTRL" "$1")"
}

# namespaces_are COUNT: check the number of the controller's disks and their sizes.
namespaces_are() {
	local nsid disk
	field_is nr_namespaces "$1"
	for ((nsid = 1; nsid <= $1; nsid++)); do
		disk=$(disk "$CTRL" $nsid)
		same "size of $disk" $(((8 + nsid) << 20)) "$(blockdev --getsize64 "$disk")"
	done
	[ ! -e "/dev/${CTRL}n$nsid" ] || fail "there is a disk for the missing namespace $nsid"
}

disconnect_leaves_nothing() {
	disconnect "$CTRL"
	no_disks || fail "a disk remains"
	expect 3 rnvmf show "$CTRL"
}

connects_over_ipv4() {
	connect "$TARGET4"
	field_is state live
	field_is traddr "$TARGET4"
	field_is trsvcid 4420
	field_is subsysnqn "$NQN"
	field_is hostnqn "$HOSTNQN"
	field_is rdma_device rnvmf_rxe0
	field_is model Linux
	has "$(ctrl_field "$CTRL" cntlid)" '^[1-9]'
	namespaces_are 1
	disconnect_leaves_nothing
}

connects_over_ipv6() {
	connect "$TARGET6"
	field_is traddr "$TARGET6"
	namespaces_are 1
	disconnect_leaves_nothing
}

connects_by_name() {
	cp /etc/hosts "$SCRATCH/hosts"
	echo "$TARGET4 target.rnvmf.test" >>"$SCRATCH/hosts"
	mount --bind "$SCRATCH/hosts" /etc/hosts
	defer umount /etc/hosts
	connect target.rnvmf.test
	field_is traddr "$TARGET4"
}

connects_from_an_address() {
	connect "$TARGET4" -w "$HOST4"
	field_is host_traddr "$HOST4"
	has "$(rdma resource show cm_id)" "src-addr $HOST4:[0-9]+ dst-addr $TARGET4:4420"
	disconnect "$CTRL"
	connect "$TARGET6" -w "$HOST6"
	field_is host_traddr "$HOST6"
	expect 1 rnvmf connect -a "$TARGET4" -n "$NQN" -w 192.0.2.77
}

# The trace of the target shows the Connect commands. The default is one I/O queue for each CPU.
asks_for_queues() {
	local wanted
	wanted=$(nproc)
	trace_start "$COMMANDS"
	connect "$TARGET4"
	field_is nr_io_queues "$wanted"
	same "Connect commands of I/O queues" "$wanted" "$(traced 'fabrics_type_connect.* qid=[1-9]')"
	disconnect "$CTRL"
	trace_clear
	connect "$TARGET4" -i 1
	field_is nr_io_queues 1
	same "Connect commands of I/O queues" 1 "$(traced 'fabrics_type_connect.* qid=[1-9]')"
}

asks_for_queue_size() {
	trace_start "$COMMANDS"
	connect "$TARGET4" -Q 32
	field_is queue_size 32
	trace_has 'fabrics_type_connect.* qid=1, sqsize=31'
	same "queue depth" 31 "$(queue_limit "$(disk "$CTRL" 1)" nr_requests)"
}

asks_for_keep_alive() {
	trace_start "$COMMANDS"
	connect "$TARGET4" -k 7
	field_is keep_alive_tmo 7
	trace_has 'fabrics_type_connect.* qid=0,.* kato=7000'
	disconnect "$CTRL"
	trace_clear
	connect "$TARGET4" -k 0
	field_is keep_alive_tmo 0
	trace_has 'fabrics_type_connect.* qid=0,.* kato=0'
}

# SQ flow control is disabled for each queue, the admin queue included, and only by the option.
asks_for_no_flow_control() {
	trace_start "$COMMANDS"
	connect "$TARGET4" -i 2 --disable-sqflow
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=4 iflag=direct
	same "queues without flow control" 3 "$(traced 'fabrics_type_connect.* cattr=4,')"
	disconnect "$CTRL"
	trace_clear
	connect "$TARGET4" -i 2
	same "queues with it" 3 "$(traced 'fabrics_type_connect.* cattr=0,')"
}

takes_type_of_service() {
	connect "$TARGET4" -T 32
	field_is tos 32
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=4k count=1 iflag=direct
}

# An idle connection must outlive its keep-alive timeout.
keeps_alive() {
	local began
	trace_start "$COMMANDS"
	began=$(now)
	connect "$TARGET4" -k $((2 * SLOWDOWN))
	# The target's timer expires after at most twice the timeout without a command.
	wait_until $((5 + SOON)) is_later_than $((began + 5000 * SLOWDOWN))
	# nvmet has TBKAS: one is due each quarter of the timeout, except while the host connects or reads the
	# partition table.
	keep_alives 8 || fail "$(traced nvme_admin_keep_alive) Keep Alive commands in 5 s, expected at least 8"
	field_is state live
	same "number of connects" 1 "$(logged "$CTRL: connected to")"
}

# is_later_than TIME: whether `now` is later.
is_later_than() {
	[ "$(now)" -gt "$1" ]
}

keep_alives() {
	[ "$(traced nvme_admin_keep_alive)" -ge "$1" ]
}

# A connection must outlive its timeout also when all tags are in use and the target is slow.
keeps_alive_under_full_queues() {
	# Each I/O takes 0.7 of the timeout, and all are sent and complete together. In between only
	# Keep Alive commands keep the connection alive.
	backend_memory slow 16 512 irqmode=2 completion_nsec=$((700000000 * SLOWDOWN))
	target_subsystem "$NQN.slow"
	target_namespace "$NQN.slow" 1 "$BACKEND"
	target_export 4420 "$NQN.slow"
	connect_to "$NQN.slow" "$TARGET4" -k "$SLOWDOWN" -i 1 -Q 16
	trace_start "$COMMANDS"
	fio --name=load --filename="$(disk "$CTRL" 1)" --direct=1 --ioengine=libaio --rw=randread --bs=4k \
		--iodepth=15 --iodepth_batch_submit=15 --iodepth_batch_complete_min=15 --time_based \
		--runtime=600 --minimal >"$SCRATCH/fio" 2>&1 &
	defer end_process $!
	wait_until 20 all_tags_are_taken || fail "not all tags are in use"
	trace_clear
	wait_until 5 keep_alives 3 || fail "fewer than 3 Keep Alive commands in 5 s"
	wait_until "$SOON" all_tags_are_taken || fail "not all tags are in use"
	field_is state live
	same "number of connects" 1 "$(kernel_log | grep -c "$CTRL: connected to")"
}

all_tags_are_taken() {
	local reads _
	read -r reads _ <"/sys/block/${CTRL}n1/inflight"
	[ "$reads" -ge 15 ]
}

has_1_2_and_8_namespaces() {
	connect_to "$NQN" "$TARGET4"
	namespaces_are 1
	connect_to "$TWO" "$TARGET4"
	namespaces_are 2
	connect_to "$EIGHT" "$TARGET6"
	namespaces_are 8
	run rnvmf list -o json
	same "disks in the list" 11 "$(grep -o '"node":' <<<"$OUTPUT" | wc -l)"
	run rnvmf disconnect-all
	no_disks || fail "a disk remains"
}

# I/O fails at the latest with the last reconnect attempt.
what_has_no_effect_is_told() {
	connect "$TARGET4" -l 5 -F 6
	same warning 'rnvmf: warning: a --fast_io_fail_tmo of 6 s has no effect, as --ctrl-loss-tmo is 5 s' "$ERRORS"
	run rnvmf set "$CTRL" -l 6
	same warning '' "$ERRORS"
	run rnvmf set "$CTRL" -F 7
	same warning 'rnvmf: warning: a --fast_io_fail_tmo of 7 s has no effect, as --ctrl-loss-tmo is 6 s' "$ERRORS"
}

refuses_a_duplicate() {
	connect "$TARGET4"
	expect 4 rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN"
	same error "rnvmf: connect to $TARGET4:4420: already connected as $CTRL" "$ERRORS"
	run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" --idempotent
	same output "$CTRL: already connected" "$OUTPUT"
	connect "$TARGET4" -D
	# The same subsystem at another address, or with another host NQN, is no duplicate.
	connect "$TARGET6"
	run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN.other"
	defer disconnect_if_there "${OUTPUT%%:*}"
	run rnvmf disconnect -n "$NQN"
	has "$(rnvmf show -o json)" '"controllers":\[\]'
}

# Host NQN and host ID must match together: one of them with another partner is refused.
a_host_is_its_name_and_its_identifier() {
	local id=${HOSTNQN##*:} other=5e1f7e57-0000-4000-8000-0000000000ff first
	connect "$TARGET4"
	first=$CTRL
	expect 1 rnvmf connect -a "$TARGET6" -n "$NQN" -q "$HOSTNQN" -I $other
	has "$ERRORS" "$first has the same hostnqn and another hostid \\(attribute hostid\\)"
	expect 1 rnvmf connect -a "$TARGET6" -n "$NQN" -q "$HOSTNQN.other" -I "$id"
	has "$ERRORS" "$first has the same hostid and another hostnqn \\(attribute hostnqn\\)"
	connect "$TARGET6" -I "$id"
	disconnect "$CTRL"
	# Without a given host ID other host NQNs get different ones.
	run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN.other"
	run rnvmf connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN.another"
	run rnvmf disconnect-all
	# A removed controller causes no conflict.
	connect "$TARGET4" -I $other
}

keeps_controllers_apart() {
	local one two
	connect_to "$NQN" "$TARGET4"
	one=$(disk "$CTRL" 1)
	connect_to "$TWO" "$TARGET4"
	two=$(disk "$CTRL" 1)
	dd if=/dev/urandom of="$SCRATCH/data" bs=64k count=1 status=none
	run dd if="$SCRATCH/data" of="$one" bs=64k oflag=direct
	run dd if=/dev/zero of="$two" bs=64k count=1 oflag=direct
	run dd if="$one" of="$SCRATCH/read" bs=64k count=1 iflag=direct
	cmp "$SCRATCH/data" "$SCRATCH/read"
	disconnect "$CTRL"
	run dd if="$one" of="$SCRATCH/read" bs=64k count=1 iflag=direct
	cmp "$SCRATCH/data" "$SCRATCH/read"
}

main setup \
	connects_over_ipv4 \
	connects_over_ipv6 \
	connects_by_name \
	connects_from_an_address \
	asks_for_queues \
	asks_for_queue_size \
	asks_for_keep_alive \
	asks_for_no_flow_control \
	takes_type_of_service \
	keeps_alive \
	keeps_alive_under_full_queues \
	has_1_2_and_8_namespaces \
	what_has_no_effect_is_told \
	refuses_a_duplicate \
	a_host_is_its_name_and_its_identifier \
	keeps_controllers_apart
