#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests a target with many hosts that connect, do I/O and vanish: all are served, and the memory of the
# target is what it was before.

. "$(dirname "$0")/lib.sh"

# Number of hosts, and how many are there at a time.
HOSTS=${HOSTS:-$(in_a_long_run 200 24)}
AT_A_TIME=8

setup() {
	load_driver && modprobe rdma_ucm && hostile_host_build
}

start_single() {
	network_single && add_flooders && backend_memory disk 64 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

# A write of 1 MiB in which a host leaves. All writes of the hosts are beyond the blocks of `start_verify`.
LARGE=write,len=0x100000,nlb=2047,slba=65536,count=4,nowait

# Keep-alive time of the hosts in milliseconds; 0 is none.
KATO=0

# one_host NUMBER: connect with two I/O queues, write and read, and vanish in one of several ways.
one_host() {
	local endings=(bye vanish 'break vanish' "$LARGE vanish") ending
	ending=${endings[$1 % ${#endings[@]}]}
	# shellcheck disable=SC2086 # a list of steps
	timeout "$COMMAND_SECONDS" "$HOSTILE" "$TARGET4" 4420 "$NQN" "admin,kato=$KATO" io,qid=1 io,qid=2 \
		"write,slba=$((32768 + $1 * 64))" read,count=8 use,queue=1 write,inline=4096,slba=32000 read \
		$ending \
		>"$SCRATCH/host$1" 2>&1
}

# Wait for the hosts in `running`. What they printed tells whether they were served.
wait_for_hosts() {
	local each
	for each in "${running[@]}"; do
		wait "$each" || true
	done
	running=()
}

# hosts NUMBER: run this many hosts. Each must have been served.
hosts() {
	local n running=() served=$'write 0x000\nread 0x000 times 8\nwrite 0x000\nread 0x000'
	for ((n = 0; n < $1; n++)); do
		one_host $n &
		running+=($!)
		defer end_process $!
		[ ${#running[@]} = $AT_A_TIME ] || continue
		wait_for_hosts
	done
	wait_for_hosts
	for ((n = 0; n < $1; n++)); do
		[ "$(<"$SCRATCH/host$n")" = "$served" ] || fail "host $n: $(<"$SCRATCH/host$n")"
	done
}

connect_and_vanish() {
	start_single
	hosts "$HOSTS"
	target_serves
	rdma_back_to "$OBJECTS"
}

# Packets are delayed and lost. A host that exits sends the message that ends a connection only once. Where
# it is lost, the keep-alive time tells the target.
connect_and_vanish_over_a_lossy_link() {
	local KATO=10000
	need_core "has a network namespace of its own, in which hostile_host does not run"
	modprobe -q sch_netem || skip "no module sch_netem"
	start_pair
	OBJECTS=$(rdma_objects)
	run tc qdisc add dev rnvmf0 root netem delay 2ms 1ms loss 0.5% seed 3
	run tc qdisc add dev rnvmf1 root netem delay 2ms 1ms loss 0.5% seed 4
	hosts "$HOSTS"
	run tc qdisc del dev rnvmf0 root
	run tc qdisc del dev rnvmf1 root
	wait_until 25 rdma_objects_are "$OBJECTS" || fail "objects remain: $(rdma_objects)"
	target_serves
	rdma_back_to "$OBJECTS"
}

with_verified_io() {
	start_single
	connect "$TARGET4"
	start_verify
	hosts $((AT_A_TIME * 2))
	is_verified
	same state live "$(ctrl_field "$CTRL" state)"
	disconnect "$CTRL"
	rdma_back_to "$OBJECTS"
}

# No message tells the target that the hosts are gone: their keep-alive times end.
fall_silent() {
	local n silent=()
	need_core "has a network namespace of its own, in which hostile_host does not run"
	start_pair
	OBJECTS=$(rdma_objects)
	for n in 1 2 3 4; do
		"$HOSTILE" "$TARGET4" 4420 "$NQN" cm connect,kato=2000 set io,qid=1 \
			"$LARGE" stop <&"$PAUSE_FD" >"$SCRATCH/silent$n" 2>&1 &
		silent+=($!)
		defer end_process $!
		wait_until 20 grep -qx stop "$SCRATCH/silent$n" || fail "$(<"$SCRATCH/silent$n")"
	done
	silence
	kill -KILL "${silent[@]}"
	wait_until 8 rdma_objects_are "$OBJECTS" || fail "objects remain: $(rdma_objects)"
	silence_ends
	target_serves
	rdma_back_to "$OBJECTS"
}

# The same without keep-alive times. The target probes their queues. A retry count of 7 is one without an end. The
# packets of one host are looped back in the RDMA device, so it is there.
fall_silent_without_keep_alive() {
	local retry silent=()
	need_core "has a network namespace of its own, in which hostile_host does not run"
	modprobe -r "$TARGET_DRIVER"
	TARGET_PARAMETERS=(probe_time=10)
	start_pair
	TARGET_PARAMETERS=()
	mkfifo "$SCRATCH/go"
	"$HOSTILE" "$TARGET6" 4420 "$NQN" admin io,qid=1 stop read use,queue=0 identify \
		<>"$SCRATCH/go" >"$SCRATCH/lively" 2>&1 &
	defer end_process $!
	wait_until 20 grep -qx stop "$SCRATCH/lively" || fail "$(<"$SCRATCH/lively")"
	OBJECTS=$(rdma_objects)
	for retry in 3 7; do
		"$HOSTILE" "$TARGET4" 4420 "$NQN" "cm,retry=$retry" connect,kato=0 set "cm,qid=1,retry=$retry" \
			connect,qid=1 read stop <&"$PAUSE_FD" >"$SCRATCH/silent$retry" 2>&1 &
		silent+=($!)
		defer end_process $!
		wait_until 20 grep -qx stop "$SCRATCH/silent$retry" || fail "$(<"$SCRATCH/silent$retry")"
	done
	silence
	kill -KILL "${silent[@]}"
	wait_until 60 rdma_objects_are "$OBJECTS" || fail "objects remain: $(rdma_objects)"
	silence_ends
	echo >"$SCRATCH/go"
	wait_until "$SOON" grep -q ^identify "$SCRATCH/lively" || fail "$(<"$SCRATCH/lively")"
	same "the host that is there" $'stop\nread 0x000\nidentify 0x000' "$(<"$SCRATCH/lively")"
	# One host's queue pairs fail by themselves. The first failure ends the controller.
	[ "$(logged 'queue [01]: probe by RDMA WRITE: ')" -ge 1 ] || fail "no probe failed"
	same "lines in the log" 2 "$(logged 'queue [01]: probe not acknowledged in 10 s')"
	target_serves
}

# A host without keep-alive notices nothing of the probes. Each is a packet and its acknowledgement, and nothing else
# is sent meanwhile.
probes_of_an_idle_host() {
	local counter=/sys/class/infiniband/rnvmf_rxe0/ports/1/hw_counters/sent_pkts before
	! target_is_c || skip "nvmet-rdma sends no probes"
	modprobe -r "$TARGET_DRIVER"
	TARGET_PARAMETERS=(probe_time=10)
	start_single
	TARGET_PARAMETERS=()
	connect_without_keep_alive
	compare 65536
	before=$(<"$counter")
	wait_until 120 exceeds "$counter" $((before + 30)) || fail "$(($(<"$counter") - before)) packets were sent"
	same state live "$(ctrl_field "$CTRL" state)"
	compare 65536
	same "lost connections" 0 "$(logged "$CTRL: (.*starting error recovery|Reconnecting in |disconnected)")"
	disconnect "$CTRL"
	rdma_back_to "$OBJECTS"
}

# exceeds FILE NUMBER: whether the file has a larger number.
exceeds() {
	[ "$(<"$1")" -gt "$2" ]
}

# connect_without_keep_alive: connect a host with a keep-alive time of 0. nvme-cli has no such option.
connect_without_keep_alive() {
	local fabrics reply options=transport=rdma,traddr=$TARGET4,trsvcid=4420,nqn=$NQN,hostnqn=$HOSTNQN
	if host_is_rnvmf; then
		connect "$TARGET4" -k 0
		return 0
	fi
	exec {fabrics}<>/dev/nvme-fabrics
	printf %s "$options,hostid=$HOSTID,keep_alive_tmo=0" >&"$fabrics" || fail "cannot connect"
	read -r reply <&"$fabrics"
	exec {fabrics}>&-
	[[ $reply =~ instance=([0-9]+) ]] || fail "connected as '$reply'"
	CTRL=nvme${BASH_REMATCH[1]}
	defer disconnect_if_there "$CTRL"
}

memory_returns() {
	start_single
	slab_steady_while 200 hosts $AT_A_TIME
	rdma_back_to "$OBJECTS"
}

# The backend of one subsystem completes no writes, so the queues of its host cannot end. When they take too much
# memory, that host must wait; others are served.
stuck_backend() {
	local n each steps=()
	need_core "connects from one address"
	{ modprobe -q dm_mod && command -v dmsetup >/dev/null; } || skip "no device mapper"
	start_single
	backend_stuck
	target_subsystem "$HOSTILE_NQN"
	target_namespace "$HOSTILE_NQN" 1 "$BACKEND"
	target_export 4420 "$HOSTILE_NQN"
	run dmsetup suspend --noflush rnvmf_stuck
	defer dmsetup resume rnvmf_stuck
	for n in {1..32}; do
		steps+=("cm,qid=$n,hsqsize=127,hrqsize=128" "connect,qid=$n,sqsize=127" "write,nowait")
	done
	for each in {1..8}; do
		hostile admin "${steps[@]}" vanish
		same "queues of host $each" 32 "$(grep -c '^connect 0x000' <<<"$OUTPUT")"
	done
	wait_until "$SOON" is_told_to_wait || fail "accepts more connections: $OUTPUT"
	connect "$TARGET4" -w "$HOST4"
	compare 4096
	disconnect "$CTRL"
	run dmsetup resume rnvmf_stuck
	rdma_back_to "$OBJECTS"
	hostile admin io read bye
	has "$OUTPUT" '^read 0x000$'
}

# Requests that hosts never complete. Two addresses need not be two hosts.
unfinished_requests() {
	need_core "connects from one address"
	start_single
	flood first "flood,count=160,no-rtu,source=$(flooder 0)"
	flood second "flood,count=160,no-rtu,source=$(flooder 1)"
	flood_ends first
	flood_ends second
	connects_soon "beside 320 unfinished requests"
	connects_soon "again"
}

# The same without an end. 16 addresses stand for any number: each has less than the whole.
flood_of_requests() {
	local n count before
	need_core "connects from one address"
	count=$(in_a_long_run 10000 2000)
	! target_is_c || [ "$count" = 2000 ] || skip "known to crash: takes all memory: the kernel panics"
	start_single
	before=$(available)
	flood requests "flood,count=$count,no-rtu,source=$(flooder 0),sources=16"
	for n in 1 2 3; do
		connects_soon "in a flood of requests"
	done
	flood_ends requests
	connects_soon "after it"
	# Every one must have an answer, and the reason of a refusal.
	has "$(<"$SCRATCH/requests")" "^flood accepted [0-9]+ rejected [0-9]+ failed 0 ended [0-9]+"$'\n'"stop$"
	takes_little "$before"
}

# Established connections on which no Connect command follows. They are those of one host, as the reply of the
# target comes to it. A large queue takes 1.3 MiB.
without_a_connect_command() {
	local before
	need_core "connects from one address"
	start_single
	before=$(available)
	flood idle "flood,count=500,qid=1,hsqsize=127,hrqsize=128,source=$(flooder 0)"
	flood_ends idle
	takes_little "$before"
	connects_soon "beside idle connections"
	# A host may have lost its connections unnoticed. It gets new ones for those that are old.
	wait_until 6 is_admitted "$(flooder 0)" || fail "$OUTPUT"
}

# Small ones fit in large numbers.
thousand_idle_queues() {
	need_core "connects from one address"
	start_single
	flood idle "flood,count=1000,hsqsize=1,hrqsize=2,source=$(flooder 0)"
	flood_ends idle
	has "$(<"$SCRATCH/idle")" '^flood accepted 1000 rejected 0 failed 0 ended 0'
	connects_soon "beside 1000 idle queues"
}

# All hosts lose the target at once, and come back.
storm_of_reconnects() {
	local storm
	need_core "connects from one address"
	start_single
	hosts $((2 * AT_A_TIME)) &
	storm=$!
	defer end_process $storm
	wait_until "$SOON" test -e "$SCRATCH/host0" || fail "no host begins"
	while kill -0 $storm 2>"$SCRATCH/errors"; do
		connects_soon "in a storm of reconnects"
	done
	wait $storm || fail "the hosts were not served"
}

# All hosts of a target come back at once, each with several queues. A queue takes 0.9 MiB of this machine with both of
# its ends, so their number is what 60 % of the memory hold. The programs of the hosts would run on other machines, so
# the good host's goes first.
hosts_with_many_queues() {
	local n gate steps=() hosts queues most answers before start
	need_core "connects from one address"
	hosts=$(in_a_long_run 200 24)
	most=$(in_a_long_run 31 7)
	start_single
	queues=$(($(available) * 6 / 10 / (hosts * 920) - 1))
	queues=$((queues < most ? queues : most))
	answers=$'stop\ncm accepted crqsize 2\nconnect 0x000\nset 0x000'
	for ((n = 1; n <= queues; n++)); do
		steps+=("cm,qid=$n,hsqsize=1,hrqsize=2" "connect,qid=$n,sqsize=1")
		answers+=$'\ncm accepted crqsize 2\nconnect 0x000'
	done
	mkfifo "$SCRATCH/gate"
	exec {gate}<>"$SCRATCH/gate"
	for ((n = 0; n < hosts; n++)); do
		PATIENCE=$((60000 * SLOWDOWN)) nice -n 19 "$HOSTILE" "$TARGET4" 4420 "$NQN" stop \
			"cm,hsqsize=1,hrqsize=2,source=$(flooder $((n % 16)))" connect,sqsize=1 set "${steps[@]}" \
			quiet,ms=100000000 <"$SCRATCH/gate" >"$SCRATCH/many$n" 2>&1 {gate}>&- &
		defer end_process $!
	done
	wait_until $((30 * SOON)) hosts_are_ready "$hosts" || fail "hosts do not begin"
	before=$(available)
	start=$(now)
	# The end of their input lets all of them begin.
	exec {gate}>&-
	for n in 1 2 3; do
		connects_soon "beside $hosts hosts"
	done
	wait_until $((30 * SOON)) hosts_are_connected "$hosts" "$answers" ||
		fail "$(hosts_connected "$hosts" "$answers") of $hosts hosts are connected; others: $(tail -n 1 "$SCRATCH"/many*)"
	note "$hosts hosts with $((queues + 1)) queues each have connected in $(($(now) - start)) ms;" \
		"they take $(((before - $(available)) / 1024)) MiB, with their own"
	connects_soon "beside $((hosts * (queues + 1))) queues"
}

# hosts_are_ready HOSTS: whether all these hosts wait.
hosts_are_ready() {
	[ "$(cat "$SCRATCH"/many* | grep -cx stop)" = "$1" ]
}

# hosts_are_connected HOSTS ANSWERS: whether each of these hosts has got these answers.
hosts_are_connected() {
	[ "$(hosts_connected "$@")" = "$1" ]
}

# hosts_connected HOSTS ANSWERS: print how many of these hosts have got these answers.
hosts_connected() {
	local n text connected=0
	for ((n = 0; n < $1; n++)); do
		IFS= read -rd '' text <"$SCRATCH/many$n" || true
		[ "$text" != "$2"$'\n' ] || connected=$((connected + 1))
	done
	echo $connected
}

# flood NAME STEP...: run a hostile host in the background, which stays there. Its output is in $SCRATCH/NAME.
flood() {
	local name=$1
	shift
	PATIENCE=$((10000 * SLOWDOWN)) "$HOSTILE" "$TARGET4" 4420 "$NQN" "$@" stop <&"$PAUSE_FD" \
		>"$SCRATCH/$name" 2>&1 &
	defer end_process $!
}

# flood_ends NAME: wait until the hostile host has done its steps.
flood_ends() {
	wait_until $((30 * SOON)) grep -qx stop "$SCRATCH/$1" || fail "$1: $(<"$SCRATCH/$1")"
	note "$1: $(head -n -1 "$SCRATCH/$1")"
}

# flooder NUMBER: print the source address of a hostile host.
flooder() {
	echo "192.0.2.$((100 + $1))"
}

add_flooders() {
	local n
	for n in {0..15}; do
		run ip address add "$(flooder "$n")/24" dev rnvmf0
	done
}

# connects_soon WHEN: a good host connects within 2 s.
connects_soon() {
	local start
	start=$(now)
	connect "$TARGET4" -w "$HOST4" -i 1
	at_most "a good host has connected $1 after" $(($(now) - start)) 2000
	note "a good host has connected $1 after $(($(now) - start)) ms"
	compare 4096
	disconnect "$CTRL"
}

# Print the memory that is available, in KiB.
available() {
	awk '/MemAvailable/ { print $2 }' /proc/meminfo
}

# takes_little BEFORE: connections without a controller take at most a quarter of the memory.
takes_little() {
	local most taken
	taken=$(($1 - $(available)))
	most=$(awk '/MemTotal/ { print int($2 / 4) }' /proc/meminfo)
	note "connections without a controller take $((taken / 1024)) MiB"
	[ "$taken" -le "$most" ] || fail "they take $taken KiB, limit $most KiB"
}

# On iWARP, a host has keys for the memory that the target reads into. They are valid in a protection domain, so each
# host has one. Queues with shared receives would be in one.
protection_domains_on_iwarp() {
	local RDMA_TYPE=siw other=192.0.2.11 first
	need_core "has a network namespace of its own"
	modprobe -qn siw || skip "no module siw"
	modprobe -r "$TARGET_DRIVER"
	TARGET_PARAMETERS=(use_srq=1)
	start_single
	TARGET_PARAMETERS=()
	run ip address add "$other/24" dev rnvmf0
	connect "$TARGET4" -w "$HOST4"
	first=$CTRL
	compare 65536
	same "protection domains of one host" 1 "$(domains)"
	connect "$TARGET4" -w "$other"
	compare 65536
	same "protection domains of two hosts" 2 "$(domains)"
	same "shared receive queues" 0 "$(rdma resource show srq | grep -c "\[$TARGET_MODULE\]" || true)"
	disconnect "$CTRL"
	disconnect "$first"
	rdma_back_to "$OBJECTS"
}

# domains: print the number of the target's protection domains.
domains() {
	rdma resource show pd | grep -c "\[$TARGET_MODULE\]" || true
}

# backend_stuck: create a disk that `dmsetup` suspends: it then takes any number of I/Os, and completes none.
backend_stuck() {
	backend_memory stuck 16 512
	run dmsetup create rnvmf_stuck --table "0 32768 linear $BACKEND 0"
	defer dmsetup remove --force rnvmf_stuck
	BACKEND=/dev/dm-$(dmsetup info -c --noheadings -o minor rnvmf_stuck)
}

# is_told_to_wait: whether the hostile host is rejected, because the target lacks resources.
is_told_to_wait() {
	hostile cm
	[ "$OUTPUT" = 'cm rejected reason 28 recfmt 0 sts 6' ]
}

# is_admitted SOURCE: whether a connection from this address is accepted.
is_admitted() {
	hostile "cm,source=$1"
	[[ $OUTPUT = 'cm accepted'* ]]
}

main_with_known setup \
	connect_and_vanish \
	connect_and_vanish_over_a_lossy_link \
	with_verified_io \
	fall_silent \
	fall_silent_without_keep_alive \
	probes_of_an_idle_host \
	stuck_backend \
	unfinished_requests \
	flood_of_requests \
	without_a_connect_command \
	thousand_idle_queues \
	storm_of_reconnects \
	hosts_with_many_queues \
	protection_domains_on_iwarp \
	memory_returns
