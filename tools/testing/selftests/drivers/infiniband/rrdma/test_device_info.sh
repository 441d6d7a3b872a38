#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample device_info: its log must agree with ibv_devinfo, rdma and sysfs, and it must log
# the events of a device.

. "$(dirname "$0")/lib.sh"

# The device under test and its interface.
INFO=rrdma_rxe2
INTERFACE=rrdma2

# Fields of ibv_devinfo that a kernel consumer cannot read: those of user space (demand paging,
# receive hashing, packet pacing, raw packet queues), removed ones (max_fmr), and those that the
# user-space driver makes up (transport, fw_ver).
NOT_OURS='hca_id|transport|fw_ver|board_id|max_fmr|.*_odp_caps|tso_caps|max_tso|rss_caps|max_rwq_.*'
NOT_OURS+='|rx_hash_.*|max_wq_type_rq|packet_pacing_caps|qp_rate_limit_.*|port'

# Capabilities that ibv_devinfo has no name for: kernel-only ones, and those beyond 32 bits.
UNNAMED='^(KERNEL_.*|FLUSH_.*|ATOMIC_WRITE|RAW_SCATTER_FCS|PCI_WRITE_END_PADDING|CC_DMA_BOUNCE)$'

setup() {
	modprobe rdma_rxe && modprobe ib_uverbs
}

# device_appears [MTU]: add an RDMA device on an interface with an IPv4 and an IPv6 address.
device_appears() {
	interface_appears "${1:-4200}"
	rdma_add "" $INFO $INTERFACE
}

# interface_appears MTU: add the interface. The other end of the veth pair only provides the
# carrier.
interface_appears() {
	explain "($INFO|rrdma_rxe9): (Port: 1 Link (DOWN|ACTIVE)|rxe_query_port: returned err = -19)"
	explain "infiniband rrdma_rxe[29]: (set active|added|ignoring)"
	explain "$INTERFACE: "
	ip link add $INTERFACE type veth peer name rrdma3
	defer interface_delete $INTERFACE
	interface_up "" rrdma3 "$1"
	interface_up "" $INTERFACE "$1" 198.51.100.1/24 2001:db8:2::1/64
}

# Ignore the sample's log lines so far.
forget() {
	sample_mark device_info
}

load() {
	sample_load device_info
}

# facts OF NAME: print each value that the sample logged for NAME of the object OF; of the lines in LOGGED, if it is
# set.
facts() {
	local - IFS=$'\n' line
	set -o noglob
	for line in ${LOGGED-$(sample_log)}; do
		[[ $line != "$1: $2: "* ]] || printf '%s\n' "${line#"$1: $2: "}"
	done
}

# fact OF NAME: print the value that the sample logged last.
fact() {
	local found
	found=$(facts "$1" "$2")
	printf '%s\n' "${found##*$'\n'}"
}

fact_is() {
	[ "$(fact "$1" "$2")" = "$3" ]
}

# becomes OF NAME VALUE: wait until the sample logs VALUE; fail after 10 s.
becomes() {
	wait_until 10 fact_is "$@" || fail "$2 of $1 is '$(fact "$1" "$2")', expected '$3'"
}

# event OF WHAT: wait until the sample logs the event; fail after 10 s.
event() {
	wait_until 10 has_event "$@" || fail "no event '$2' of $1: $(facts "$1" event)"
}

has_event() {
	grep -qxF "$2" < <(facts "$1" event)
}

# devinfo DEVICE: print `NAME VALUE` for each line "NAME: VALUE (CODE)" of ibv_devinfo.
devinfo() {
	ibv_devinfo -v -d "$1" | sed -En 's/^\s*([A-Za-z_0-9]+):\s+(.*[^ ])\s*$/\1 \2/p' |
		sed -E 's/ \([0-9]+\)$//'
}

# same_as_devinfo DEVICE: the sample must have logged each value that ibv_devinfo prints.
same_as_devinfo() {
	local name value compared=0 of=$1 LOGGED
	LOGGED=$(sample_log)
	while read -r name value; do
		[ "$name" != port ] || of=$1/$value
		[[ ! $name =~ ^($NOT_OURS)$ ]] || continue
		same "$name of $of" "$value" "$(like_devinfo "$of" "$name")"
		compared=$((compared + 1))
	done < <(devinfo "$1")
	# Guards against a comparison of nothing.
	[ $compared -ge 55 ] || fail "ibv_devinfo printed only $compared fields, expected at least 55"
	same "the capabilities" "$(devinfo_capabilities "$1")" \
		"$(facts "$1" capability | grep -Evx "$UNNAMED" | sort)"
	unset LOGGED
	must_agree_on_gids
}

# like_devinfo OF NAME: print the value that the sample logged, in the format of ibv_devinfo.
like_devinfo() {
	local value sends
	case $2 in
	max_sge)
		value=$(fact "$1" max_recv_sge) sends=$(fact "$1" max_send_sge)
		echo $((sends < value ? sends : value))
		;;
	device_cap_flags) printf '0x%08x\n' $(($(fact "$1" "$2") & 0xffffffff)) ;;
	device_cap_flags_ex) printf '0x%X\n' "$(fact "$1" device_cap_flags)" ;;
	*) fact "$1" "$2" ;;
	esac
}

devinfo_capabilities() {
	ibv_devinfo -v -d "$1" | sed -n '/device_cap_flags:/,/max_sge:/s/^\s*\([A-Z0-9_]*\)$/\1/p' | sort
}

devinfo_gids() {
	ibv_devinfo -v -d "$1" | sed -En 's/^\s*GID\[ *([0-9]+)\]:\s+(.*)$/\1 \2/p'
}

# sample_gids PORT: print the GIDs that the sample logged at its last scan of the port.
sample_gids() {
	sample_log | awk -v port="$1" '
		$1 == port ":" && $2 == "state:" { split("", gids) }
		index($1, port "/") == 1 && $2 == "gid:" {
			index_ = substr($1, length(port) + 2); sub(":", "", index_)
			gids[index_ + 0] = $3 " " $4 " " $5
		}
		END { for (i = 0; i < 1024; i++) if (i in gids) print i, gids[i] }'
}

# pairs COMMAND...: print `NAME VALUE` lines for an output line "WORD WORD NAME VALUE NAME
# VALUE...".
pairs() {
	"$@" | tr -s ' ' '\n' | sed 1,2d | paste -d ' ' - -
}

same_as_rdma() {
	local name value compared=0 LOGGED
	LOGGED=$(sample_log)
	while read -r name value; do
		same "$name" "$value" "$(fact "$1" "$name")$(fact "$1/1" "$name")"
		compared=$((compared + 1))
	done < <(pairs rdma dev show "$1")
	while read -r name value; do
		case $name in
		state) same state "PORT_$value" "$(fact "$1/1" state)" ;;
		physical_state) same physical_state "$value" "$(fact "$1/1" phys_state)" ;;
		*) same "$name" "$value" "$(fact "$1/1" "$name")" ;;
		esac
		compared=$((compared + 1))
	done < <(pairs rdma -d link show "$1/1")
	# node_type, protocol, two GUIDs; state, physical_state, netdev, netdev_index.
	[ $compared -eq 8 ] || fail "rdma printed $compared fields, expected 8"
}

same_as_sysfs() {
	local sys=/sys/class/infiniband/$1/ports/1 file LOGGED
	LOGGED=$(sample_log)
	same "link layer" "$(<"$sys/link_layer")" "$(fact "$1/1" link_layer)"
	same "P_Key" "$(<"$sys/pkeys/0")" "$(fact "$1/1/0" pkey)"
	same "network device of GID 0" "$(<"$sys/gid_attrs/ndevs/0")" "$(fact "$1/1/0" gid_netdev)"
	for file in "$sys"/hw_counters/*; do
		[ "${file##*/}" != lifespan ] || continue
		has "$(facts "$1/1" counter)" "(^|"$'\n'")${file##*/} $(<"$file")($|"$'\n'")"
	done
}

tells_of_a_device_that_is_there() {
	device_appears
	load
	same_as_devinfo $INFO
	same_as_rdma $INFO
	same_as_sysfs $INFO
}

tells_of_a_device_that_comes() {
	load
	device_appears 1500
	# The sample logs the three one after the other.
	becomes $INFO/1 state PORT_ACTIVE
	becomes $INFO/1 phys_state LINK_UP
	becomes $INFO/1 active_mtu 1024
	same_as_rdma $INFO
	same_as_devinfo $INFO
}

# must_agree_on_gids [with|without GID]: wait until the sample and ibv_devinfo have the same GIDs, with this one or
# without it. The core adds and removes GIDs asynchronously: also that of the link-local address, which awaits
# duplicate address detection.
must_agree_on_gids() {
	wait_until 10 gids_agree "$@" ||
		fail "GIDs '$(sample_gids $INFO/1)', not '$(devinfo_gids $INFO)'${1:+, $1 $2}"
}

gids_agree() {
	local gids
	gids=$(sample_gids $INFO/1)
	[ "$gids" = "$(devinfo_gids $INFO)" ] || return 1
	case ${1-} in
	with) [[ $gids == *"$2"* ]] ;;
	without) [[ $gids != *"$2"* ]] ;;
	esac
}

counts_as_rdma_does() {
	device_appears
	wait_until 10 gid_index $INFO 198.51.100.1 >"$SCRATCH/gid" || fail "no GID for 198.51.100.1"
	ping_self "$(<"$SCRATCH/gid")"
	load
	has "$(facts $INFO/1 counter)" 'rdma_sends [1-9]'
	same counters "$(rdma statistic show link $INFO/1 | sed -n 's/^ *\([^ ]* [0-9]*\) *$/\1/p')" \
		"$(facts $INFO/1 counter)"
}

# ping_self INDEX: send packets from the device to itself, to increment its counters.
ping_self() {
	local server
	ibv_rc_pingpong -d $INFO -g "$1" -n 10 >"$SCRATCH/server" &
	server=$!
	defer end_process $server
	wait_until 10 pings "$1" || fail "ibv_rc_pingpong failed: $(<"$SCRATCH/client")"
	# The counters change until the server has ended.
	end_process $server
	wait_until 10 process_ended $server || fail "ibv_rc_pingpong does not end"
}

pings() {
	ibv_rc_pingpong -d $INFO -g "$1" -n 10 localhost >"$SCRATCH/client" 2>&1
}

addresses_come_and_go() {
	device_appears
	load
	forget
	ip address add 198.51.100.7/24 dev $INTERFACE
	event $INFO/1 'GID changed'
	must_agree_on_gids with '::ffff:198.51.100.7, RoCE v2'
	forget
	ip address del 198.51.100.7/24 dev $INTERFACE
	event $INFO/1 'GID changed'
	must_agree_on_gids without 198.51.100.7
}

links_fail_and_recover() {
	device_appears
	load
	forget
	ip link set $INTERFACE down
	event $INFO/1 'port error'
	becomes $INFO/1 state PORT_DOWN
	becomes $INFO/1 phys_state DISABLED
	forget
	ip link set $INTERFACE up
	event $INFO/1 'port active'
	becomes $INFO/1 state PORT_ACTIVE
	becomes $INFO/1 phys_state LINK_UP
}

names_change() {
	device_appears
	load
	forget
	run rdma dev set $INFO name rrdma_rxe9
	defer rdma_delete rrdma_rxe9
	wait_until 10 is_said 'rrdma_rxe9: renamed' || fail "the sample did not log the new name"
	ip link set $INTERFACE down
	event rrdma_rxe9/1 'port error'
	becomes rrdma_rxe9/1 state PORT_DOWN
}

is_said() {
	grep -qxF "$1" < <(sample_log)
}

devices_go() {
	device_appears
	load
	forget
	run rdma link delete $INFO
	is_said "$INFO: removing" || fail "the sample did not log the removal"
	# A scan of the port may log lines until the device is removed, but not later.
	says_nothing_more
	device_appears_again
	forget
	ip link delete $INTERFACE
	wait_until 10 is_said "$INFO: removing" || fail "the sample did not log the removal"
	wait_until 10 device_is_gone || fail "the device remains after its interface was deleted"
	says_nothing_more
}

says_nothing_more() {
	forget
	pause
	same "the log after the removal" "" "$(sample_log)"
}

device_is_gone() {
	[ ! -e /sys/class/infiniband/$INFO ]
}

device_appears_again() {
	forget
	rdma_add "" $INFO $INTERFACE
	wait_until 10 is_said "$INFO: added" || fail "the sample did not log the added device"
}

# Removal of a device waits for its running scan, unloading for all scans.
unloads_amid_events() {
	local _
	device_appears
	for _ in {1..10}; do
		run modprobe rrdma_device_info
		for _ in {1..5}; do
			ip address add 198.51.100.7/24 dev $INTERFACE
			ip address del 198.51.100.7/24 dev $INTERFACE
		done
		run modprobe -r rrdma_device_info
	done
}

devices_go_amid_events() {
	local _
	load
	interface_appears 4200
	for _ in {1..10}; do
		# The kernel log does not hold the lines of all rounds, if there are many events.
		forget
		run rdma link add $INFO type rxe netdev $INTERFACE
		ip address add 198.51.100.7/24 dev $INTERFACE
		ip link set $INTERFACE down
		ip link set $INTERFACE up
		run rdma link delete $INFO
		ip address del 198.51.100.7/24 dev $INTERFACE
		same "number of added devices" 1 "$(sample_log | grep -cx "$INFO: added")"
		same "number of removed devices" 1 "$(sample_log | grep -cx "$INFO: removing")"
	done
}

main setup \
	tells_of_a_device_that_is_there \
	tells_of_a_device_that_comes \
	counts_as_rdma_does \
	addresses_come_and_go \
	links_fail_and_recover \
	names_change \
	devices_go \
	unloads_amid_events \
	devices_go_amid_events
