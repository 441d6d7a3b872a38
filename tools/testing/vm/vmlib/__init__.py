# SPDX-License-Identifier: GPL-2.0
"""Build rnvmf, and run it in a VM with a stock kernel or the debug kernel."""
