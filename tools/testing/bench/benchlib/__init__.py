# SPDX-License-Identifier: GPL-2.0
"""Modules of the side-by-side benchmark."""
