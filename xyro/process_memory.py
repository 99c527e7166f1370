"""Memory, as suits a process that lives long: Python's cyclic garbage collector, and the C library's allocator."""

from __future__ import annotations

import ctypes
import gc
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt(3)
LARGE: Final = 1 << 20
"""bytes: a block as large has a mapping of its own, which goes back to the system when it is freed"""


def pause() -> None:
    """Until `tune`: what a start imports is not looked through again and again."""
    gc.disable()


def tune() -> None:
    """For a process that lives long and makes few cycles: imports are spared, and what is young is looked at seldom.

    Not too seldom: each parser of lxml that has a target is a cycle of some 20 objects and holds a libxml2 context. At
    50,000 new objects 2,500 of them waited at once, and the heap swung by 13 MB.
    """
    gc.freeze()  # what few cycles the imports left are not worth the 40 ms of looking through all that they made
    gc.enable()
    gc.set_threshold(10_000, 50, 50)
    _give_back_large_blocks()


def _give_back_large_blocks() -> None:
    """Bodies of many megabytes that arrive at once leave no holes in the heap: 70 MB less beside 180 hostile hosts.

    glibc would take such blocks from the heap once it has seen some freed. Another C library does as it does.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, LARGE)
        mallopt(_TRIM_THRESHOLD, 2 * LARGE)
