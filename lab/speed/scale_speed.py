"""`xyro lab speed scale`: what knowing many URLs costs, on a real directory that grows from size to size.

The directory is grown through the real frontier by reports of computed pages (scale_web.py): every turn, batch, row and
snapshot is the real one. At each size: cost a link, turns, commits, RAM (anonymous and mapped apart), disk, close and
open; then each look at the directory, stopped and while a daemon works on it, whose event loop is watched by asking
/health from outside (scale_looks.py); last, what a changed scope does to that loop.

With --data the directory stays, and the next run goes on from its size. Sizes of millions are filled first, by the same
turns of pages with a thousand new links each; the last 2 % are pages as measured.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from xyro import process_memory
from xyro.lab.child import environment
from xyro.lab.speed import scale_looks
from xyro.lab.speed.measures import MIB, cpu_seconds, memory, percentile, say
from xyro.lab.speed.ram_speed import LINKS, MIX, GroupCost, GrowingFrontier
from xyro.lab.speed.scale_web import ScaleWeb, settings_of
from xyro.wire.clock import SystemClock

GROUP = 50
"""reports a commit group"""
MEASURED = 100
"""commit groups of each kind whose cost is told"""
FILL, FILLED = (1_000, 0, 0), 0.98
"""links of a page, and share of a size of millions, while it is not measured: an hour a size otherwise"""
KINDS = {"near": (0, LINKS, 0), "far": (0, 0, LINKS)}


@dataclass(frozen=True, slots=True)
class Lives:
    """Seconds of CPU and of wall time that a process took to open and to close the directory."""

    opened: tuple[float, float]
    closed: tuple[float, float]


def scale(sizes: Sequence[int], data: Path | None, viewed: bool) -> None:
    """Measure at each size, in ascending order."""
    say(f"pages of {LINKS} links: {MIX[0]} new, {MIX[1]} near, {MIX[2]} far; groups of {GROUP}; CPU, not wall time")
    with tempfile.TemporaryDirectory(prefix="xyro-scale-") as temporary:
        directory = data or Path(temporary) / "data"
        for size in sorted(sizes):
            _run("grow", directory, size)
            _run("close", directory, size)
            if viewed:
                scale_looks.tell(directory)


def _run(step: str, directory: Path, size: int) -> None:
    """A step in a process of its own: its memory is that of this size alone."""
    arguments = [sys.executable, "-m", "xyro.lab.speed.scale_speed", step, str(directory), str(size)]
    subprocess.run(arguments, env=environment(), check=True)  # noqa: S603  # our own interpreter, our own module


def grow(directory: Path, size: int) -> None:
    """Open the directory, or make one; grow it and tell what that cost."""
    frontier, _ = _opened(directory)
    if frontier.pages_known >= size:
        say(f"{frontier.pages_known:,} URLs are there already")
    costs: list[GroupCost] = []
    while size > 2_000_000 and frontier.pages_known < FILLED * size:
        frontier.read(*FILL)
    frontier.turn_seconds.clear()
    frontier.commit_seconds.clear()
    while frontier.pages_known < size:
        costs.append(frontier.read(*MIX))
    say(f"\n{frontier.pages_known:,} URLs")
    if costs:
        _tell_costs("grown, us a link", costs[-MEASURED:])
        _tell_seconds("turn", frontier.turn_seconds)
        _tell_seconds("commit (wall)", frontier.commit_seconds)
    for name, kinds in KINDS.items():
        _tell_costs(f"{name}, us a link", [frontier.read(*kinds) for _ in range(MEASURED // 5)])
    _tell_memory(frontier.pages_known)
    _tell_life("closed after growing", _closed(frontier))
    disk = sum(path.stat().st_blocks * 512 for path in directory.rglob("*") if path.is_file())
    say(f"  {'disk':<24} {disk / MIB:,.0f} MiB, {disk / frontier.pages_known:.0f} B a URL")


def reopen(directory: Path, size: int) -> None:
    """Open the directory, and close it when nothing was done."""
    frontier, opened = _opened(directory)
    _tell_life("open", opened)
    _tell_memory(frontier.pages_known)
    _tell_life("closed when idle", _closed(frontier))


def _opened(directory: Path) -> tuple[GrowingFrontier, tuple[float, float]]:
    process_memory.tune()
    clock, web = SystemClock(), ScaleWeb()
    cpu, wall = cpu_seconds(), clock.monotonic()
    frontier = GrowingFrontier(directory, web, GROUP, settings_of())
    spent = cpu_seconds() - cpu, clock.monotonic() - wall
    web.pages_known = frontier.frontier.columns.n
    return frontier, spent


def _closed(frontier: GrowingFrontier) -> tuple[float, float]:
    clock = SystemClock()
    cpu, wall = cpu_seconds(), clock.monotonic()
    partition = frontier.frontier.partition
    if partition.journal_bytes:
        for _ in partition.snapshot():
            pass
    frontier.data.close()
    return cpu_seconds() - cpu, clock.monotonic() - wall


def _tell_costs(name: str, costs: Sequence[GroupCost]) -> None:
    links = statistics.median(cost.cpu / max(cost.links, 1) for cost in costs) * 1e6
    pages = statistics.median(cost.cpu / cost.pages for cost in costs) * 1e6
    say(f"  {name:<24} {links:.1f}   {pages:,.0f} a page, {1e6 / links:,.0f} links/s")


def _tell_seconds(name: str, seconds: Sequence[float]) -> None:
    middle, high = (1000 * percentile(seconds, share) for share in (0.5, 0.99))
    say(f"  {name:<24} median {middle:.1f} ms, p99 {high:.1f} ms, longest {1000 * max(seconds):.1f} ms")


def _tell_memory(urls: int) -> None:
    now = memory()
    mapped = now.rss - now.anon
    anonymous = f"{now.anon / MIB:,.0f} MiB anonymous ({now.anon / urls:.0f} B a URL)"
    say(f"  {'RAM':<24} {anonymous}, {mapped / MIB:,.0f} MiB mapped")


def _tell_life(name: str, spent: tuple[float, float]) -> None:
    say(f"  {name:<24} {spent[0]:.2f} s of CPU, {spent[1]:.2f} s of wall time")


if __name__ == "__main__":
    {"grow": grow, "close": reopen}[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
