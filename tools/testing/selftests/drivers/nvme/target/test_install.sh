#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the comparison of nvmet_rdma_rust with the private structures of the running kernel, and the
# files that put it in the place of nvmet-rdma.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/replacement.sh"

requirements() {
	need_root && need_modules nvmet-rdma nvmet_rdma_rust rnvmf && need_programs rnvmf python3
}

REPLACED=nvmet_rdma REPLACEMENT=nvmet_rdma_rust OPTION=--target
FIELD=nvmet_fabrics_ops::add_port HEADER=target/nvmet.h CONFIG=CONFIG_NVME_TARGET
PARAMETER=srq_size=300

# ask_for_rdma: have nvmet ask for a transport of the type RDMA. No device has the address of the port, so
# enabling it fails.
ask_for_rdma() {
	modprobe nvmet
	mkdir "$NVMET/subsystems/$NQN" "$NVMET/ports/7"
	echo rdma >"$NVMET/ports/7/addr_trtype"
	echo ipv4 >"$NVMET/ports/7/addr_adrfam"
	echo 192.0.2.1 >"$NVMET/ports/7/addr_traddr"
	echo 4420 >"$NVMET/ports/7/addr_trsvcid"
	expect 1 ln -s "$NVMET/subsystems/$NQN" "$NVMET/ports/7/subsystems/$NQN"
	rmdir "$NVMET/ports/7" "$NVMET/subsystems/$NQN"
}

test_replacement
