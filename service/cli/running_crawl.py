"""The process that works on a data directory, found by the commands that ask something of it; one that starts is waited
for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from xyro.service.cli.options import FiniteFloat, of_cluster, tell
from xyro.wire.errors import InputError, MachineError

if TYPE_CHECKING:
    from xyro.service.node.run_file import Remote

STARTS = 30.0
"""seconds that a process which has the directory open, and cannot be asked yet, is waited for"""
GRACE = 1.0
"""seconds in which one that was started with this command may say that it starts"""
TICK = 0.1
with_wait = click.option(
    "--wait",
    type=FiniteFloat(0.0),
    default=None,
    metavar="SECONDS",
    help=f"Wait so long for a process that works there [{STARTS:.0f} for one that is starting, else {GRACE:.0f}].",
)


def find_running(directory: Path, wait: float | None = None) -> Remote | None:
    """The process; None where none works there, also after `wait` seconds. MachineError: one does, and cannot be asked
    after that time."""
    from xyro.service.node.run_file import Remote

    if (remote := Remote.find(directory)) is not None or not _pause(directory, wait):
        return remote
    return _awaited(directory, wait, lambda: Remote.find(directory))


def daemon(directory: Path, wait: float | None = None) -> Remote:
    """The process that works on the directory. InputError: there is none."""
    remote = find_running(directory, wait)
    if remote is None and wait is None and _begins(directory):
        remote = find_running(directory)
    if remote is None:
        mend = of_cluster() or f"; `xyro serve --data {directory}` starts one"
        raise InputError(f"{directory}: no process works on it{mend}")
    return remote


def _begins(directory: Path) -> bool:
    """Tell whether a process announces itself now: Python takes a moment until it can."""
    for _ in range(round(GRACE / TICK)):
        threading.Event().wait(TICK)
        if _is_open(directory):
            return True
    return False


def _awaited(directory: Path, wait: float | None, find: Callable[[], Remote | None]) -> Remote | None:
    from xyro.wire.clock import SystemClock

    clock = SystemClock()
    deadline = clock.monotonic() + (STARTS if wait is None else wait)
    while clock.monotonic() < deadline:
        _pause(directory, wait)
        threading.Event().wait(TICK)
        if (remote := find()) is not None:
            return remote
        if wait is None and not _is_open(directory):
            return None
    from xyro.metadata.directories import is_announced

    if is_announced(directory):
        raise MachineError(f"{directory}: the process that works on it is still starting; ask again later")
    if _is_open(directory):
        raise InputError(f"{directory}: in use by another process, which cannot be asked; wait until it has ended")
    return None


def _pause(directory: Path, wait: float | None) -> bool:
    """Tell whether there is something to wait for. A command says so once, however often it looks."""
    starting = _is_open(directory)
    context = click.get_current_context(silent=True)
    announced = set[Path]() if context is None else context.meta.setdefault(__name__, set())
    if starting and directory not in announced:
        announced.add(directory)
        tell(f"{directory}: the process that works on it is starting", err=True)
    return starting or bool(wait)


def _is_open(directory: Path) -> bool:
    from xyro.metadata.directories import is_announced, is_locked

    return is_locked(directory / "p0000" / "store" / "OWNER") or is_announced(directory)
