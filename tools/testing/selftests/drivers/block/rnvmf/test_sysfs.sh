#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests sysfs attributes, uevents and udev links, also against those of the C host (nvme-rdma).

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# Connects use the port of the kernel's target, one that of the hostile target.
HOSTILE_PORT=$SERVICE
SERVICE=4420

# NSIDs of the namespaces, named by their identifiers.
BOTH=1
NGUID_ONLY=2
NONE=3

UUID=5e1f7e57-0001-4000-8000-0000000000aa
NGUID=5e1f7e57-0002-4000-8000-0000000000bb
OTHER_NGUID=5e1f7e57-0002-4000-8000-0000000000cc
# Identifiers of a partition.
PART_UUID=5e1f7e57-0003-4000-8000-0000000000dd
PART_NAME=rnvmf-part
NIL=00000000-0000-0000-0000-000000000000

# Beside the tests, or in the source tree of the test VM.
RULES=$HERE/boot/60-rnvmf.rules
[ -e "$RULES" ] || RULES=/opt/rnvmf/src/tools/boot/60-rnvmf.rules

MODEL='Self test  disk'
SERIAL=5e1f7e57

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build && target_load &&
		target_subsystem "$NQN" || return 1
	echo "$MODEL" >"$NVMET/subsystems/$NQN/attr_model" &&
		echo "$SERIAL" >"$NVMET/subsystems/$NQN/attr_serial" &&
		namespace_with $BOTH "$UUID" "$NGUID" &&
		namespace_with $NGUID_ONLY "$NIL" "$OTHER_NGUID" &&
		namespace_with $NONE "$NIL" "$NIL" &&
		target_port 4420 "$TARGET4" && target_export 4420 "$NQN"
}

# namespace_with NSID UUID NGUID: create a namespace with these identifiers.
namespace_with() {
	local path=$NVMET/subsystems/$NQN/namespaces/$1
	backend_memory "disk$1" 16 512 && mkdir "$path" || return 1
	defer target_namespace_delete "$NQN" "$1"
	echo -n "$BACKEND" >"$path/device_path" && echo "$2" >"$path/device_uuid" &&
		echo "$3" >"$path/device_nguid" && echo 1 >"$path/enable"
}

# attribute DEVICE NAME: print an attribute without trailing spaces; nothing if it does not exist.
attribute() {
	[ ! -e "$1/$2" ] || sed 's/ *$//' "$1/$2"
}

# connect_with_c OPTION...: connect with the C host and set THEIRS to its controller.
connect_with_c() {
	modprobe nvme-rdma
	run nvme connect -t rdma -a "$TARGET4" -s 4420 -n "$NQN" -q "$HOSTNQN" "$@" -o json
	[[ $OUTPUT =~ nvme[0-9]+ ]] || fail "no controller in: $OUTPUT"
	THEIRS=${BASH_REMATCH[0]}
	defer nvme disconnect -d "$THEIRS"
}

# their_disk NSID: print the sysfs path of the C host's disk. Its number need not be the NSID.
their_disk() {
	local nsid
	for nsid in "/sys/block/${THEIRS}n"*/nsid; do
		[ "$(<"$nsid")" != "$1" ] || dirname "$nsid"
	done
}

# is_there COMMAND...: whether the command prints anything.
is_there() {
	[ -n "$("$@")" ]
}

# same_attributes OURS THEIRS NAME...: these attributes of both devices must be equal.
same_attributes() {
	local ours=$1 theirs=$2 name
	shift 2
	for name; do
		same "$name of $ours" "$(attribute "$theirs" "$name")" "$(attribute "$ours" "$name")"
	done
}

namespaces_show_what_they_have() {
	local disk
	connect "$TARGET4"
	disk=/sys/block/${CTRL}n
	same wwid "uuid.$UUID" "$(attribute "$disk$BOTH" wwid)"
	same uuid "$UUID" "$(attribute "$disk$BOTH" uuid)"
	same nguid "$NGUID" "$(attribute "$disk$BOTH" nguid)"
	same nsid $BOTH "$(attribute "$disk$BOTH" nsid)"
	same wwid "eui.${OTHER_NGUID//-/}" "$(attribute "$disk$NGUID_ONLY" wwid)"
	has "$(attribute "$disk$NONE" wwid)" '^nvme\.0000-[0-9a-f]+-[0-9a-f]+-00000003$'
	for absent in "$BOTH/eui" "$NGUID_ONLY/uuid" "$NONE/uuid" "$NONE/nguid" "$NONE/eui"; do
		[ ! -e "$disk$absent" ] || fail "unexpected attribute $disk$absent: $(<"$disk$absent")"
	done
	same mode 444 "$(stat -c %a "$disk$BOTH/wwid")"
}

as_the_c_host_shows_it() {
	local hostid=5e1f7e57-0003-4000-8000-0000000000cc nsid
	local options=(-I "$hostid" -i 2 -Q 32 -k 7 -c 4 -F 20)
	connect "$TARGET4" "${options[@]}" -l 60
	connect_with_c "${options[@]}" -l 60
	same_attributes "/sys/class/rnvmf/$CTRL" "/sys/class/nvme/$THEIRS" state transport address \
		subsysnqn hostnqn hostid model serial firmware_rev queue_count sqsize kato \
		reconnect_delay ctrl_loss_tmo fast_io_fail_tmo cntrltype dctype numa_node
	for nsid in $BOTH $NGUID_ONLY $NONE; do
		wait_until "$SOON" is_there their_disk "$nsid" || fail "the C host has no namespace $nsid"
		same_attributes "/sys/block/${CTRL}n$nsid" "$(their_disk "$nsid")" wwid nguid eui nsid \
			csi metadata_bytes nuse
	done
	same_attributes "/sys/block/${CTRL}n$BOTH" "$(their_disk $BOTH)" uuid
}

no_limits_are_off() {
	connect "$TARGET4" -l -1
	same ctrl_loss_tmo off "$(attribute "/sys/class/rnvmf/$CTRL" ctrl_loss_tmo)"
	same fast_io_fail_tmo off "$(attribute "/sys/class/rnvmf/$CTRL" fast_io_fail_tmo)"
}

# Programs find the controller, its model and its serial number through the link `device`.
disks_belong_to_their_controller() {
	local controller
	connect "$TARGET4"
	controller=$(readlink -f "/sys/class/rnvmf/$CTRL")
	same device "$controller" "$(readlink -f "/sys/block/${CTRL}n1/device")"
	same cntlid "$(ctrl_field "$CTRL" cntlid)" "$(attribute "$controller" cntlid)"
	run lsblk --nodeps --pairs --output MODEL,SERIAL "/dev/${CTRL}n1"
	has "$OUTPUT" "^MODEL=\"Self test +disk\" SERIAL=\"$SERIAL\"\$"
	disconnect "$CTRL"
	[ ! -e "$controller" ] || fail "$controller was not removed"
}

# start_listener: start a listener for uevents of controllers and disks; its output goes to
# $SCRATCH/told. For an added device it prints an attribute that it reads at once, for a changed
# controller the state or the asynchronous event.
start_listener() {
	python3 -u - >"$SCRATCH/told" <<'END' &
import os, socket
NETLINK_KOBJECT_UEVENT = 15
events = socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, NETLINK_KOBJECT_UEVENT)
events.bind((0, 1))
print("ready")
while True:
    first, *variables = events.recv(8192).decode(errors="replace").split("\0")
    what, _, path = first.partition("@")
    if "/virtual/rnvmf/" not in path:
        continue
    name = os.path.basename(path)
    variables = dict(one.partition("=")[::2] for one in variables)
    state = variables.get("RNVMF_STATE") or variables.get("NVME_AEN")
    if what == "add":
        fact = "wwid" if path.split("/")[-2] != "rnvmf" else "serial"
        try:
            with open(f"/sys{path}/{fact}", encoding="ascii") as file:
                print(name, file.read().strip())
        except OSError as error:
            print(name, error)
    elif what == "remove" or state:
        print(name, state or what)
END
	defer end_process $!
	wait_until "$SOON" grep -qs ready "$SCRATCH/told" || fail "the uevent listener is not ready"
}

# All attributes must exist when the uevent is sent, because its receiver reads them at once.
there_when_the_disk_is_told_of() {
	local told=$SCRATCH/told
	start_listener
	connect "$TARGET4"
	wait_until "$SOON" grep -q "^${CTRL}n$NONE " "$told" || fail "no uevent of ${CTRL}n$NONE: $(<"$told")"
	grep -qx "$CTRL $SERIAL" "$told" || fail "no uevent of $CTRL with its serial: $(<"$told")"
	grep -qx "${CTRL}n$BOTH uuid.$UUID" "$told" ||
		fail "no uevent of ${CTRL}n$BOTH with its wwid: $(<"$told")"
}

# udev_hears STATE...: the uevents of the controller CTRL since it was added must have exactly these
# states, in this order.
udev_hears() {
	wait_until "$SOON" states_told "$*" ||
		fail "no uevents with the states '$*': $(<"$SCRATCH/told")"
}

states_told() {
	[ "$(sed -n "s/^$CTRL //p" "$SCRATCH/told" | tail -n +2 | paste -sd ' ')" = "$1" ]
}

udev_hears_of_states() {
	local heard=(live)
	start_listener
	connect "$TARGET4" -c 1
	udev_hears "${heard[@]}"
	run rnvmf reset "$CTRL"
	heard+=(resetting connecting live)
	udev_hears "${heard[@]}"
	port_goes
	# Reconnect attempts send no uevents.
	wait_until "$SOON" tries_again || fail "no reconnect attempts: $OUTPUT"
	heard+=(resetting connecting)
	udev_hears "${heard[@]}"
	port_is_back
	heard+=(live)
	udev_hears "${heard[@]}"
	port_goes
	heard+=(resetting connecting)
	udev_hears "${heard[@]}"
	run rnvmf set "$CTRL" -l 0
	heard+=(dead)
	udev_hears "${heard[@]}"
	disconnect "$CTRL"
	heard+=(deleting remove)
	udev_hears "${heard[@]}"
	port_is_back
}

# An asynchronous event that the host does not handle: a temperature is beyond a threshold.
udev_hears_of_asynchronous_events() {
	local SERVICE=$HOSTILE_PORT
	OBJECTS=$(rdma_objects)
	start_listener
	EVENTS=1 hostile event result 0x00020101
	connect "$TARGET4"
	wait_until "$SOON" grep -qx "$CTRL 0x020101" "$SCRATCH/told" ||
		fail "no uevent of the event: $(<"$SCRATCH/told")"
	disconnect "$CTRL"
	end_process "$TARGET"
}

# Reading an open attribute of a removed disk fails with ENODEV, and the open file does not delay
# the removal.
open_attributes_end() {
	local attribute
	connect "$TARGET4"
	exec {attribute}<"/sys/block/${CTRL}n1/wwid"
	disconnect "$CTRL"
	if cat <&"$attribute" >"$SCRATCH/late" 2>&1; then
		fail "the attribute of a removed disk can be read: $(<"$SCRATCH/late")"
	fi
	has "$(<"$SCRATCH/late")" 'No such device'
	exec {attribute}<&-
}

# Continuous reads of attributes must not delay the removal of disks.
readers_while_disks_come_and_go() {
	local i began
	read_all &
	defer end_process $!
	for i in {1..5}; do
		connect "$TARGET4"
		wait_until "$SOON" grep -qs "uuid.$UUID" "$SCRATCH/read" || fail "no attribute was read in round $i"
		: >"$SCRATCH/read"
		began=$(now)
		disconnect "$CTRL"
		at_most "the disconnect took" $(($(now) - began)) 1000
	done
}

read_all() {
	while :; do
		cat /sys/block/rnvmf*/wwid /sys/class/rnvmf/*/* >>"$SCRATCH/read" 2>"$SCRATCH/not-read" ||
			true
	done
}

# asks ACTION [TEXT]: write TEXT, by default 1, to an attribute of the controller CTRL. On failure
# ERRORS is the error message.
asks() {
	printf '%s' "${2-1}" 2>"$SCRATCH/errors" >"/sys/class/rnvmf/$CTRL/$1" && return 0
	ERRORS=$(<"$SCRATCH/errors")
	return 1
}

root_asks_for_actions() {
	local action
	connect "$TARGET4"
	for action in delete reset rescan; do
		same mode 200 "$(stat -c %a "/sys/class/rnvmf/$CTRL/${action}_controller")"
		! cat "/sys/class/rnvmf/$CTRL/${action}_controller" >"$SCRATCH/read" 2>&1 ||
			fail "${action}_controller can be read: $(<"$SCRATCH/read")"
	done
	start_monitor
	asks reset_controller $'1\n' || fail "reset_controller: $ERRORS"
	wait_until "$SOON" grep -q 'resetting' "$SCRATCH/events" || fail "$CTRL was not reset"
	wait_until "$SOON" state_is "$CTRL" live || fail "$CTRL is not live after the reset"
	echo 0 >"$NVMET/subsystems/$NQN/namespaces/$NONE/enable"
	asks rescan_controller || fail "rescan_controller: $ERRORS"
	wait_until "$SOON" test ! -e "/sys/block/${CTRL}n$NONE" || fail "${CTRL}n$NONE was not removed"
	asks delete_controller || fail "delete_controller: $ERRORS"
	wait_until "$SOON" test ! -e "/sys/class/rnvmf/$CTRL" || fail "$CTRL was not removed"
	echo 1 >"$NVMET/subsystems/$NQN/namespaces/$NONE/enable"
}

wrong_words_ask_for_nothing() {
	local action word
	connect "$TARGET4"
	for action in delete reset rescan; do
		for word in 0 2 -1 11 '1 ' ' 1' $'\n' $'1\n\n' yes "$(printf '1%.0s' {1..4095})"; do
			! asks ${action}_controller "$word" || fail "${action}_controller accepts '${word:0:5}'"
			has "$ERRORS" 'Invalid argument'
		done
	done
	same state live "$(ctrl_field "$CTRL" state)"
}

others_ask_for_nothing() {
	connect "$TARGET4"
	! setpriv --reuid 65534 --regid 65534 --clear-groups \
		tee "/sys/class/rnvmf/$CTRL/delete_controller" <<<1 >"$SCRATCH/tee" 2>&1 ||
		fail "the user nobody can write delete_controller"
	has "$(<"$SCRATCH/tee")" 'Permission denied'
	same state live "$(ctrl_field "$CTRL" state)"
}

# A controller that is not live can be deleted, but neither reset nor rescanned.
a_lost_one_is_only_deleted() {
	connect "$TARGET4" -c 60
	port_goes
	wait_until "$SOON" state_is "$CTRL" connecting ||
		fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	! asks reset_controller || fail "reset_controller succeeded without a connection"
	has "$ERRORS" 'busy'
	! asks rescan_controller || fail "rescan_controller succeeded without a connection"
	has "$ERRORS" 'busy'
	asks delete_controller || fail "delete_controller: $ERRORS"
	wait_until "$SOON" test ! -e "/sys/class/rnvmf/$CTRL" || fail "$CTRL was not removed"
	port_is_back
}

# udev_with_our_rules: install the udev rules, and start udev if it does not run.
udev_with_our_rules() {
	local rules=/run/udev/rules.d
	mkdir -p $rules
	cp "$RULES" $rules/
	defer rm $rules/"${RULES##*/}"
	if udevadm control --ping --timeout=1 2>/dev/null; then
		udevadm control --reload
		return 0
	fi
	# udev leaves its socket. Programs that find it, such as dmsetup, would wait for udev.
	defer rm -f /run/udev/control
	/usr/lib/systemd/systemd-udevd >"$SCRATCH/udev" 2>&1 &
	defer end_process $!
	wait_until "$SOON" udevadm control --ping --timeout=1 2>/dev/null ||
		fail "systemd-udevd did not start: $(<"$SCRATCH/udev")"
}

# link NAME DISK: wait for the link /dev/disk/NAME, which must point to the disk; fail after SOON seconds.
link() {
	wait_until "$SOON" test -L "/dev/disk/$1" ||
		fail "no link /dev/disk/$1 in: $(ls -R /dev/disk), $(udevadm info "$2")"
	same "$1" "$2" "$(readlink -f "/dev/disk/$1")"
}

udev_gives_stable_names() {
	local disk
	udev_with_our_rules
	connect "$TARGET4"
	disk=$(disk "$CTRL" $BOTH)
	link "by-id/nvme-uuid.$UUID" "$disk"
	link "by-id/nvme-Self_test__disk_${SERIAL}_$BOTH" "$disk"
	link "by-id/nvme-eui.${OTHER_NGUID//-/}" "$(disk "$CTRL" $NGUID_ONLY)"
	run mkfs.ext4 -q -L rnvmf-test -U "$UUID" "$disk"
	link "by-uuid/$UUID" "$disk"
	link by-label/rnvmf-test "$disk"
	disconnect "$CTRL"
	wait_until "$SOON" test ! -e "/dev/disk/by-id/nvme-uuid.$UUID" || fail "the link was not removed"
}

# links_of_the_partition DISK: check the links of the disk with the suffix of the partition, and
# those of the partition table and the file system.
links_of_the_partition() {
	link "by-id/nvme-uuid.$UUID" "$1"
	link "by-id/nvme-uuid.$UUID-part1" "${1}p1"
	link "by-id/nvme-Self_test__disk_${SERIAL}_$BOTH-part1" "${1}p1"
	link "by-partuuid/$PART_UUID" "${1}p1"
	link "by-partlabel/$PART_NAME" "${1}p1"
	link by-label/rnvmf-inside "${1}p1"
}

# has_partition DISK: make the kernel read the partition table. udev may be doing the same.
has_partition() {
	[ -b "${1}p1" ] || { blockdev --rereadpt "$1" 2>/dev/null && [ -b "${1}p1" ]; }
}

udev_gives_names_to_partitions() {
	local disk
	udev_with_our_rules
	connect "$TARGET4"
	disk=$(disk "$CTRL" $BOTH)
	run python3 "$HERE/gpt.py" "$disk" $((16 << 20)) 512 "$PART_UUID" "$PART_NAME"
	wait_until "$SOON" has_partition "$disk" || fail "${disk}p1 does not exist"
	# After this udev watches the partition for writes.
	run udevadm settle
	run mkfs.ext4 -q -L rnvmf-inside "${disk}p1"
	links_of_the_partition "$disk"
	disconnect "$CTRL"
	wait_until "$SOON" test ! -e "/dev/disk/by-partuuid/$PART_UUID" || fail "the link was not removed"
	# This time the kernel finds the partition before the uevent of the disk.
	connect "$TARGET4"
	disk=$(disk "$CTRL" $BOTH)
	links_of_the_partition "$disk"
	run wipefs -qaf "${disk}p1"
	run wipefs -qaf "$disk"
}

main setup \
	namespaces_show_what_they_have \
	as_the_c_host_shows_it \
	no_limits_are_off \
	disks_belong_to_their_controller \
	there_when_the_disk_is_told_of \
	udev_hears_of_states \
	udev_hears_of_asynchronous_events \
	open_attributes_end \
	readers_while_disks_come_and_go \
	udev_gives_stable_names \
	udev_gives_names_to_partitions \
	root_asks_for_actions \
	wrong_words_ask_for_nothing \
	others_ask_for_nothing \
	a_lost_one_is_only_deleted
