#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the commands and outputs in the documents: each literal block is a test, unless its marker
# says why not. pylib/documents.py describes the markers and the parts of the output that may vary.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/documents.sh"

# Beside the tests, or in the source tree of the test VM.
DOCUMENTS=$HERE/documents
[ -e "$DOCUMENTS/README.md" ] ||
	DOCUMENTS=/opt/rnvmf/src/tools/testing/selftests/drivers/block/rnvmf/documents

# Commands that run until a signal ends them.
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

# Run the commands of a session and compare their output with the block. The state is set up once,
# before the first command. An endless command has already been run by the state function.
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
		fail "the output differs from the block ${BLOCK##*/}"
	}
}

# Run each command of the block, which must succeed. The state is set up before each.
are_commands() {
	local line
	cd "$SCRATCH"
	# Without -r, so that a backslash at the end continues a line.
	# shellcheck disable=SC2162
	while read line <&4; do
		"state_$STATE" "$line"
		succeeds "$line"
	done 4<"$BLOCK/text"
}

# succeeds COMMAND: run a command, which must succeed. An endless one is ended by SIGTERM: rnvmf when it has
# printed something, another one after 3 s.
succeeds() {
	host '#'
	if [[ ! $1 =~ $ENDLESS ]]; then
		run "${HOST[@]}" bash -c "$1"
	elif [[ $1 = rnvmf* ]]; then
		started "$1"
		wait_until "$FOLLOWED" test -s "$SCRATCH/told" || fail "no output of $1"
		ended
	else
		expect 143 "${HOST[@]}" timeout --preserve-status -s TERM 3 bash -c "exec $1"
	fi
}

is_output() {
	"state_$STATE" "$(<"$BLOCK/text")"
	printf '%s\n' "$OUTPUT" >"$SCRATCH/found"
	is_as_written
}

# block NAME: test a block as its marker says.
block() {
	local kind
	BLOCK=$BLOCKS/$1
	kind=$(<"$BLOCK/kind")
	STATE=$(<"$BLOCK/state")
	declare -F "state_$STATE" >/dev/null || fail "unknown state $STATE in the marker"
	case $kind in
	session) is_a_session ;;
	commands) are_commands ;;
	output) is_output ;;
	text) "state_$STATE" "$(<"$BLOCK/text")" ;;
	esac
}

# Define a test function for each block.
mapfile -t TESTS < <(python3 "$HERE/documents.py" names "$DOCUMENTS")
for name in "${TESTS[@]}"; do
	eval "$name() { block $name; }"
done

main setup "${TESTS[@]}"
