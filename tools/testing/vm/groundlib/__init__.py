# SPDX-License-Identifier: GPL-2.0
"""The ground: what it takes to build rnvme and to run it on a stock kernel in a VM."""
