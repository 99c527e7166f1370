"""Python's cyclic garbage collector, as suits a crawl."""

from __future__ import annotations

import gc


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
