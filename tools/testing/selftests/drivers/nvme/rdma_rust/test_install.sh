#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Tests the comparison of nvme_rdma_rust with the private structures of the running kernel, and the
# files that put it in the place of nvme-rdma.

. "$(dirname "$0")/lib.sh"
. "$HERE/lib/replacement.sh"

requirements() {
	need_root && need_modules nvme-rdma nvme_rdma_rust rnvmf && need_programs rnvmf nvme python3
}

REPLACED=nvme_rdma REPLACEMENT=nvme_rdma_rust OPTION=--transport
FIELD=nvme_ctrl::ops HEADER=host/nvme.h CONFIG=CONFIG_NVME_FABRICS
PARAMETER=

# ask_for_rdma: have nvme-fabrics ask for a transport `rdma`. The connect itself fails.
ask_for_rdma() {
	modprobe nvme-fabrics
	expect 1 nvme connect -t rdma -a 192.0.2.1 -s 4420 -n nqn.2014-08.org.example:none
}

test_replacement
