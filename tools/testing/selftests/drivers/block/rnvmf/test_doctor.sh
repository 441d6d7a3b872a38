#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests `rnvmf doctor`: it reports exactly the fault that the test made, and the suggested command
# fixes it. Faults that soft-RoCE cannot have, such as a RoCE v1 address, are covered by cargo
# tests.

. "$(dirname "$0")/lib.sh"

HOSTID=5e1f7e57-0000-4000-8000-000000000001

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma veth null_blk &&
		need_programs rnvmf rdma ip nft setpriv
}

setup() {
	modprobe rnvmf && start_pair
}

# Prefix of commands in the host's network namespace.
THERE=(ip netns exec "$HOST_NETNS")

# doctor STATUS [OPTION...]: run the doctor and set FOUND to its findings that are not ok.
doctor() {
	local status=$1
	shift
	expect "$status" "${RNVMF[@]}" doctor -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" "$@"
	FOUND=$(grep -v '^ok ' <<<"$OUTPUT") || true
}

finds_nothing() {
	try "${RNVMF[@]}" doctor -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID"
	[ "$STATUS" = 0 ] && ! grep -qv '^ok ' <<<"$OUTPUT"
}

# finds STATUS LEVEL CHECK TEXT [FIX]: the doctor must report exactly this finding.
finds() {
	local wanted
	doctor "$1" -a "$TARGET4"
	printf -v wanted '%-8s %-10s %s' "${@:2:3}"
	FIX=${5:-}
	same finding "$wanted${FIX:+; fix: $FIX}" "$FOUND"
}

# Run the suggested command; the doctor must then report no fault.
mend() {
	run "${THERE[@]}" bash -c "$FIX"
	wait_until "$SOON" finds_nothing || fail "the doctor still reports faults after $FIX: $OUTPUT"
}

healthy_is_healthy() {
	local address check
	for address in "$TARGET4" "$TARGET6"; do
		doctor 0 -a "$address"
		same findings '' "$FOUND"
		for check in module route interface link gid mtu firewall host controller; do
			has "$OUTPUT" "(^|"$'\n'")ok +$check "
		done
	done
	doctor 0 -a "$TARGET4" -w "$HOST4"
	same "findings from an address" '' "$FOUND"
	has "$OUTPUT" "ok +route +to $TARGET4 through rnvmf1, from $HOST4"
	has "$OUTPUT" "ok +gid +rnvmf_rxe1 has $HOST4 "
	doctor 0
	same "findings without a target" '' "$FOUND"
	# On the target itself: its address is local.
	run rnvmf doctor -a "$TARGET4" -q "$HOSTNQN" -I "$HOSTID"
	has "$OUTPUT" "ok +route +$TARGET4 is an address of this host, on rnvmf0"
	run "${RNVMF[@]}" doctor -a "$TARGET4" -q "$HOSTNQN" -I "$HOSTID" -o json
	python3 -c 'import json, sys
document = json.loads(sys.argv[1])
assert document["schema"] == 1
assert {each["level"] for each in document["findings"]} == {"ok"}, document' "$OUTPUT"
}

# The doctor must not load the module.
module_is_not_loaded() {
	run rmmod rnvmf
	finds 0 warning module 'rnvmf is not loaded; the first connect loads it' 'modprobe rnvmf'
	[ ! -e /sys/module/rnvmf ] || fail "the doctor has loaded the module"
	mend
}

link_is_missing() {
	run "${THERE[@]}" rdma link delete rnvmf_rxe1
	finds 1 fault link "no RDMA device is on rnvmf1, which the route to $TARGET4 takes" \
		'rdma link add rxe0 type rxe netdev rnvmf1'
	same error 'rnvmf: doctor: 1 fault' "$ERRORS"
	# The target's end has a device.
	doctor 0
	mend
	# The next test expects the original name.
	run "${THERE[@]}" rdma link delete rxe0
	run "${THERE[@]}" rdma link add rnvmf_rxe1 type rxe netdev rnvmf1
	wait_until "$SOON" rdma_is_up rnvmf_rxe1 || fail "the port of rnvmf_rxe1 does not become active"
}

# The address is on an interface above that of the device, whose GID table has the address.
device_is_below() {
	modprobe -q -a bridge macvlan || skip "modules bridge and macvlan not found"
	defer restore_lower
	run "${THERE[@]}" ip address flush dev rnvmf1
	run "${THERE[@]}" ip link add rnvmf_up mtu "$MTU" type bridge
	run "${THERE[@]}" ip link set rnvmf1 master rnvmf_up
	is_above bridge
	run "${THERE[@]}" ip link delete rnvmf_up
	run "${THERE[@]}" rdma link add rnvmf_rxe1 type rxe netdev rnvmf1
	run "${THERE[@]}" ip link add rnvmf_up link rnvmf1 mtu "$MTU" type macvlan mode bridge
	is_above macvlan
}

# is_above KIND: the doctor must report that soft-RoCE does not receive the packets of rnvmf_up, and
# its fix must let a connect succeed.
is_above() {
	interface_up "$HOST_NETNS" rnvmf_up "$MTU" "$HOST4/24"
	wait_until "$SOON" has_gid_of_upper || fail "rnvmf_rxe1 has no GID of rnvmf_up"
	finds 1 fault link "rnvmf_rxe1 is on rnvmf1, but the route to $TARGET4 takes rnvmf_up ($1) above it: soft-RoCE receives no packets of rnvmf_up there" \
		'rdma link delete rnvmf_rxe1 && rdma link add rnvmf_rxe1 type rxe netdev rnvmf_up'
	expect 5 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" --timeout 2
	mend
	connect "$TARGET4" -I "$HOSTID"
	disconnect "$CTRL"
}

has_gid_of_upper() {
	"${THERE[@]}" grep -qsrx rnvmf_up /sys/class/infiniband/rnvmf_rxe1/ports/1/gid_attrs/ndevs/
}

restore_lower() {
	"${THERE[@]}" ip link delete rnvmf_up
	rdma_delete rnvmf_rxe1 "$HOST_NETNS"
	interface_up "$HOST_NETNS" rnvmf1 "$MTU" "$HOST4/24" "$HOST6/64" &&
		"${THERE[@]}" rdma link add rnvmf_rxe1 type rxe netdev rnvmf1 &&
		wait_until "$SOON" rdma_is_up rnvmf_rxe1
}

interface_is_down() {
	run "${THERE[@]}" ip link set rnvmf1 down
	finds 1 fault interface 'rnvmf1 is down' 'ip link set rnvmf1 up'
	mend
}

# The target's interface is down, so the host's interface is up without a carrier.
cable_is_pulled() {
	defer ip link set rnvmf0 up
	run ip link set rnvmf0 down
	doctor 1 -a "$TARGET4"
	has "$FOUND" '^fault +interface +rnvmf1 has no carrier: check its cable and the other end$'
	same "number of findings" 1 "$(wc -l <<<"$FOUND")"
	run ip link set rnvmf0 up
	wait_until "$SOON" finds_nothing || fail "the doctor still reports faults with a carrier: $OUTPUT"
}

# Without a target the doctor only needs one device with an active port. The port state follows the
# interface asynchronously.
ports_are_not_active() {
	local device
	run "${THERE[@]}" ip link add rnvmf2 type dummy
	defer "${THERE[@]}" ip link delete rnvmf2
	interface_up "$HOST_NETNS" rnvmf2 "$MTU" 198.51.100.2/24
	rdma_add "$HOST_NETNS" rnvmf_rxe2 rnvmf2
	ports_are_active
	doctor 0
	same "findings" '' "$FOUND"
	run "${THERE[@]}" ip link set rnvmf2 down
	wait_until "$SOON" rdma_is_down rnvmf_rxe2 || fail "the port of rnvmf_rxe2 stays active"
	doctor 0
	FIX='ip link set rnvmf2 up'
	same finding "warning  link       port 1 of rnvmf_rxe2 is not active, on rnvmf2; fix: $FIX" \
		"$FOUND"
	# With one interface of the veth pair down, the ports at both ends are not active.
	defer ip link set rnvmf0 up
	run ip link set rnvmf0 down
	for device in rnvmf_rxe0 rnvmf_rxe1; do
		wait_until "$SOON" rdma_is_down $device || fail "the port of $device stays active"
	done
	doctor 1
	has "$FOUND" $'(^|\n)fault +link +port 1 of rnvmf_rxe1 is not active, on rnvmf1($|\n)'
	same "number of faults" 3 "$(grep -c '^fault ' <<<"$FOUND")"
	run ip link set rnvmf0 up
	mend
	ports_are_active
	doctor 0
	same "findings after $FIX" '' "$FOUND"
}

ports_are_active() {
	local device
	for device in rnvmf_rxe0 rnvmf_rxe1 rnvmf_rxe2; do
		wait_until "$SOON" rdma_is_up $device || fail "the port of $device is not active"
	done
}

rdma_is_down() {
	! rdma_is_up "$1"
}

mtu_is_small() {
	run "${THERE[@]}" ip link set rnvmf1 mtu 1280
	finds 0 warning mtu 'rnvmf1 has an MTU of 1280, so that a packet carries 1024 bytes of data; with an MTU of 4200 it would carry 4096, if all hops to the target accept that' \
		'ip link set rnvmf1 mtu 4200'
	mend
}

# The doctor guesses that a rule drops RoCE packets; a connect proves it.
rule_drops_roce() {
	local chain='inet rnvmf input'
	run "${THERE[@]}" nft "add table inet rnvmf; add chain $chain { type filter hook input priority 0; }"
	defer "${THERE[@]}" nft delete table inet rnvmf
	run "${THERE[@]}" nft "add rule $chain tcp dport 22 drop; add rule $chain udp dport { 53, 4791 } drop"
	finds 1 fault firewall "a rule of $chain seems to drop UDP port 4791, which RoCE uses" \
		"nft insert rule $chain udp dport 4791 accept"
	expect 5 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" --timeout 2
	mend
	run "${THERE[@]}" nft "flush chain $chain; add chain $chain { policy drop; }"
	finds 1 fault firewall "$chain seems to drop UDP port 4791, which RoCE uses, as no rule accepts it" \
		"nft insert rule $chain udp dport 4791 accept"
	mend
	# The doctor does not look into named sets.
	run "${THERE[@]}" nft "flush chain $chain; add set inet rnvmf open { type inet_service; elements = { 4791 }; }"
	run "${THERE[@]}" nft "add rule $chain udp dport @open accept"
	finds 0 unknown firewall "the rules of $chain are too complex to tell whether UDP port 4791 passes"
}

# Rules at the interface itself. A dormant table does nothing.
rule_of_the_interface_drops_roce() {
	local chain='netdev rnvmf in'
	run "${THERE[@]}" nft "add table inet sleeps { flags dormant; }; add chain inet sleeps in { type filter hook input priority 0; }"
	defer "${THERE[@]}" nft delete table inet sleeps
	run "${THERE[@]}" nft "add rule inet sleeps in udp dport 4791 drop"
	run "${THERE[@]}" nft "add table netdev rnvmf; add chain netdev rnvmf other { type filter hook ingress device lo priority 0; policy drop; }"
	defer "${THERE[@]}" nft delete table netdev rnvmf
	finds_nothing || fail "the doctor reports what does not matter: $OUTPUT"
	run "${THERE[@]}" nft "add chain $chain { type filter hook ingress device rnvmf1 priority 0; }; add rule $chain udp dport 4791 drop"
	finds 1 fault firewall "a rule of $chain seems to drop UDP port 4791, which RoCE uses" \
		"nft insert rule $chain udp dport 4791 accept"
	expect 5 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID" --timeout 2
	mend
}

# nft does not list the rules of iptables-legacy.
other_rules_are_not_seen() {
	# The debug kernel lacks it.
	modprobe -q iptable_filter || skip "module iptable_filter not found"
	defer modprobe -r iptable_filter
	# The query creates the table, which then remains.
	run "${THERE[@]}" python3 -c 'import ctypes, socket
IPT_SO_GET_INFO = 64
asker = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
table, length = ctypes.create_string_buffer(b"filter", 84), ctypes.c_uint32(84)
libc = ctypes.CDLL(None, use_errno=True)
if libc.getsockopt(asker.fileno(), 0, IPT_SO_GET_INFO, table, ctypes.byref(length)):
    raise OSError(ctypes.get_errno(), "getsockopt")'
	finds 0 unknown firewall 'only iptables-legacy can list some of the rules, which may drop UDP port 4791'
}

subsystem_is_connected() {
	CONNECT_OPTIONS=(-I "$HOSTID")
	connect "$TARGET4"
	doctor 0 -a "$TARGET4"
	same findings '' "$FOUND"
	has "$OUTPUT" "ok +controller +$NQN is connected as $CTRL"
}

# A dead controller keeps its name and its disks until it is disconnected or replaced.
controller_is_dead() {
	local why
	CONNECT_OPTIONS=(-I "$HOSTID")
	connect "$TARGET4" -l 0
	defer port_is_back
	port_goes
	wait_until "$SOON" state_is "$CTRL" dead || fail "$CTRL is in state $(ctrl_field "$CTRL" state)"
	why=$(ctrl_field "$CTRL" message)
	finds 0 warning controller "$NQN has $CTRL, which is dead: $why; connect replaces it, unless its disks are in use" \
		"rnvmf disconnect -d $CTRL"
	mend
}

# The kernel refuses a connect while exactly one of host NQN and host ID matches a controller. The
# suggested command removes that controller.
half_of_the_identity_is_connected() {
	local other=5e1f7e57-0000-4000-8000-0000000000ff
	connect "$TARGET4" -I "$other"
	is_in_the_way 'hostnqn and another hostid' "NQN with another identifier" "-I $other"
	HOSTNQN=$HOSTNQN.other connect "$TARGET4" -I "$HOSTID"
	is_in_the_way 'hostid and another hostnqn' "identifier with another NQN" "-q $HOSTNQN.other"
}

# is_in_the_way REASON HALVES OPTION: the connect must fail for REASON, and the doctor must report
# it.
is_in_the_way() {
	expect 1 "${RNVMF[@]}" connect -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID"
	has "$ERRORS" "$CTRL has the same $1"
	local text="$CTRL uses this host's $2, so the kernel refuses a connect; "
	text+="connect with $3 to be the same host"
	finds 1 fault controller "$text" "rnvmf disconnect -d $CTRL"
	mend
	connect "$TARGET4" -I "$HOSTID"
	disconnect "$CTRL"
}

identity_is_not_written_down() {
	local pattern="warning +host .*; fix: (mkdir -p /etc/nvme && echo '(.*)' >/etc/nvme/hostid)" id file
	for file in hostnqn hostid; do
		[ ! -e /etc/nvme/$file ] || {
			run mv /etc/nvme/$file "$SCRATCH/$file"
			defer mv "$SCRATCH/$file" /etc/nvme/$file
		}
		defer rm -f /etc/nvme/$file
	done
	mkdir -p /etc/nvme
	echo "$HOSTNQN" >/etc/nvme/hostnqn
	run rnvmf doctor
	[[ $OUTPUT =~ $pattern ]] || fail "'$pattern' not found in: $OUTPUT"
	id=${BASH_REMATCH[2]}
	run bash -c "${BASH_REMATCH[1]}"
	same "the file" "$id" "$(</etc/nvme/hostid)"
	run rnvmf doctor
	has "$OUTPUT" "ok +host +this host is $HOSTNQN"
}

address_is_wrong() {
	doctor 1 -a 203.0.113.1
	has "$FOUND" '^fault +route +there is no route to 203.0.113.1: Network is unreachable; '
	doctor 1 -a 127.0.0.1
	has "$FOUND" '^fault +route +127.0.0.1 is not the address of a host on a network'
	doctor 1 -a 2001:db8:1::1
	has "$FOUND" '^fault +route +there is no route to 2001:db8:1::1: '
	expect 2 "${RNVMF[@]}" doctor -s 0
	doctor 1 -a 'no such name'
	has "$FOUND" '^fault +route +cannot resolve host name no such name: '
	doctor 1 -a "$TARGET4" -w 203.0.113.9
	has "$FOUND" '^fault +route +the source address 203.0.113.9 is not an address of this host$'
}

# Without privilege the doctor reports which checks it could not do.
others_may_ask() {
	run "${THERE[@]}" nft 'add table inet rnvmf'
	defer "${THERE[@]}" nft delete table inet rnvmf
	expect 0 "${THERE[@]}" setpriv --reuid 65534 --regid 65534 --clear-groups \
		rnvmf doctor -a "$TARGET4" -n "$NQN" -q "$HOSTNQN" -I "$HOSTID"
	FOUND=$(grep -v '^ok ' <<<"$OUTPUT") || true
	has "$FOUND" '^unknown +firewall +the rules cannot be listed: '
	same "number of findings" 1 "$(wc -l <<<"$FOUND")"
}

main setup \
	healthy_is_healthy \
	module_is_not_loaded \
	link_is_missing \
	device_is_below \
	interface_is_down \
	cable_is_pulled \
	ports_are_not_active \
	mtu_is_small \
	rule_drops_roce \
	rule_of_the_interface_drops_roce \
	other_rules_are_not_seen \
	subsystem_is_connected \
	controller_is_dead \
	half_of_the_identity_is_connected \
	identity_is_not_written_down \
	address_is_wrong \
	others_may_ask
