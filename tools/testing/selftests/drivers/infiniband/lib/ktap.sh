# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The functions of the kernel tree's kselftest/ktap_helpers.sh that the harness uses, for runs without
# that file.

KSFT_PASS=0
KSFT_FAIL=1
# shellcheck disable=SC2034 # read by the harness
KSFT_SKIP=4

KTAP_TESTNO=1
KTAP_CNT_PASS=0
KTAP_CNT_FAIL=0
KTAP_CNT_SKIP=0
KSFT_NUM_TESTS=0

ktap_print_header() {
	echo "TAP version 13"
}

ktap_set_plan() {
	KSFT_NUM_TESTS=$1
	echo "1..$KSFT_NUM_TESTS"
}

ktap_skip_all() {
	echo "1..0 # SKIP $*"
}

# __ktap_test RESULT TEST [DIRECTIVE]
__ktap_test() {
	echo "$1 $KTAP_TESTNO $2${3:+ # $3}"
	KTAP_TESTNO=$((KTAP_TESTNO + 1))
}

ktap_test_pass() {
	__ktap_test ok "$1"
	KTAP_CNT_PASS=$((KTAP_CNT_PASS + 1))
}

ktap_test_fail() {
	__ktap_test "not ok" "$1"
	KTAP_CNT_FAIL=$((KTAP_CNT_FAIL + 1))
}

ktap_print_totals() {
	echo "# Totals: pass:$KTAP_CNT_PASS fail:$KTAP_CNT_FAIL xfail:0 xpass:0" \
		"skip:$KTAP_CNT_SKIP error:0"
}

ktap_finished() {
	ktap_print_totals
	[ $((KTAP_CNT_PASS + KTAP_CNT_SKIP)) -eq "$KSFT_NUM_TESTS" ] && exit "$KSFT_PASS"
	exit "$KSFT_FAIL"
}
