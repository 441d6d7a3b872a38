#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests broken connection requests and broken Connect commands of a hostile host. The expected outcomes
# are those of the NVMe RDMA Transport specification (private data, reject status) and of NVMe over
# Fabrics (Connect). The table `known` has what a target does otherwise.

. "$(dirname "$0")/lib.sh"
check_after_each

# rejected STATUS REQUEST...: each connection request must be rejected with this status in private data.
# 28 is "consumer defined".
rejected() {
	each_answers "rejected reason 28 recfmt 0 sts $1" '' "${@:2}"
}

good_host() {
	answers 'cm accepted crqsize 32
connect 0x000
set 0x000
get 0x000
cm accepted crqsize 32
connect 0x000
write 0x000
read 0x000' cm connect set get cm,qid=1 connect,qid=1 write read
}

# InfiniBand's messages have private data of a fixed length: missing bytes are 0, and so are the queue
# sizes. iWARP tells the length.
short_private_data() {
	case $RDMA_TYPE in
	rxe) rejected '(1|4|5)' cm,length=0 cm,length=1 cm,length=4 ;;
	*) rejected 1 cm,length=0 cm,length=1 cm,length=8 cm,length=31 ;;
	esac
}

unknown_record_format() {
	rejected 2 cm,recfmt=1 cm,recfmt=0xffff
}

queue_identifier_out_of_range() {
	rejected 3 cm,qid=0xffff cm,qid=129
}

# HSQSIZE counts from 0, and a queue has two entries at least.
send_queue_of_one() {
	rejected 4 cm,qid=1,hsqsize=0 cm,qid=0,hsqsize=0
}

# HRQSIZE counts from 1.
receive_queue_of_none() {
	rejected 5 cm,qid=1,hrqsize=0 cm,qid=0,hrqsize=0
}

admin_send_queue_too_large() {
	rejected 4 cm,qid=0,hsqsize=32 cm,qid=0,hsqsize=0xffff
}

# The size of a send queue at the host. The target has receives for 128 commands, and says so.
larger_send_queue() {
	answers 'cm accepted crqsize 128
connect 0x000
write 0x000
read 0x000
cm accepted crqsize 128' admin cm,qid=1,hsqsize=1023,hrqsize=1024 connect,qid=1,sqsize=127 write read \
		cm,qid=2,hsqsize=256
}

# Receives for 65536 commands take about 600 MB.
largest_send_queue() {
	answers 'cm accepted crqsize 128
connect 0x000
read 0x000' admin cm,qid=1,hsqsize=0xffff,hrqsize=0xffff connect,qid=1,sqsize=127 read
}

# More receives at the host than there are commands do no harm.
larger_receive_queue() {
	answers 'cm accepted crqsize 32
connect 0x000
read 0x000
cm accepted crqsize 32' admin cm,qid=1,hrqsize=1025 connect,qid=1 read cm,qid=0,hrqsize=1025
}

largest_receive_queue() {
	answers 'cm accepted crqsize 32
connect 0x000
read 0x000' admin cm,qid=1,hrqsize=0xffff connect,qid=1 read
}

# One host fills the log neither by one connection nor by many.
refusals_fill_no_log() {
	local n steps=()
	for n in {1..10}; do
		steps+=("connect,len=1025")
	done
	for n in {1..8}; do
		hostile cm "${steps[@]}" bye
	done
	n=$(logged 'nvmet_rdma_rust: host ')
	[ "$n" -le 20 ] || fail "$n lines in the log"
}

# The controller of an I/O queue must exist. 0xffff names none. 0 is from hosts of version 1.0, which has
# no such field. The target may leave the check to Connect.
unknown_controller() {
	answers 'cm (rejected reason 28 recfmt 0 sts 9|accepted crqsize 32)' cm,qid=1,cntlid=0x7777
	answers 'cm (rejected reason 28 recfmt 0 sts 9|accepted crqsize 32)' cm,qid=1,cntlid=0xffff
	answers 'cm accepted crqsize 32
connect 0x182' cm,qid=1,cntlid=0 connect,qid=1,cntlid=0x7777
}

# Without reads and atomics at the host the target cannot get the data of a write.
no_reads_at_the_host() {
	answers 'cm rejected reason 28 recfmt 0 sts [78]' cm,responder=0
}

no_admin_queue() {
	each_answers 0x182 cm,qid=1 connect,qid=1,cntlid=1 connect,qid=1,cntlid=0xffff
}

same_queue_twice() {
	answers 'cm accepted crqsize 32
connect 0x00c
read 0x000' admin io,qid=1 cm,qid=1 connect,qid=1 use,queue=1 read
}

# Nothing in a connection request tells the subsystem, so the target cannot know the controller before Connect.
controller_of_another_host() {
	answers 'cm accepted crqsize 32
connect 0x182
cm accepted crqsize 32
connect 0x182' admin cm,qid=1 connect,qid=1,hostnqn=nqn.2014-08.org.nvmexpress:another \
		cm,qid=1,cntlid=1 connect,qid=1,hostnqn=nqn.2014-08.org.nvmexpress:another
}

controller_that_ended() {
	local id
	hostile cm connect,show bye
	id=${OUTPUT##* }
	rdma_back_to "$OBJECTS"
	answers 'cm accepted crqsize 32
connect 0x182' cm,qid=1 connect,qid=1,cntlid=$((id))
}

# All queues of a controller use one port. nvmet does not check that.
io_queue_through_another_port() {
	target_port 4430 "$TARGET4" 4430
	target_export 4430 "$HOSTILE_NQN"
	answers 'cm accepted crqsize 32
connect 0x182
cm accepted crqsize 32
connect 0x000
read 0x000' admin cm,qid=1,port=4430 connect,qid=1 cm,qid=1,port=4420 connect,qid=1 read
}

# nvmet would pass the queue to nvmet-tcp, which takes it for one of its own, and writes behind it.
controller_of_another_transport() {
	need_core "has no nvme-tcp"
	export_over_tcp
	modprobe -q nvme-tcp || skip "no module nvme-tcp"
	run nvme connect -t tcp -a "$TARGET4" -s 4430 -n "$HOSTILE_NQN" -q "$HOSTILE_HOSTNQN" \
		-I "${HOSTILE_HOSTNQN##*:}" -i 1 -o json
	[[ $OUTPUT =~ \"(nvme[0-9]+)\" ]] || fail "no controller in: $OUTPUT"
	defer eval "nvme disconnect -d ${BASH_REMATCH[1]} >$SCRATCH/disconnect"
	answers 'cm accepted crqsize 32
connect 0x182' cm,qid=2 "connect,qid=2,cntlid=$(<"/sys/class/nvme/${BASH_REMATCH[1]}/cntlid")"
}

# A controller of this transport would have a queue that it cannot end.
queue_of_another_transport() {
	local go=$SCRATCH/go shown=$SCRATCH/shown
	export_over_tcp
	mkfifo "$go"
	exec {GO}<>"$go"
	PATIENCE=$((10000 * SLOWDOWN)) "$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" cm connect,show set stop io read bye \
		<&"$GO" >"$shown" &
	defer end_process $!
	wait_until "$SOON" grep -qx stop "$shown" || fail "$(<"$shown")"
	same "status of Connect over TCP" 0x182 "$(connect_over_tcp $(($(awk '/result/ { print $NF }' "$shown"))))"
	echo >&"$GO"
	wait_until "$SOON" grep -qx 'read 0x000' "$shown" || fail "$(<"$shown")"
}

# export_over_tcp: export the hostile host's subsystem by nvmet-tcp, too.
export_over_tcp() {
	local path=$NVMET/ports/4430
	modprobe -q nvmet-tcp || skip "no module nvmet-tcp"
	mkdir "$path"
	defer rmdir "$path"
	echo tcp >"$path/addr_trtype"
	echo ipv4 >"$path/addr_adrfam"
	echo "$TARGET4" >"$path/addr_traddr"
	echo 4430 >"$path/addr_trsvcid"
	target_export 4430 "$HOSTILE_NQN"
}

# connect_over_tcp CNTLID: send Connect for queue 1 of a controller by NVMe/TCP, and print its status.
connect_over_tcp() {
	local status
	exec {TCP}<>"/dev/tcp/$TARGET4/4430"
	{
		# ICReq, of 128 bytes.
		printf '\0\0\x80\0\x80\0\0\0' && zeroes 120
		# CapsuleCmd of 1096 bytes: its header, the command and the data.
		printf '\4\0\x48\x48\x48\4\0\0'
		printf '\x7f\x40\1\0\1' && zeroes 27 && printf '\0\4\0\0\0\0\0\1'
		printf '\0\0\1\0\x1f\0' && zeroes 18
		# shellcheck disable=SC2059 # the identifier, as two escaped bytes
		zeroes 16 && printf "$(printf '\\x%02x\\x%02x' $(($1 % 256)) $(($1 / 256)))" && zeroes 238
		printf %s "$HOSTILE_NQN" && zeroes $((256 - ${#HOSTILE_NQN}))
		printf %s "$HOSTILE_HOSTNQN" && zeroes $((512 - ${#HOSTILE_HOSTNQN}))
	} | dd bs=2048 iflag=fullblock status=none >&"$TCP"
	# ICResp, and a CapsuleResp, which ends with the status.
	status=$(timeout $((10 * SLOWDOWN)) head -c 152 <&"$TCP" | od -An -tu2 -j150 -w2 --endian=little)
	exec {TCP}>&-
	[ -n "$status" ] || return 1
	printf '0x%03x\n' $((status >> 1 & 0x7ff))
}

# zeroes COUNT: print bytes that are zero.
zeroes() {
	head -c "$1" /dev/zero
}

# nvmet gives a new controller the lowest identifier that is free. A reference that a refused Connect has lost
# keeps its controller, and the identifier.
refused_connects_keep_no_controller() {
	local first
	hostile cm connect,show
	first=$OUTPUT
	rdma_back_to "$OBJECTS"
	each_answers '0x182|0x00c' 'admin io cm,qid=1' connect,qid=1 connect,qid=1,hostnqn=none connect,qid=1,sqsize=0
	each_answers '0x182' cm connect,sqsize=0 connect,cntlid=1
	rdma_back_to "$OBJECTS"
	hostile cm connect,show
	same "new controller" "$first" "$OUTPUT"
}

connect_twice() {
	answers 'connect 0x00c
get 0x000' admin connect get
	answers 'connect 0x00c
read 0x000' admin io,qid=1 connect,qid=1 read
}

# Two Connect commands are parsed before one is executed. nvmet takes the controller from a queue whose
# second Connect has size 0; the queue must keep it.
two_connects_at_once() {
	# nvmet has no Connect for a queue that is connected: Invalid Command Opcode.
	answers 'cm accepted crqsize 32
wait 0x(000|001|182)( times 1)?
wait 0x(000|001|182)( times 1)?
get 0x000' cm connect,nowait connect,sqsize=0,nowait wait,count=2 get
}

# The queue identifiers of private data and Connect must be equal.
other_queue_identifier() {
	log_has_room
	answers 'cm accepted crqsize 32
connect 0x182' admin cm,qid=2 connect,qid=1
	same "lines in the log" 1 "$(logged 'queue 2: Connect refused: ')"
	answers 'cm accepted crqsize 32
connect 0x182' cm,qid=1 connect,qid=0
}

# An I/O queue on a connection for an admin queue, whose receives may have no memory for inline data.
io_queue_on_admin_connection() {
	answers 'cm accepted crqsize 32
connect 0x182' admin cm,qid=0 connect,qid=1
}

queue_identifier_beyond_the_controller() {
	answers 'cm (rejected reason 28 recfmt 0 sts 3|accepted crqsize 32)
connect (0x182|without a queue)' admin cm,qid=0x4000 connect,qid=0x4000
}

connect_with_a_queue_of_one() {
	answers 'cm accepted crqsize 32
connect 0x182' cm connect,sqsize=0
	answers 'cm accepted crqsize 32
connect 0x182' admin cm,qid=1 connect,qid=1,sqsize=0
}

# More entries than the receives of the connection.
connect_with_a_larger_queue() {
	each_answers 0x182 'admin cm,qid=1' connect,qid=1,sqsize=63 connect,qid=1,sqsize=0xffff
}

connect_of_another_format() {
	answers 'cm accepted crqsize 32
connect 0x180' cm connect,recfmt=1
}

connect_to_another_controller() {
	answers 'cm accepted crqsize 32
connect 0x182' cm connect,cntlid=1
}

connect_to_no_subsystem() {
	each_answers 0x182 cm connect,subnqn=nqn.2014-08.org.nvmexpress:none connect,subnqn= \
		"connect,subnqn=$(printf 'a%.0s' {1..256})"
}

connect_of_a_strange_host() {
	echo 0 >"$NVMET/subsystems/$HOSTILE_NQN/attr_allow_any_host"
	defer eval "echo 1 >$NVMET/subsystems/$HOSTILE_NQN/attr_allow_any_host"
	answers 'cm accepted crqsize 32
connect 0x184' cm connect
}

connect_data_of_another_length() {
	each_answers '0x00f|0x002' cm connect,len=0 connect,len=1 connect,len=512 connect,len=1023 \
		connect,len=1025 connect,len=4096 connect,len=0x300000
}

# The target must not take 1 MiB for the data of a host that has no controller. It refuses the length before it
# reads the data, so it does not find that the key is wrong.
connect_data_is_not_read_if_too_long() {
	each_answers 0x00f cm connect,len=0x100000,key=1 connect,len=1025,key=1
	each_answers 0x00f 'admin cm,qid=1' connect,qid=1,len=0x100000,key=1
}

# The admin queue has no data in capsules.
connect_data_in_the_capsule() {
	each_answers '0x002|0x00f|0x011|0x016|disconnected' cm connect,inline=1024,capsule=64 \
		connect,inline=1024
}

# An established connection may be idle. The target may end it after a time.
nothing_after_accept() {
	answers 'cm accepted crqsize 32
quiet (silent|disconnected)' cm quiet,ms=1000
}

main_with_known hostile_setup \
	good_host \
	short_private_data \
	unknown_record_format \
	queue_identifier_out_of_range \
	send_queue_of_one \
	receive_queue_of_none \
	admin_send_queue_too_large \
	larger_send_queue \
	largest_send_queue \
	larger_receive_queue \
	largest_receive_queue \
	unknown_controller \
	no_reads_at_the_host \
	no_admin_queue \
	same_queue_twice \
	controller_of_another_host \
	controller_that_ended \
	io_queue_through_another_port \
	controller_of_another_transport \
	queue_of_another_transport \
	refused_connects_keep_no_controller \
	connect_twice \
	two_connects_at_once \
	other_queue_identifier \
	io_queue_on_admin_connection \
	queue_identifier_beyond_the_controller \
	connect_with_a_queue_of_one \
	connect_with_a_larger_queue \
	connect_of_another_format \
	connect_to_another_controller \
	connect_to_no_subsystem \
	connect_of_a_strange_host \
	connect_data_of_another_length \
	connect_data_is_not_read_if_too_long \
	connect_data_in_the_capsule \
	refusals_fill_no_log \
	nothing_after_accept
