# SPDX-License-Identifier: GPL-2.0
"""Make all that a VM needs, what can go side by side at once."""

from concurrent.futures import ThreadPoolExecutor

from . import image, kernel


def everything(wanted=None):
    """Ensure root, image and kernel; return the kernel's tree."""
    with ThreadPoolExecutor() as pool:
        made = pool.submit(image.ensure)
        tree = kernel.ensure(wanted)
        made.result()
    return tree
