"""A slow disk: `python -m xyro.lab.crash.disk SECONDS WORD...` is `python -m xyro WORD...`, each write so much later.

So reads wait for the disk, and what bounds them shows: a fast disk is never more than a few reads behind.
"""

from __future__ import annotations

import runpy
import sys
from threading import Event

from xyro.metadata.store import Batch, Store


def slow_down(seconds: float) -> None:
    """Delay every batch by `seconds` before it is written: it is lost if the process is killed meanwhile."""
    write = Store.write

    def late(store: Store, batch: Batch) -> None:
        Event().wait(seconds)
        write(store, batch)

    Store.write = late  # type: ignore[method-assign,assignment]


if __name__ == "__main__":
    slow_down(float(sys.argv.pop(1)))
    runpy.run_module("xyro", run_name="__main__", alter_sys=True)
