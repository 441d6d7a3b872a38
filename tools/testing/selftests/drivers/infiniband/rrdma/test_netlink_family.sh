#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the sample netlink_family: its operations, and what the kernel refuses before the handlers.

. "$(dirname "$0")/lib.sh"

requirements() {
	need_root && need_modules rrdma_netlink_family && need_programs python3 setpriv
}

setup() {
	CLIENT=$SCRATCH/client.py
	chmod 755 "$SCRATCH"
	cat >"$CLIENT" <<-'END'
		"""client.py VERB [INDEX [VALUE [BITS]]]: print the reply, or the error with its extended ack."""
		import errno
		import struct
		import sys

		import genl


		def told(message):
		    found = dict(genl.attributes(message))
		    number = found[2]
		    value = struct.unpack("=I" if len(number) == 4 else "=Q", number)[0]
		    return f"{struct.unpack('=I', found[1])[0]} {value}"


		verb, numbers = sys.argv[1], [int(word, 0) for word in sys.argv[2:]]
		body = genl.attribute(1, struct.pack("=I", numbers[0])) if numbers else b""
		if len(numbers) > 1:
		    body += genl.attribute(2, struct.pack("=I" if numbers[2:] == [32] else "=Q", numbers[1]))
		flags = genl.REQUEST | (genl.DUMP if verb == "dump" else genl.ACK)
		try:
		    for message in genl.Socket("rrdma_numbers").request(1 if verb == "set" else 2, body, flags).messages:
		        print(told(message))
		except genl.Refusal as refusal:
		    print(errno.errorcode[refusal.errno], refusal.message or f"missing {refusal.missing}")
	END
	# Readable for everybody, as one case is an unprivileged process.
	cp "$SELFTESTS/drivers/block/rnvmf/pylib/genl.py" "$SCRATCH"
}

# asks WANTED ARGUMENT...: what the client prints.
asks() {
	run python3 -B "$CLIENT" "${@:2}"
	same "reply to ${*:2}" "$1" "$OUTPUT"
}

sets_and_gets() {
	sample_load netlink_family
	asks '3 0' get 3
	asks '' set 3 5 32
	asks '3 5' get 3
	asks '' set 3 6 64
	asks '3 6' get 3
	asks '' set 63 0x10000000000
	asks '63 1099511627776' get 63
}

dumps_all() {
	sample_load netlink_family
	asks '' set 1 7
	run python3 -B "$CLIENT" dump
	same "number of messages" 64 "$(wc -l <<<"$OUTPUT")"
	same messages $'0 0\n1 7\n2 0' "$(head -n 3 <<<"$OUTPUT")"
}

refuses_what_is_out_of_range() {
	sample_load netlink_family
	asks 'ERANGE integer out of range' set 64 1
	asks 'ERANGE integer out of range' set 0 0
	asks 'ERANGE integer out of range' set 0 0x10000000001
	asks 'ERANGE integer out of range' get 64
	asks 'EINVAL missing 2' set 0
	asks 'EINVAL missing 1' get
}

handler_refuses_with_a_sentence() {
	sample_load netlink_family
	asks '' set 2 9
	asks 'EINVAL not larger than 9' set 2 9
	asks '2 9' get 2
}

only_root_sets() {
	sample_load netlink_family
	run setpriv --reuid 65534 --clear-groups python3 -B "$CLIENT" set 0 1
	has "$OUTPUT" '^EPERM'
	run setpriv --reuid 65534 --clear-groups python3 -B "$CLIENT" get 0
	same reply '0 0' "$OUTPUT"
}

unloads_the_family() {
	sample_load netlink_family
	sample_unload
	run python3 -B "$CLIENT" get 0
	has "$OUTPUT" '^ENOENT'
}

main setup \
	sets_and_gets \
	dumps_all \
	refuses_what_is_out_of_range \
	handler_refuses_with_a_sentence \
	only_root_sets \
	unloads_the_family
