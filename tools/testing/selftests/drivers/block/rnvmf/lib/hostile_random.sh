# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs hosts against targets that change replies at random. The target is hostile_target.c in its random
# mode; RANDOM_HOST is the program of the host. RANDOM_SEED in the environment selects another sequence. A test
# defines `disconnect_all` and `no_controllers`.

# The target completes each Asynchronous Event Request with an event, practically without end.
EVENTS=1000000
export EVENTS

# Number of changed replies in a long run.
ENOUGH=10000

# Longest time without a changed reply, in seconds.
STUCK=$((180 * SLOWDOWN))

# host NUMBER SEED STOP [COUNT]: run a host with its own target, COUNT times or until the file STOP
# exists.
host() {
	# shellcheck disable=SC2034 # of lib/hostile.sh
	local GUARDED=yes SERVICE=$((5000 + $1)) SCRATCH=$SCRATCH/$1 user
	# shellcheck disable=SC2034 # of the harness
	DEFERRED=()
	trap 'undo || exit "$KSFT_FAIL"' EXIT
	trap 'exit 143' TERM
	mkdir "$SCRATCH"
	hostile random "$2"
	SEEN=$SCRATCH/seen python3 -B "$RANDOM_HOST" "$TARGET4" "$SERVICE" "${@:2}" \
		>"$SCRATCH/outcomes" 2>&1 &
	user=$!
	defer end_process $user
	wait $user || fail "$(<"$SCRATCH/outcomes")"
	wait_until "$SOON" has_let_go || fail "the target has $(event_files) event files open, expected 2"
}

# broken_replies FILE...: print the number of changed replies in the targets' logs.
broken_replies() {
	cat "$@" 2>/dev/null | grep -c '^- broken ' || true
}

# outcomes: print the outcomes of all hosts, the most frequent first.
outcomes() {
	cat "$SCRATCH"/*/outcomes | awk '{ n = $1; $1 = ""; all[$0] += n }
		END { for (each in all) print all[each] each }' | sort -rn
}

# tell_outcomes: print the outcomes as diagnostic lines.
tell_outcomes() {
	local line
	while read -r line; do
		note "$line"
	done < <(outcomes | paste -sd ';' | fold -sw 100)
}

# start_hosts COUNT [TIMES]: start COUNT hosts. HOSTS has their PIDs.
start_hosts() {
	local number
	HOSTS=()
	defer rdma_objects_are_back
	defer disconnect_all
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
	note "$(broken_replies "$SCRATCH"/*/seen) changed replies"
	tell_outcomes
	no_controllers
}

# all_have_ended: whether all hosts have ended.
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
	[ "$(broken_replies "$SCRATCH"/*/seen)" -ge 20 ] || fail "fewer than 20 changed replies"
}

# The same with several targets, until ENOUGH replies were changed.
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
		[ $(($(now) - changed)) -lt $((STUCK * 1000)) ] || fail "no changed reply in $STUCK s"
		if [ $(($(now) - told)) -ge 60000 ]; then
			note "$broken changed replies so far"
			told=$(now)
		fi
	done
	: >"$SCRATCH/stop"
	hosts_end
}
