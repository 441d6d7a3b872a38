# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Runs functions as tests and reports them as KTAP.
#
# A test is a function. It runs in a subshell of its own under `set -e`: a command that fails, and
# that no one asked about, fails the test, and the report names the command and its line. `fail`
# says why; `skip` says why it cannot be done here. What a test or the set-up makes, it gives to
# `defer` to undo: the last made is undone first, however the test ends. A test also fails when
# undoing fails, and when the kernel reported a fault meanwhile. Who uses this defines
# `requirements` of what follows at the end, and may define `after_test`, which runs when all has
# been undone, and without which nothing more is asked. SCRATCH is an empty directory, each test's
# own.

if [ -r "$SELFTESTS/kselftest/ktap_helpers.sh" ]; then
	# shellcheck source=/dev/null
	. "$SELFTESTS/kselftest/ktap_helpers.sh"
else
	. "$RDMA_LIB/ktap.sh"
fi

# What a kernel says when it is broken.
FAULTS='WARNING: |BUG: |kernel BUG at|Oops|general protection fault|KASAN: |KFENCE: |UBSAN: '
FAULTS+='|blocked for more than|possible (recursive|circular) locking|possible deadlock'
FAULTS+='|inconsistent lock state|possible irq lock inversion|suspicious RCU usage'
FAULTS+='|refcount_t: |list_(add|del) corruption|(soft|hard) lockup|rcu.*detected.*stall'
FAULTS+='|sleeping function called|scheduling while atomic|rust_kernel: .*panicked'
FAULTS+='|Bad page state|kmemleak: [0-9]+ new'

# What is known and not ours: after packets out of order, soft-RoCE ends a read without a status, and
# warns of that once.
KNOWN_FAULTS='WARNING: .*at rxe_completer[+]'

# On a kernel that checks itself everything takes so many times longer.
SLOWDOWN=${RNVMF_SLOWDOWN:-1}

# A file may take so many times longer. If that is more than once, what is repeated is repeated more
# often.
TIMES=${RNVMF_TIMES:-1}

# in_a_long_run THIS [OTHERWISE]: says what is for such a run, or what is for others.
in_a_long_run() {
	if [ "$TIMES" -gt 1 ]; then echo "$1"; else echo "${2:-}"; fi
}

# Longest time a command run by `try` or `run` may take, in seconds. None needs more than a few;
# this is for emulated machines under load.
COMMAND_SECONDS=$((60 * SLOWDOWN))

DEFERRED=()

# Say something about the test that runs; also where standard output is captured.
note() {
	printf '# %s\n' "$*" >&3
}

# End the test that runs: it failed, for this reason.
fail() {
	note "$*"
	exit "$KSFT_FAIL"
}

# End the test that runs: it needs what this machine has not got, for this reason.
skip() {
	printf '%s\n' "$*" >"$SKIPPED"
	exit "$KSFT_SKIP"
}

# Undo something when the test, or the file, ends: the arguments are a command.
defer() {
	local line
	printf -v line '%q ' "$@"
	DEFERRED+=("$line")
}

undo() {
	local line status=0 count=${#DEFERRED[@]}
	while [ "$count" -gt 0 ]; do
		count=$((count - 1))
		line=${DEFERRED[count]}
		unset "DEFERRED[$count]"
		eval "$line" || {
			note "undoing failed: $line"
			status=1
		}
	done
	return $status
}

# Wait for a moment without making a process.
pause() {
	read -rt 0.1 -u "$PAUSE_FD" || true
}

# wait_until SECONDS COMMAND...: whether COMMAND succeeds in that time, on a machine that is not slow.
wait_until() {
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * SLOWDOWN * 1000000))
	shift
	until "$@"; do
		[ "${EPOCHREALTIME/[.,]/}" -lt "$end" ] || return 1
		pause
	done
}

# The time since the machine started, in milliseconds.
now() {
	local uptime _
	read -r uptime _ </proc/uptime
	echo $((10#${uptime/./} * 10))
}

# within WHAT LEAST MEASURED MOST: it was between the two, in milliseconds.
within() {
	(($3 >= $2 && $3 <= $4)) || fail "$1 $3 ms, which is not $2 to $4"
}

# one_takes MOST TRY [ARGUMENT...]: TRY, which leaves in TOOK how long something took, finds three
# times that it takes no more than so many milliseconds, before it has found three times that it takes
# more. What else a machine does may hold it up, but not more often than not.
one_takes() {
	local most=$(($1 * SLOWDOWN)) tries=() within=0 beyond=0
	shift
	while [ $within -lt 3 ] && [ $beyond -lt 3 ]; do
		"$@"
		tries+=("$TOOK")
		if [ "$TOOK" -le $most ]; then
			within=$((within + 1))
		else
			beyond=$((beyond + 1))
		fi
	done
	note "it took ${tries[*]} ms, and may take $most"
	[ $within = 3 ] || fail "it took more than $most ms too often: ${tries[*]}"
}

# Run a command that must not hang; its status is in STATUS, what it said in OUTPUT and ERRORS.
try() {
	STATUS=0
	timeout -k 5 "$COMMAND_SECONDS" "$@" >"$SCRATCH/output" 2>"$SCRATCH/errors" || STATUS=$?
	OUTPUT=$(<"$SCRATCH/output")
	ERRORS=$(<"$SCRATCH/errors")
	if [ "$STATUS" = 124 ] || [ "$STATUS" = 137 ]; then
		fail "took longer than $COMMAND_SECONDS s: $*"
	fi
}

# Like `try`, for a command that must succeed.
run() {
	try "$@"
	[ "$STATUS" = 0 ] || fail "status $STATUS from: $*: $OUTPUT $ERRORS"
}

# expect STATUS COMMAND...: like `try`, for a command that must end with this status.
expect() {
	local wanted=$1
	shift
	try "$@"
	[ "$STATUS" = "$wanted" ] ||
		fail "status $STATUS and not $wanted from: $*: $OUTPUT $ERRORS"
}

# same WHAT WANTED FOUND
same() {
	[ "$2" = "$3" ] || fail "$1 is '$3' and not '$2'"
}

# has TEXT PATTERN: TEXT must contain a match of the extended regular expression.
has() {
	[[ $1 =~ $2 ]] || fail "'$1' does not match '$2'"
}

start_log() {
	LOG_MARK="selftest $TEST_FILE $1 $EPOCHREALTIME"
	echo "$LOG_MARK" >/dev/kmsg
}

# What the kernel said since `start_log`, without the faults that are known.
kernel_log() {
	dmesg | sed "1,/$LOG_MARK/d" | awk -v known="$KNOWN_FAULTS" '
		/-\[ cut here \]-/ { trace = 1; kept = "" }
		!trace { print }
		trace { kept = kept $0 "\n" }
		trace && $0 ~ known { kept = ""; trace = 2 }
		trace && /-\[ end trace / { if (trace == 1) printf "%s", kept; trace = 0 }
		END { if (trace == 1) printf "%s", kept }'
}

# logged PATTERN: how many of these lines match.
logged() {
	kernel_log | grep -cE "$1" || true
}

# logged_as LEVEL PATTERN: how many of the kernel's lines are of this level and match.
logged_as() {
	dmesg --decode | sed "1,/$LOG_MARK/d" | grep -cE "^kern *:$1 *: .*($2)" || true
}

log_is_clean() {
	local faults
	faults=$(kernel_log | grep -E -A 30 "$FAULTS" | head -60) || true
	[ -z "$faults" ] || {
		note "the kernel reported:"
		while read -r line; do
			note "  $line"
		done <<<"$faults"
		return 1
	}
}

# Names the command that failed, for `set -e` only ends the test.
failed_at() {
	note "failed with status $1: ${BASH_SOURCE[1]##*/}:$2: $3"
}

end_test() {
	local status=$?
	trap '' TERM INT
	trap - EXIT ERR
	set +e
	undo || spoiled
	after_test || spoiled
	exit "$status"
}

# spoiled: what comes after a test that did not fail makes it fail.
spoiled() {
	case $status in
	0 | "$KSFT_SKIP") status=$KSFT_FAIL ;;
	esac
}

after_test() {
	:
}

run_test() {
	# What an earlier test wrote must not look like what this one waits for.
	local status=0 SKIPPED=$SCRATCH/skipped SCRATCH=$SCRATCH/$1
	start_log "$1"
	rm -f "$SKIPPED"
	mkdir "$SCRATCH"
	(
		DEFERRED=()
		trap end_test EXIT
		trap 'exit 143' TERM INT
		set -eE -o pipefail
		trap 'failed_at $? $LINENO "$BASH_COMMAND"' ERR
		"$1"
	) &
	CURRENT=$!
	wait "$CURRENT" || status=$?
	CURRENT=
	rm -rf "$SCRATCH"
	# Other commands end with that status, too.
	[ "$status" != "$KSFT_SKIP" ] || [ -e "$SKIPPED" ] || status=$KSFT_FAIL
	log_is_clean || status=$KSFT_FAIL
	report "$1" "$status"
}

# report TEST STATUS
report() {
	case $2 in
	0) ktap_test_pass "$1" ;;
	"$KSFT_SKIP")
		# Not by ktap_test_skip, which has no place for the reason.
		__ktap_test ok "$1" "SKIP $(<"$SKIPPED")"
		KTAP_CNT_SKIP=$((KTAP_CNT_SKIP + 1))
		;;
	*) ktap_test_fail "$1" ;;
	esac
}

# The kselftest runner ends a test that takes too long with SIGTERM.
stopped() {
	trap '' TERM INT
	if [ -n "$CURRENT" ]; then
		kill -TERM "$CURRENT"
		wait "$CURRENT"
	fi
	note "stopped"
	exit 143
}

end_file() {
	local status=$?
	trap '' TERM INT
	trap - EXIT
	undo || [ $status != 0 ] || status=$KSFT_FAIL
	exit "$status"
}

# As the last test of every file: all of the above must have been temporary.
leaves_nothing_behind() {
	start_log leaves_nothing_behind
	local status=$KSFT_PASS
	undo || status=$KSFT_FAIL
	log_is_clean || status=$KSFT_FAIL
	report leaves_nothing_behind "$status"
}

# What comes before the first `defer` of a file.
open_file() {
	CURRENT=
	trap end_file EXIT
	trap stopped TERM INT
	SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/selftest.XXXXXX") || exit "$KSFT_FAIL"
	defer rm -rf "$SCRATCH"
	exec 3>&1 {PAUSE_FD}<> <(:)
}

# main SETUP TEST...: run the tests, or those of them that the file's arguments name.
main() {
	local setup=$1 test
	shift
	local tests=("$@")
	[ ${#ARGUMENTS[@]} = 0 ] || tests=("${ARGUMENTS[@]}")
	ktap_print_header
	requirements || exit "$KSFT_SKIP"
	ktap_set_plan $((${#tests[@]} + 1))
	open_file
	start_log setup
	if ! "$setup"; then
		echo "Bail out! $setup failed"
		exit "$KSFT_FAIL"
	fi
	for test in "${tests[@]}"; do
		run_test "$test"
	done
	leaves_nothing_behind
	ktap_finished
}

# What the file needs, from `requirements`, which it defines; says what is missing.
need_root() {
	[ "$(id -u)" = 0 ] || {
		ktap_skip_all "must be run as root"
		return 1
	}
}

# need_modules MODULE...
need_modules() {
	local module
	for module; do
		modprobe -qn "$module" || {
			ktap_skip_all "there is no module $module"
			return 1
		}
	done
}

# need_programs PROGRAM...
need_programs() {
	local program
	for program; do
		command -v "$program" >/dev/null || {
			ktap_skip_all "there is no program $program"
			return 1
		}
	done
}
