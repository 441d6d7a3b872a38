#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests discovery: logs of the kernel's target equal those that nvme-cli reads and can be connected;
# invalid logs are refused; nothing leaks.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

OTHER=$NQN-other
DISCOVERY=nqn.2014-08.org.nvmexpress.discovery

# Port of another discovery controller.
ELSEWHERE=4430

IDENTITY=(-q "$HOSTNQN")

requirements() {
	need_root && need_modules rnvmf rdma_rxe rdma_ucm nvmet-rdma nvme-rdma dummy null_blk &&
		need_programs rnvmf rdma ip nvme python3
}

setup() {
	modprobe rnvmf && modprobe rdma_ucm && modprobe nvme-rdma && network_single &&
		hostile_build || return 1
	backend_memory one 16 512 && target_simple "$BACKEND" &&
		target_subsystem "$OTHER" && target_port $ELSEWHERE "$TARGET4" $ELSEWHERE &&
		target_export $ELSEWHERE "$OTHER" || return 1
	target_referral 4420 elsewhere rdma "$TARGET4" $ELSEWHERE &&
		target_referral 4420 itself rdma "$TARGET4" 4420 &&
		target_referral 4420 tcp tcp "$TARGET4" 8009 &&
		target_referral $ELSEWHERE back rdma "$TARGET4" 4420 || return 1
	OBJECTS=$(rdma_objects)
}

# discover [OPTION...]: run `rnvmf discover`, by default at the target's first port.
discover() {
	run rnvmf discover -a "$TARGET4" "${IDENTITY[@]}" "$@"
}

# same_records THEIRS OURS: compare the records of two logs; the second may have more fields.
same_records() {
	python3 - "$1" "$2" <<-'PYTHON'
		import json, sys
		theirs, ours = (json.loads(text)["records"] for text in sys.argv[1:])
		assert len(theirs) == len(ours) > 0, (theirs, ours)
		for one, other in zip(theirs, ours):
		    # rnvmf does not print fields of TCP.
		    for name in one.keys() - {"sectype"}:
		        assert one[name] == other[name], (name, one, other)
	PYTHON
}

is_what_nvme_cli_reads() {
	local port theirs
	for port in 4420 $ELSEWHERE; do
		run nvme discover -t rdma -a "$TARGET4" -s "$port" "${IDENTITY[@]}" -o json
		theirs=$OUTPUT
		discover -s "$port" -o json
		same_records "$theirs" "$OUTPUT"
	done
	rdma_back_to "$OBJECTS"
}

is_for_people() {
	discover
	has "$OUTPUT" '^5 records, generation [0-9]+'$'\n'
	has "$OUTPUT" 'subsystem  '"$NQN"$'\n  type       nvme subsystem\n  address    '"$TARGET4:4420"
	has "$OUTPUT" 'type       discovery subsystem referral'$'\n'"  address    $TARGET4:$ELSEWHERE"
	has "$OUTPUT" 'transport  tcp, which rnvmf cannot connect'
	run rnvmf show
	same controllers '' "$OUTPUT"
	discover -s $ELSEWHERE -w "$HOST4" -T 32
	has "$OUTPUT" '^3 records, generation [0-9]+'$'\n'
	same text "$(printf '%s\n' '' 'record 0' "  subsystem  $DISCOVERY" '  type       current discovery subsystem' \
		"  address    $TARGET4:$ELSEWHERE" '  transport  rdma, not specified' \
		'' 'record 1' "  subsystem  $OTHER" '  type       nvme subsystem' \
		"  address    $TARGET4:$ELSEWHERE" '  transport  rdma, not specified' \
		'' 'record 2' "  subsystem  $DISCOVERY" '  type       discovery subsystem referral' \
		"  address    $TARGET4:4420" '  transport  rdma, not specified')" \
		"${OUTPUT#*$'\n'}"
}

over_ipv6() {
	run rnvmf discover -a "$TARGET6" "${IDENTITY[@]}" -o json
	has "$OUTPUT" "\"trsvcid\":\"4420\",\"subnqn\":\"$NQN\",\"traddr\":\"$TARGET6\""
}

# A link-local address in the log gets the scope of the link on which the log was read.
over_link_local_ipv6() {
	local address
	address=$(ip -6 -o addr show dev rnvmf0 scope link | sed -n 's/.* inet6 \(fe80[^/]*\).*/\1/p')
	target_port 4431 "$address%rnvmf0" 4431
	target_export 4431 "$OTHER"
	run rnvmf discover -a "$address%rnvmf0" -s 4431 "${IDENTITY[@]}"
	has "$OUTPUT" "$OTHER"
	defer rnvmf disconnect-all
	run rnvmf connect-all -a "$address%rnvmf0" -s 4431 "${IDENTITY[@]}"
	has "$OUTPUT" "^rnvmf0: connected to $OTHER at \[$address%rnvmf0\]:4431\$"
}

names_what_is_wrong() {
	expect 1 rnvmf discover -a "$TARGET4" -s 4499 "${IDENTITY[@]}"
	has "$ERRORS" "^rnvmf: discover at $TARGET4:4499: connection refused "
	expect 5 rnvmf discover -a "$NOBODY4" --timeout 2 "${IDENTITY[@]}" -o json
	has "$ERRORS" '"failure":\{"stage":"connect"'
	expect 1 rnvmf discover -a "$TARGET4" -n "$NQN-none" "${IDENTITY[@]}"
	has "$ERRORS" 'rejected by target: no such subsystem'
	expect 1 rnvmf discover -a "$TARGET4" -n "$NQN" "${IDENTITY[@]}"
	has "$ERRORS" ': not a discovery subsystem; connect -n is for an NVM subsystem$'
	expect 1 rnvmf connect-all -a "$TARGET4" -n "$NQN" "${IDENTITY[@]}"
	has "$ERRORS" ': not a discovery subsystem; '
	expect 1 rnvmf discover -a "no such name"
	has "$ERRORS" 'discover at no such name:4420: cannot resolve host name'
	expect 6 setpriv --reuid 65534 --regid 65534 --clear-groups \
		rnvmf discover -a "$TARGET4" "${IDENTITY[@]}"
	has "$ERRORS" 'permission denied'
	expect 2 rnvmf discover
	expect 2 rnvmf connect-all -s 4420
	rdma_back_to "$OBJECTS"
}

# A discovery subsystem may have a unique NQN.
by_a_name_of_its_own() {
	hostile
	run rnvmf discover -a "$TARGET4" -s "$SERVICE" -n nqn.2014-08.org.example:own \
		"${IDENTITY[@]}" -o json
	has "$OUTPUT" '"genctr":1,"numrec":6,"records":\[\{"trtype":"rdma"'
	asked_for nqn.2014-08.org.example:own
	LOGGED=1 hostile_again
	defer rnvmf disconnect-all
	run rnvmf connect-all -a "$TARGET4" -s "$SERVICE" -n nqn.2014-08.org.example:own "${IDENTITY[@]}"
	has "$OUTPUT" "^rnvmf[0-9]+: connected to nqn.2014-08.org.example:hostile0 at $TARGET4:$SERVICE\$"
	asked_for nqn.2014-08.org.example:own
	run rnvmf disconnect-all
	end_process "$TARGET"
}

hostile_again() {
	end_process "$TARGET"
	hostile
}

# asked_for NQN: the target's first Connect must name this subsystem.
asked_for() {
	same subsystem "- subsystem $1" "$(grep -m 1 '^- subsystem ' "$SCRATCH/seen")"
}

# `connect` refuses a discovery controller, because it has no disks.
is_nothing_to_connect() {
	expect 1 rnvmf connect -a "$TARGET4" -n "$DISCOVERY" "${IDENTITY[@]}" -o json
	has "$ERRORS" '"message":"[^"]*discovery'
	has "$(rnvmf show -o json)" '"controllers":\[\]'
	rdma_back_to "$OBJECTS"
}

# lies STATUS PATTERN ARGUMENT...: reading the log of the hostile target must fail with this status
# and message.
lies() {
	local status=$1 pattern=$2
	shift 2
	hostile "$@"
	expect "$status" rnvmf discover -a "$TARGET4" -s "$SERVICE" --timeout "${LIMIT:-10}" \
		"${IDENTITY[@]}" -o json
	has "$ERRORS" "\"message\":\"[^\"]*($pattern)"
	end_process "$TARGET"
}

# Without a twist the log of the hostile target is valid.
good_log() {
	hostile
	run rnvmf discover -a "$TARGET4" -s "$SERVICE" "${IDENTITY[@]}" -o json
	has "$OUTPUT" '"genctr":1,"numrec":6,"records":\[\{"trtype":"rdma"'
	has "$OUTPUT" '"subnqn":"nqn.2014-08.org.example:hostile5"'
	same "number of reads of entries" 2 "$(count entries)"
	same "number of reads of the header" 2 "$(count log)"
	end_process "$TARGET"
}

lying_logs() {
	lies 1 'unknown record format 7' log poke 7 16 2
	lies 1 'changed 10 times' log drift 0 0
	same "number of reads of the header" 11 "$(count log)"
	lies 1 'not a discovery subsystem' log status 0x4002
	lies 1 'not a discovery subsystem' log status 0x0109
	lies 1 'reading the discovery log: ' log status 0x4006
	lies 1 'reading the discovery log: ' entries status 0x4002
	lies 1 'not in flight' log cid 0x0fff
	lies 1 'target disconnected' entries hang-up
	LIMIT=$((2 * SLOWDOWN)) lies 5 'reading the discovery log: no response' log silent
}

# odd PATTERN ARGUMENT...: the log of the hostile target has an odd record. Standard error must name
# it, and the output must have all records.
odd() {
	local pattern=$1
	shift
	hostile "$@"
	run rnvmf discover -a "$TARGET4" -s "$SERVICE" "${IDENTITY[@]}" -o json
	has "$ERRORS" "\"warning\":\{\"message\":\"$pattern"
	same records 6 "$(python3 -c 'import json, sys; print(len(json.load(sys.stdin)["records"]))' \
		<<<"$OUTPUT")"
	end_process "$TARGET"
}

odd_records() {
	odd 'record 0: TRSVCID: not terminated' entries flood 0x31 32
	odd 'record 0: SUBNQN: 25[56] bytes are more than 223' entries flood 0x6e 256
	odd 'record 0: TRADDR: not terminated' entries flood 0x31 512
	odd 'record 3: TRADDR: not printable ASCII' entries poke 0x1b 3584 1
	has "$OUTPUT" '"traddr":"\\\\x1b[^"]*"'
	odd 'record 1: SUBNQN: the name is not UTF-8' entries poke 0xff 1280 1
	# The target returns less data than requested, so these entries are zero.
	odd 'record 0: SUBNQN: the name is empty' entries short 0
	odd 'record 2: SUBNQN: the name is empty' entries short 2048
}

# A referral with a wrong address hides no other record, and a name may be UTF-8.
odd_records_of_the_kernels_target() {
	local name=$NQN-äöü漢字
	target_subsystem "$name"
	target_export 4420 "$name"
	target_referral 4420 control rdma $'10.0.0.1\x1b[2J'
	target_referral 4420 high rdma $'10.0.0.\xe4'
	target_referral 4420 service rdma 10.0.0.2 $'44\xff'
	discover
	has "$OUTPUT" "^9 records, "
	has "$OUTPUT" "subsystem  $name"
	has "$OUTPUT" 'address    10.0.0.1\\x1b\[2J:4420'
	has "$ERRORS" '^rnvmf: warning: record [0-8]: TRADDR: not printable ASCII'
	same warnings 3 "$(grep -c 'warning: record' <<<"$ERRORS")"
	defer rnvmf disconnect-all
	run rnvmf connect-all -a "$TARGET4" "${IDENTITY[@]}"
	connected_all 3
	has "$OUTPUT" "rnvmf[0-2]: connected to $name at $TARGET4:4420"
	same warnings 3 "$(grep -c '^rnvmf: warning: not connected: ' <<<"$ERRORS")"
	run rnvmf disconnect -n "$name" -o json
	run rnvmf disconnect-all
}

# A log with 2^64 - 1 entries: only the first 1024 are read, and the output says so.
endless_log() {
	hostile log poke 0xffffffffffffffff 8 8
	run rnvmf discover -a "$TARGET4" -s "$SERVICE" --timeout $((60 * SLOWDOWN)) "${IDENTITY[@]}"
	has "$OUTPUT" 'only the first 1024 of 18446744073709551615 were read$'
	same "number of reads of entries" 256 "$(count entries)"
	end_process "$TARGET"
}

# start_discover: start a discovery whose log read gets no response. CLIENT is its PID.
start_discover() {
	hostile log silent
	# The shell starts background processes with SIGINT ignored.
	env --default-signal=INT rnvmf discover -a "$TARGET4" -s "$SERVICE" --timeout 600 \
		"${IDENTITY[@]}" >"$SCRATCH/discover" 2>&1 &
	CLIENT=$!
	defer end_process $CLIENT
	wait_until "$SOON" seen '0 log' || fail "the log is not read: $(<"$SCRATCH/discover")"
}

# ends_with PATTERN: the program must exit with a message that matches.
ends_with() {
	wait_until "$SOON" process_ended "$CLIENT" || fail "the discovery did not exit"
	has "$(<"$SCRATCH/discover")" "$1"
}

no_queue_pairs() {
	[[ $(rdma resource show qp) != *'[rnvmf]'* ]]
}

# The connection of a discovery ends with the program, however that ends.
ends_with_its_program() {
	local signal
	for signal in KILL INT; do
		start_discover
		! no_queue_pairs || fail "the discovery has no queue pair"
		kill -$signal "$CLIENT"
		wait_until "$SOON" no_queue_pairs || fail "the queue pair remains after SIG$signal"
		end_process "$CLIENT"
		end_process "$TARGET"
	done
}

ends_with_its_module() {
	start_discover
	run modprobe -r rnvmf
	defer modprobe rnvmf
	ends_with 'the discovery was cancelled'
}

# connected_all [COUNT]: check that all subsystems were connected once, although the logs refer to
# each other.
connected_all() {
	same "number of connections" "${1:-2}" "$(grep -c ': connected to ' <<<"$OUTPUT")"
	has "$OUTPUT" "rnvmf[0-2]: connected to $NQN at $TARGET4:4420"
	has "$OUTPUT" "rnvmf[0-2]: connected to $OTHER at $TARGET4:$ELSEWHERE"
	has "$OUTPUT" "not connected: $DISCOVERY at tcp $TARGET4:8009: rnvmf supports RDMA only"
}

connects_all() {
	defer rnvmf disconnect-all
	run rnvmf connect-all -a "$TARGET4" "${IDENTITY[@]}" -w "$HOST4" -T 32 -k 7 -i 1
	connected_all
	same keep-alive 7 "$(ctrl_field rnvmf1 keep_alive_tmo)"
	same queues 1 "$(ctrl_field rnvmf1 nr_io_queues)"
	same "host address" "$HOST4" "$(ctrl_field rnvmf1 host_traddr)"
	same "type of service" 32 "$(ctrl_field rnvmf1 tos)"
	run rnvmf connect-all -a "$TARGET4" "${IDENTITY[@]}" -w "$HOST4"
	same "number of existing connections" 2 "$(grep -c 'already connected' <<<"$OUTPUT")"
}

connects_all_of_a_file() {
	local file=$SCRATCH/connections.conf
	printf 'discover -a %s -q %s\ndiscover -a %s -q %s --timeout 2\n' "$TARGET4" "$HOSTNQN" \
		"$NOBODY4" "$HOSTNQN" >"$file"
	defer rnvmf disconnect-all
	expect 1 rnvmf connect-all -f "$file"
	connected_all
	has "$ERRORS" "^rnvmf: discover at $NOBODY4:4420: "
	has "$ERRORS" 'rnvmf: connect-all: 1 of [0-9]+ connections failed$'
}

# Start a DNS server that never responds. The file names in SCRATCH exists once it runs, asked once
# it got a query.
start_silent_names() {
	python3 - "$SCRATCH/names" "$SCRATCH/asked" <<-'PYTHON' &
		import socket, sys
		server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
		server.bind(("127.0.0.1", 53))
		open(sys.argv[1], "w").close()
		while server.recv(512):
		    open(sys.argv[2], "w").close()
	PYTHON
	defer end_process $!
	wait_until "$SOON" [ -e "$SCRATCH/names" ] || fail "the DNS server did not start"
	[ ! -e /etc/resolv.conf ] || run mv /etc/resolv.conf "$SCRATCH/resolv.conf"
	defer restore_names
	printf 'nameserver 127.0.0.1\noptions timeout:30\n' >/etc/resolv.conf
}

restore_names() {
	rm -f /etc/resolv.conf
	[ ! -e "$SCRATCH/resolv.conf" ] || mv "$SCRATCH/resolv.conf" /etc/resolv.conf
}

# The connect time-out includes the resolution of the host name.
a_name_that_nobody_answers() {
	local began verb why='cannot resolve host name target.example: no answer within 2 s'
	start_silent_names
	for verb in "connect -n $NQN" discover; do
		began=$(now)
		# shellcheck disable=SC2086 # words of a command
		expect 5 rnvmf $verb -a target.example -q "$HOSTNQN" --timeout 2
		within "$verb took" 2000 $(($(now) - began)) 1000
		has "$ERRORS" "^rnvmf: [^:]* target.example:[0-9]*: $why\$"
	done
}

# A signal must end the wait for DNS.
a_signal_ends_the_wait_for_a_name() {
	local signal status
	start_silent_names
	echo "-a target.example -n $NQN -q $HOSTNQN" >"$SCRATCH/connections.conf"
	for signal in INT TERM; do
		rm -f "$SCRATCH/asked"
		env --default-signal=INT rnvmf connect-all -f "$SCRATCH/connections.conf" &
		CLIENT=$!
		defer end_process $CLIENT
		wait_until "$SOON" [ -e "$SCRATCH/asked" ] || fail "no DNS query was sent"
		kill -$signal "$CLIENT"
		wait_until "$SOON" process_ended "$CLIENT" || fail "SIG$signal did not end the program"
		status=0
		wait "$CLIENT" || status=$?
		same "exit status" $((128 + $(kill -l $signal))) $status
	done
}

ends_with_its_device() {
	local GUARDED=yes
	register_last
	start_discover
	device_goes ends_with 'the RDMA device was removed'
}

main setup \
	is_what_nvme_cli_reads \
	is_for_people \
	over_ipv6 \
	over_link_local_ipv6 \
	names_what_is_wrong \
	is_nothing_to_connect \
	good_log \
	by_a_name_of_its_own \
	lying_logs \
	odd_records \
	odd_records_of_the_kernels_target \
	endless_log \
	ends_with_its_program \
	ends_with_its_module \
	connects_all \
	connects_all_of_a_file \
	a_name_that_nobody_answers \
	a_signal_ends_the_wait_for_a_name \
	ends_with_its_device
