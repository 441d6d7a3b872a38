# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Entry point of the tests of nvmet's RDMA transport.
#
# TARGET_DRIVER is the module that is tested: nvmet_rdma_rust, or nvmet-rdma. HOST_DRIVER is the host:
# nvme-rdma, nvme_rdma_rust or rnvmf. PARAMETERS are those of the target's module, such as "use_srq=1".
# Network, target, hosts and I/O are those of the tests of the hosts.

TARGET_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if [ -z "${TARGET_DRIVER:-}" ]; then
	TARGET_DRIVER=nvmet_rdma_rust
	modprobe -qn $TARGET_DRIVER || TARGET_DRIVER=nvmet-rdma
fi
HOST_DRIVER=${HOST_DRIVER:-nvme-rdma}

# shellcheck disable=SC2034 # read by the host's library
DRIVER=$HOST_DRIVER
case $HOST_DRIVER in
rnvmf)
	. "$TARGET_HERE/../../block/rnvmf/lib.sh"
	load_driver() {
		modprobe rnvmf
	}
	;;
*) . "$TARGET_HERE/../rdma_rust/lib.sh" ;;
esac

# shellcheck disable=SC2034 # read by target_load
read -ra TARGET_PARAMETERS <<<"${PARAMETERS:-}"

requirements() {
	need_root && need_modules nvme-core "$HOST_DRIVER" rdma_rxe "$TARGET_DRIVER" dummy veth null_blk &&
		need_programs rdma ip fio nvme nft
}

# host_is_rnvmf: whether the host is rnvmf, which has no nvme-core.
host_is_rnvmf() {
	[ "$HOST_DRIVER" = rnvmf ]
}

target_is_c() {
	[ "$TARGET_DRIVER" = nvmet-rdma ]
}

# The name of the target's module in /sys/module, and in `rdma resource`.
# shellcheck disable=SC2034 # read by the tests
TARGET_MODULE=${TARGET_DRIVER//-/_}

# need_core: skip the test if the host cannot do what only nvme-core can.
need_core() {
	! host_is_rnvmf || skip "rnvmf $1"
}

# Known failures.

# known CASE: print the rest of the line in the table of known failures; fail if there is none. With ALL in
# the environment there are none.
known() {
	[ -z "${ALL:-}" ] || return 1
	awk -v driver="$TARGET_DRIVER" -v name="$1" '
		($1 == driver || $1 == "nvmet") && $2 == name {
			$1 = $2 = ""; print substr($0, 3); found = 1
		}
		END { exit !found }' "$TARGET_HERE/known"
}

# main_with_known SETUP TEST...: like `main`, with known failures reported as skipped, and known crashes not run.
main_with_known() {
	local test what
	for test in "${@:2}"; do
		what=$(known "$test") || continue
		case $what in
		'crashes '*) eval "$test() { skip \"known to crash: ${what#* }\"; }" ;;
		*)
			eval "known_$(declare -f "$test")"
			eval "$test() { fails_as_known known_$test \"${what#* }\"; }"
			;;
		esac
	done
	main "$@"
}

# fails_as_known TEST REASON: run a test that must fail. What is checked after each test must not: leaks,
# the good host, the kernel log.
fails_as_known() {
	local status=0
	# In the background, where `set -e` has its effect.
	(
		DEFERRED=()
		trap undo EXIT
		set -eE -o pipefail
		"$1"
	) &
	wait $! || status=$?
	case $status in
	0) fail "a known failure passes: remove it from $TARGET_HERE/known" ;;
	"$KSFT_SKIP") exit "$KSFT_SKIP" ;;
	esac
	skip "known failure: $2"
}

# I/O.

# compare SIZE [DISK]: write SIZE bytes in one request to the disk of CTRL, read them back and compare.
compare() {
	local size=$1 disk=${2:-}
	[ -n "$disk" ] || disk=$(disk "$CTRL" 1)
	head -c "$size" /dev/urandom >"$SCRATCH/wrote"
	run dd if="$SCRATCH/wrote" of="$disk" bs="$size" oflag=direct
	run dd if="$disk" of="$SCRATCH/read" bs="$size" count=1 iflag=direct
	cmp "$SCRATCH/wrote" "$SCRATCH/read" || fail "read data differs from written data"
}

# Connect a host, do I/O and disconnect.
target_serves() {
	connect "$TARGET4"
	compare 4096
	compare 65536
	disconnect "$CTRL"
}

# The hostile host.

HOSTILE_NQN=$NQN-hostile

# The name of hostile_host.
# shellcheck disable=SC2034 # read by the tests
HOSTILE_HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:5e1f7e57-0000-4000-8000-00000000000b

# hostile_setup: create a network, a subsystem for good hosts, and one for the hostile host on the same
# port, with one namespace each.
hostile_setup() {
	load_driver && modprobe rdma_ucm && network_single && hostile_host_build &&
		backend_memory good 32 512 && target_simple "$BACKEND" &&
		backend_memory bad 16 512 && target_subsystem "$HOSTILE_NQN" &&
		target_namespace "$HOSTILE_NQN" 1 "$BACKEND" && target_export 4420 "$HOSTILE_NQN" || return 1
	OBJECTS=$(rdma_objects)
}

hostile_host_build() {
	HOSTILE=$TARGET_HERE/hostile_host
	[ ! -x "$HOSTILE" ] || return 0
	HOSTILE=$SCRATCH/hostile_host
	gcc -O2 -Wall -Werror -o "$HOSTILE" "$TARGET_HERE"/hostile_host.c "$TARGET_HERE"/hostile/*.c \
		-lrdmacm -libverbs
}

# hostile STEP...: run the hostile host. OUTPUT is what it printed.
hostile() {
	PATIENCE=$((10000 * SLOWDOWN)) run "$HOSTILE" "$TARGET4" 4420 "$HOSTILE_NQN" "$@"
}

# answers LINES STEP...: run the hostile host, which must print these lines. A line is an extended
# regular expression that matches the whole printed line.
answers() {
	local expected wanted=() got=() n
	mapfile -t wanted <<<"$1"
	shift
	hostile "$@"
	mapfile -t got <<<"$OUTPUT"
	expected=$(printf '%s; ' "${wanted[@]}")
	[ ${#wanted[@]} = ${#got[@]} ] || fail "$*: printed '$OUTPUT', expected '$expected'"
	for ((n = 0; n < ${#wanted[@]}; n++)); do
		[[ ${got[n]} =~ ^(${wanted[n]})$ ]] ||
			fail "$*: printed '${got[n]}', expected '${wanted[n]}'"
	done
}

# each_answers OUTCOME STEPS COMMAND...: run the hostile host for each command, after the STEPS. Its last line
# must be this outcome, after the name of the command. Runs all commands, so that all differences are told.
each_answers() {
	local outcome=$1 steps=$2 command failed=
	shift 2
	for command; do
		# shellcheck disable=SC2086 # a list of steps
		hostile $steps "$command"
		[[ ${OUTPUT##*$'\n'} =~ ^${command%%,*}\ ($outcome)$ ]] && continue
		note "$steps $command: printed '$OUTPUT', expected '$outcome'"
		failed=yes
	done
	[ -z "$failed" ] || fail "expected $outcome"
}

# log_has_room: wait until the target may log again. Its limit is 10 lines in 5 s for all hosts.
log_has_room() {
	sleep $((5 * SLOWDOWN)).1
}

# After each case: the target has freed all RDMA objects, and serves a good host.
serves_after_all() {
	rdma_back_to "$OBJECTS"
	trap undo EXIT
	target_serves
	rdma_back_to "$OBJECTS"
}

# check_after_each: let `after_test` make these checks.
check_after_each() {
	# shellcheck disable=SC2317 # called by the harness
	after_test() {
		(
			set -e
			serves_after_all
		)
	}
}
