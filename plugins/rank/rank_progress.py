"""Shows a ranking's progress on standard error: a bar with the estimated end on a terminal, else lines."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from collections.abc import Callable, Iterator

import click

from xyro.opic.offline import IterationStep
from xyro.wire.clock import SystemClock

EVERY = 2.0
"""seconds between two lines"""
Tell = Callable[[IterationStep], None]


@contextlib.contextmanager
def watched(epsilon: float, limit: int) -> Iterator[Tell]:
    """Something to tell each step to."""
    if sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb":
        with _bar(epsilon, limit) as tell:
            yield tell
    else:
        yield _Lines().tell


def line(step: IterationStep) -> str:
    """One line of a step."""
    left = "" if step.left is None else f", about {step.left} to go"
    return f"iteration {step.iteration}: residual {step.residual:.3g}{left}"


class _Lines:
    def __init__(self) -> None:
        self.clock = SystemClock()
        self.last = self.clock.monotonic()

    def tell(self, step: IterationStep) -> None:
        if self.clock.monotonic() - self.last >= EVERY:
            self.last = self.clock.monotonic()
            click.echo(line(step), err=True)


@contextlib.contextmanager
def _bar(epsilon: float, limit: int) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as progress:
        task = progress.add_task("reading the crawl", total=None)

        def tell(step: IterationStep) -> None:
            done = step.iteration if step.left is None else share(step, epsilon, limit) * limit
            progress.update(task, description=line(step), completed=done, total=limit)

        yield tell


def share(step: IterationStep, epsilon: float, limit: int) -> float:
    """Return the share of the work that is done, 0..1: of the way to epsilon in powers of ten, or of the iterations."""
    way = math.log(max(step.residual, epsilon)) / math.log(epsilon) if step.residual < 1 and epsilon < 1 else 0.0
    return min(1.0, max(way, step.iteration / max(limit, 1)))
