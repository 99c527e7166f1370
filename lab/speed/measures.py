"""Tools of the benchmarks: what a process costs (memory, CPU by thread, CPU by part), how late its event loop is.

The benchmarks themselves drive the whole crawler, so they live in lab/speed/speed_lab.py: `xyro lab speed NAME`.
"""

from __future__ import annotations

import asyncio
import resource
import signal
import statistics
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from xyro.wire.clock import Clock

MIB = 1 << 20
TICK = 0.010
"""seconds that the lag meter sleeps between two samples"""
SAMPLE = 0.002
"""seconds of CPU between two samples of the stack"""
Part = Callable[[FrameType | None], str]
"""Names the part of the program that the innermost frame belongs to."""


class Memory(NamedTuple):
    """Bytes of a process, as the kernel counts them."""

    rss: int
    anon: int
    """RssAnon: without mapped files"""
    peak: int


def memory() -> Memory:
    """Return the memory of this process, now."""
    return memory_of("self")


def memory_of(pid: int | str) -> Memory:
    """Return the memory of a process of this machine, now; zeros of one that has just ended."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = {
        name: int(rest.split()[0]) << 10 for name, _, rest in (line.partition(":") for line in lines) if "kB" in rest
    }
    return Memory(*(found.get(name, 0) for name in ("VmRSS", "RssAnon", "VmHWM")))


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Growth of y per x: least squares through all points, so that one compaction of LevelDB does not decide."""
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def cpu_seconds() -> float:
    """User + system seconds of this process, all threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def thread_cpu() -> float:
    """User + system seconds of this thread alone."""
    used = resource.getrusage(resource.RUSAGE_THREAD)
    return used.ru_utime + used.ru_stime


def main_thread_cpu(pid: int) -> float:
    """CPU seconds of the first thread of a process: the one of its event loop."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9


def thread_seconds() -> dict[str, float]:
    """CPU seconds of each living Python thread by its name, and of all foreign threads under ''."""
    names = {thread.native_id: thread.name for thread in threading.enumerate()}
    seconds: dict[str, float] = {}
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # it ended meanwhile
            name = names.get(int(task.name), "")
            seconds[name] = seconds.get(name, 0.0) + int((task / "schedstat").read_text().split()[0]) / 1e9
    return seconds


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least `share` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def spread(values: Sequence[float], digits: int = 0) -> str:
    """median (least .. most)"""
    least, middle, largest = (f"{value:,.{digits}f}" for value in (min(values), statistics.median(values), max(values)))
    return f"{middle} ({least} .. {largest})" if len(values) > 1 else middle


def shares(count: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    """Each name's share of the whole, the largest first."""
    whole = sum(count.values()) or 1.0
    for name, value in sorted(count.items(), key=lambda item: -item[1]):
        yield name, value / whole


@dataclass(slots=True)
class Lag:
    """The delays, in seconds, by which a task that sleeps TICK seconds again and again is woken too late."""

    late: list[float]

    def sentence(self) -> str:
        """Return the delays in words, in ms."""
        middle, high = (1000 * percentile(self.late, share) for share in (0.5, 0.99))
        return (
            f"median {middle:.1f} ms, p99 {high:.1f} ms, max {1000 * max(self.late):.1f} ms ({len(self.late):,} looks)"
        )


@contextmanager
def lag_meter(clock: Clock) -> Iterator[Lag]:
    """Measure the running event loop while the block lasts."""
    lag = Lag([])

    async def look() -> None:
        while True:
            before = clock.monotonic()
            await clock.sleep(TICK)
            lag.late.append(max(0.0, clock.monotonic() - before - TICK))

    task = asyncio.get_running_loop().create_task(look())
    try:
        yield lag
    finally:
        task.cancel()


class Sampler:
    """Counts in which part of the program CPU time goes, from the stack of the main thread each SAMPLE seconds of CPU.

    Python runs the handler where the call that used the time returns, so time inside C libraries counts for the line
    that called them, and the event loop's own (reading sockets) for the callback that it calls next. Other threads are
    not seen: `thread_seconds` knows what they use. Use it in the main thread.
    """

    def __init__(self, part: Part) -> None:
        self.count: Counter[str] = Counter()
        self._part = part

    def _sample(self, number: int, frame: FrameType | None) -> None:
        self.count[self._part(frame)] += 1

    def __enter__(self) -> Sampler:
        self._before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, SAMPLE, SAMPLE)
        return self

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, self._before)


def module_of(frame: FrameType) -> str:
    """Dotted name of the module whose code the frame runs."""
    name = frame.f_globals.get("__name__")
    return name if isinstance(name, str) else ""


def say(line: str = "") -> None:
    """Print a line of a benchmark's report."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
