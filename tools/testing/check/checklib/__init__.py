# SPDX-License-Identifier: GPL-2.0
"""What the checks of Rust sources share."""
