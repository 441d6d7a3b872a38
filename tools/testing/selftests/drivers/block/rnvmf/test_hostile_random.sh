#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A target that breaks replies at random: whatever a host does ends as it is documented, and nothing
# is left of it.
#
# The target is hostile_target.c, in its random mode; hostile_random.py is the host. RANDOM_SEED in the
# environment is for other runs.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/hostile.sh"

# It tells of an event whenever it is asked for one, as good as without end.
EVENTS=1000000
export EVENTS

# How many replies are broken in a long run.
ENOUGH=10000

# So long may pass without one.
STUCK=$((180 * SLOWDOWN))

setup() {
	modprobe rnvmf && modprobe rdma_ucm && network_single && hostile_build || return 1
	OBJECTS=$(rdma_objects)
}

# host NUMBER SEED STOP [COUNT]: a host and a target of its own, until there is a file STOP.
host() {
	local GUARDED=yes SERVICE=$((5000 + $1)) SCRATCH=$SCRATCH/$1 user
	DEFERRED=()
	trap 'undo || exit "$KSFT_FAIL"' EXIT
	trap 'exit 143' TERM
	mkdir "$SCRATCH"
	hostile random "$2"
	SEEN=$SCRATCH/seen python3 -B "$HERE/hostile_random.py" "$TARGET4" "$SERVICE" "${@:2}" \
		>"$SCRATCH/outcomes" 2>&1 &
	user=$!
	defer end_process $user
	wait $user || fail "$(<"$SCRATCH/outcomes")"
	wait_until 10 has_let_go || fail "the target has $(event_files) files of events"
}

# broken_replies FILE...: how many there are in what targets have seen.
broken_replies() {
	cat "$@" 2>/dev/null | grep -c '^- broken ' || true
}

# outcomes: of all hosts, the most frequent first.
outcomes() {
	cat "$SCRATCH"/*/outcomes | awk '{ n = $1; $1 = ""; all[$0] += n }
		END { for (each in all) print all[each] each }' | sort -rn
}

# tell_outcomes: what came of what, in some lines.
tell_outcomes() {
	local line
	while read -r line; do
		note "$line"
	done < <(outcomes | paste -sd ';' | fold -sw 100)
}

# start_hosts COUNT [TIMES]: so many at once; their processes are in HOSTS.
start_hosts() {
	local number
	HOSTS=()
	defer rdma_objects_are_back
	defer rnvmf disconnect-all
	for ((number = 1; number <= $1; number++)); do
		host "$number" $((${RANDOM_SEED:-0} * 100 + number)) "$SCRATCH/stop" "${@:2}" &
		HOSTS+=($!)
		defer end_process $!
	done
}

hosts_end() {
	local host
	for host in "${HOSTS[@]}"; do
		wait "$host" || fail "a host failed"
	done
	note "$(broken_replies "$SCRATCH"/*/seen) broken replies"
	tell_outcomes
	has "$(rnvmf show -o json)" '"controllers":\[\]'
}

# all_have_ended: whether all have ended.
all_have_ended() {
	local host
	for host in "${HOSTS[@]}"; do
		process_ended "$host" || return 1
	done
}

breaks_replies_at_random() {
	start_hosts 2 12
	wait_until 150 all_have_ended || : >"$SCRATCH/stop"
	hosts_end
	[ "$(broken_replies "$SCRATCH"/*/seen)" -ge 20 ] || fail "so few were broken"
}

# The same with several targets at once, until there were very many.
breaks_replies_for_long() {
	local broken=0 number told changed host
	told=$(now)
	changed=$told
	start_hosts 6
	until [ "$broken" -ge $ENOUGH ]; do
		for host in "${HOSTS[@]}"; do
			! process_ended "$host" || fail "a host ended"
		done
		sleep 5
		number=$(broken_replies "$SCRATCH"/*/seen)
		[ "$number" = "$broken" ] || changed=$(now)
		broken=$number
		[ $(($(now) - changed)) -lt $((STUCK * 1000)) ] || fail "nothing is broken any more"
		if [ $(($(now) - told)) -ge 60000 ]; then
			note "$broken broken replies so far"
			told=$(now)
		fi
	done
	: >"$SCRATCH/stop"
	hosts_end
}

# shellcheck disable=SC2046 # none, where the run is not long
main setup \
	breaks_replies_at_random \
	$(in_a_long_run breaks_replies_for_long)
