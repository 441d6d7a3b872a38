#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the installed systemd units in a separate systemd: with its own PID, mount and control group
# namespaces, and with the installed files in an overlay.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/installed.sh"

SYSTEMD=/usr/lib/systemd/systemd
GROUP=/sys/fs/cgroup/rnvmf_selftest
UNITS=/usr/lib/systemd/system

# A port that the target creates late.
LATE=4422

# Time limit for systemd, in seconds.
DONE=60

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma dummy null_blk &&
		need_programs rnvmf rdma ip systemctl unshare nsenter mkfs.ext4 && need_systemd
}

need_systemd() {
	[[ -x $SYSTEMD && -e /sys/fs/cgroup/cgroup.procs ]] || {
		ktap_skip_all "systemd or the control group file system not found"
		return 1
	}
}

setup() {
	network_single && backend_memory disk 16 512 && target_simple "$BACKEND" && modprobe rnvmf &&
		installed_at "$SCRATCH/root" && installed && configure
}

# Install the system's targets, which the units of rnvmf refer to, and drop-ins: units restart after 1 s
# instead of 10 s, without a limit. The other units of the system take long to start.
configure() {
	CONNECTIONS=$ROOT/etc/rnvmf/connections.conf
	SAID=$SCRATCH/said
	find "$UNITS" -maxdepth 1 \( -name '*.target' -o -name systemd-exit.service \) -exec cp -n -t "$ROOT$UNITS" {} + &&
		systemctl --root "$ROOT" --quiet enable rnvmf.service rnvmf-follow.service &&
		for unit in rnvmf rnvmf-late rnvmf-follow; do
			mkdir "$ROOT/etc/systemd/system/$unit.service.d" &&
				printf '%s\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' RestartSec=1 \
					"StandardOutput=append:$SAID" StandardError=inherit \
					>"$ROOT/etc/systemd/system/$unit.service.d/test.conf"
		done &&
		tr -d - </proc/sys/kernel/random/uuid >"$ROOT/etc/machine-id"
}

# Prepares the new namespaces, then executes systemd as their init process.
# shellcheck disable=SC2016 # the script's own arguments
BOOT='set -e
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /run
mount -t overlay -o "lowerdir=$1/etc:/etc" none /etc
mount -t overlay -o "lowerdir=$1/usr/sbin:/usr/sbin" none /usr/sbin
mount --bind "$1/usr/lib/systemd/system" /usr/lib/systemd/system
exec env container=selftest SYSTEMD_GENERATOR_PATH=/run/none "$2" --system --unit=multi-user.target --log-target=console --show-status=no'

boots() {
	mkdir "$GROUP"
	defer leave_group
	(
		echo $BASHPID >"$GROUP/cgroup.procs"
		exec unshare --mount --pid --cgroup --fork --kill-child --mount-proc \
			bash -c "$BOOT" - "$ROOT" "$SYSTEMD"
	) <&- >"$SCRATCH/systemd" 2>&1 &
	SYSTEM=$!
	defer end_system
	wait_until "$DONE" is_up || fail "systemd did not start: $(<"$SCRATCH/systemd")"
}

leave_group() {
	find "$GROUP" -depth -type d -exec rmdir {} +
}

is_up() {
	local first
	# The line has no end.
	read -r first <"/proc/$SYSTEM/task/$SYSTEM/children" || [ -n "$first" ] || return 1
	INSIDE=(nsenter -t "$first" --mount --pid --)
	[[ $("${INSIDE[@]}" systemctl is-system-running 2>&1) =~ ^(running|degraded)$ ]]
}

shuts_down() {
	run "${INSIDE[@]}" systemctl exit
	wait_until "$DONE" process_ended "$SYSTEM" || fail "systemd did not exit: $(<"$SCRATCH/systemd")"
}

end_system() {
	process_ended "$SYSTEM" || kill -KILL "$SYSTEM"
	wait_until "$SOON" process_ended "$SYSTEM"
	rnvmf disconnect-all >"$SCRATCH/ended" 2>&1
}

# unit UNIT PROPERTY: print a property of a unit.
unit() {
	"${INSIDE[@]}" systemctl show --value -p "$2" "$1"
}

is_active() {
	[ "$(unit "$1" ActiveState)" = active ]
}

was_tried_again() {
	[ "$(unit "$1" NRestarts)" -ge 1 ]
}

# connected NUMBER: wait until NUMBER controllers are live.
connected() {
	wait_until "$DONE" is_connected "$1" ||
		fail "expected $1 live controllers: $(rnvmf show) $(<"$SAID") $(<"$SCRATCH/systemd")"
}

is_connected() {
	[ "$(rnvmf show -o json | grep -o '"state":"live"' | wc -l)" = "$1" ]
}

connects_at_boot_and_disconnects_at_shutdown() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET6 -n $NQN"
	boots
	is_active rnvmf.service || fail "rnvmf.service is not active: $(<"$SCRATCH/systemd")"
	connected 2
	shuts_down
	connected 0
}

# comes_late: the second of two connections is retried until its target exists.
comes_late() {
	wait_until "$DONE" was_tried_again rnvmf-late.service || fail "rnvmf-late.service did not retry"
	connected 1
	target_port $LATE "$TARGET4" $LATE
	target_export $LATE "$NQN"
	connected 2
	wait_until "$DONE" is_done rnvmf-late.service || fail "rnvmf-late.service did not end"
	shuts_down
	connected 0
}

target_may_be_late() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET4 -s $LATE -n $NQN"
	boots
	is_active rnvmf.service || fail "rnvmf.service is not active: $(<"$SCRATCH/systemd")"
	comes_late
}

# rnvmf-late.service has ended when the file of connections changes; a reload must start it again.
target_may_be_late_at_a_reload() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN"
	boots
	connected 1
	wait_until "$DONE" is_done rnvmf-late.service || fail "rnvmf-late.service did not end"
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN -s frob"
	expect 1 "${INSIDE[@]}" systemctl reload rnvmf.service
	sleep 1
	is_active rnvmf.service ||
		fail "rnvmf.service is $(unit rnvmf.service ActiveState) after a reload with an invalid file"
	is_done rnvmf-late.service || fail "rnvmf-late.service runs with an invalid file"
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET4 -s $LATE -n $NQN"
	run "${INSIDE[@]}" systemctl reload rnvmf.service
	comes_late
}

is_done() {
	[ "$(unit "$1" ActiveState) $(unit "$1" Result)" = "inactive success" ]
}

# A connection that never succeeds affects neither rnvmf-follow.service nor the stop of
# rnvmf.service.
target_may_never_come() {
	connections "$CONNECTIONS" "discover -a $TARGET4" "-a $TARGET4 -s $LATE -n $NQN"
	boots
	connected 1
	wait_until "$DONE" was_tried_again rnvmf-late.service || fail "rnvmf-late.service did not retry"
	same "state and restarts of rnvmf-follow.service" $'active\n0' \
		"$(unit rnvmf-follow.service ActiveState)"$'\n'"$(unit rnvmf-follow.service NRestarts)"
	run "${INSIDE[@]}" systemctl stop rnvmf.service
	same "states of rnvmf-follow.service and rnvmf-late.service" $'inactive\ninactive' \
		"$(unit rnvmf-follow.service ActiveState)"$'\n'"$(unit rnvmf-late.service ActiveState)"
	connected 0
	shuts_down
}

# A connection may fail between the stop and the signal. A program that fails at the signal is that
# case, at any speed of the machine.
fails_while_it_is_stopped() {
	local fails=$ROOT/etc/systemd/system/rnvmf-late.service.d/fails.conf status
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN"
	printf '%s\n' '[Service]' ExecStart= \
		"ExecStart=/bin/sh -c 'trap \"exit \$\$(cat $SCRATCH/status)\" TERM; echo >$SCRATCH/ready; sleep infinity & wait'" \
		>"$fails"
	defer rm "$fails"
	echo 1 >"$SCRATCH/status"
	boots
	for status in 1 3 4 5; do
		echo $status >"$SCRATCH/status"
		run "${INSIDE[@]}" systemctl start rnvmf.service rnvmf-late.service
		wait_until "$DONE" test -e "$SCRATCH/ready" || fail "rnvmf-late.service did not start"
		rm "$SCRATCH/ready"
		run "${INSIDE[@]}" systemctl stop rnvmf.service
		same "state of rnvmf-late.service that ended with $status" inactive \
			"$(unit rnvmf-late.service ActiveState)"
	done
	connected 0
	shuts_down
}

# A stop during a connect is no failure, whichever of the two units is connecting.
is_stopped_while_it_tries() {
	local unit
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN"
	boots
	connected 1
	wait_until "$DONE" is_done rnvmf-late.service || fail "rnvmf-late.service did not end"
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $NOBODY4 -n $NQN --timeout 600"
	for unit in rnvmf-late rnvmf; do
		run "${INSIDE[@]}" systemctl --no-block start $unit.service
		wait_until "$DONE" is_trying || fail "$unit.service does not connect: $(<"$SAID")"
		run "${INSIDE[@]}" systemctl stop rnvmf.service
		is_done rnvmf.service || fail "rnvmf.service is $(unit rnvmf.service ActiveState)"
		is_done rnvmf-late.service ||
			fail "rnvmf-late.service is $(unit rnvmf-late.service ActiveState)"
		! is_trying || fail "a controller is still connecting: $(rnvmf show)"
	done
	same "list of failed units" '' "$("${INSIDE[@]}" systemctl list-units --failed --plain --no-legend)"
	has "$(<"$SAID")" "connect to $NOBODY4:4420: interrupted"
	shuts_down
}

is_trying() {
	[[ $(rnvmf show -o json) == *'"state":"connecting"'* ]]
}

# A stop of the unit leaves a disk with a mounted file system connected.
what_is_mounted_stays_connected() {
	local disk
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET6 -n $NQN"
	boots
	connected 2
	disk=$(rnvmf list -o json | grep -oE '/dev/rnvmf[0-9]+n1' | head -n 1)
	mkdir "$SCRATCH/mounted"
	run mkfs.ext4 -q "$disk"
	run mount "$disk" "$SCRATCH/mounted"
	defer unmount_if_mounted "$SCRATCH/mounted"
	run "${INSIDE[@]}" systemctl stop rnvmf.service
	connected 1
	run dd if=/dev/zero of="$SCRATCH/mounted/file" bs=64k count=4 conv=fsync
	has "$(<"$SAID")" "$disk: in use, stays connected"
	run umount "$SCRATCH/mounted"
	run "${INSIDE[@]}" systemctl start rnvmf.service
	connected 2
	run "${INSIDE[@]}" systemctl stop rnvmf.service
	connected 0
	shuts_down
}

# A reload applies changes of the file. A restart of rnvmf.service also restarts
# rnvmf-follow.service.
is_reloaded_and_restarted() {
	local before
	connections "$CONNECTIONS" "discover -a $TARGET4"
	boots
	connected 1
	connections "$CONNECTIONS" "discover -a $TARGET4" "-a $TARGET6 -n $NQN"
	run "${INSIDE[@]}" systemctl reload rnvmf.service
	connected 2
	before=$(unit rnvmf-follow.service InvocationID)
	run "${INSIDE[@]}" systemctl restart rnvmf.service
	wait_until "$DONE" is_active rnvmf-follow.service || fail "rnvmf-follow.service is not active"
	[ "$(unit rnvmf-follow.service InvocationID)" != "$before" ] ||
		fail "rnvmf-follow.service was not restarted"
	connected 2
	shuts_down
}

wrong_file_stays_wrong() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN -s frob"
	boots
	sleep 3
	same "state, exit status and restarts" $'failed\n2\n0' \
		"$(unit rnvmf.service ActiveState)"$'\n'"$(unit rnvmf.service ExecMainStatus)"$'\n'"$(unit rnvmf.service NRestarts)"
	shuts_down
}

nothing_to_connect_is_no_failure() {
	rm "$CONNECTIONS"
	boots
	same "state of rnvmf.service" inactive "$(unit rnvmf.service ActiveState)"
	same "state of rnvmf-late.service" inactive "$(unit rnvmf-late.service ActiveState)"
	same "list of failed units" '' "$("${INSIDE[@]}" systemctl list-units --failed --plain --no-legend)"
	shuts_down
}

# Subsystems that the discovery log lists later are connected, until rnvmf.service is stopped.
follows_what_is_told() {
	connections "$CONNECTIONS" "discover -a $TARGET4"
	boots
	connected 1
	target_subsystem "$NQN-late"
	target_export 4420 "$NQN-late"
	connected 2
	run "${INSIDE[@]}" systemctl stop rnvmf.service
	same "state of rnvmf-follow.service" inactive "$(unit rnvmf-follow.service ActiveState)"
	connected 0
	shuts_down
}

main setup \
	connects_at_boot_and_disconnects_at_shutdown \
	target_may_be_late \
	target_may_be_late_at_a_reload \
	target_may_never_come \
	fails_while_it_is_stopped \
	is_stopped_while_it_tries \
	what_is_mounted_stays_connected \
	is_reloaded_and_restarted \
	wrong_file_stays_wrong \
	nothing_to_connect_is_no_failure \
	follows_what_is_told
