# SPDX-License-Identifier: GPL-2.0
"""Parts of the kit for tests on hardware."""
