# SPDX-License-Identifier: GPL-2.0
"""What it takes to build rnvmf and to run it on a stock kernel in a VM."""
