# SPDX-License-Identifier: GPL-2.0
"""Make what a VM needs, in parallel."""

from concurrent.futures import ThreadPoolExecutor

from . import image, kernel


def everything(wanted=None):
    """Make root, image and kernel if missing; return the kernel's tree."""
    with ThreadPoolExecutor() as pool:
        made = pool.submit(image.ensure)
        tree = kernel.ensure(wanted)
        made.result()
    return tree
