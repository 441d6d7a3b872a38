#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Set-up for tests written in Python: creates a network and a target with two namespaces, prints
# variables and "ready", and removes everything when its standard input is closed.

. "$(dirname "$0")/lib.sh"

set_up() {
	modprobe rnvmf && network_single && backend_memory one 16 512 || return 1
	local one=$BACKEND
	backend_memory two 16 4096 && target_simple "$one" "$BACKEND"
}

requirements || exit "$KSFT_SKIP"
open_file
start_log fixture
set_up || exit "$KSFT_FAIL"
for name in NQN HOSTNQN TARGET4 TARGET6 NOBODY4; do
	echo "$name=${!name}"
done
echo ready
while read -r _; do :; done
log_is_clean
