#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests broken commands of a hostile host: opcodes, flags, identifiers and parameters. The expected
# statuses are those of the NVMe Base and NVM Command Set specifications. The table `known` has what a
# target does otherwise.

. "$(dirname "$0")/lib.sh"
check_after_each

# Any command but Connect on a queue without a controller: Command Sequence Error.
commands_before_connect() {
	each_answers 0x00c cm set get identify keep-alive flush read write event set-features disconnect
}

authentication_before_connect() {
	each_answers 0x00c cm auth-send auth-receive
	each_answers 0x00c 'admin cm,qid=1' auth-send auth-receive
}

# Connect still works on that connection.
connect_after_an_error() {
	answers 'cm accepted crqsize 32
flush 0x0..
connect 0x000
set 0x000' cm flush connect set
}

# The subsystem needs no authentication. A failed one ends the association.
authentication_not_asked_for() {
	each_answers '0x...|disconnected' admin auth-send auth-receive auth-send,cdw11=0xffffffff \
		auth-send,cdw11=0,len=0 auth-receive,cdw11=0xffffffff auth-receive,cdw11=8,len=8 \
		auth-send,len=0x300000,cdw11=0x300000 auth-send,cdw11=64,len=8
}

io_before_enable() {
	answers 'cm accepted crqsize 32
connect 0x000
identify 0x00c
cm accepted crqsize 32
connect 0x...
read 0x0(0c|..)' cm connect identify cm,qid=1 connect,qid=1 read
}

# Neither is supported: Invalid Field in Command.
fused_commands() {
	each_answers 0x002 'admin io' read,flags=0x41 read,flags=0x42 read,flags=0x43 write,flags=0x41 \
		flush,flags=0x42
	each_answers 0x002 admin identify,flags=0x41 get,flags=0x42
}

# PSDT must be 01b over fabrics.
other_data_pointers() {
	each_answers 0x002 'admin io' read,flags=0x00 read,flags=0x80 read,flags=0xc0 write,flags=0x00
	each_answers 0x002 admin identify,flags=0x00 get,flags=0x80
}

unknown_opcodes() {
	local opcode commands=()
	# Without data: the direction is part of the opcode.
	for opcode in 0x03 0x07 0x0f 0x10 0x20 0x40 0x7c 0x7e 0x80 0xc1 0xff; do
		commands+=("flush,op=$opcode")
	done
	each_answers 0x001 'admin io' "${commands[@]}"
	commands=()
	for opcode in 0x03 0x07 0x0b 0x0e 0x1f 0x40 0x7b 0x7e 0xc0 0xff; do
		commands+=("keep-alive,op=$opcode")
	done
	each_answers 0x001 admin "${commands[@]}"
}

unknown_fabrics_types() {
	local type commands=()
	for type in 2 3 7 9 0x7f 0x80 0xff; do
		commands+=("get,fctype=$type")
	done
	each_answers '0x001|0x002' admin "${commands[@]}"
}

# Queues are created by Connect only.
queue_creation() {
	each_answers 0x001 admin create-sq,len=0 create-cq,len=0 create-sq,op=0,len=0 create-sq,op=4,len=0
}

unknown_namespaces() {
	each_answers 0x00b 'admin io' read,nsid=0 read,nsid=2 read,nsid=0xffffffff write,nsid=0xfffffffe \
		flush,nsid=77 dsm,nsid=0
}

beyond_the_namespace() {
	each_answers 0x080 'admin io' read,slba=32768 read,slba=32765 read,slba=0xffffffffffffffff \
		read,slba=0xfffffffffffffff8 write,slba=0x8000000000000000 write,slba=32761 \
		zeroes,slba=32768 zeroes,slba=0xffffffffffffffff
}

unknown_properties() {
	each_answers 0x002 admin get,offset=0x1000 get,offset=0xffffffff get,attrib=1 set,offset=0 \
		set,attrib=1 set,offset=0x1c get,offset=1
}

unknown_identify() {
	each_answers 0x002 admin identify,cdw10=0xff identify,cdw10=0x04
}

# The namespace identifier is larger than the number of namespaces.
identify_of_no_namespace() {
	each_answers 0x00b admin identify,nsid=0xfffffffe,cdw10=0
}

log_pages_of_any_length() {
	answers 'get-log 0x0..
get 0x000' admin get-log,cdw10=0xff get
	each_answers '0x00f|0x002' admin get-log,cdw10=0xffff0002 get-log,cdw10=0x2 get-log,len=4096 \
		get-log,cdw11=0xffff
}

# An offset must be a multiple of 4, and within the page.
log_page_offsets() {
	each_answers '0x002' admin get-log,cdw12=2 get-log,cdw12=0xfffffffc get-log,cdw13=1
}

# A discovery controller: its log with other lengths and offsets, and commands that it does not have.
discovery_log_of_any_length() {
	local steps='cm connect,subnqn=nqn.2014-08.org.nvmexpress.discovery set' log=get-log,nsid=0,len=1024
	each_answers 0x000 "$steps" $log,cdw10=0x00ff0070 $log,cdw10=0x00ff0070,cdw12=1024
	each_answers '0x002|0x00f' "$steps" $log,cdw10=0x00ff0070,cdw12=0xfffffffc \
		$log,cdw10=0x00ff0070,cdw12=2 $log,cdw10=0x00ff0070,cdw12=0xfffffffc,cdw13=0xffffffff \
		$log,cdw10=0xffff0070,cdw11=0xffff $log,cdw10=0x00ff0070,len=512 $log,cdw10=0x00ff0071
	each_answers 0x001 "$steps" flush get-log,op=0x08,len=0 set-features,op=0x0d
}

features_of_any_value() {
	each_answers 0x002 admin set-features,cdw10=0xff set-features,cdw10=0 set-features,cdw11=0xffff0000 \
		set-features,op=0x0a,cdw10=0xff
}

ranges_beyond_the_data() {
	each_answers '0x00f|0x002' 'admin io' dsm,len=16,cdw10=255 dsm,len=0 dsm,len=15
}

# Four requests are held, the next one exceeds the limit.
too_many_event_requests() {
	answers 'event 0x105
get 0x000' admin event,count=4,nowait event get
}

aborts_of_anything() {
	answers 'abort 0x000
abort 0x000
get 0x000' admin abort,cdw10=0xffffffff abort,cdw10=0xffff0000 get
}

# Both are served, or one is refused.
command_identifier_in_use() {
	hostile admin io read,cid=7,count=2 read
	has "$OUTPUT" '^(read 0x000 times 2|read 0x003.read 0x000|read 0x000.read 0x003).read 0x000$'
}

keep_alive_of_any_time() {
	answers 'cm accepted crqsize 32
connect 0x000
set 0x000
get 0x000' cm connect,kato=0xffffffff set get
	answers 'cm accepted crqsize 32
connect 0x000
quiet disconnected' cm connect,kato=1 quiet,ms=$((4000 * SLOWDOWN))
}

shutdown_and_disable() {
	answers 'set 0x000
set 0x000
read 0x...' admin io use,queue=0 set,value=0x464001 set,value=0 use,queue=1 read
}

# A command's receive is posted again before its response, refused or not: a host that uses all its credits
# would find none (RNR NAK), and on iWARP the connection would end. The probes record the target's queue pairs
# only: a user's queue pair posts receives without a call.
receives_posted_before_responses() {
	local step steps=() expected=
	[ "$RDMA_TYPE" = rxe ] || skip "probes functions of soft-RoCE"
	[[ ${PARAMETERS:-} != *use_srq=1* ]] || skip "probes queues with their own receives"
	for step in flush flush,op=0x03 read,flags=0 read,nsid=2 read flush,type=0x33 \
		write,inline=4096 write,inline=4096,flags=0 write,inline=4096,nsid=2 write,inline=4096,type=0x33; do
		steps+=("$step")
		expected+="receive send "
	done
	probe_posts
	mkfifo "$SCRATCH/go"
	exec {GO}<>"$SCRATCH/go"
	"$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" admin io stop "${steps[@]}" stop bye <&"$GO" >"$SCRATCH/posts" &
	defer end_process $!
	wait_until "$SOON" grep -qx stop "$SCRATCH/posts" || fail "$(<"$SCRATCH/posts")"
	trace_start rnvmf
	echo >&"$GO"
	wait_until "$SOON" stopped_twice || fail "$(<"$SCRATCH/posts")"
	same "order of posts" "$expected" "$(posts)"
	echo >&"$GO"
}

stopped_twice() {
	[ "$(grep -cx stop "$SCRATCH/posts")" = 2 ]
}

probe_posts() {
	{
		# shellcheck disable=SC2016 # $arg1 is of the kernel
		echo 'p:rnvmf/send rxe_post_send qp=$arg1'
		# shellcheck disable=SC2016
		echo 'p:rnvmf/receive rxe_post_recv qp=$arg1'
	} >>/sys/kernel/tracing/kprobe_events || fail "cannot create the probes"
	defer forget_posts
}

forget_posts() {
	printf -- '-:rnvmf/%s\n' send receive >>/sys/kernel/tracing/kprobe_events
}

# posts: print the recorded posts to queue pairs with posted receives, in order.
posts() {
	awk '!/^#/ && match($0, / (send|receive): /) {
			kind[++n] = substr($0, RSTART + 1, RLENGTH - 3); qp[n] = $NF
			if (kind[n] == "receive") own[qp[n]]
		}
		END { for (i = 1; i <= n; i++) if (qp[i] in own) printf "%s ", kind[i] }' "$TRACE/trace"
}

main_with_known hostile_setup \
	receives_posted_before_responses \
	commands_before_connect \
	authentication_before_connect \
	connect_after_an_error \
	authentication_not_asked_for \
	io_before_enable \
	fused_commands \
	other_data_pointers \
	unknown_opcodes \
	unknown_fabrics_types \
	queue_creation \
	unknown_namespaces \
	beyond_the_namespace \
	unknown_properties \
	unknown_identify \
	identify_of_no_namespace \
	log_pages_of_any_length \
	log_page_offsets \
	discovery_log_of_any_length \
	features_of_any_value \
	ranges_beyond_the_data \
	too_many_event_requests \
	aborts_of_anything \
	command_identifier_in_use \
	keep_alive_of_any_time \
	shutdown_and_disable
