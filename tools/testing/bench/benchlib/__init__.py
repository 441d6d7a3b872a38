# SPDX-License-Identifier: GPL-2.0
"""What the benches have in common."""
