"""Parts of `xyro lab refresh` computed ahead by several processes: each leaves its file, where figures() finds it.

A part is one (world, knowledge, bandwidth) and needs nothing of another. A process receives the function that makes
the table of parts (the parts themselves do not travel), makes it anew and computes one by name. A part that is on disk
already is not computed again, so a run that was stopped goes on; the longest parts, those of much bandwidth, begin
first. However the run ends, its processes end with it.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from xyro.lab import work_parts
from xyro.lab.work_parts import KeyedPart

Make = Callable[[], Mapping[str, KeyedPart]]
"""makes the table of parts; picklable"""


def compute_one(out: Path, make: Make, name: str) -> str:
    """Compute one part into its file; return its name."""
    work_parts.compute({name: make()[name]}, {}, out, show=False)
    return name


def ahead(out: Path, make: Make, names: Iterable[str], jobs: int, show: bool) -> None:
    """Compute the parts of these names by `jobs` processes; where `show` is on, print a line for each part done."""
    names = sorted(names, key=_bandwidth, reverse=True)
    spawn = multiprocessing.get_context("spawn")  # a fork would share numpy's threads and the terminal
    with ProcessPoolExecutor(min(jobs, len(names)), mp_context=spawn, initializer=_end_with_parent) as pool:
        waiting = [pool.submit(compute_one, out, make, name) for name in names]
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                name = future.result()
                if show:
                    sys.stderr.write(f"{done:3} of {len(names)}  {name}\n")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _end_with_parent() -> None:
    """End this process of the pool with its parent, which else would leave it waiting for its next part for ever."""
    parent = multiprocessing.parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _bandwidth(name: str) -> float:
    """Return the bandwidth of a part, the last word of its name; 1 for the estimators' part, which is long."""
    try:
        return float(name.rpartition(" ")[2])
    except ValueError:
        return 1.0
