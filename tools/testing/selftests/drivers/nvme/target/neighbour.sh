#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Target of test_two_machines.sh: that of test_target_killed.sh, with the TARGET_DRIVER of this
# directory's lib.sh.

. "$(dirname "$0")/../../block/rnvmf/neighbour.sh"
