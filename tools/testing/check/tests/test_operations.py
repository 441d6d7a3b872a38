# SPDX-License-Identifier: GPL-2.0
"""Tests of the check operations, with planted tables."""

import unittest

from . import program

operations = program("operations")

HEADERS = """\
#define NVME_F_FABRICS			(1 << 0)
#define NVME_F_METADATA_SUPPORTED	(1 << 1)
enum {
	NVMF_OPT_TOS		= 1 << 19,
};
"""
OFFSETS = {"name": 0, "module": 8, "flags": 16, "allowed_opts": 20, "free_ctrl": 24, "stop": 32}
SOURCES = """\
const OPTIONS: u32 = bindings::NVMF_OPT_TOS;
    fn table() -> bindings::nvme_ctrl_ops {
        bindings::nvme_ctrl_ops {
            name,
            module: module.as_ptr(),
            flags: bindings::NVME_F_FABRICS | bindings::NVME_F_METADATA_SUPPORTED,
            allowed_opts: OPTIONS as c_int,
            free_ctrl: Some(Self::free_ctrl),
            ..pin_init::zeroed()
        }
    }
"""
BITS = {"flags NVME_F_FABRICS", "flags NVME_F_METADATA_SUPPORTED", "allowed_opts NVMF_OPT_TOS"}
ALL = {"name", "module", "flags", "allowed_opts", "free_ctrl"} | BITS


class Planted(unittest.TestCase):
    """Tables that differ."""

    def test_reads_both(self):
        """A member is set if it is relocated, or has a bit."""
        words = {0: None, 8: None, 16: 3, 22: 8, 24: None}
        self.assertEqual(operations.of_nvme_rdma(words, OFFSETS, HEADERS), ALL)
        self.assertEqual(operations.of_sources(SOURCES, "nvme_ctrl_ops", ("fn table",)), ALL)

    def test_difference(self):
        """A difference needs a reason, and a reason a difference."""
        less = SOURCES.replace(" | bindings::NVME_F_METADATA_SUPPORTED", "")
        less = operations.of_sources(less, "nvme_ctrl_ops", ("fn table",))
        found = operations.differences("ops", ALL, less | {"stop"})
        metadata = "ops flags NVME_F_METADATA_SUPPORTED"
        self.assertEqual(operations.unexplained(found, {}), [
            f"{metadata}: only nvme-rdma has it; operations.table has no reason",
            "ops stop: only nvme_rdma_rust has it; operations.table has no reason"])
        reasons = {metadata: "table:1", "ops stop": "table:2", "ops name": "table:3"}
        self.assertEqual(operations.unexplained(found, reasons),
                         ["table:3: ops name: the tables no longer differ"])

    def test_no_literal(self):
        """A literal that has moved is an error."""
        with self.assertRaises(operations.table.TableError):
            operations.of_sources(SOURCES, "blk_mq_ops", ("const IO:",))
