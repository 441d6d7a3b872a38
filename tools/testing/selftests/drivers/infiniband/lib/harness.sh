# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Test harness: runs shell functions as tests and reports the results as KTAP.
#
# A test is a function. It runs in its own subshell under `set -e`. A command that fails unchecked
# fails the test, and the report names the command and its line. `fail REASON` ends a test as failed,
# `skip REASON` as skipped. `defer COMMAND` registers a command that undoes what a test or the set-up
# made. Deferred commands run in reverse order, however the test ends. A test also fails if a deferred
# command fails, or if the kernel reported a fault during the test.
#
# A file that sources the harness defines `requirements` with the `need_*` functions below. It may
# define `after_test`, which runs after the deferred commands and fails the test if it fails. SCRATCH
# is an empty directory for each test.

if [ -r "$SELFTESTS/kselftest/ktap_helpers.sh" ]; then
	# shellcheck source=/dev/null
	. "$SELFTESTS/kselftest/ktap_helpers.sh"
else
	. "$RDMA_LIB/ktap.sh"
fi

# Log lines that report a fault of the kernel. Python reads these patterns as well (vmlib, kitlib).
FAULTS='WARNING: |BUG: |BUG [^ ]+ \(.*\): |kernel BUG at|Oops|general protection fault'
FAULTS+='|KASAN: |KFENCE: |UBSAN: |refcount_t: |list_(add|del) corruption|Bad page state'
FAULTS+='|blocked for more than|(soft|hard) lockup|Workqueue .* lockup|rcu.*detected.* stalls?'
FAULTS+='|possible (recursive|circular) locking|possible deadlock|possible irq lock inversion'
FAULTS+='|inconsistent lock state|trying to register non-static key|suspicious RCU usage'
FAULTS+='|sleeping function called|scheduling while atomic|rust_kernel: .*panicked'
FAULTS+='|kmemleak: [0-9]+ new|kmemleak: .* disabled'

# Known faults of soft-RoCE. After packets out of order it completes an RDMA read without a status, and
# warns about that once. When a packet is queued, another processor may take it, and put the last reference
# to the queue pair, before the first one schedules the task; it then warns about the reference.
KNOWN_FAULTS='WARNING: .*at rxe_(completer|sched_task)[+]'

# Factor for all time limits; more than 1 on a debug kernel, and on CPUs that run freely (make test-races).
SLOWDOWN=${RNVMF_SLOWDOWN:-1}

# Factor for the run time of a file. With more than 1, tests that repeat an operation repeat it more
# often.
TIMES=${RNVMF_TIMES:-1}

# in_a_long_run THIS [OTHERWISE]: print THIS if TIMES is more than 1, else OTHERWISE.
in_a_long_run() {
	if [ "$TIMES" -gt 1 ]; then echo "$1"; else echo "${2:-}"; fi
}

# Time limit of a command that `try` or `run` runs, in seconds. A command takes a few seconds at most.
COMMAND_SECONDS=$((60 * SLOWDOWN))

DEFERRED=()

# Run these inside the shell, where bash has them as loadable builtins: an emulated machine needs 5 ms for a process.
for LOADABLE in ln mkdir rm rmdir sleep; do
	enable -f "$LOADABLE" "$LOADABLE" 2>/dev/null || true
done

# note TEXT...: print a diagnostic line, also where standard output is captured.
note() {
	printf '# %s\n' "$*" >&3
}

# fail REASON...: end the running test as failed.
fail() {
	note "$*"
	exit "$KSFT_FAIL"
}

# skip REASON...: end the running test as skipped, because the machine lacks something.
skip() {
	printf '%s\n' "$*" >"$SKIPPED"
	exit "$KSFT_SKIP"
}

# defer COMMAND...: run a command when the test ends; in the set-up, when the file ends.
defer() {
	local line
	printf -v line '%q ' "$@"
	DEFERRED+=("$line")
}

# Run the deferred commands, the last one first; fail if one fails.
undo() {
	local line status=0 count=${#DEFERRED[@]}
	while [ "$count" -gt 0 ]; do
		count=$((count - 1))
		line=${DEFERRED[count]}
		unset "DEFERRED[$count]"
		eval "$line" || {
			note "deferred command failed: $line"
			status=1
		}
	done
	return $status
}

# Sleep 100 ms without a new process.
pause() {
	read -rt 0.1 -u "$PAUSE_FD" || true
}

# wait_until SECONDS COMMAND...: repeat COMMAND until it succeeds; fail after SECONDS * SLOWDOWN. COMMAND runs once
# more then: on CPUs that run freely, this shell may not have run for most of the time.
wait_until() {
	local end=$((${EPOCHREALTIME/[.,]/} + $1 * SLOWDOWN * 1000000))
	shift
	until "$@"; do
		if [ "${EPOCHREALTIME/[.,]/}" -ge "$end" ]; then
			"$@"
			return $?
		fi
		pause
	done
}

# Print the uptime in milliseconds.
now() {
	local uptime _
	read -r uptime _ </proc/uptime
	echo $((10#${uptime/./} * 10))
}

# at_most WHAT MEASURED MOST: fail if MEASURED is more than MOST * SLOWDOWN, in milliseconds.
at_most() {
	[ "$2" -le $(($3 * SLOWDOWN)) ] || fail "$1 $2 ms, limit $(($3 * SLOWDOWN)) ms"
}

# within WHAT LEAST MEASURED MORE: fail unless MEASURED is LEAST to LEAST + MORE * SLOWDOWN, in milliseconds.
within() {
	local most=$(($2 + $4 * SLOWDOWN))
	(($3 >= $2 && $3 <= most)) || fail "$1 $3 ms, expected $2 to $most ms"
}

# takes MOST TRY [ARGUMENT...]: fail if one of three tries takes more than MOST * SLOWDOWN ms. TRY leaves the time
# that it measures in TOOK.
takes() {
	local most=$1 number
	shift
	for number in 1 2 3; do
		"$@"
		note "try $number took $TOOK ms"
		at_most "try $number took" "$TOOK" "$most"
	done
}

# on_time: whether times that the product does not stretch hold: not on a slow kernel, nor on CPUs that run freely.
on_time() {
	[ "$SLOWDOWN" = 1 ]
}

# try COMMAND...: run a command; fail if it exceeds COMMAND_SECONDS. Sets STATUS to its exit status,
# OUTPUT to its standard output, ERRORS to its standard error.
try() {
	STATUS=0
	timeout -k 5 "$COMMAND_SECONDS" "$@" >"$SCRATCH/output" 2>"$SCRATCH/errors" || STATUS=$?
	OUTPUT=$(<"$SCRATCH/output")
	ERRORS=$(<"$SCRATCH/errors")
	if [ "$STATUS" = 124 ] || [ "$STATUS" = 137 ]; then
		fail "timed out after $COMMAND_SECONDS s: $*: $OUTPUT $ERRORS"
	fi
}

# run COMMAND...: like `try`; fail if the command fails.
run() {
	try "$@"
	[ "$STATUS" = 0 ] || fail "exit status $STATUS from: $*: $OUTPUT $ERRORS"
}

# expect STATUS COMMAND...: like `try`; fail unless the command exits with STATUS.
expect() {
	local wanted=$1
	shift
	try "$@"
	[ "$STATUS" = "$wanted" ] ||
		fail "exit status $STATUS, expected $wanted, from: $*: $OUTPUT $ERRORS"
}

# same WHAT WANTED FOUND: fail unless WANTED and FOUND are equal; WHAT is for the message.
same() {
	[ "$2" = "$3" ] || fail "$1 is '$3', expected '$2'"
}

# has TEXT PATTERN: fail unless TEXT contains a match of the extended regular expression PATTERN.
has() {
	[[ $1 =~ $2 ]] || fail "'$1' does not match '$2'"
}

# clear_log: have dmesg skip what was logged until now. An emulated machine needs more time for a whole log than for
# many tests.
clear_log() {
	dmesg --clear
}

# start_log NAME: mark the start of a test in the kernel log.
start_log() {
	LOG_MARK="selftest $TEST_FILE $1 $EPOCHREALTIME"
	echo "$LOG_MARK" >/dev/kmsg
}

# log_after MARK [OPTION...]: set LOG to the lines of the kernel log after the one with MARK, as dmesg prints them
# with the options; fail if the log no longer has that line.
log_after() {
	local - mark=$1 IFS=$'\n' number=0
	shift
	set -o noglob
	# shellcheck disable=SC2207 # mapfile would read a byte at a time
	LOG=($(dmesg "$@"))
	until [[ ${LOG[number]} = *"$mark"* ]]; do
		number=$((number + 1))
		if [ $number -ge ${#LOG[@]} ]; then
			note "the kernel log no longer has the line '$mark': boot with log_buf_len=1M"
			return 1
		fi
	done
	LOG=("${LOG[@]:number + 1}")
}

# Print the kernel log since `start_log`, without the known faults.
kernel_log() {
	local LOG IFS=$'\n' log
	log_after "$LOG_MARK" || return 1
	log=${LOG[*]}
	if [[ $log != *'[ cut here ]'* ]]; then
		printf '%s' "${log:+$log$'\n'}"
		return 0
	fi
	awk -v known="$KNOWN_FAULTS" '
		/-\[ cut here \]-/ { trace = 1; kept = "" }
		!trace { print }
		trace { kept = kept $0 "\n" }
		trace && $0 ~ known { kept = ""; trace = 2 }
		trace && /-\[ end trace / { if (trace == 1) printf "%s", kept; trace = 0 }
		END { if (trace == 1) printf "%s", kept }' <<<"$log"
}

# logged PATTERN: print how many lines of `kernel_log` match.
logged() {
	local log
	log=$(kernel_log) || return 1
	grep -cE "$1" <<<"$log" || true
}

# logged_as LEVEL PATTERN: print how many kernel log lines have this level and match.
logged_as() {
	local LOG IFS=$'\n'
	log_after "$LOG_MARK" --decode || return 1
	grep -cE "^kern *:$1 *: .*($2)" <<<"${LOG[*]}" || true
}

# wait_for_log SECONDS PATTERN [COUNT]: wait until COUNT (default: 1) kernel log lines of this test match; fail after
# SECONDS * SLOWDOWN.
wait_for_log() {
	wait_for_log_after "$LOG_MARK" "$@"
}

# wait_for_log_after MARK SECONDS PATTERN [COUNT]: as wait_for_log, with the lines after the one with MARK. No process
# starts while it waits: a call of dmesg every 100 ms takes a third of an emulated CPU.
wait_for_log_after() {
	local mark=$1 pattern=$3 left=${4:-1} follow lines line last
	local end=$((${EPOCHREALTIME/[.,]/} + $2 * SLOWDOWN * 1000000))
	exec {follow}< <(exec dmesg --follow)
	last=$!
	exec {lines}< <(exec grep --line-buffered -E -e "$mark" -e "$pattern" <&"$follow")
	while [ "$left" -gt 0 ] && read_until "$end" "$lines"; do
		if [ -z "$mark" ]; then
			left=$((left - 1))
		elif [[ $line = *"$mark"* ]]; then
			mark=
		fi
	done
	kill "$last" 2>/dev/null || true
	exec {follow}<&- {lines}<&-
	[ "$left" = 0 ]
}

# read_until END FD: set `line` to the next line of a file; fail if there is none at END, in microseconds.
read_until() {
	local left=$(($1 - ${EPOCHREALTIME/[.,]/})) micros
	[ $left -gt 0 ] || return 1
	printf -v micros '%06d' $((left % 1000000))
	read -r -t "$((left / 1000000)).$micros" -u "$2" line
}

# Fail and print the faults, if the kernel reported any since `start_log`.
log_is_clean() {
	local log faults
	log=$(kernel_log) || return 1
	[[ $log =~ $FAULTS ]] || return 0
	faults=$(grep -E -A 30 "$FAULTS" <<<"$log" | head -60) || true
	[ -z "$faults" ] || {
		note "the kernel reported faults:"
		while read -r line; do
			note "  $line"
		done <<<"$faults"
		return 1
	}
}

# failed_at STATUS LINE COMMAND: report the command that failed; `set -e` alone only ends the test.
failed_at() {
	note "failed with status $1: ${BASH_SOURCE[1]##*/}:$2: $3"
}

# Names of the processes that run the tests of a VM: they wait for one another.
RUNNERS='main|busybox|selftests|ping|timeout|sed'

# Print the threads of user-space processes with their state and kernel stack: the test may have waited for one
# of them. One that has ended shows as a zombie.
note_processes() {
	local thread key value stack
	local -A fields
	for thread in /proc/[0-9]*/task/*; do
		fields=()
		while read -r key value; do
			fields[$key]=$value
		done <"$thread/status"
		[[ ${fields[Kthread:]:-1} = 0 && ! ${fields[Name:]} =~ ^($RUNNERS)$ ]] || continue
		stack=$(sed 's/.* //; s/+.*//; /^\(do_syscall_64\|entry_SYSCALL\)/d' "$thread/stack" | head -6 | paste -sd ' ')
		note "thread ${thread##*/} of ${fields[Tgid:]} (parent ${fields[PPid:]}): ${fields[Name:]}," \
			"${fields[State:]}: $stack"
	done
} 2>/dev/null

end_test() {
	local status=$?
	trap '' TERM INT
	trap - EXIT ERR
	set +e
	case $status in
	0 | "$KSFT_SKIP") ;;
	*) note_processes ;;
	esac
	undo || spoiled
	after_test || spoiled
	exit "$status"
}

# Change the status of a test that passed or was skipped to failed.
spoiled() {
	case $status in
	0 | "$KSFT_SKIP") status=$KSFT_FAIL ;;
	esac
}

after_test() {
	:
}

run_test() {
	# A fresh directory: no file of an earlier test can satisfy a wait of this one.
	local status=0 SKIPPED=$SCRATCH/skipped SCRATCH=$SCRATCH/$1
	clear_log
	start_log "$1"
	[ ! -e "$SKIPPED" ] || rm "$SKIPPED"
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
	# Other commands may exit with KSFT_SKIP; only `skip` writes the file.
	[ "$status" != "$KSFT_SKIP" ] || [ -e "$SKIPPED" ] || status=$KSFT_FAIL
	log_is_clean || status=$KSFT_FAIL
	report "$1" "$status"
}

# report TEST STATUS
report() {
	case $2 in
	0) ktap_test_pass "$1" ;;
	"$KSFT_SKIP")
		# ktap_test_skip() cannot print a reason.
		__ktap_test ok "$1" "SKIP $(<"$SKIPPED")"
		KTAP_CNT_SKIP=$((KTAP_CNT_SKIP + 1))
		;;
	*) ktap_test_fail "$1" ;;
	esac
}

# Handler of SIGTERM, by which the kselftest runner ends a test after its time-out.
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

# Last test of every file: undo the set-up, and fail if that fails or the kernel reports a fault.
leaves_nothing_behind() {
	clear_log
	start_log leaves_nothing_behind
	local status=$KSFT_PASS
	undo || status=$KSFT_FAIL
	log_is_clean || status=$KSFT_FAIL
	report leaves_nothing_behind "$status"
}

# Prepare the file: traps, SCRATCH and file descriptors. Must run before the first `defer`.
open_file() {
	CURRENT=
	trap end_file EXIT
	trap stopped TERM INT
	SCRATCH=$(mktemp -d "${TMPDIR:-/tmp}/selftest.XXXXXX") || exit "$KSFT_FAIL"
	defer rm -rf "$SCRATCH"
	exec 3>&1 {PAUSE_FD}<> <(:)
}

# choose TEST...: print the tests that the file's arguments choose: those that they name (none: all), without
# those that they name by `-TEST`.
choose() {
	local argument without=" " named=()
	for argument in "${ARGUMENTS[@]}"; do
		case $argument in
		-*) without+="${argument#-} " ;;
		*) named+=("$argument") ;;
		esac
	done
	[ ${#named[@]} = 0 ] || set -- "${named[@]}"
	for argument; do
		[[ $without == *" $argument "* ]] || echo "$argument"
	done
}

# main SETUP TEST...: run SETUP, then the tests that the file's arguments choose.
main() {
	local setup=$1 test tests
	shift
	mapfile -t tests < <(choose "$@")
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

# load_module MODULE [PARAMETER=VALUE...]: load a module if it is not loaded. modprobe takes a while to find that out.
load_module() {
	[ -d "/sys/module/${1//-/_}" ] || modprobe "$@"
}

# The need_* functions are for `requirements`. They skip the whole file if something is missing.

need_root() {
	[ "$(id -u)" = 0 ] || {
		ktap_skip_all "must be run as root"
		return 1
	}
}

# need_modules MODULE...
need_modules() {
	local module
	! modprobe -aqn "$@" || return 0
	for module; do
		modprobe -qn "$module" || {
			ktap_skip_all "module $module not found"
			return 1
		}
	done
}

# need_programs PROGRAM...
need_programs() {
	local program
	for program; do
		command -v "$program" >/dev/null || {
			ktap_skip_all "program $program not found"
			return 1
		}
	done
}
