"""A stopped crawl, opened to be looked at: nothing is written."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from configs.load import load
from crawl import given
from crawl.data_dir import DataDir
from crawl.guarding import guard_of
from crawl.page_node import PageNode
from crawl.turn.scope import Scope
from wire.clock import SystemClock


@contextlib.contextmanager
def nodes_of(directory: Path) -> Iterator[list[PageNode]]:
    """The page nodes of a data directory as of its last commit. InputError where there is none, or it is in use."""
    data = DataDir.open(directory)
    try:
        settings = load(given.paths(directory))
        scope = Scope(settings.crawl, settings.rules, guard_of(settings.fetch).host_allowed)
        nodes = [PageNode(partition, scope, settings, refreshing=False) for partition in data.partitions]
        now = SystemClock().time()
        for node in nodes:
            node.recover(now)
        yield nodes
    finally:
        data.close()
