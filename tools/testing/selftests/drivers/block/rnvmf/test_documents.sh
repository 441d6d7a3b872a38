#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What the documents say that is typed, and what they say that is printed, is so: each literal block of
# theirs is a test, but for those that say why not. See pylib/documents.py for the comments that tell
# in which state of ours a block is true, and for the little that may be otherwise.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/documents.sh"

# Beside the tests, unless they lie over those of another tree.
DOCUMENTS=$HERE/documents
[ -e "$DOCUMENTS/README.md" ] ||
	DOCUMENTS=/opt/rnvmf/src/tools/testing/selftests/drivers/block/rnvmf/documents

# Commands that go on until they are told to end, and then end well.
ENDLESS='^(rnvmf (monitor|.* --(persistent|watch)( |$))|cat .*/trace_pipe)'

requirements() {
	need_root && need_modules rnvmf rdma_rxe nvmet-rdma veth null_blk &&
		need_programs rnvmf rdma ip nvme python3 setpriv nsenter
}

setup() {
	modprobe rnvmf && network_pair && RNVMF=(nsenter "--net=/run/netns/$HOST_NETNS" rnvmf) &&
		examples_are_addresses && host_is_known && targets || return 1
	[ ${#TESTS[@]} -gt 0 ] || return 1
	BLOCKS=$SCRATCH/blocks
	python3 "$HERE/documents.py" split "$DOCUMENTS" "$BLOCKS"
}

# A session as it really is: the block again, with what is printed now. The state is made once, and the
# commands follow one another; a command that goes on has been run by the state.
is_a_session() {
	local line made=
	grep -E '^[#$] ' "$BLOCK/text" >"$SCRATCH/typed"
	while read -r line <&4; do
		[ -n "$made" ] || "state_$STATE" "${line:2}"
		made=yes
		printf '%s\n' "$line" >>"$SCRATCH/found"
		if [[ ! ${line:2} =~ $ENDLESS ]]; then
			host "${line:0:1}"
			try "${HOST[@]}" bash -c "exec 2>&1; ${line:2}"
		fi
		[ -z "$OUTPUT" ] || printf '%s\n' "$OUTPUT" >>"$SCRATCH/found"
	done 4<"$SCRATCH/typed"
	is_as_written
}

is_as_written() {
	local difference line
	difference=$(python3 "$HERE/documents.py" compare "$BLOCK/text" "$SCRATCH/found") || {
		while IFS= read -r line; do
			note "$line"
		done <<<"$difference"
		fail "the block ${BLOCK##*/} is not what is printed"
	}
}

# Commands that have to succeed, in turn; the state is asked for before each.
are_commands() {
	local line
	cd "$SCRATCH"
	# Without -r: a line that ends with a backslash goes on.
	# shellcheck disable=SC2162
	while read line <&4; do
		"state_$STATE" "$line"
		succeeds "$line"
	done 4<"$BLOCK/text"
}

# succeeds COMMAND: one that goes on is told to end, which is no failure of ours.
succeeds() {
	local ends=0
	host '#'
	if [[ $1 =~ $ENDLESS ]]; then
		[[ $1 = rnvmf* ]] || ends=143
		expect $ends "${HOST[@]}" timeout --preserve-status -s TERM 3 bash -c "exec $1"
	else
		run "${HOST[@]}" bash -c "$1"
	fi
}

is_output() {
	"state_$STATE" "$(<"$BLOCK/text")"
	printf '%s\n' "$OUTPUT" >"$SCRATCH/found"
	is_as_written
}

# block NAME: as its marker says.
block() {
	local kind
	BLOCK=$BLOCKS/$1
	kind=$(<"$BLOCK/kind")
	STATE=$(<"$BLOCK/state")
	declare -F "state_$STATE" >/dev/null || fail "there is no state $STATE"
	case $kind in
	session) is_a_session ;;
	commands) are_commands ;;
	output) is_output ;;
	text) "state_$STATE" "$(<"$BLOCK/text")" ;;
	esac
}

# Every block is a test of its own, which is a function of its name.
mapfile -t TESTS < <(python3 "$HERE/documents.py" names "$DOCUMENTS")
for name in "${TESTS[@]}"; do
	eval "$name() { block $name; }"
done

main setup "${TESTS[@]}"
