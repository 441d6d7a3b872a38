#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests loading and unloading of all samples and test modules, and their parameters.

. "$(dirname "$0")/lib.sh"

setup() {
	explain "$MEETS_THE_DRAIN"
	network
}

# Print the names of all samples, test modules and benchmarks, except those that cannot be loaded
# without parameters, or that are none of this crate.
samples() {
	local path
	for path in "/lib/modules/$(uname -r)"/updates/rrdma_*.ko; do
		path=${path##*/rrdma_}
		[[ $path =~ ^test_(late_timeout|liar|foreign_request|init_fails|leaks|no_cpu_groups|no_hctx|invalid_args)\.ko$ ]] || echo "${path%.ko}"
	done
}

# send_invalidate uses an invalidated rkey on purpose. The driver logs IB_WC_REM_ACCESS_ERR (10). test_qp_states
# posts a read on a connection without any.
refusal_is_told() {
	explain "rrdma_rxe[01]: qp#[0-9]+ make_send_cqe: non-flush error status = 10"
	explain 'rrdma: rrdma_rxe[01]: queue pair [0-9]+: RDMA read refused: the connection has an initiator depth of 0'
}

all_load_and_unload() {
	refusal_is_told
	local name count=0
	for name in $(samples); do
		for _ in 1 2; do
			sample_load "$name"
			sample_unload
		done
		count=$((count + 1))
	done
	[ $count -gt 0 ] || fail "no module rrdma_* is installed"
}

# A module that was built with another rrdma has another hash of the crate in each symbol that it needs. Here
# the hash is replaced in the module file, by one of the same length.
built_with_another_rrdma_is_refused() {
	explain '^rrdma_[a-z0-9_]+: Unknown symbol _R[A-Za-z0-9_]+_5rrdma[A-Za-z0-9_]+ \(err -2\)$'
	local hash file=$SCRATCH/module.ko
	load_module rrdma
	hash=$(sed -n 's/.*Cs\([0-9A-Za-z]*\)_5rrdma.*\[rrdma\]$/\1/p' /proc/kallsyms | sort -u)
	has "$hash" '^[0-9A-Za-z]+$'
	LC_ALL=C sed "s/Cs${hash}_5rrdma/Cs${hash//?/0}_5rrdma/g" \
		"/lib/modules/$(uname -r)/updates/rrdma_handshake.ko" >"$file"
	expect 1 insmod "$file"
	has "$ERRORS" 'Unknown symbol in module'
	[ "$(logged "Unknown symbol _R.*Cs${hash//?/0}_5rrdma")" -gt 0 ] || fail "the log names no symbol of rrdma"
	run modprobe -r rrdma
}

# Modules share the lockdep classes of rrdma. Lockdep reports a lock that another module gives another name.
several_at_once() {
	local name port=1000
	for name in handshake rc_pingpong ud_service; do
		run modprobe "rrdma_$name" port=$port
		defer modprobe -r "rrdma_$name"
		port=$((port + 1))
	done
}

all_tell_of_their_parameters() {
	refusal_is_told
	local name parameter told
	for name in $(samples); do
		sample_load "$name"
		told=$(modinfo -F parm "$SAMPLE")
		for parameter in "/sys/module/$SAMPLE/parameters"/*; do
			[ -e "$parameter" ] || continue
			has "$told" "${parameter##*/}:[^ ].* \((bool|uint from|string of)"
		done
		[ ! -e "$parameter" ] ||
			same "the modes of the parameters of $SAMPLE" 444 "$(stat -c %a "${parameter%/*}"/* | sort -u)"
		sample_unload
	done
}

values_are_shown() {
	sample_load handshake "server=$NOBODY4" qpn=0x10 psn=17
	same server "$NOBODY4" "$(</sys/module/rrdma_handshake/parameters/server)"
	same qpn 16 "$(</sys/module/rrdma_handshake/parameters/qpn)"
	same psn 17 "$(</sys/module/rrdma_handshake/parameters/psn)"
	same port 18515 "$(</sys/module/rrdma_handshake/parameters/port)"
}

last_value_counts() {
	sample_load handshake port=1000 port=2000
	same port 2000 "$(</sys/module/rrdma_handshake/parameters/port)"
}

numbers_out_of_range_are_refused() {
	local value
	for value in 0 65536 99999999999999999999 -1 1x x ''; do
		sample_refused handshake "port=$value"
		sample_says "^port=$value: invalid value: must be a number from 1 to 65535$" ||
			fail "port=$value is refused without a log line"
	done
	sample_refused handshake port
}

text_that_is_too_long_is_refused() {
	local text
	printf -v text '%063d' 0
	sample_load handshake "server=$text"
	sample_unload
	sample_refused handshake "server=0$text"
	sample_says "^server=0$text: invalid value: must be at most 63 printable characters$" ||
		fail "a string that is too long is refused without a log line"
	sample_refused handshake $'server=a\x7fb'
}

nothing_without_a_device() {
	sample_load handshake device=nosuch0
	sample_fails '^device: nosuch0 not found$'
	sample_unload
	sample_load handshake gid_index=1023
	sample_fails '^GID: ENODATA$|^GID: EINVAL$'
}

unloads_while_it_waits() {
	local began took
	sample_load handshake
	sample_waits '^local address'
	began=$(now)
	sample_unload
	took=$(($(now) - began))
	at_most "unloading took" $took 1000
	sample_says '^stopped at accept: the module is unloaded$' || fail "$(sample_log)"
	# Otherwise the connect fails when nobody has answered for the address for 3 s.
	run ip neighbour replace "$NOBODY4" dev "$CABLE" lladdr 02:00:00:00:00:99
	defer ip neighbour del "$NOBODY4" dev "$CABLE"
	sample_load handshake "server=$NOBODY4"
	sample_waits '^local address'
	sample_unload
	sample_says '^stopped at connect: the module is unloaded$' || fail "$(sample_log)"
}

ends_with_its_device() {
	network_spare
	sample_load handshake "device=$SPARE_DEVICE"
	sample_waits '^local address'
	sample_loses_device accept "$SPARE_DEVICE"
}

# Begin a dump while the module is being loaded, let loading fail, and read the rest of the dump. The module has a
# thread that waits for its stop.
dumps_wait_until_the_module_is_loaded() {
	local loader
	modprobe rrdma_test_init_fails 2>"$SCRATCH/modprobe" &
	loader=$!
	PYTHONPATH=$SELFTESTS/drivers/block/rnvmf/pylib run python3 - <<-'END'
		import errno
		import os
		import time

		import genl


		def family():
		    for _ in range(100):
		        try:
		            return genl.Socket("rrdma_test")
		        except genl.Refusal:
		            time.sleep(0.1)
		    raise SystemExit("no family")


		reader, other = family(), family()
		reader.send(b"\2\1\0\0", genl.REQUEST | genl.DUMP)
		reply = genl.Reply()
		try:
		    print("complete" if reader.part(reply) else "begun")
		except genl.Refusal as refusal:
		    print(errno.errorcode[refusal.errno])
		other.request(1)
		while os.path.exists("/sys/module/rrdma_test_init_fails"):
		    time.sleep(0.1)
		print(len(reader.socket.recv(1 << 17)) if reply.messages else "nothing")
	END
	! wait "$loader" || fail "the module was loaded"
	same "the result of a dump" "EBUSY nothing" "${OUTPUT//$'\n'/ }"
}

# Objects that the module has leaked, and that call its functions. Both cases are of the kernel's unload: the exit
# function has returned, or the init function has failed.
RELEASE=/sys/class/rrdma_leaks/leaked/release
LEAK_LINE='rrdma: rrdma_test_leaks: its unload has waited for [0-9]+ s for what it has not dropped: '
LEAKED='threads: 1, workqueues: 1, netlink families: 1, (disks: 1, tag sets: 1, )?classes of devices: 1, devices: 1, '
LEAKED+='(character devices: 1, )?RDMA clients: 1, observers of CM IDs: 1'

# The thread may have ended, if a test failed.
leaks_end() {
	[ ! -e "$RELEASE" ] || echo 1 >"$RELEASE"
}

# leaks_hold UNLOADER: the process must wait for the leaked objects, log that twice, and end with them. Other modules
# are loaded and unloaded meanwhile.
leaks_hold() {
	wait_for_log 30 "$LEAK_LINE$LEAKED$" || fail "no line about the leaks: $(kernel_log | tail -3)"
	run modprobe rrdma_handshake
	run modprobe -r rrdma_handshake
	wait_for_log 30 "$LEAK_LINE$LEAKED$" 2 || fail "no second line about the leaks"
	! process_ended "$1" || fail "the module was freed, but its objects are in use"
	leaks_end
	wait_until 10 process_ended "$1" || fail "the module is not freed after its objects"
	[ ! -d /sys/module/rrdma_test_leaks ] || fail "the module is still there"
	sample_says '^a work item runs, and then the thread ends$' || fail "$(sample_log)"
	! sample_says '^failed' || fail "$SAID"
}

leaks_are_waited_for_at_exit() {
	explain "$LEAK_LINE$LEAKED"
	sample_load test_leaks
	defer leaks_end
	wait_until 10 [ -e "$RELEASE" ] || fail "no device: $(sample_log)"
	# A program of the system may have the disk open for a moment.
	wait_until 10 modprobe -r "$SAMPLE" 2>"$SCRATCH/modprobe" &
	leaks_hold $!
}

leaks_are_waited_for_when_loading_fails() {
	explain "$LEAK_LINE$LEAKED"
	sample_mark test_leaks
	defer leaks_end
	expect 1 modprobe "$SAMPLE" fails=1 &
	leaks_hold $!
}

# The module is loaded only if the constructors refuse what they must.
constructors_refuse() {
	sample_load test_invalid_args
	sample_unload
}

main setup \
	dumps_wait_until_the_module_is_loaded \
	leaks_are_waited_for_at_exit \
	leaks_are_waited_for_when_loading_fails \
	all_load_and_unload \
	built_with_another_rrdma_is_refused \
	several_at_once \
	all_tell_of_their_parameters \
	constructors_refuse \
	values_are_shown \
	last_value_counts \
	numbers_out_of_range_are_refused \
	text_that_is_too_long_is_refused \
	nothing_without_a_device \
	unloads_while_it_waits \
	ends_with_its_device
