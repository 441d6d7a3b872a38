#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The tests of test_recovery.sh without native multipath: requests wait in the queues of their path.

MULTIPATH=N
. "$(dirname "$0")/test_recovery.sh"
