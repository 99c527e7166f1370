"""Looks at a directory of many URLs: stopped, and while a daemon works on it, whose event loop is judged from outside.

The judge asks /health from another process, again and again. It tells how long the longest answer took, and how much
CPU the daemon's main thread used meanwhile, which is no less than what stopped its event loop in one piece: on a busy
machine the first is the machine's. A daemon at which nobody looks is told beside the others.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from xyro.lab.child import environment, running
from xyro.lab.speed.measures import MIB, main_thread_cpu, memory_of, percentile, say
from xyro.lab.speed.scale_web import ScaleWeb, config
from xyro.service.node.run_file import Remote
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

VIEW_COMMANDS: tuple[tuple[str, ...], ...] = (
    ("status",),
    ("why", "URL"),
    ("top",),
    ("top", "--by", "stale"),
    ("top", "--by", "site"),
    ("hosts",),
    ("audit",),
)
IDLE = 10.0
"""seconds that a daemon is watched while nobody looks"""
TICK = 0.01
START_SECONDS = 900.0


@dataclass(slots=True)
class Watch:
    """Seconds that the answers of /health took, and seconds of CPU that the main thread used meanwhile."""

    answers: list[float] = field(default_factory=list)
    stops: list[float] = field(default_factory=list)

    def sentence(self) -> str:
        if not self.answers:
            return "no answer"
        middle, high = (1000 * percentile(self.answers, share) for share in (0.5, 0.99))
        longest = 1000 * max(self.answers)
        stop = f"the loop at most {1000 * max(self.stops):.0f} ms of CPU in one piece"
        return f"{stop}; /health median {middle:.1f} ms, p99 {high:.1f} ms, longest {longest:,.0f} ms"


@contextmanager
def watched(remote: Remote) -> Iterator[Watch]:
    """Ask for /health while the block lasts."""
    watch, clock, ended = Watch(), SystemClock(), threading.Event()

    def ask() -> None:
        with closing(http.client.HTTPConnection(remote.host, remote.port, timeout=START_SECONDS)) as connection:
            while not ended.wait(TICK):
                began, used = clock.monotonic(), main_thread_cpu(remote.pid)
                connection.request("GET", "/health")
                with connection.getresponse() as response:
                    response.read()
                watch.answers.append(clock.monotonic() - began)
                watch.stops.append(main_thread_cpu(remote.pid) - used)

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        yield watch
    finally:
        ended.set()
        asker.join()


def tell(directory: Path, commands: Sequence[tuple[str, ...]] = VIEW_COMMANDS) -> None:
    """Each look at the stopped directory, then at a daemon that works on it; last, another scope."""
    pages = int(json.loads(_command(directory, ("status", "--json")).output)["known"])
    url = ScaleWeb().url(pages // 2)
    chosen = [tuple(url if word == "URL" else word for word in look) for look in commands]
    for look in chosen:
        cost = _command(directory, look)
        say(f"  {'stopped: ' + ' '.join(look):<24} {cost.sentence()}")
    with running("xyro.lab.speed.scale_web", pages=pages):
        with _daemon(directory) as remote:
            _watch(remote, "nobody looks", partial(_wait, IDLE))
            for look in chosen:
                _watch(remote, " ".join(look), partial(_command, directory, look))
        with _daemon(directory, "*/section-3/*") as remote:
            _watch(remote, "section-3 leaves the scope", partial(_wait, IDLE))
        with _daemon(directory) as remote:
            _watch(remote, "and comes back", partial(_wait, IDLE))


def _wait(seconds: float) -> None:
    threading.Event().wait(seconds)


@dataclass(frozen=True, slots=True)
class CommandCost:
    """Time and memory of a command that ended, and its output."""

    output: str
    wall: float
    cpu: float
    peak: int

    def sentence(self) -> str:
        return f"{self.wall:.2f} s ({self.cpu:.2f} of CPU), {self.peak / MIB:,.0f} MiB"


def _command(directory: Path, look: Sequence[str]) -> CommandCost:
    clock = SystemClock()
    began = clock.monotonic()
    arguments = [sys.executable, "-m", "xyro", *look, "--data", str(directory)]
    child = subprocess.Popen(arguments, env=environment(), stdout=subprocess.PIPE)  # noqa: S603  # our own command
    assert child.stdout is not None
    output = child.stdout.read().decode()
    child.stdout.close()
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise MachineError(f"xyro {' '.join(look)}: exit code {child.returncode}: {output[:200]}")
    return CommandCost(output, clock.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss << 10)


def _watch(remote: Remote, name: str, look: Callable[[], object]) -> None:
    with watched(remote) as watch:
        look()
    now = memory_of(remote.pid)
    ram = f"{now.anon / MIB:,.0f} MiB anonymous, {(now.rss - now.anon) / MIB:,.0f} mapped, peak {now.peak / MIB:,.0f}"
    say(f"  {'daemon: ' + name:<24} {watch.sentence()}; {ram}")


@contextmanager
def _daemon(directory: Path, exclude: str = "") -> Iterator[Remote]:
    """A daemon on the directory, stopped by its own process id at the block's end."""
    clock = SystemClock()
    began, settings = clock.monotonic(), config(directory.with_name(f"{directory.name}.toml"), exclude)
    arguments = [sys.executable, "-m", "xyro", "serve", "--data", str(directory), "--config", str(settings)]
    with directory.with_name(f"{directory.name}.log").open("ab") as log:
        child = subprocess.Popen(  # noqa: S603  # our own command
            [*arguments, "--only-net", "127.0.0.0/8"], env=environment(), stdout=log, stderr=log
        )
    try:
        remote = None
        while remote is None:
            if child.poll() is not None or clock.monotonic() - began > START_SECONDS:
                raise MachineError(f"the daemon did not start: see {directory.name}.log")
            _wait(TICK)
            with suppress(MachineError):
                remote = Remote.find(directory)
        say(f"  {'daemon: answers after':<24} {clock.monotonic() - began:.1f} s")
        yield remote
    finally:
        began = clock.monotonic()
        child.send_signal(signal.SIGTERM)
        child.wait()
        say(f"  {'daemon: stopped after':<24} {clock.monotonic() - began:.1f} s")
