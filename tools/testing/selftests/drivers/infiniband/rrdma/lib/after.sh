# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# What must be true after each test, when all that it made is undone.

# What the kernel may say; of samples and test modules all, for tests look at it.
EXPLAINED='rrdma_[a-z_]+: '
EXPLAINED+='|rrdma: (loading out-of-tree|module verification)'
EXPLAINED+='|rdma_rxe: |infiniband rrdma_rxe|rrdma_?[a-z0-9]+: (entered|left|renamed|link becomes)'
EXPLAINED+='|IPv6: ADDRCONF|veth[0-9]*|selftest '
# The module test_unposted makes such requests on purpose; of many at once the kernel counts some.
EXPLAINED+='|rrdma_rxe[0-9]: qp#[0-9]+ [a-z_]+: num_sge > max_sge'
EXPLAINED+='|validate_send_wr: [0-9]+ callbacks suppressed'

# The modules completion_queues and test_cq_polling send themselves a message that nobody receives. If the queue pair is drained
# just then, it may meet the drain's own receive, which has no memory: IB_WC_LOC_QP_OP_ERR is 2.
# shellcheck disable=SC2034 # read by tests
MEETS_THE_DRAIN='rrdma_rxe0: qp#[0-9]+ do_complete: non-flush error status = 2$'

# explain PATTERN: the kernel may say this, too, in the test that runs.
explain() {
	EXPLAINED+="|$1"
}

after_test() {
	local status=0
	log_is_explained || status=1
	no_sample_is_left || status=1
	[ -z "${RESOURCES-}" ] || wait_until 15 rdma_objects_are "$RESOURCES" || {
		note "RDMA objects were '$RESOURCES' and are '$(rdma_objects)'"
		status=1
	}
	return $status
}

log_is_explained() {
	local lines
	lines=$(kernel_log | grep -vE "^(<[0-9]+>)?\[[^]]*\] ($EXPLAINED)") || true
	[ -z "$lines" ] || {
		note "the kernel said what nobody explains:"
		while read -r line; do
			note "  $line"
		done <<<"$lines"
		return 1
	}
}

no_sample_is_left() {
	local module
	for module in /sys/module/rrdma_*; do
		[ ! -e "$module" ] || {
			note "${module##*/} is still loaded"
			return 1
		}
	done
}
