# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What the tests of rnvme share. A test sources this, defines functions, and calls `main`.

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The files below read these.
# shellcheck disable=SC2034
SELFTESTS=$(cd "$HERE/../../.." && pwd)
# shellcheck disable=SC2034
TEST_FILE=${0##*/}
# shellcheck disable=SC2034
ARGUMENTS=("$@")

. "$HERE/lib/harness.sh"
. "$HERE/lib/network.sh"
. "$HERE/lib/target.sh"
. "$HERE/lib/backend.sh"
. "$HERE/lib/host.sh"
. "$HERE/lib/resources.sh"
. "$HERE/lib/trace.sh"
. "$HERE/lib/load.sh"
