# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Checks after each test, once its deferred commands have run.

# Log lines that are expected. All lines of samples and test modules are: the tests check them.
EXPLAINED='rrdma_[a-z_]+: '
EXPLAINED+='|rrdma: (loading out-of-tree|module verification)'
EXPLAINED+='|rdma_rxe: |infiniband rrdma_rxe|rrdma_?[a-z0-9]+: (entered|left|renamed|link becomes)'
EXPLAINED+='|IPv6: ADDRCONF|veth[0-9]*|selftest '
# The module test_unposted posts such requests on purpose; the kernel ratelimits the messages.
EXPLAINED+='|rrdma_rxe[0-9]: qp#[0-9]+ [a-z_]+: num_sge > max_sge'
EXPLAINED+='|validate_send_wr: [0-9]+ callbacks suppressed'
# A CPU that runs freely may not have run for a while.
on_time || EXPLAINED+='|hrtimer: interrupt took'

# The modules completion_queues and test_cq_polling send themselves a message without a posted
# receive. A drain at that moment posts its marker receive, which has no memory. If the message
# consumes the marker, it fails with IB_WC_LOC_QP_OP_ERR (2).
# shellcheck disable=SC2034 # read by tests
MEETS_THE_DRAIN='rrdma_rxe0: qp#[0-9]+ do_complete: non-flush error status = 2$'

# explain PATTERN: also expect log lines that match, in the running test.
explain() {
	EXPLAINED+="|$1"
}

after_test() {
	local status=0
	log_is_explained || status=1
	no_sample_is_left || status=1
	[ -z "${RESOURCES-}" ] || wait_until 20 rdma_objects_are "$RESOURCES" || {
		note "RDMA objects leaked: before '$RESOURCES', now '$(rdma_objects)'"
		status=1
	}
	return $status
}

log_is_explained() {
	local lines
	lines=$(kernel_log | grep -vE "^(<[0-9]+>)?\[[^]]*\] ($EXPLAINED)") || true
	[ -z "$lines" ] || {
		note "unexpected lines in the kernel log:"
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
