#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The installed units, in a systemd of the test's own: with its own processes, mounts and control
# groups, and what is installed laid over the system.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/installed.sh"

SYSTEMD=/usr/lib/systemd/systemd
GROUP=/sys/fs/cgroup/rnvmf_selftest
UNITS=/usr/lib/systemd/system

# A port that is not there at first.
LATE=4422

# Seconds until systemd has done what it is to do.
DONE=60

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma dummy null_blk &&
		need_programs rnvmf rdma ip pgrep systemctl unshare nsenter mkfs.ext4 && need_systemd
}

need_systemd() {
	[[ -x $SYSTEMD && -e /sys/fs/cgroup/cgroup.procs ]] || {
		ktap_skip_all "there is no systemd, or it has no control groups"
		return 1
	}
}

setup() {
	network_single && backend_memory disk 16 512 && target_simple "$BACKEND" && modprobe rnvmf &&
		installed_at "$SCRATCH/root" && installed && configure
}

# Of the system's own units only what ours hang on. Ours try again after a second, not after ten, and
# as often as they like.
configure() {
	CONNECTIONS=$ROOT/etc/rnvmf/connections.conf
	SAID=$SCRATCH/said
	find "$UNITS" -maxdepth 1 -type f -exec cp -n -t "$ROOT$UNITS" {} + &&
		systemctl --root "$ROOT" --quiet enable rnvmf.service rnvmf-follow.service &&
		for unit in rnvmf rnvmf-late rnvmf-follow; do
			mkdir "$ROOT/etc/systemd/system/$unit.service.d" &&
				printf '%s\n' '[Unit]' StartLimitIntervalSec=0 '[Service]' RestartSec=1 \
					"StandardOutput=append:$SAID" StandardError=inherit \
					>"$ROOT/etc/systemd/system/$unit.service.d/test.conf"
		done &&
		tr -d - </proc/sys/kernel/random/uuid >"$ROOT/etc/machine-id"
}

# What becomes of the new namespaces before systemd is their first process.
# shellcheck disable=SC2016 # its own argument
BOOT='set -e
mount -t cgroup2 none /sys/fs/cgroup
mount -t tmpfs none /run
mount -t overlay -o "lowerdir=$1/etc:/etc" none /etc
mount -t overlay -o "lowerdir=$1/usr/sbin:/usr/sbin" none /usr/sbin
mount --bind "$1/usr/lib/systemd/system" /usr/lib/systemd/system
exec env container=selftest "$2" --system --unit=multi-user.target --log-target=console --show-status=no'

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
	wait_until "$DONE" is_up || fail "systemd is not up: $(<"$SCRATCH/systemd")"
}

leave_group() {
	find "$GROUP" -depth -type d -exec rmdir {} +
}

is_up() {
	local first
	first=$(pgrep -P "$SYSTEM") || return 1
	INSIDE=(nsenter -t "$first" --mount --pid --)
	[[ $("${INSIDE[@]}" systemctl is-system-running 2>&1) =~ ^(running|degraded)$ ]]
}

shuts_down() {
	run "${INSIDE[@]}" systemctl exit
	wait_until "$DONE" process_ended "$SYSTEM" || fail "systemd does not end: $(<"$SCRATCH/systemd")"
}

end_system() {
	process_ended "$SYSTEM" || kill -KILL "$SYSTEM"
	wait_until 10 process_ended "$SYSTEM"
	rnvmf disconnect-all >"$SCRATCH/ended" 2>&1
}

# unit UNIT PROPERTY: what systemd says of it.
unit() {
	"${INSIDE[@]}" systemctl show --value -p "$2" "$1"
}

is_active() {
	[ "$(unit "$1" ActiveState)" = active ]
}

was_tried_again() {
	[ "$(unit "$1" NRestarts)" -ge 1 ]
}

# connected NUMBER: there are so many live controllers, or soon will be.
connected() {
	wait_until "$DONE" is_connected "$1" ||
		fail "not $1 are connected: $(rnvmf show) $(<"$SAID") $(<"$SCRATCH/systemd")"
}

is_connected() {
	[ "$(rnvmf show -o json | grep -o '"state":"live"' | wc -l)" = "$1" ]
}

connects_at_boot_and_disconnects_at_shutdown() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET6 -n $NQN"
	boots
	is_active rnvmf.service || fail "it is not active: $(<"$SCRATCH/systemd")"
	connected 2
	shuts_down
	connected 0
}

# comes_late: the second of two connections is tried until its target is there.
comes_late() {
	wait_until "$DONE" was_tried_again rnvmf-late.service || fail "it was not tried again"
	connected 1
	target_port $LATE "$TARGET4" $LATE
	target_export $LATE "$NQN"
	connected 2
	wait_until "$DONE" is_done rnvmf-late.service || fail "the unit for those that are late goes on"
	shuts_down
	connected 0
}

target_may_be_late() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET4 -s $LATE -n $NQN"
	boots
	is_active rnvmf.service || fail "it is not active: $(<"$SCRATCH/systemd")"
	comes_late
}

# The unit for those that are late has ended long ago when the file changes.
target_may_be_late_at_a_reload() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN"
	boots
	connected 1
	wait_until "$DONE" is_done rnvmf-late.service || fail "the unit for those that are late goes on"
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN -s frob"
	expect 1 "${INSIDE[@]}" systemctl reload rnvmf.service
	sleep 1
	is_active rnvmf.service || fail "a wrong file makes it $(unit rnvmf.service ActiveState)"
	is_done rnvmf-late.service || fail "a wrong file is tried"
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $TARGET4 -s $LATE -n $NQN"
	run "${INSIDE[@]}" systemctl reload rnvmf.service
	comes_late
}

is_done() {
	[ "$(unit "$1" ActiveState) $(unit "$1" Result)" = "inactive success" ]
}

# What is missing keeps nothing else connected, and takes nobody else away.
target_may_never_come() {
	connections "$CONNECTIONS" "discover -a $TARGET4" "-a $TARGET4 -s $LATE -n $NQN"
	boots
	connected 1
	wait_until "$DONE" was_tried_again rnvmf-late.service || fail "it was not tried again"
	same "the one that follows, and its restarts" $'active\n0' \
		"$(unit rnvmf-follow.service ActiveState)"$'\n'"$(unit rnvmf-follow.service NRestarts)"
	run "${INSIDE[@]}" systemctl stop rnvmf.service
	same "states of the others" $'inactive\ninactive' \
		"$(unit rnvmf-follow.service ActiveState)"$'\n'"$(unit rnvmf-late.service ActiveState)"
	connected 0
	shuts_down
}

# Who stops it while it tries has met no failure, whether it is the unit for those that are late that
# tries, or the other one.
is_stopped_while_it_tries() {
	local unit
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN"
	boots
	connected 1
	wait_until "$DONE" is_done rnvmf-late.service || fail "the unit for those that are late goes on"
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN" "-a $NOBODY4 -n $NQN --timeout 600"
	for unit in rnvmf-late rnvmf; do
		run "${INSIDE[@]}" systemctl --no-block start $unit.service
		wait_until "$DONE" is_trying || fail "it does not even try: $(<"$SAID")"
		run "${INSIDE[@]}" systemctl stop rnvmf.service
		is_done rnvmf.service || fail "it is $(unit rnvmf.service ActiveState)"
		is_done rnvmf-late.service || fail "the other is $(unit rnvmf-late.service ActiveState)"
		! is_trying || fail "it still tries: $(rnvmf show)"
	done
	same "what failed" '' "$("${INSIDE[@]}" systemctl list-units --failed --plain --no-legend)"
	has "$(<"$SAID")" "connect to $NOBODY4:4420: interrupted"
	shuts_down
}

is_trying() {
	[[ $(rnvmf show -o json) == *'"state":"connecting"'* ]]
}

# A file system keeps its disk when the unit is stopped.
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

# The file may change meanwhile; who follows goes on when the other one is started anew.
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
	wait_until "$DONE" is_active rnvmf-follow.service || fail "nobody follows any more"
	[ "$(unit rnvmf-follow.service InvocationID)" != "$before" ] || fail "it was not stopped before"
	connected 2
	shuts_down
}

wrong_file_stays_wrong() {
	connections "$CONNECTIONS" "-a $TARGET4 -n $NQN -s frob"
	boots
	sleep 3
	same "state, status and times" $'failed\n2\n0' \
		"$(unit rnvmf.service ActiveState)"$'\n'"$(unit rnvmf.service ExecMainStatus)"$'\n'"$(unit rnvmf.service NRestarts)"
	shuts_down
}

nothing_to_connect_is_no_failure() {
	rm "$CONNECTIONS"
	boots
	same "state" inactive "$(unit rnvmf.service ActiveState)"
	same "state of the other" inactive "$(unit rnvmf-late.service ActiveState)"
	same "what failed" '' "$("${INSIDE[@]}" systemctl list-units --failed --plain --no-legend)"
	shuts_down
}

# What the target tells later is connected, too, until the connections are to be no more.
follows_what_is_told() {
	connections "$CONNECTIONS" "discover -a $TARGET4"
	boots
	connected 1
	target_subsystem "$NQN-late"
	target_export 4420 "$NQN-late"
	connected 2
	run "${INSIDE[@]}" systemctl stop rnvmf.service
	same "state of the other" inactive "$(unit rnvmf-follow.service ActiveState)"
	connected 0
	shuts_down
}

main setup \
	connects_at_boot_and_disconnects_at_shutdown \
	target_may_be_late \
	target_may_be_late_at_a_reload \
	target_may_never_come \
	is_stopped_while_it_tries \
	what_is_mounted_stays_connected \
	is_reloaded_and_restarted \
	wrong_file_stays_wrong \
	nothing_to_connect_is_no_failure \
	follows_what_is_told
