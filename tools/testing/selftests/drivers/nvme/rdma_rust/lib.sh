# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Entry point of the tests of nvme_rdma_rust. DRIVER=nvme-rdma tests the C driver instead.
#
# Network, target, backends and I/O are those of the tests of rnvmf. The functions below replace those
# of its lib/host.sh, with nvme-cli and sysfs in place of the program rnvmf.

. "$(dirname "${BASH_SOURCE[0]}")/../../block/rnvmf/lib.sh"

DRIVER=${DRIVER:-nvme_rdma_rust}
HOSTID=${HOSTNQN##*:}

requirements() {
	need_root && need_modules nvme-core nvme-rdma "$DRIVER" rdma_rxe nvmet-rdma dummy veth null_blk &&
		need_programs rdma ip fio nvme nft
}

# Configuration of modprobe: nvme-fabrics asks for nvme-rdma with each connect.
ALIAS=/run/modprobe.d/rdma_rust_selftest.conf

# Whether nvme-core has native multipath: Y or N.
MULTIPATH=${MULTIPATH:-Y}

# load_driver: load the driver in place of the other one.
load_driver() {
	local module
	# An earlier test may have loaded nvme-core, which nvmet uses, too, with the other value.
	for module in nvme-rdma nvme_rdma_rust nvmet-rdma nvmet_rdma_rust nvmet nvme-fabrics nvme-core; do
		modprobe -r "$module" 2>/dev/null
	done
	modprobe nvme-core multipath="$MULTIPATH"
	[ "$(cat /sys/module/nvme_core/parameters/multipath 2>/dev/null)" = "$MULTIPATH" ] || {
		note "nvme-core is in use with another value of the parameter multipath"
		return 1
	}
	driver_is_c || {
		mkdir -p "${ALIAS%/*}" && echo 'alias nvme-rdma nvme_rdma_rust' >"$ALIAS" || return 1
		defer rm "$ALIAS"
	}
	modprobe "$DRIVER"
}

# hold SECONDS: load the driver with this quiesce_time.
hold() {
	! driver_is_c || skip "nvme-rdma has no such parameter"
	run modprobe -r nvme_rdma_rust
	run modprobe nvme_rdma_rust quiesce_time="$1"
	defer modprobe nvme_rdma_rust
	defer modprobe -r nvme_rdma_rust
}

# driver_is_c: whether the C driver is tested.
driver_is_c() {
	[ "$DRIVER" = nvme-rdma ]
}

# Options of a connection that only the test ends.
# shellcheck disable=SC2034 # read by the tests
LASTING=(-k $((5 * SLOWDOWN)))

# Interfaces of the pair, the target's first, and the number of its routing table.
PAIR=(rnvmf0 rnvmf1)
TABLE=4420

# network_routed: create a veth pair with an RDMA device at each end, like `network_pair`. Both ends
# are in the initial network namespace, which nvme-rdma and nvmet-rdma use. Rules send the packets
# between them over the pair. IPv6 packets to the target's end are looped back in its RDMA device.
network_routed() {
	rdma_load && ip link add rnvmf0 type veth peer name rnvmf1 || return 1
	defer interface_delete rnvmf0
	pair_routed && rdma_add "" rnvmf_rxe0 rnvmf0 && rdma_add "" rnvmf_rxe1 rnvmf1 && pair_meets
}

# pair_routed: give the interfaces of PAIR their addresses, and route between them over the pair.
pair_routed() {
	local interface
	interface_up "" "${PAIR[0]}" "$MTU" "$TARGET4/24" "$TARGET6/64" &&
		interface_up "" "${PAIR[1]}" "$MTU" "$HOST4/24" || return 1
	for interface in "${PAIR[@]}"; do
		echo 1 >"/proc/sys/net/ipv4/conf/$interface/accept_local"
		echo 0 >"/proc/sys/net/ipv4/conf/$interface/rp_filter"
	done
	echo 0 >/proc/sys/net/ipv4/conf/all/rp_filter
	routes_over_pair
}

# RoCE does not wait for a neighbour to be resolved.
pair_meets() {
	ping -q -c 1 -W 5 -I "$HOST4" "$TARGET4" >"$SCRATCH/ping"
}

# Look up received packets in the local table, and sent ones in the table of the pair first.
routes_over_pair() {
	defer routes_as_before
	ip -batch - <<-END
		rule add pref 10 iif ${PAIR[0]} to $TARGET4 lookup local
		rule add pref 10 iif ${PAIR[1]} to $HOST4 lookup local
		rule add pref 20 lookup $TABLE
		rule add pref 30 lookup local
		rule del pref 0
		route add $TARGET4 dev ${PAIR[1]} src $HOST4 table $TABLE
		route add $HOST4 dev ${PAIR[0]} src $TARGET4 table $TABLE
	END
}

# Undo as much as there is: a test may have failed between the commands.
routes_as_before() {
	ip -force -batch - <<-END
		rule add pref 0 lookup local
		rule del pref 10
		rule del pref 10
		rule del pref 20
		rule del pref 30
		route flush table $TABLE
	END
}

silence() {
	defer silence_ends_here
	run nft 'table inet rnvmf_silence { chain input {
		type filter hook input priority 0; iifname { rnvmf0, rnvmf1 } drop; }; }'
}

silence_ends() {
	run nft delete table inet rnvmf_silence
}

start_pair() {
	network_routed && backend_memory disk 64 512 && target_simple "$BACKEND"
}

# nvme_connect SUBSYSTEM ADDRESS [OPTION...]: run `nvme connect` with `try`.
nvme_connect() {
	local nqn=$1 address=$2
	shift 2
	try nvme connect -t rdma -a "$address" -s "${SERVICE:-4420}" -n "$nqn" -q "$HOSTNQN" -I "$HOSTID" \
		"${CONNECT_OPTIONS[@]}" "$@" -o json
}

connect_to() {
	nvme_connect "$@"
	[[ $STATUS = 0 && $OUTPUT =~ \"(nvme[0-9]+)\" ]] || fail "connect failed: $OUTPUT $ERRORS"
	CTRL=${BASH_REMATCH[1]}
	defer disconnect_if_there "$CTRL"
}

# connect_refused ERROR LOG SUBSYSTEM ADDRESS [OPTION...]: the connect must fail with this error text of
# nvme-cli, and a line in the kernel log.
connect_refused() {
	local error=$1 log=$2
	shift 2
	nvme_connect "$@"
	same status 1 "$STATUS"
	has "$ERRORS$OUTPUT" "$error"
	[ "$(logged "$log")" -ge 1 ] || fail "no line with '$log' in: $(kernel_log)"
}

disconnect() {
	run nvme disconnect -d "$1"
	[ ! -e "/sys/class/nvme/$1" ] || fail "$1 still exists"
}

disconnect_if_there() {
	[ ! -e "/sys/class/nvme/$1" ] || timeout $((60 * SLOWDOWN)) nvme disconnect -d "$1" >"$SCRATCH/errors" ||
		[ ! -e "/sys/class/nvme/$1" ]
}

# disk CONTROLLER NSID: wait for the disk of a namespace, and print its path.
disk() {
	wait_until "$SOON" has_disk "$1" "$2" || fail "$1 has no namespace $2"
	echo "$DISK"
}

# has_disk CONTROLLER NSID: whether the disk exists, through any path. Sets DISK.
has_disk() {
	local path number
	for path in "/sys/class/nvme/$1"/nvme*n*; do
		{ read -r number <"$path/nsid" && [ "$number" = "$2" ]; } || continue
		# nvme0c1n1 is a path of nvme0n1.
		[[ ${path##*/} =~ ^(nvme[0-9]+)(c[0-9]+)?(n[0-9]+)$ ]] || continue
		DISK=/dev/${BASH_REMATCH[1]}${BASH_REMATCH[3]}
		[ ! -b "$DISK" ] || return 0
	done 2>/dev/null
	return 1
}

# ctrl_field CONTROLLER FIELD: print an attribute of the controller. The message is its last log line.
ctrl_field() {
	local value=none
	case $2 in
	message) kernel_log | grep -F "$1:" | tail -1 ;;
	*)
		{ read -r value <"/sys/class/nvme/$1/$2"; } 2>/dev/null || true
		echo "$value"
		;;
	esac
}

state_is() {
	local state
	{ read -r state <"/sys/class/nvme/$1/state"; } 2>/dev/null && [ "$state" = "$2" ]
}

is_gone() {
	[ ! -e "/sys/class/nvme/$1" ]
}

# logs PATTERN: whether the kernel log has such a line.
logs() {
	[ "$(logged "$1")" -gt 0 ]
}

# will_try_again: wait until a reconnect attempt has failed.
will_try_again() {
	wait_for_log "$SOON" "$CTRL: Failed reconnect attempt"
}

# is_trying: whether a reconnect attempt has created RDMA objects.
is_trying() {
	state_is "$CTRL" connecting && host_connects_to "$TARGET4"
}

# host_connects_to ADDRESS: whether the host's RDMA device has a CM ID for this address.
host_connects_to() {
	grep -q "rnvmf_rxe1.*dst-addr $1:4420" < <(rdma resource show cm_id)
}

# start_attempt: connect, and wait for a reconnect attempt to a silent target.
start_attempt() {
	start_pair
	connect "$TARGET4"
	silence
	loses
	wait_until "$SOON" is_trying || fail "no reconnect attempt in progress"
}

no_disks() {
	local disk
	for disk in /sys/block/nvme*; do
		[ ! -e "$disk" ] || return 1
	done
}

# hardware_queues: print the number of hardware queues of a path.
hardware_queues() {
	local queues=("/sys/class/nvme/$CTRL"/nvme*n*/mq/*)
	echo ${#queues[@]}
}

# both_paths FIRST SECOND: wait until both controllers have namespace 1, as one DISK.
both_paths() {
	local other
	wait_until "$SOON" has_disk "$2" 1 || fail "$2 has no namespace 1"
	other=$DISK
	wait_until "$SOON" has_disk "$1" 1 || fail "$1 has no namespace 1"
	same "disk of both paths" "$other" "$DISK"
}
