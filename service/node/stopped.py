"""Opens a stopped crawl to be looked at: nothing is written."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from xyro.configs.load import SERVE, load
from xyro.configs.parsed_types import scope_settings
from xyro.configs.schema import Settings
from xyro.frontier.frontier import Extension, Frontier
from xyro.frontier.scope import Scope
from xyro.metadata.partition import Partition
from xyro.service.node import crawl_file
from xyro.service.node.crawl_views import CrawlViews
from xyro.service.node.data_dir import DataDir
from xyro.service.node.guard_factory import guard_of
from xyro.wire.clock import SystemClock


@contextlib.contextmanager
def nodes_of(
    directory: Path, extensions: Callable[[Settings], Sequence[Extension]], numbers: Sequence[int] | None = None
) -> Iterator[list[Frontier]]:
    """The partitions of a data directory as of its last commit; `extensions` chooses the plug-ins of each.

    numbers: of those that are wanted, where it need not be a whole crawl. InputError where there is no such directory,
    or a process works on it.
    """
    data = DataDir.open(directory, look=True) if numbers is None else DataDir.open_some(directory, numbers, look=True)
    try:
        settings = load((SERVE, *crawl_file.paths(directory)))
        scope = Scope(scope_settings(settings), settings.rules, guard_of(settings.fetch).host_allowed)
        frontiers = [Frontier(partition, scope, settings, False, extensions(settings)) for partition in data.partitions]
        now = SystemClock().time()
        for frontier in frontiers:
            frontier.recover(now)
        yield frontiers
    finally:
        data.close()


@contextlib.contextmanager
def open_stopped(directory: Path, extensions: Callable[[Settings], Sequence[Extension]]) -> Iterator[CrawlViews]:
    """The views of a data directory as of its last commit. InputError: as `nodes_of`."""
    with nodes_of(directory, extensions) as frontiers:
        yield CrawlViews(frontiers, stopped=True)


@contextlib.contextmanager
def stopped_partition(directory: Path, number: int) -> Iterator[Partition]:
    """One partition of a data directory, to store rows in. InputError: as `nodes_of`."""
    data = DataDir.open(directory)
    try:
        yield data.partitions[number]
    finally:
        data.close()
