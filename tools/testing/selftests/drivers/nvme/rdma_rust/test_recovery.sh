#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests error recovery, reset and deletion of nvme_rdma_rust: verified I/O continues without errors,
# or fails after the configured times.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/unpolled.sh"

# The host detects a loss and reconnects quickly.
CONNECT_OPTIONS=(-k "$SLOWDOWN" -c 1)

setup() {
	load_driver
}

target_comes_back_under_io() {
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	start_verify
	port_goes
	loses
	will_try_again || fail "no reconnect attempt failed"
	port_is_back
	comes_back
	is_verified
	# nvme_rdma_rust logs it when the controller is live.
	wait_for_log "$SOON" "$CTRL: Successfully reconnected" || fail "no line of the reconnect: $(kernel_log)"
	same "lines with the cause" 1 "$(logged "$CTRL: .*starting error recovery")"
	same "lines of the reconnect" 1 "$(logged "$CTRL: Successfully reconnected")"
}

again_and_again() {
	start_pair
	connect "$TARGET4"
	port_goes_and_returns
}

# port_is_back_with ENTRIES: create the port again, with queues of at most so many entries.
port_is_back_with() {
	target_listen 4420 "$TARGET4"
	echo "$1" >"$NVMET/ports/4420/param_max_queue_size"
	target_offer 4420 "$NQN"
}

# The disks have tags for 128 entries: with fewer, requests would have no slot.
comes_back_with_smaller_queues() {
	! driver_is_c || skip "nvme-rdma lets requests wait for an entry"
	start_pair
	connect "$TARGET4"
	VERIFY_OPTIONS=(--iodepth=64)
	start_verify
	port_goes
	loses
	port_is_back_with 16
	wait_for_log "$SOON" "$CTRL: the target no longer supports queues of 128 entries, only 1" ||
		fail "no refusal in the log: $(kernel_log)"
	port_goes
	port_is_back_with 256
	comes_back
	is_verified
}

# The target answers nothing for longer than the keep-alive time-out.
silence_under_io() {
	start_pair
	connect "$TARGET4"
	start_verify
	silence
	loses
	sleep 2
	silence_ends
	comes_back
	is_verified
}

# A reset fails if the connection is lost meanwhile.
reset_under_io() {
	local _
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	start_verify
	for _ in 1 2 3; do
		run nvme reset "/dev/$CTRL"
		state_is "$CTRL" live || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	done
	is_verified
	same "error recoveries" 0 "$(logged "$CTRL: .*starting error recovery")"
}

# The kernel sends commands beside resets. They wait until the controller is enabled again.
commands_of_the_kernel_wait_for_a_reset() {
	local _
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	start_sensor
	for _ in 1 2 3 4 5; do
		run nvme reset "/dev/$CTRL"
		sensor_is_read
	done
	end_process "$SENSOR"
	# The driver of the sensor takes some errors for a temperature.
	same "different results" 1 "$(sort -u "$SCRATCH/sensor" | wc -l)"
	same "commands before CC.EN" 0 "$(logged 'while CC.EN == 0')"
	same "commands before CSTS.RDY" 0 "$(logged 'while CSTS.RDY == 0')"
}

# start_sensor: read the temperature again and again, for which nvme-core reads the SMART log. SENSOR is the PID.
start_sensor() {
	wait_until "$SOON" has_sensor || skip "the kernel has no temperature sensor of $CTRL"
	read_sensor "$INPUT" >"$SCRATCH/sensor" &
	SENSOR=$!
	defer end_process $SENSOR
	sensor_is_read
}

# has_sensor: whether the controller has a temperature sensor. INPUT is its attribute.
has_sensor() {
	local found=("/sys/class/nvme/$CTRL"/hwmon*/temp1_input)
	INPUT=${found[0]}
	[ -e "$INPUT" ]
}

read_sensor() {
	local value
	while :; do
		if { read -r value <"$1"; } 2>/dev/null; then
			echo "read $value"
		else
			echo "failed"
		fi
	done
}

# sensor_is_read: wait until the sensor was read ten more times.
sensor_is_read() {
	READS=$(($(grep -c '^read' "$SCRATCH/sensor") + 10))
	wait_until "$SOON" has_reads || fail "the sensor is not read: $(tail -n 3 "$SCRATCH/sensor")"
}

has_reads() {
	[ "$(grep -c '^read' "$SCRATCH/sensor")" -ge "$READS" ]
}

# reset_controller is written while the controller is created. A controller that is not live refuses.
reset_while_it_is_created() {
	local _
	start_pair
	reset_endlessly 2>"$SCRATCH/resets" &
	defer end_process $!
	for _ in {1..20}; do
		connect_to "$NQN" "$TARGET4"
		disconnect "$CTRL"
	done
	grep -q 'write error: Device or resource busy' "$SCRATCH/resets" || fail "no reset was refused"
}

reset_endlessly() {
	local attribute
	while :; do
		for attribute in /sys/class/nvme/nvme*/reset_controller; do
			echo 1 >"$attribute" || true
		done
	done
}

# The controller is reset while nvme-core adds disks. A disk that is added during the teardown was not
# quiesced with the others, so it must not be unquiesced with them: the kernel would warn.
reset_while_disks_are_added() {
	local number
	network_routed
	backend_memory disk 64 512
	target_simple "$BACKEND"
	for number in {2..40}; do
		target_namespace "$NQN" "$number" "$BACKEND"
	done
	for _ in {1..8}; do
		connect "$TARGET4" "${LASTING[@]}"
		echo 1 >"/sys/class/nvme/$CTRL/reset_controller"
		wait_until "$SOON" has_disks 40 || fail "$(disks) disks of 40"
		disconnect "$CTRL"
	done
}

# disks: print the number of disks of the controller.
disks() {
	find -H "/sys/class/nvme/$CTRL" -maxdepth 1 -name 'nvme*n*' | wc -l
}

has_disks() {
	[ "$(disks)" -ge "$1" ]
}

# The target grants fewer I/O queues and then more.
#
# Without multipath, a request stays in its hardware queue. If that is not connected again, the request
# never ends, and nvme-core waits for it in vain before it changes the number. The C driver does, too.
queues_follow_what_is_granted() {
	[ "$MULTIPATH" = Y ] || skip "requests stay in a hardware queue that goes away"
	start_pair
	connect "$TARGET4" -i 2
	same queue_count 3 "$(ctrl_field "$CTRL" queue_count)"
	VERIFY_OPTIONS=(--numjobs=2 --io_size=6m --offset_increment=6m)
	start_verify
	grants 1
	grants 2
	is_verified
}

# grants COUNT: let the target grant so many I/O queues, and wait until the controller has them.
grants() {
	# A write to attr_qid_max makes the target delete its controllers.
	echo "$1" >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_queues $(($1 + 1)) || fail "queue_count is $(ctrl_field "$CTRL" queue_count)"
	comes_back
	same "hardware queues" "$1" "$(hardware_queues)"
}

# The target no longer grants the queues for writes and for polling, and then does.
kinds_of_queues_follow_what_is_granted() {
	[ "$MULTIPATH" = Y ] || skip "requests stay in a hardware queue that goes away"
	! driver_is_c || skip "nvme-rdma maps CPUs to queues that are gone"
	start_pair
	connect "$TARGET4" -i 1 -W 1 -P 1
	same queue_count 4 "$(ctrl_field "$CTRL" queue_count)"
	start_verify
	grants 1
	grants 3
	is_verified
}

# A reset asks for queues for the processors that are online by then.
queues_follow_processors() {
	local other=/sys/devices/system/cpu/cpu1/online
	[ -w "$other" ] || skip "no processor can be taken offline"
	start_pair
	defer processor_is 1 "$other"
	processor_is 0 "$other"
	connect "$TARGET4" -i 1 -W 100 "${LASTING[@]}"
	same queue_count $((2 + $(online))) "$(ctrl_field "$CTRL" queue_count)"
	processor_is 1 "$other"
	run nvme reset "/dev/$CTRL"
	comes_back
	same queue_count $((2 + $(online))) "$(ctrl_field "$CTRL" queue_count)"
	same "hardware queues" $((1 + $(online))) "$(hardware_queues)"
}

# online: print the number of processors that are online.
online() {
	getconf _NPROCESSORS_ONLN
}

# processor_is STATE FILE: take a processor online (1) or offline (0).
processor_is() {
	echo "$1" >"$2"
}

# While blk-mq changes the number of hardware queues, a disk that is being added finds no queue for its
# CPUs, and frees the tags of all disks. So it is changed only if another number is granted.
hardware_queues_are_changed_for_another_number() {
	[ "$MULTIPATH" = Y ] || skip "requests stay in a hardware queue that goes away"
	! driver_is_c || skip "nvme-rdma changes the number at each reset"
	start_pair
	connect "$TARGET4" -i 2 "${LASTING[@]}"
	echo 'p:rnvmf/change blk_mq_update_nr_hw_queues' >>/sys/kernel/tracing/kprobe_events ||
		fail "cannot create the probe"
	defer forget_change
	trace_start rnvmf
	run nvme reset "/dev/$CTRL"
	comes_back
	trace_lacks ' change: '
	echo 1 >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_until "$SOON" has_queues 2 || fail "queue_count is $(ctrl_field "$CTRL" queue_count)"
	comes_back
	trace_has ' change: '
}

forget_change() {
	echo '-:rnvmf/change' >>/sys/kernel/tracing/kprobe_events
}

# blk-mq has no memory to add a hardware queue, and maps the CPUs to those that there are. The next connect adds it.
hardware_queues_that_cannot_be_added() {
	[ "$MULTIPATH" = Y ] || skip "requests stay in a hardware queue that goes away"
	! driver_is_c || skip "nvme-rdma maps CPUs to the queue that is not there"
	modprobe -n -q rrdma_test_no_hctx || skip "no module rrdma_test_no_hctx"
	start_pair
	echo 1 >"$NVMET/subsystems/$NQN/attr_qid_max"
	connect "$TARGET4" -i 2
	same queue_count 2 "$(ctrl_field "$CTRL" queue_count)"
	VERIFY_OPTIONS=(--numjobs=2 --io_size=6m --offset_increment=6m)
	start_verify
	run modprobe rrdma_test_no_hctx
	defer rmmod rrdma_test_no_hctx
	echo 2 >"$NVMET/subsystems/$NQN/attr_qid_max"
	wait_for_log "$SOON" "Increasing nr_hw_queues to 2 fails, fallback to 1" || fail "the queue was added"
	comes_back
	same "hardware queues" 1 "$(hardware_queues)"
	same queue_count 2 "$(ctrl_field "$CTRL" queue_count)"
	run nvme reset "/dev/$CTRL"
	comes_back
	same "hardware queues" 2 "$(hardware_queues)"
	is_verified
}

has_queues() {
	[ "$(ctrl_field "$CTRL" queue_count)" = "$1" ]
}

polled_io_comes_back() {
	start_pair
	connect "$TARGET4" -i 1 -W 1 -P 1 "${LASTING[@]}"
	VERIFY_OPTIONS=(--ioengine=io_uring --hipri=1)
	start_verify
	run nvme reset "/dev/$CTRL"
	port_goes
	loses
	port_is_back
	comes_back
	is_verified
}

# With quiesce_time, the writes of all queues are held at once, not those of one queue after the other.
holds_run_at_once() {
	local began disk cpu
	hold $((15 * SLOWDOWN))
	start_pair
	# The time-outs of the writes come first. Each CPU has a queue for writes.
	connect "$TARGET4" -k $((60 * SLOWDOWN)) -i 1 -W 2
	disk=$(disk "$CTRL" 1)
	times_out_after $((1000 * SLOWDOWN))
	silence
	for cpu in 0 1; do
		fio --name=held --filename="$disk" --direct=1 --rw=write --bs=4k --size=4k --cpus_allowed=$cpu \
			>>"$SCRATCH/fio" 2>&1 &
		defer end_process $!
	done
	loses
	began=$(now)
	wait_for_log 70 "$CTRL: Reconnecting in" || fail "the queues are still held after 70 s"
	within "the holds took" $((10000 * SLOWDOWN)) $(($(now) - began)) 12000
	silence_ends
	comes_back
}

# A process that does not poll, for example because it was stopped, does not end the connection.
timeout_polls_first() {
	! driver_is_c || skip "nvme-rdma takes a command for lost for which nobody polls"
	start_pair
	connect "$TARGET4" -i 1 -W 1 -P 1
	wait_until "$SOON" has_disk "$CTRL" 1 || fail "$CTRL has no namespace 1"
	# The target answers within this time.
	times_out_after $((500 * SLOWDOWN))
	start_unpolled "$(disk "$CTRL" 1)"
	wait_until "$SOON" nothing_in_flight || fail "the time-out handler did not complete the read"
	polls 4096
	same "losses" 0 "$(logged "$CTRL: .*starting error recovery")"
}

nothing_in_flight() {
	! grep -q '[1-9]' "/sys/class/nvme/$CTRL"/nvme*n1/inflight
}

# The device refuses work requests for no reason of the command. nvme-rdma fails the I/O.
device_refuses_a_post() {
	! driver_is_c || skip "nvme-rdma fails the I/O"
	modprobe -n -q rrdma_test_liar || skip "no module rrdma_test_liar"
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	head -c 65536 /dev/urandom >"$SCRATCH/wrote"
	# A registration and a send: the data is by key.
	run modprobe rrdma_test_liar device=rnvmf_rxe1 lie=refuse
	defer modprobe -r rrdma_test_liar
	run dd if="$SCRATCH/wrote" of="$(<"$SCRATCH/disk")" bs=64k oflag=direct
	run dd if="$(<"$SCRATCH/disk")" of="$SCRATCH/read" bs=64k count=1 iflag=direct
	cmp "$SCRATCH/wrote" "$SCRATCH/read" || fail "read data differs from written data"
	logs "$CTRL: command not posted on queue [12]: error -22: starting error recovery" ||
		fail "no line with the cause: $(kernel_log | tail -5)"
}

# ctrl_loss_tmo ends: the controller is deleted, and I/O fails.
is_given_up() {
	start_pair
	connect "$TARGET4" -l 3
	start_io
	port_goes
	wait_until 6 is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	io_ends
	has "$(kernel_log)" "$CTRL: Removing"
}

# io_ends: fail unless fio exits with an error.
io_ends() {
	wait_until "$SOON" process_ended "$IO" || fail "fio did not exit within $SOON s"
	has "$(<"$SCRATCH/fio")" "$LOST|$REMOVED"
}

# fast_io_fail_tmo: I/O fails before the controller is given up.
io_fails_before_it_is_given_up() {
	local began
	start_pair
	connect "$TARGET4" --fast_io_fail_tmo=2 "${LASTING[@]}"
	start_io
	began=$(now)
	port_goes
	loses
	LOST=$REMOVED io_fails_after 2 "$began" 1500
	state_is "$CTRL" connecting || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	port_is_back
	comes_back
	run dd if="$(disk "$CTRL" 1)" of=/dev/null bs=64k count=1 iflag=direct
}

# ctrl_loss_tmo is a time, however long each attempt takes that a silent target does not answer.
is_given_up_on_time_in_a_silence() {
	local began
	! driver_is_c || skip "nvme-rdma makes ctrl_loss_tmo / reconnect_delay attempts"
	start_pair
	connect "$TARGET4" -l 8
	start_io
	silence
	loses
	began=$(now)
	wait_until 60 is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	# The last attempt may begin at the end of the time. It has 6 s, and the device takes 2 s to clean up.
	within "the controller was given up after" 7000 $(($(now) - began)) 8000
	io_ends
}

# Time limit of admin commands of nvme-core, in seconds.
ADMIN_TIMEOUT=60

# The target is silent from the beginning of the disconnect, so the shutdown of the controller times
# out.
disconnect_from_silent_target() {
	start_pair
	connect "$TARGET4"
	silence
	nvme disconnect -d "$CTRL" &
	# nvme-core sets the time-out of the I/O queues, which are freed first.
	wait_until $((ADMIN_TIMEOUT + SOON)) is_gone_after_a_write "$CTRL" ||
		fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
}

# A read is in flight, and its time-out does not come. The keep-alive ends it.
disconnect_from_silent_target_under_io() {
	! driver_is_c || skip "nvme-rdma waits until the I/O times out"
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	silence
	start_endless_read
	nvme disconnect -d "$CTRL" &
	# The keep-alive time-out of LASTING and half of it, until the next Keep Alive is sent; and SOON.
	wait_until 22 is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	wait_until "$SOON" process_ended "$READER" || fail "the read does not end"
}

# start_endless_read: start a read that does not time out, and wait until it is in flight. READER is its PID.
start_endless_read() {
	times_out_after 4294967295
	dd if="$(<"$SCRATCH/disk")" of="$SCRATCH/read" bs=4k count=1 iflag=direct 2>"$SCRATCH/errors" &
	READER=$!
	defer end_process $READER
	wait_until "$SOON" is_in_flight || fail "the read is not in flight"
}

# times_out_after MS [NSID]: set the time limit of I/O.
times_out_after() {
	local limit
	for limit in "/sys/class/nvme/$CTRL"/nvme*n"${2:-1}"/queue/io_timeout; do
		echo "$1" >"$limit"
	done
}

is_in_flight() {
	! nothing_in_flight
}

# stuck_backend: create a backend that can be suspended, and so delays its I/O. STUCK is its path.
stuck_backend() {
	{ modprobe -q dm_mod && command -v dmsetup >/dev/null; } || skip "no device mapper"
	backend_memory stuck 16 512
	run dmsetup create rnvmf_stuck --table "0 32768 linear $BACKEND 0"
	defer dmsetup remove --force rnvmf_stuck
	STUCK=/dev/dm-$(dmsetup info -c --noheadings -o minor rnvmf_stuck)
}

# stick: suspend the backend until the end of the test.
stick() {
	run dmsetup suspend --noflush rnvmf_stuck
	defer dmsetup resume rnvmf_stuck
}

# A read that the target's disk delays for long holds up the disconnect. The target keeps the association, as it
# receives Keep Alives, and the read succeeds.
disconnect_waits_for_a_slow_disk() {
	! driver_is_c || skip "nvme-core sends one more Keep Alive only"
	network_routed
	stuck_backend
	target_simple "$STUCK"
	connect "$TARGET4" "${LASTING[@]}"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	stick
	start_endless_read
	nvme disconnect -d "$CTRL" &
	# Four times the keep-alive time-out of LASTING.
	sleep $((20 * SLOWDOWN))
	run dmsetup resume rnvmf_stuck
	wait "$READER" || fail "the read failed: $(<"$SCRATCH/errors")"
	wait_until "$SOON" is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
}

# silence_of QPN: drop the packets to a queue pair of the target.
silence_of() {
	defer silence_ends_here
	run nft "table inet rnvmf_silence { chain input {
		type filter hook input priority 0; iifname rnvmf0 udp dport 4791 @th,104,24 $1 drop; }; }"
}

# The thread of a time-out is so slow that a reset overtakes it. What it then does must not affect the new
# connection of its queue. A teardown does not wait for the time-outs of a disk that is being removed.
timeout_is_overtaken_by_a_reset() {
	local enable=$NVMET/subsystems/$NQN/namespaces/2/enable cpu path
	local late=/sys/module/rrdma_test_late_timeout/parameters
	! driver_is_c || skip "nvme-rdma disconnects the new queue, and recovers"
	modprobe -n -q rrdma_test_late_timeout || skip "no module rrdma_test_late_timeout"
	network_routed
	stuck_backend
	backend_memory disk 64 512
	target_simple "$BACKEND" "$STUCK"
	connect "$TARGET4" -i 2 "${LASTING[@]}"
	path=$(disk "$CTRL" 1)
	disk "$CTRL" 2 >"$SCRATCH/disk"
	stick
	times_out_after $((1000 * SLOWDOWN)) 2
	run modprobe rrdma_test_late_timeout
	defer rmmod rrdma_test_late_timeout
	taskset -c 0 dd if="$(<"$SCRATCH/disk")" of="$SCRATCH/read" bs=4k count=1 iflag=direct 2>"$SCRATCH/errors" &
	defer end_process $!
	wait_until "$SOON" holds 1 "$late/stage" || fail "the read does not time out"
	# The target waits for the read.
	echo 0 >"$enable" &
	wait_until "$SOON" is_being_removed 2 || fail "nvme-core does not remove namespace 2"
	echo 1 >"/sys/class/nvme/$CTRL/reset_controller" &
	wait_until "$SOON" holds 3 "$late/stage" || fail "the time-out is in stage $(<"$late/stage")"
	# nvmet accepts no Connect before it has disabled the namespace.
	run dmsetup resume rnvmf_stuck
	comes_back
	echo 1 >"$late/release"
	# The removal of the disk waits for the thread.
	wait_until "$SOON" has_no_disk 2 || fail "the disk of namespace 2 remains"
	for cpu in 0 1; do
		run timeout $((5 * SLOWDOWN)) taskset -c $cpu dd if="$path" of=/dev/null bs=64k count=1 iflag=direct
	done
	same "error recoveries" 0 "$(logged "$CTRL: .*starting error recovery")"
}

# holds VALUE FILE: whether a file has this content.
holds() {
	[ "$(<"$2")" = "$1" ]
}

# is_being_removed NSID: rescan; return whether nvme-core is removing the disk of a namespace: it has no size then.
is_being_removed() {
	run nvme ns-rescan "/dev/$CTRL"
	holds 0 "$(echo "/sys/class/nvme/$CTRL"/nvme*n"$1"/size)"
}

# is_gone_after_a_write CTRL: write to an attribute of a controller; return whether it is gone.
is_gone_after_a_write() {
	echo 30000 2>"$SCRATCH/write" >"/sys/class/nvme/$1/io_timeout" || true
	is_gone "$1"
}

disconnect_while_it_reconnects() {
	start_pair
	connect "$TARGET4"
	start_io
	port_goes
	loses
	will_try_again || fail "no reconnect attempt failed"
	disconnect "$CTRL"
	io_ends
}

# During an attempt that waits for a silent target.
disconnect_during_an_attempt() {
	local began
	! driver_is_c || skip "nvme-rdma waits until the connection manager gives up"
	start_pair
	connect "$TARGET4"
	start_io
	silence
	loses
	wait_until "$SOON" is_trying || fail "no reconnect attempt in progress"
	began=$(now)
	disconnect "$CTRL"
	at_most "the disconnect took" $(($(now) - began)) 5000
	io_ends
}

# The deletion waits for the work item of the reset, which connects to a target that does not answer.
disconnect_during_the_attempt_of_a_reset() {
	local began
	! driver_is_c || skip "nvme-rdma waits until the connection manager gives up"
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	# The target executes commands, but answers no connection request: these go to queue pair 1.
	silence_of 1
	reset_in_vain &
	wait_until "$SOON" is_trying || fail "no attempt in progress: $(ctrl_field "$CTRL" state)"
	began=$(now)
	disconnect "$CTRL"
	at_most "the disconnect took" $(($(now) - began)) 5000
}

reset_in_vain() {
	! echo 1 >"/sys/class/nvme/$CTRL/reset_controller"
} 2>"$SCRATCH/reset"

# A change of ctrl_loss_tmo counts for the attempt in progress, too.
ctrl_loss_tmo_changes_during_an_attempt() {
	local began
	! driver_is_c || skip "nvme-rdma waits until the connection manager gives up"
	start_attempt
	began=$(now)
	echo 1 >"/sys/class/nvme/$CTRL/ctrl_loss_tmo"
	wait_until 60 is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	# An attempt has 6 s at least. The device takes 2 s to clean up.
	at_most "the controller was given up after" $(($(now) - began)) 9000
	logs "ctrl_loss_tmo is over" || fail "no line with the cause: $(kernel_log | tail -5)"
}

# nvme-core deletes the controllers that use a device that is removed. One that waits to reconnect uses none.
device_goes_under_io() {
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	start_io
	run rdma link delete rnvmf_rxe1
	is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	io_ends
}

device_goes_while_it_reconnects() {
	! driver_is_c || skip "nvme-rdma waits until the connection manager gives up"
	start_attempt
	run rdma link delete rnvmf_rxe1
	wait_until "$SOON" rdma_is_gone rnvmf_rxe1 || fail "the device remains"
	silence_ends
}

interface_goes_under_io() {
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	start_io
	run ip link delete rnvmf1
	wait_until "$SOON" is_gone "$CTRL" || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	io_ends
}

# A namespace that is added or removed is reported by an Asynchronous Event.
namespaces_follow() {
	start_pair
	connect "$TARGET4" "${LASTING[@]}"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	backend_memory other 16 512
	target_namespace "$NQN" 2 "$BACKEND"
	# nvmet may tell of a namespace before it lists it, and nvme-core does not look again.
	run nvme ns-rescan "/dev/$CTRL"
	disk "$CTRL" 2 >"$SCRATCH/disk"
	run nvme reset "/dev/$CTRL"
	target_namespace_delete "$NQN" 2
	wait_until "$SOON" has_no_disk 2 || fail "the disk of a removed namespace remains"
}

has_no_disk() {
	! has_disk "$CTRL" "$1"
}

main setup \
	target_comes_back_under_io \
	again_and_again \
	comes_back_with_smaller_queues \
	silence_under_io \
	reset_under_io \
	commands_of_the_kernel_wait_for_a_reset \
	reset_while_it_is_created \
	reset_while_disks_are_added \
	queues_follow_what_is_granted \
	kinds_of_queues_follow_what_is_granted \
	queues_follow_processors \
	hardware_queues_are_changed_for_another_number \
	hardware_queues_that_cannot_be_added \
	polled_io_comes_back \
	holds_run_at_once \
	timeout_polls_first \
	device_refuses_a_post \
	is_given_up \
	io_fails_before_it_is_given_up \
	is_given_up_on_time_in_a_silence \
	disconnect_from_silent_target \
	disconnect_from_silent_target_under_io \
	disconnect_waits_for_a_slow_disk \
	timeout_is_overtaken_by_a_reset \
	disconnect_while_it_reconnects \
	disconnect_during_an_attempt \
	disconnect_during_the_attempt_of_a_reset \
	ctrl_loss_tmo_changes_during_an_attempt \
	device_goes_under_io \
	device_goes_while_it_reconnects \
	interface_goes_under_io \
	namespaces_follow
