# SPDX-License-Identifier: GPL-2.0
"""Shared code of the checks of Rust sources."""
