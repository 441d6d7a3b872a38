#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests what nvmet's core offers over a transport, a short case each: authentication, ANA states,
# reservations, passthrough of a controller, asynchronous events, keep-alive.
#
# The tests of the hosts have more of each; they run with another target if TARGET_DRIVER is set.

. "$(dirname "$0")/lib.sh"

CONNECT_OPTIONS=(-c 1)

setup() {
	load_driver && modprobe rdma_ucm && network_single && hostile_host_build &&
		backend_memory disk 64 512 && target_simple "$BACKEND" || return 1
	OBJECTS=$(rdma_objects)
}

after_test() {
	(rdma_back_to "$OBJECTS")
}

# only HOSTNQN: allow only this host until the test ends.
only() {
	defer eval "echo 1 >$NVMET/subsystems/$NQN/attr_allow_any_host"
	target_host "$NQN" "$1"
	[ -e "$NVMET/hosts/$1/dhchap_key" ] || skip "nvmet has no authentication"
}

authentication() {
	local host=$NVMET/hosts/$HOSTNQN key other
	need_core "has no authentication"
	only "$HOSTNQN"
	key=$(nvme gen-dhchap-key --hmac=1 -n "$HOSTNQN")
	other=$(nvme gen-dhchap-key --hmac=1 -n "$HOSTNQN")
	echo "$key" >"$host/dhchap_key"
	echo "$other" >"$host/dhchap_ctrl_key"
	# nvmet does not load it.
	modprobe -q dh_generic || true
	echo ffdhe2048 >"$host/dhchap_dhgroup"
	connect "$TARGET4" -S "$key" -C "$other"
	compare 65536
	disconnect "$CTRL"
}

# Commands on a queue that is not authenticated fail.
authentication_left_out() {
	local key
	need_core "has no authentication"
	key=$(nvme gen-dhchap-key --hmac=1 -n "$HOSTNQN")
	only "$HOSTILE_HOSTNQN"
	echo "$key" >"$NVMET/hosts/$HOSTILE_HOSTNQN/dhchap_key"
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" cm connect set identify auth-send,len=0
	# nvmet of 7.2 executes Set Features.
	has "$OUTPUT" $'connect 0x000\nset 0x(191|000)\nidentify 0x(191|00c)\nauth-send '
}

# nvmet authenticates no I/O queue. So one that joins a controller must be of the peer that has authenticated.
authentication_by_another_peer() {
	local host=$NVMET/hosts/$HOSTNQN key id other=192.0.2.11 joins='connect,qid=9'
	need_core "has no authentication"
	run ip address add "$other/24" dev rnvmf0
	defer ip address del "$other/24" dev rnvmf0
	only "$HOSTNQN"
	key=$(nvme gen-dhchap-key --hmac=1 -n "$HOSTNQN")
	echo "$key" >"$host/dhchap_key"
	modprobe -q dh_generic || true
	echo ffdhe2048 >"$host/dhchap_dhgroup"
	connect "$TARGET4" -w "$HOST4" -S "$key"
	id=$(cat "/sys/class/nvme/$CTRL/cntlid")
	# shellcheck disable=SC2086 # a list of steps
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" cm,qid=9,source=$other $joins,cntlid="$id",hostnqn="$HOSTNQN" read
	same "what another peer gets" $'cm accepted crqsize 32\nconnect 0x182\nread 0x001' "$OUTPUT"
	# shellcheck disable=SC2086 # a list of steps
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" cm,qid=9,source="$HOST4" $joins,cntlid="$id",hostnqn="$HOSTNQN" read
	same "what the peer gets" $'cm accepted crqsize 32\nconnect 0x000\nread 0x000' "$OUTPUT"
	disconnect "$CTRL"
}

ana() {
	echo "$1" >"$NVMET/ports/4420/ana_groups/1/ana_state"
}

ana_changes_under_io() {
	local state
	defer ana optimized
	connect "$TARGET4"
	start_verify
	for state in change inaccessible change optimized non-optimized; do
		ana $state
		sleep 0.5
	done
	is_verified
	disconnect "$CTRL"
}

# Another host's write conflicts with a reservation.
reservations() {
	local path=$NVMET/subsystems/$NQN/namespaces/1
	need_core "has no reservations"
	[ -e "$path/resv_enable" ] || skip "nvmet has no reservations"
	echo 0 >"$path/enable"
	echo 1 >"$path/resv_enable"
	echo 1 >"$path/enable"
	defer eval "echo 0 >$path/enable; echo 0 >$path/resv_enable; echo 1 >$path/enable"
	connect "$TARGET4"
	DISK=$(disk "$CTRL" 1)
	run nvme resv-register "$DISK" -n 1 --nrkey=0x5e1f --rrega=0
	run nvme resv-acquire "$DISK" -n 1 --crkey=0x5e1f --rtype=1 --racqa=0
	run nvme resv-report "$DISK" -n 1
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" admin io read write register
	has "$OUTPUT" $'^read 0x000\nwrite 0x083\nregister 0x...$'
	compare 4096 "$DISK"
	run nvme resv-release "$DISK" -n 1 --crkey=0x5e1f --rtype=1 --rrela=0
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" admin io write
	same "the other host's write" 'write 0x000' "$OUTPUT"
	disconnect "$CTRL"
}

# export_through: export a controller of nvme-loop as the subsystem THROUGH.
export_through() {
	local loop=$NQN-loop path
	THROUGH=$NQN-through
	need_core "is not tested with it"
	modprobe -q nvme-loop || skip "no module nvme-loop"
	backend_memory loop 32 512
	target_subsystem "$loop"
	target_namespace "$loop" 1 "$BACKEND"
	mkdir "$NVMET/ports/4440"
	defer rmdir "$NVMET/ports/4440"
	echo loop >"$NVMET/ports/4440/addr_trtype"
	target_export 4440 "$loop"
	run nvme connect -t loop -n "$loop" -q "$HOSTNQN" -I "$HOSTID" -o json
	[[ $OUTPUT =~ \"(nvme[0-9]+)\" ]] || fail "no controller in: $OUTPUT"
	defer eval "nvme disconnect -n $loop >$SCRATCH/disconnect"
	target_subsystem "$THROUGH"
	path=$NVMET/subsystems/$THROUGH/passthru
	[ -d "$path" ] || skip "nvmet has no passthrough"
	echo 1 >"$path/clear_ids"
	echo "/dev/${BASH_REMATCH[1]}" >"$path/device_path"
	echo 1 >"$path/enable"
	defer eval "echo 0 >$path/enable"
	target_export 4420 "$THROUGH"
}

passthrough() {
	export_through
	connect_to "$THROUGH" "$TARGET4"
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bsrange=4k-128k --size=4m --iodepth=8
	disconnect "$CTRL"
}

# A PCI driver tells its controller where the data is, and not how long it is. So a command that transfers more than the
# data that it has, or of which this is not known, must not reach the controller: it would access other memory. The
# controller of this test is one of nvme-loop, which compares lengths itself.
passthrough_of_other_lengths() {
	local refused
	export_through
	trace_start nvme/nvme_setup_cmd
	# Lengths of writes and reads; ranges; no data; a zone's extension; an opcode of no command.
	for refused in write,nlb=1023,len=8192 write,nlb=7,len=512 read,nlb=1023,len=4096 read,nlb=0,len=8192 \
		write,op=0x05,nlb=15 dsm,len=0 read,len=0 write,op=0x1d,cdw10=0x10001,len=0 \
		write,op=0x79,cdw13=0x10 write,op=0x22; do
		run "$HOSTILE" "$TARGET4" 4420 "$THROUGH" admin io "$refused" vanish
		has "$OUTPUT" '^[a-z]+ 0x...$'
	done
	# Vendor-specific commands, one with data and one of a feature.
	for refused in identify,op=0xc1 identify,op=0xc2,len=0 identify,op=0x0a,cdw10=0xd0; do
		run "$HOSTILE" "$TARGET4" 4420 "$THROUGH" admin "$refused" vanish
		has "$OUTPUT" '^identify 0x...$'
	done
	same "commands that reached the controller" '' "$(grep 'nvme_setup_cmd: ' "$TRACE/trace" | grep -v keep_alive || true)"
	run "$HOSTILE" "$TARGET4" 4420 "$THROUGH" admin identify get-log io write read dsm flush zeroes vanish
	# The range of blocks is none of the disk: the data of the read.
	has "$(tr '\n' ' ' <<<"$OUTPUT")" \
		'^identify 0x000 get-log 0x000 write 0x000 read 0x000 dsm 0x0(00|06) flush 0x000 zeroes 0x000 $'
}

# nvmet reads a command after it has completed it, in nvme_passthru_end(). The response must come later: it frees
# the command. The thread that completes a command must not post in between. Its interrupts are not counted: they
# complete and post other commands. The host calls the function in another thread, for a user's command.
passthrough_responds_at_the_end() {
	local ends early
	[ "$RDMA_TYPE" = rxe ] || skip "probes functions of soft-RoCE"
	export_through
	printf 'p:rnvmf/%s\n' 'complete nvmet_req_complete' 'post rxe_post_send' 'end nvme_passthru_end' \
		>>/sys/kernel/tracing/kprobe_events || fail "cannot create the probes"
	defer eval "printf -- '-:rnvmf/%s\n' complete post end >>/sys/kernel/tracing/kprobe_events"
	trace_start rnvmf
	connect_to "$THROUGH" "$TARGET4"
	run nvme id-ctrl "/dev/$CTRL"
	disconnect "$CTRL"
	read -r ends early < <(awk '/^#/ || $3 ~ /^..[hHsS]/ { next }
		/ complete: / { posts[$1] = 0 }
		/ post: / && $1 in posts { posts[$1]++ }
		/ end: / && $1 in posts { ends++; early += posts[$1] > 0; delete posts[$1] }
		END { print ends + 0, early + 0 }' "$TRACE/trace")
	[ "$ends" -gt 0 ] || fail "no command with effects"
	same "responses before nvme_passthru_end()" 0 "$early"
}

# A host that is silent for its keep-alive time loses its association; one that sends Keep Alive commands or I/O
# does not.
keep_alive() {
	run "$HOSTILE" "$TARGET4" 4420 "$NQN" cm connect,kato=1000 quiet,ms=$((4000 * SLOWDOWN))
	has "$OUTPUT" 'quiet disconnected$'
	connect "$TARGET4" -k $((2 * SLOWDOWN))
	sleep $((5 * SLOWDOWN))
	verify "$(disk "$CTRL" 1)" --rw=randwrite --bs=4k --size=1m --time_based --runtime=5
	same "losses of the association" 0 "$(logged "$CTRL: (.*starting error recovery|Reconnecting in )")"
	disconnect "$CTRL"
}

# The target reports an added namespace.
asynchronous_events() {
	local path=$NVMET/subsystems/$NQN/namespaces/1
	connect "$TARGET4"
	disk "$CTRL" 1 >"$SCRATCH/disk"
	backend_memory more 16 512
	target_namespace "$NQN" 2 "$BACKEND"
	disk "$CTRL" 2 >"$SCRATCH/disk"
	disconnect "$CTRL"
}

main_with_known setup \
	authentication \
	authentication_left_out \
	authentication_by_another_peer \
	ana_changes_under_io \
	reservations \
	passthrough \
	passthrough_of_other_lengths \
	passthrough_responds_at_the_end \
	keep_alive \
	asynchronous_events
