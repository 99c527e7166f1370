"""Memory and threads, as suit a process that lives long: Python's cyclic garbage collector, the C library's allocator,
how soon the event loop goes on when a thread works."""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Final

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # mallopt(3)
LARGE: Final = 1 << 20
"""bytes: a block as large has a mapping of its own, which goes back to the system when it is freed"""
_SWITCH: Final = 0.0005
"""seconds that a thread which runs Python lets others wait: the event loop, after each look at its sockets. With 5 ms,
Python's own choice, a host that is read 100 times a second has a third fewer reads while a sitemap is parsed"""


def pause() -> None:
    """Until `tune`: what a start imports is not looked through again and again."""
    gc.disable()


def tune() -> None:
    """Suit a process that lives long and makes few cycles: imports are spared, what is young is looked at seldom.

    Not too seldom: each parser of lxml that has a target is a cycle of some 20 objects and holds a libxml2 context. At
    50,000 new objects 2,500 of them waited at once, and the heap swung by 13 MB.
    """
    gc.freeze()  # what few cycles the imports left are not worth the 40 ms of looking through all that they made
    gc.enable()
    gc.set_threshold(10_000, 50, 50)
    sys.setswitchinterval(_SWITCH)
    _give_back_large_blocks()


def _give_back_large_blocks() -> None:
    """Bodies of many megabytes that arrive at once leave no holes in the heap: 70 MB less beside 180 hostile hosts.

    glibc would take such blocks from the heap once it has seen some freed. Another C library does as it does.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, LARGE)
        mallopt(_TRIM_THRESHOLD, 2 * LARGE)
