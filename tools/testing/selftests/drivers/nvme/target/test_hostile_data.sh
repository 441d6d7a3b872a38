#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests broken data descriptors and capsules of a hostile host. The expected statuses are those of the
# NVMe Base specification: Data SGL Length Invalid 0x00f, SGL Descriptor Type Invalid 0x011, SGL Offset
# Invalid 0x016. The table `known` has what a target does otherwise.

. "$(dirname "$0")/lib.sh"
check_after_each

# The port has the default limit of one page of inline data.
LIMIT=4096

inline_data() {
	answers 'write 0x000
write 0x000
read 0x000' admin io write,inline=4096 write,inline=512,nlb=0 read
}

# Offset and length exceed 64 bits.
inline_offset_wraps() {
	each_answers 0x016 'admin io' write,inline=4096,addr=0xfffffffffffff000 \
		write,inline=4096,addr=0xffffffffffffffff write,inline=4096,addr=0xfffffffffffff001 \
		write,inline=512,nlb=0,addr=0xfffffffffffffe00
}

inline_offset_beyond() {
	each_answers 0x016 'admin io' write,inline=4096,addr=1 write,inline=512,nlb=0,addr=$LIMIT \
		write,inline=512,nlb=0,addr=0x100000 write,inline=4096,addr=0x7fffffffffffffff
}

# Less data was received than the descriptor names.
inline_longer_than_capsule() {
	each_answers '0x00f|0x016' 'admin io' write,inline=4096,capsule=64 write,inline=4096,capsule=576 \
		write,inline=4096,capsule=4159 write,inline=512,nlb=0,capsule=575 \
		write,inline=512,nlb=0,addr=512,capsule=1087
}

inline_length_beyond_the_limit() {
	each_answers '0x00f|0x016|0x002' 'admin io' write,inline=8192,nlb=15,capsule=4160 \
		write,inline=4096,len=0xffffffff,capsule=4160 write,inline=4096,len=0x80000000,capsule=4160
}

# A longer message than a receive breaks the connection.
capsule_longer_than_a_receive() {
	each_answers disconnected 'admin io' write,inline=4608,nlb=8 write,inline=16384,nlb=31 \
		read,capsule=8000
}

# More data in the capsule than the descriptor names does no harm.
more_in_the_capsule() {
	answers 'write 0x000
read 0x0(00|0f)' admin io write,inline=512,nlb=0,capsule=4160 read,capsule=128
}

inline_data_for_the_host() {
	each_answers '0x002|0x011|0x00f' 'admin io' read,inline=4096 read,inline=4096,capsule=64
}

inline_data_of_no_bytes() {
	answers 'write (0x00f|0x016)
read 0x000' admin io write,inline=0 read
}

# An admin queue has no data in capsules.
inline_data_on_the_admin_queue() {
	each_answers '0x002|0x00f|0x011|0x016|disconnected' admin \
		set-features,inline=512,cdw10=0x81,capsule=64 auth-send,inline=64,capsule=64
}

# Nor has a connection for an admin queue that becomes an I/O queue.
inline_data_on_an_admin_connection() {
	each_answers '0x...|disconnected' 'admin cm,qid=0 connect,qid=1' write,inline=4096,capsule=64
}

# All types but 0 (data block) and 4 (keyed data block).
unknown_descriptor_types() {
	local type commands=()
	for type in 0x1 0x2 0x3 0x5 0x6 0x7 0x8 0x9 0xa 0xb 0xc 0xd 0xe 0xf; do
		commands+=("read,type=${type}0" "write,type=${type}f")
	done
	each_answers 0x011 'admin io' "${commands[@]}"
}

# Subtypes that are not an offset (type 0), or an address with or without invalidation (type 4).
unknown_descriptor_subtypes() {
	local subtype commands=()
	for subtype in 0 2 8 a f; do
		commands+=("write,inline=512,nlb=0,type=0x0$subtype")
	done
	for subtype in 1 2 8 a e; do
		commands+=("read,type=0x4$subtype")
	done
	each_answers '0x002|0x011' 'admin io' "${commands[@]}"
}

keyed_data_of_no_bytes() {
	each_answers 0x00f 'admin io' read,len=0 write,len=0 read,len=0,type=0x4f
	each_answers 0x00f admin identify,len=0
}

# The command has no data: the descriptor is ignored, or refused. Nothing is written to the host.
keyed_data_without_need() {
	# Keep Alive of a controller without a time-out is refused for that.
	local command line='(0x000|0x00f|0x01a)
changed 0'
	for command in flush,data=4096 flush,data=0x100000,type=0x4f zeroes,data=4096; do
		answers "${command%%,*} $line" admin io fill "$command" changed
	done
	for command in get,data=4096 keep-alive,data=8 set,data=0x1000 abort,data=512; do
		answers "${command%%,*} $line" admin fill "$command" changed
	done
}

# fill_memory: write to free pages, so that zeros from the target are its own.
fill_memory() {
	head -c 128M < <(yes rnvmf) >"$SCRATCH/filled"
	rm "$SCRATCH/filled"
}

# The host asks for more than the log has. The rest is zero, and not what was in the target's memory. A
# kernel that clears all pages (init_on_alloc=1, the default of Debian) hides the difference; the debug
# kernel does not.
log_longer_than_its_contents() {
	[ "$TARGET_DRIVER" != nvmet-rdma ] || skip "nvmet-rdma writes uninitialised pages to the host"
	fill_memory
	answers 'get-log 0x000
rest 0' admin fill get-log,cdw10=0xffff0001,cdw11=3,len=0x100000 rest
}

# The file of a namespace has become shorter since the last Identify. nvmet reads nothing, and reports success.
file_that_was_truncated() {
	[ "$TARGET_DRIVER" != nvmet-rdma ] || skip "nvmet-rdma writes uninitialised pages to the host"
	backend_file disk.img 32
	target_namespace "$HOSTILE_NQN" 2 "$BACKEND"
	defer target_namespace_delete "$HOSTILE_NQN" 2
	truncate -s 0 "$BACKEND"
	fill_memory
	answers 'read 0x000
rest 0' admin io fill read,nsid=2,len=0x100000,nlb=255 rest
}

# The same with a wrong key: there is no transfer that could fail.
wrong_key_without_need() {
	each_answers '0x000|0x00f' 'admin io' flush,len=4096 flush,len=0xffffff zeroes,len=4096 \
		flush,key=1,len=4096,type=0x4f
	each_answers '0x000|0x00f|0x01a' admin get,len=4096 keep-alive,len=8 set,len=0x1000
}

# A key without data must not be invalidated.
key_without_data() {
	answers 'flush 0x000
flush 0x000
read 0x000' admin io flush,key=0x12345678,type=0x40 flush,key=0x12345678,type=0x4f read
}

key_of_zero() {
	answers 'flush 0x000
read 0x000' admin io flush,key=0,type=0x4f read
	answers 'read (disconnected|broken)' admin io read,key=0,type=0x4f
}

length_other_than_the_blocks() {
	each_answers 0x00f 'admin io' read,len=100 read,len=511,nlb=0 read,len=513,nlb=0 write,len=1 \
		write,len=4095 write,inline=100,nlb=0 write,inline=1000,nlb=1
	each_answers '0x00f|0x002' 'admin io' read,len=512,nlb=0xffff write,len=4096,nlb=0xffff
}

# MDTS is 1 MiB. Both length and blocks exceed it.
longer_than_mdts() {
	each_answers 0x002 'admin io' read,len=0x200000,nlb=4095 write,len=0x200000,nlb=4095 \
		read,len=0x100200,nlb=2048
}

# Memory must not be allocated for a length that the command does not have.
length_beyond_the_blocks() {
	answers 'read (0x00f|0x002) times 32
read 0x000' admin io read,len=0xfffe00,count=32 read
}

capsule_shorter_than_a_command() {
	each_answers disconnected 'admin io' read,capsule=0 read,capsule=1 read,capsule=16 read,capsule=63
	each_answers disconnected admin get,capsule=0 get,capsule=63
	each_answers disconnected cm connect,capsule=63
}

# The bytes after the command may be ignored.
capsule_too_long_for_admin() {
	each_answers 'disconnected|0x000|0x002|0x00f' admin get,capsule=65 get,capsule=4160
}

# The target's RDMA READ or WRITE fails. That breaks the connection at both ends.
wrong_key() {
	each_answers disconnected 'admin io' write,key=0x12345678 read,key=0x12345678 \
		write,key=0xffffffff read,key=0xffffffff,type=0x4f
	each_answers disconnected cm connect,key=0x12345678
}

wrong_address() {
	each_answers disconnected 'admin io' write,addr=0 read,addr=0
	# The end of the data wraps around, which the target may check.
	each_answers '0x00f|disconnected' 'admin io' read,addr=0xfffffffffffff000
}

no_reads_allowed() {
	answers 'cm (rejected reason 28 recfmt 0 sts [78]|accepted crqsize 32)
connect (0x000|without a queue|disconnected|broken|silent)' cm,responder=0 connect
}

main_with_known hostile_setup \
	inline_data \
	inline_offset_wraps \
	inline_offset_beyond \
	inline_longer_than_capsule \
	inline_length_beyond_the_limit \
	capsule_longer_than_a_receive \
	more_in_the_capsule \
	inline_data_for_the_host \
	inline_data_of_no_bytes \
	inline_data_on_the_admin_queue \
	inline_data_on_an_admin_connection \
	unknown_descriptor_types \
	unknown_descriptor_subtypes \
	keyed_data_of_no_bytes \
	keyed_data_without_need \
	log_longer_than_its_contents \
	file_that_was_truncated \
	wrong_key_without_need \
	key_without_data \
	key_of_zero \
	length_other_than_the_blocks \
	longer_than_mdts \
	length_beyond_the_blocks \
	capsule_shorter_than_a_command \
	capsule_too_long_for_admin \
	wrong_key \
	wrong_address \
	no_reads_allowed
