"""A server of the laboratory in a process of its own, for tests and measurements that must not share an event loop."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import xyro
from xyro.wire.clock import SystemClock
from xyro.wire.errors import MachineError

READY_SECONDS = 300.0
"""for one that makes all its answers first; one that fails ends by itself"""
STOP_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Running:
    """A server that listens."""

    entry: str
    port: int
    pid: int


def environment() -> dict[str, str]:
    """The environment of a child that imports the same package as this process, wherever it lies."""
    path = os.pathsep.join(filter(None, (str(Path(xyro.__file__).parents[1]), os.environ.get("PYTHONPATH"))))
    return {**os.environ, "PYTHONPATH": path}


@contextmanager
def running(module: str = "xyro.lab.web.server", **options: object) -> Iterator[Running]:
    """Runs `python -m MODULE --option value ...` until the block ends: `with running(pages=500, hosts=4) as web:`.
    An option that is True is a flag.

    The child is stopped by its own process id, with SIGKILL if SIGTERM does not do within STOP_SECONDS. Raises
    MachineError where it does not listen within READY_SECONDS.
    """
    arguments: list[str] = []
    for name, value in options.items():
        arguments += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    child = subprocess.Popen(  # noqa: S603  # our own interpreter, our own module
        [sys.executable, "-m", module, *arguments],
        stdout=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        env=environment(),
    )
    try:
        entry = _first_line(child)
        yield Running(entry, urlsplit(entry).port or 80, child.pid)
    finally:
        _stop(child)


def _first_line(child: subprocess.Popen[bytes]) -> str:
    """The entry URL, as the child prints it when it listens."""
    if child.stdout is None:
        raise TypeError("a child whose stdout is a pipe")
    clock, line = SystemClock(), b""
    deadline = clock.monotonic() + READY_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while not line.endswith(b"\n"):
            ready = selector.select(max(0.0, deadline - clock.monotonic()))
            piece = os.read(child.stdout.fileno(), 4096) if ready else b""
            if not piece:
                raise MachineError(f"lab server {child.args!r}: it ended, or did not listen within {READY_SECONDS} s")
            line += piece
    return line.decode().strip()


def _stop(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    if child.stdout is not None:
        child.stdout.close()
